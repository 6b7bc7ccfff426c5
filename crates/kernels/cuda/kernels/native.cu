// NVFP4 grouped GEMM on Blackwell's matrix unit, which multiplies e2m1 values with scales of e4m3 as they are: no
// operand passes through registers, and sums lie in tensor memory.
//
// A step of a tile's depth is loaded into a stage (native_loads.cuh) and multiplied (native_products.cuh); the sums
// leave by native_results.cuh. This file deals the work out to threads. Barriers in shared memory hand stages, sums and
// work items over: FULL when copies have brought a stage, EMPTY when products have read it, SUMS_FULL when a tile's
// products are complete, SUMS_EMPTY when its sums have been read. Of a pair of blocks, each loads its part and stores
// its rows; the first multiplies, once the second has said by PEER_FULL that its part is there.
//
// Definitions: TILE_M 128, or with PAIRED 1 256; TILE_N, TILE_K, STAGES, SPLIT_K, SWAP_AB, EPILOGUE, ROLES, ORDER and
// LOOKUP are the schedule's; BLOCK_MAPS 1, each block makes its tensor maps; DUAL 1, silu(A·B₁ᵀ) ∘ (A·B₂ᵀ); OUTPUT 0
// fp16, 1 bf16, 2 fp32; TILE_SUMS, tiles whose sums tensor memory holds at once; TENSOR_COLUMNS, columns of it that a
// block takes.
#include "native_loads.cuh"
#include "native_products.cuh"
#include "native_results.cuh"

// ---- Unified: the first warp loads and multiplies, one step after the other; then all four store.

// Steps that are loaded ahead of the one that is multiplied. A stage is filled again when the products of the step
// before the last have read it, so that one step's products run while the thread waits.
constexpr u32 AHEAD = STAGES > 1 ? STAGES - 1 : 1;

// Stages are those from `first` on.
DEVICE void load_and_multiply(const Parameter& parameter, const Work& work, u32 memory, u32 tensor, StageCursor first,
                              GroupMaps& maps) {
    Operands operands(parameter, work.tile, maps.of(parameter, work.tile.group, memory, first));
    StageCursor filled = first, read = first;
    u32 loaded = 0;
#pragma unroll 1
    for (u32 step = 0; step < work.steps; ++step) {
#pragma unroll 1
        for (; loaded < min(step + AHEAD, work.steps); ++loaded, filled.next()) {
            barrier_wait(memory + EMPTY + filled.slot * 8, filled.turn ^ 1);
            load_step(operands, memory, filled.slot, work.first_step + loaded);
        }
        barrier_wait(memory + FULL + read.slot * 8, read.turn);
        tensor_fence_after();
        multiply_step(memory, tensor, read.slot, 0, work.tile.column, step == 0);
        tensor_commit(memory + EMPTY + read.slot * 8);
        read.next();
    }
    tensor_commit(memory + SUMS_FULL);
}

DEVICE void everyone(const Parameter& parameter, u32 memory, u32 tensor, u32 warp, u32 lane, Recorder& recorder) {
    recorder.begin(Role::Everyone, 0, threadIdx.x == 0);
    StageCursor stage;
    GroupMaps maps;
    u32 place = first_place(), turn = 0;
    for (;; turn ^= 1) {
        Work work = next_work(parameter, memory + WORK, place);
        if (work.steps == 0) break;
        recorder.end(Activity::Lookup, work.number);
        if (warp == 0) {
            if (elect()) {
                barrier_wait(memory + SUMS_EMPTY, turn ^ 1);
                tensor_fence_after();
                load_and_multiply(parameter, work, memory, tensor, stage, maps);
            }
            __syncwarp();
        }
        stage.advance(work.steps);
        barrier_wait(memory + SUMS_FULL, turn);
        tensor_fence_after();
        recorder.end(Activity::Multiply, work.number);
        store(parameter, work, memory, tensor, 0, warp, lane, recorder);
    }
}

// ---- Specialised: one thread loads, across tiles, as far ahead as there are stages; another multiplies, as far ahead
// of the warps that store as there are sums. The loading one looks up works and hands them to both.

struct WorkReader {
    u32 memory;
    WorkCursor cursor;

    DEVICE explicit WorkReader(u32 memory) : memory(memory) {}

    DEVICE Work next() {
        barrier_wait(memory + WORK_FULL + cursor.slot * 8, cursor.turn);
        Work work = read_work(memory + WORK + cursor.slot * WORK_BYTES);
        barrier_arrive(memory + WORK_EMPTY + cursor.slot * 8);
        cursor.next();
        return work;
    }
};

DEVICE void load(const Parameter& parameter, u32 memory) {
    StageCursor stage;
    WorkCursor cursor;
    GroupMaps maps;
    u32 place = first_place();
    for (;;) {
        if constexpr (order == Order::Dynamic) place = take_place(parameter);
        Work work = work_at(parameter, place);
        if constexpr (order != Order::Dynamic) place = next_place(place);
        barrier_wait(memory + WORK_EMPTY + cursor.slot * 8, cursor.turn ^ 1);
        write_work(memory + WORK + cursor.slot * WORK_BYTES, work);
        barrier_arrive(memory + WORK_FULL + cursor.slot * 8);
        cursor.next();
        if (work.steps == 0) break;
        Operands operands(parameter, work.tile, maps.of(parameter, work.tile.group, memory, stage));
#pragma unroll 1
        for (u32 step = work.first_step; step < work.first_step + work.steps; ++step, stage.next()) {
            barrier_wait(memory + EMPTY + stage.slot * 8, stage.turn ^ 1);
            load_step(operands, memory, stage.slot, step);
        }
    }
}

// Threads of both blocks of a pair release sums.
DEVICE void wait_for_sums(u32 barrier, u32 turn) {
    if constexpr (PAIRED) barrier_wait_in_cluster(barrier, turn);
    else barrier_wait(barrier, turn);
}

DEVICE void multiply(u32 memory, u32 tensor) {
    StageCursor stage;
    SumsCursor sums;
    WorkReader works(memory);
    for (;; sums.next()) {
        Work work = works.next();
        if (work.steps == 0) break;
        wait_for_sums(memory + SUMS_EMPTY + sums.slot * 8, sums.turn ^ 1);
        tensor_fence_after();
#pragma unroll 1
        for (u32 step = 0; step < work.steps; ++step, stage.next()) {
            barrier_wait(memory + FULL + stage.slot * 8, stage.turn);
            if constexpr (PAIRED) barrier_wait_in_cluster(memory + PEER_FULL + stage.slot * 8, stage.turn);
            tensor_fence_after();
            multiply_step(memory, tensor, stage.slot, sums.slot, work.tile.column, step == 0);
            tensor_commit(memory + EMPTY + stage.slot * 8);
        }
        tensor_commit(memory + SUMS_FULL + sums.slot * 8);
    }
}

// The second block of a pair tells the first which of its stages are full.
DEVICE void tell_peer(u32 memory) {
    StageCursor stage;
    WorkReader works(memory);
    for (;;) {
        Work work = works.next();
        if (work.steps == 0) break;
#pragma unroll 1
        for (u32 step = 0; step < work.steps; ++step, stage.next()) {
            barrier_wait(memory + FULL + stage.slot * 8, stage.turn);
            barrier_arrive_in_cluster(address_in_block(memory + PEER_FULL + stage.slot * 8, 0));
        }
    }
}

DEVICE void store_tiles(const Parameter& parameter, u32 memory, u32 tensor, u32 warp, u32 lane, Recorder& recorder) {
    recorder.begin(Role::Storer, 0, threadIdx.x == 0);
    SumsCursor sums;
    WorkReader works(memory);
    for (;; sums.next()) {
        Work work = works.next();
        if (work.steps == 0) break;
        barrier_wait(memory + SUMS_FULL + sums.slot * 8, sums.turn);
        tensor_fence_after();
        recorder.end(Activity::Wait, work.number);
        store(parameter, work, memory, tensor, sums.slot, warp, lane, recorder);
    }
}

// ---- The kernel.

// All threads of the block, or of both blocks of a pair, are here, and done with tensor memory.
DEVICE void synchronise() {
    tensor_fence_before();
    if constexpr (PAIRED) {
        cluster_arrive();
        cluster_wait();
    } else {
        __syncthreads();
    }
    tensor_fence_after();
}

// Initialises barriers, and takes tensor memory, whose address it returns.
DEVICE u32 prepare(u32 memory, u32 warp) {
    if (threadIdx.x == 0) {
        for (u32 stage = 0; stage < STAGES; ++stage) {
            barrier_init(memory + FULL + stage * 8, 1);
            barrier_init(memory + EMPTY + stage * 8, 1);
            if constexpr (PAIRED) barrier_init(memory + PEER_FULL + stage * 8, 1);
        }
        for (u32 sums = 0; sums < TILE_SUMS; ++sums) {
            barrier_init(memory + SUMS_FULL + sums * 8, 1);
            barrier_init(memory + SUMS_EMPTY + sums * 8, BLOCKS_A_TILE * STORING_THREADS);
        }
        for (u32 work = 0; work < WORKS; ++work) {
            barrier_init(memory + WORK_FULL + work * 8, 1);
            barrier_init(memory + WORK_EMPTY + work * 8, STORING_THREADS + 1);
        }
        barrier_init_fence();
    }
    if (warp == 0) tensor_memory_take<TENSOR_COLUMNS>(memory + TENSOR_MEMORY);
    synchronise();
    // Up to here a launch may overtake the one before it.
    grid_wait();
    grid_launch_dependents();
    return load_shared(memory + TENSOR_MEMORY);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) native(const __grid_constant__ Parameter parameter) {
    extern __shared__ __align__(1024) u8 dynamic[];
    Recorder recorder;
    u32 memory = shared_address(dynamic), lane = threadIdx.x % 32;
    // Broadcast, so that the compiler knows that a warp takes one branch.
    u32 warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    u32 tensor = prepare(memory, warp);
    if constexpr (SPECIALISED) {
        if (warp == LOADING_WARP) {
            if (elect()) load(parameter, memory);
        } else if (warp == MULTIPLYING_WARP) {
            if (elect()) {
                if (rank_in_pair() == 0) multiply(memory, tensor);
                else tell_peer(memory);
            }
        } else {
            store_tiles(parameter, memory, tensor, warp, lane, recorder);
        }
        __syncwarp();
    } else {
        everyone(parameter, memory, tensor, warp, lane, recorder);
    }
    if constexpr (epilogue == Epilogue::Staged) store_bulk_wait_read<0>();
    // All sums have been read. No block of a pair leaves before the other, which may still signal it.
    synchronise();
    if (warp == 0) tensor_memory_return<TENSOR_COLUMNS>(tensor);
}
