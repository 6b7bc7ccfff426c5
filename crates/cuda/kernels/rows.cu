// NVFP4 grouped GEMM with tokens as the rows of a tile: the staircase from plain tiles to specialised warps.
//
// A step of a tile's depth is loaded packed (rows_loads.cuh), converted and multiplied (rows_products.cuh); its results
// leave by rows_results.cuh, and rows_work.cuh says which tile is next. The words of a schedule are definitions
// (rows_words.cuh), so each step of the staircase is this file compiled once more.
#include "rows_loads.cuh"
#include "rows_products.cuh"
#include "rows_results.cuh"
#include "rows_work.cuh"

constexpr u32 MULTIPLYING_BARRIER = 1;

DEVICE void synchronise_multiplying() {
    named_barrier_sync(MULTIPLYING_BARRIER, MULTIPLYING_THREADS);
}

// One step, by all multiplying warps. With several stages, weights are converted while the product of the step before
// still runs: it reads the other slot, and everyone waits for it before the barrier, after which the slot before may be
// written. With one stage there is one slot, and nothing overlaps.
DEVICE void compute_step(Sums& sums, u32 memory, const Cursor& cursor, u32 converted_slot, u32 step, u32 warp, u32 lane) {
    barrier_wait(memory + FULL + cursor.slot * 8, cursor.turn);
    if constexpr (STAGES == 1) {
        products_wait<0>();
        synchronise_multiplying();
    }
    convert_weights(memory, cursor.slot, converted_slot, step, warp, lane);
    fence_async();
    PackedTokens tokens;
    read_tokens(tokens, memory, cursor.slot, step, warp, lane);
    if constexpr (SPECIALISED) {
        __syncwarp();
        if (lane == 0) barrier_arrive(memory + EMPTY + cursor.slot * 8);
    }
    if constexpr (STAGES > 1) products_wait<0>();
    synchronise_multiplying();
    multiply(sums, tokens, memory, converted_slot);
}

DEVICE void clear(Sums& sums) {
#pragma unroll
    for (u32 matrix = 0; matrix < MATRICES; ++matrix)
#pragma unroll
        for (u32 index = 0; index < COLUMNS / 2; ++index) sums[matrix][index] = 0.0f;
}

// ---- Unified: every warp loads, converts and multiplies. The barrier in a step says that its slot has been read.

// The block's next work, the same for all threads.
DEVICE Work next_work(const Parameter& parameter, u32 memory, u32& place) {
    if constexpr (order == Order::Dynamic) {
        if (threadIdx.x == 0) store_shared(memory + WORK, take_place(parameter));
        __syncthreads();
        place = load_shared(memory + WORK);
        __syncthreads();
        return work_at(parameter, place);
    }
    Work work = work_at(parameter, place);
    place = next_place(place);
    return work;
}

DEVICE void everyone(const Parameter& parameter, u32 memory, u32 warp, u32 lane) {
    constexpr u32 AHEAD = STAGES - 1;
    Cursor loaded, computed;
    u32 converted_slot = 0, place = blockIdx.x;
    for (;;) {
        Work work = next_work(parameter, memory, place);
        if (work.steps == 0) break;
        Operands operands(parameter, work.tile);
        auto load = [&](u32 step) {
            load_step(operands, memory, loaded.slot, work.first_step + step, threadIdx.x);
            loaded.next();
        };
        for (u32 step = 0; step < min(AHEAD, work.steps); ++step) load(step);
        Sums sums;
        clear(sums);
#pragma unroll 1
        for (u32 step = 0; step < work.steps; ++step) {
            if (step + AHEAD < work.steps) load(step + AHEAD);
            compute_step(sums, memory, computed, converted_slot, work.first_step + step, warp, lane);
            computed.next();
            converted_slot = (converted_slot + 1) % CONVERTED_SLOTS;
        }
        products_wait<0>();
        store(parameter, work, sums, memory, warp, lane);
    }
}

// ---- Specialised: one warp loads, across tiles, as far ahead as there are slots; it hands each step's work over with
// the step, and no work with an empty one.

DEVICE void producer(const Parameter& parameter, u32 memory, u32 lane) {
    Cursor cursor;
    u32 place = blockIdx.x;
    auto acquire = [&](const Work& work) {
        barrier_wait(memory + EMPTY + cursor.slot * 8, cursor.turn ^ 1);
        if (elect()) write_work(memory + WORK + cursor.slot * WORK_BYTES, work);
    };
    for (;;) {
        if constexpr (order == Order::Dynamic) {
            if (lane == 0) place = take_place(parameter);
            place = __shfl_sync(~0u, place, 0);
        }
        Work work = work_at(parameter, place);
        if (work.steps == 0) break;
        if constexpr (order != Order::Dynamic) place = next_place(place);
        Operands operands(parameter, work.tile);
#pragma unroll 1
        for (u32 step = work.first_step; step < work.first_step + work.steps; ++step) {
            acquire(work);
            load_step(operands, memory, cursor.slot, step, lane);
            cursor.next();
        }
    }
    acquire(NO_WORK);
    u32 full = memory + FULL + cursor.slot * 8;
    if (elect()) barrier_arrive(full);
    copy_arrive(full);
}

DEVICE void consumer(const Parameter& parameter, u32 memory, u32 warp, u32 lane) {
    Cursor cursor;
    u32 converted_slot = 0;
    for (;;) {
        barrier_wait(memory + FULL + cursor.slot * 8, cursor.turn);
        Work work = read_work(memory + WORK + cursor.slot * WORK_BYTES);
        if (work.steps == 0) break;
        Sums sums;
        clear(sums);
#pragma unroll 1
        for (u32 step = 0; step < work.steps; ++step) {
            compute_step(sums, memory, cursor, converted_slot, work.first_step + step, warp, lane);
            cursor.next();
            converted_slot = (converted_slot + 1) % CONVERTED_SLOTS;
        }
        products_wait<0>();
        store(parameter, work, sums, memory, warp, lane);
    }
}

// ---- The kernel.

DEVICE void prepare(u32 memory) {
    if (threadIdx.x == 0) {
        for (u32 slot = 0; slot < STAGES; ++slot) {
            barrier_init(memory + FULL + slot * 8, FULL_ARRIVALS);
            barrier_init(memory + EMPTY + slot * 8, MULTIPLYING_WARPS);
        }
        barrier_init_fence();
    }
    __syncthreads();
    // Up to here a launch may overtake the one before it.
    grid_wait();
    grid_launch_dependents();
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) rows(const __grid_constant__ Parameter parameter) {
    extern __shared__ __align__(1024) u8 dynamic[];
    u32 memory = shared_address(dynamic), lane = threadIdx.x % 32;
    // Broadcast, so that the compiler knows that a warp takes one branch.
    u32 warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    prepare(memory);
    if constexpr (SPECIALISED) {
        if (warp >= MULTIPLYING_WARPS) {
            if constexpr (EXCHANGE_REGISTERS) registers_decrease<LOADING_REGISTERS>();
            if (warp == MULTIPLYING_WARPS) producer(parameter, memory, lane);
        } else {
            if constexpr (EXCHANGE_REGISTERS) registers_increase<MULTIPLYING_REGISTERS>();
            consumer(parameter, memory, warp, lane);
        }
    } else {
        everyone(parameter, memory, warp, lane);
    }
    if constexpr (epilogue == Epilogue::Staged) store_bulk_wait_read<0>();
}
