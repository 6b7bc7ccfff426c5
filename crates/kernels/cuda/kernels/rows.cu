// NVFP4 grouped GEMM with tokens as the rows of a tile: the staircase from plain tiles to specialised warps.
//
// A step of a tile's depth is loaded packed (rows_loads.cuh), converted and multiplied (rows_products.cuh); its
// results leave by rows_results.cuh, and work.cuh says which tile is next. The words of a schedule are
// definitions (rows_words.cuh), so each step of the staircase is this file compiled once more.
#include "rows_loads.cuh"
#include "rows_products.cuh"
#include "rows_results.cuh"
#include "work.cuh"

constexpr u32 MULTIPLYING_BARRIER = 1;

DEVICE void synchronise_multiplying() { named_barrier_sync(MULTIPLYING_BARRIER, MULTIPLYING_THREADS); }

// ---- What multiplying warps do with a step.

struct Multiplier {
    u32 memory, warp, lane;
    Cursor cursor;           // of packed operands
    u32 converted_slot = 0;  // of the step that is multiplied next
    PackedTokens tokens;     // of that step
    Sums sums;

    DEVICE Multiplier(u32 memory, u32 warp, u32 lane) : memory(memory), warp(warp), lane(lane) {}

    DEVICE void clear() {
#pragma unroll
        for (u32 matrix = 0; matrix < MATRICES; ++matrix)
#pragma unroll
            for (u32 index = 0; index < COLUMNS / 2; ++index) sums[matrix][index] = 0.0f;
    }

    DEVICE void await_loaded() const { barrier_wait(memory + FULL + cursor.slot * 8, cursor.turn); }

    // The last access to a slot: loads tokens into registers, and makes converted weights visible to the matrix unit.
    DEVICE void finish_slot(u32 step) {
        fence_async();
        read_tokens(tokens, memory, cursor.slot, step, warp, lane);
        // Every thread arrives by itself: one arrival a warp is no faster (measured on an H200), and the race checker
        // would not see that the warp's other threads have read.
        if constexpr (SPECIALISED) barrier_arrive(memory + EMPTY + cursor.slot * 8);
        cursor.next();
    }

    // Converts a loaded step without overlap.
    DEVICE void convert(u32 step) {
        for (u32 part = 0; part < PARTS; ++part)
            convert_weights(memory, cursor.slot, converted_slot, step, part, warp, lane);
        finish_slot(step);
    }

    // Multiplies the converted step piece by piece, and beside each piece calls `meanwhile` with its number. Before it,
    // all threads have converted this step and are done with the previous step's products. Every other group of warps
    // calls `meanwhile` first, so that groups take turns at the matrix unit (measured on an H200: 6 % of the time at
    // tiles of 128 × 128 × 256, 1 % at a depth of 128).
    template <typename Meanwhile>
    DEVICE void multiply_step(Meanwhile meanwhile) {
        bool products_first = warp / 4 % 2 == 0;
        synchronise_multiplying();
#pragma unroll
        for (u32 part = 0; part < PARTS; ++part) {
            if (!products_first) meanwhile(part);
            multiply(sums, tokens, memory, converted_slot, part);
            if (products_first) meanwhile(part);
        }
    }

    // With one slot of each, nothing overlaps.
    DEVICE void multiply_alone() {
        multiply_step([](u32) {});
        products_wait<0>();
        synchronise_multiplying();
    }

    // Multiplies a step while the weights of the next are converted into the other slot, if there is a next step:
    // `more` waits for it and returns whether there is one.
    template <typename More>
    DEVICE void multiply_and_convert(const u32& next_step, More more) {
        bool there = false;
        multiply_step([&](u32 part) {
            if (part == 0) there = more();
            if (there) convert_weights(memory, cursor.slot, converted_slot ^ 1, next_step, part, warp, lane);
        });
        if (there) finish_slot(next_step);
        products_wait<0>();
        converted_slot ^= 1;
    }
};

// ---- Unified: every warp loads, converts and multiplies. The barrier in a step says that its slot has been read.

DEVICE void everyone(const Parameter& parameter, u32 memory, u32 warp, u32 lane, Recorder& recorder) {
    recorder.begin(Role::Everyone, 0, threadIdx.x == 0);
    Multiplier multiplier(memory, warp, lane);
    Cursor cursor;
    u32 place = first_place();
    for (;;) {
        Work work = next_work(parameter, memory + WORK, place);
        if (work.steps == 0) break;
        recorder.end(Activity::Lookup, work.number);
        Operands operands(parameter, work.tile);
        auto load = [&](u32 step) {
            if (step >= work.steps) return;
            load_step(operands, memory, cursor.slot, work.first_step + step, threadIdx.x);
            cursor.next();
        };
        multiplier.clear();
        if constexpr (STAGES == 1) {
#pragma unroll 1
            for (u32 step = 0; step < work.steps; ++step) {
                load(step);
                multiplier.await_loaded();
                multiplier.convert(work.first_step + step);
                multiplier.multiply_alone();
            }
        } else {
            for (u32 step = 0; step < STAGES; ++step) load(step);
            multiplier.await_loaded();
            recorder.end(Activity::Load, work.number);
            multiplier.convert(work.first_step);
            recorder.end(Activity::Convert, work.number);
#pragma unroll 1
            for (u32 step = 0; step < work.steps; ++step)
                multiplier.multiply_and_convert(work.first_step + step + 1, [&] {
                    // This step's slot was read before the barrier.
                    load(step + STAGES);
                    if (step + 1 == work.steps) return false;
                    multiplier.await_loaded();
                    return true;
                });
        }
        recorder.end(Activity::Multiply, work.number);
        store(parameter, work, multiplier.sums, memory, warp, lane, recorder);
    }
}

// ---- Specialised: one warp loads, across tiles, as far ahead as there are slots; it hands each step's work over
// with the step, and no work with an empty one.

DEVICE void producer(const Parameter& parameter, u32 memory, u32 lane, Recorder& recorder) {
    recorder.begin(Role::Loader, 0, lane == 0);
    Cursor cursor;
    u32 place = first_place();
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
        recorder.end(Activity::Lookup, work.number);
        Operands operands(parameter, work.tile);
#pragma unroll 1
        for (u32 step = work.first_step; step < work.first_step + work.steps; ++step) {
            acquire(work);
            load_step(operands, memory, cursor.slot, step, lane);
            cursor.next();
        }
        recorder.end(Activity::Load, work.number);
    }
    acquire(NO_WORK);
    u32 full = memory + FULL + cursor.slot * 8;
    if (elect()) barrier_arrive(full);
    copy_arrive(full);
}

DEVICE void consumer(const Parameter& parameter, u32 memory, u32 warp, u32 lane, Recorder& recorder) {
    recorder.begin(Role::Multiplier1, warp / 4, warp % 4 == 0 && lane == 0);
    Multiplier multiplier(memory, warp, lane);
    auto await_work = [&] {
        multiplier.await_loaded();
        return read_work(memory + WORK + multiplier.cursor.slot * WORK_BYTES);
    };
    Work work = await_work();
    if constexpr (STAGES > 1)
        if (work.steps > 0) {
            recorder.end(Activity::Wait, work.number);
            multiplier.convert(work.first_step);
            recorder.end(Activity::Convert, work.number);
        }
    while (work.steps > 0) {
        if constexpr (STAGES == 1) recorder.end(Activity::Wait, work.number);
        multiplier.clear();
        // The owner of the next step: the current work, or already the next one.
        Work next = work;
#pragma unroll 1
        for (u32 step = 0; step < work.steps; ++step) {
            u32 next_step = work.first_step + step + 1;
            if constexpr (STAGES == 1) {
                multiplier.await_loaded();
                multiplier.convert(work.first_step + step);
                multiplier.multiply_alone();
            } else {
                multiplier.multiply_and_convert(next_step, [&] {
                    next = await_work();
                    if (step + 1 == work.steps) next_step = next.first_step;
                    return next.steps > 0;
                });
            }
        }
        recorder.end(Activity::Multiply, work.number);
        store(parameter, work, multiplier.sums, memory, warp, lane, recorder);
        work = STAGES == 1 ? await_work() : next;
    }
}

// ---- The kernel.

DEVICE void prepare(u32 memory) {
    if (threadIdx.x == 0) {
        for (u32 slot = 0; slot < STAGES; ++slot) {
            barrier_init(memory + FULL + slot * 8, FULL_ARRIVALS);
            barrier_init(memory + EMPTY + slot * 8, MULTIPLYING_THREADS);
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
    Recorder recorder;
    u32 memory = shared_address(dynamic), lane = threadIdx.x % 32;
    // Broadcast, so that the compiler knows that a warp takes one branch.
    u32 warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    prepare(memory);
    if constexpr (SPECIALISED) {
        if (warp >= MULTIPLYING_WARPS) {
            if constexpr (EXCHANGE_REGISTERS) registers_decrease<LOADING_REGISTERS>();
            if (warp == MULTIPLYING_WARPS) producer(parameter, memory, lane, recorder);
        } else {
            if constexpr (EXCHANGE_REGISTERS) registers_increase<MULTIPLYING_REGISTERS>();
            consumer(parameter, memory, warp, lane, recorder);
        }
    } else {
        everyone(parameter, memory, warp, lane, recorder);
    }
    if constexpr (epilogue == Epilogue::Staged) store_bulk_wait_read<0>();
}
