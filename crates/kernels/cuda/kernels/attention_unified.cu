// Attention by mma.sync and cp.async, with the same work for every warp: the staircase from one stage with scores,
// weights and scalar products in shared memory to a ring of stages with all of it in registers.
//
// A block has one tile, TILE_M queries of a head, and goes over the keys they see, TILE_N a step. All threads copy K
// and V of a step to a slot of shared memory, STAGES − 1 steps ahead; each warp then has its sixteen queries to
// itself: scores (attention_unified_fragments.cuh), their softmax (attention_unified_softmax.cuh), its products with
// the values (the same, or attention_unified_scalar.cuh), and the results' way out (attention_unified_results.cuh).
// The words of a schedule are definitions, so each step of the staircase is this file compiled once more.
//
// Few queries have fewer tiles than a GPU has multiprocessors, and their time is that of reading keys and values. Tiles
// of 16 queries give each of four warps its keys of every step; a tile's keys are split over several blocks; and heads
// that share a key head are rows of the same tile, so that keys are read once. Parts are merged at the end
// (attention_unified_parts.cuh).
//
// Sequences of several lengths that only the device knows, and keys and values in pages, are as serving engines keep
// them (RAGGED, attention_unified_work.cuh): then a block finds its tile by its number, and ends if there is none;
// tiles of 16 queries are shared out in equal numbers of steps (STREAMED).
//
// Definitions beside those of attention.cuh: TILE_M, TILE_N, STAGES; SPLIT 1, a tile's keys are split over
// Parameter::parts blocks; PACKED 1, a tile's rows are of all heads that share a key head; SCORES: 0 stay in registers,
// 1 go to shared memory and weights overwrite them, 2 weights lie apart; VALUES, P·V: 0 on the matrix unit, 1 scalar;
// LAYOUT: 0 plain, 1 swizzled; EPILOGUE: 0 direct, 1 staged; ARITHMETIC of e4m3 queries and keys: 0 fp16, 1 as they
// are; OVERLAP 1, the launch may begin before the one before it has ended.
#include "attention_unified_parts.cuh"
#include "attention_unified_results.cuh"
#include "attention_unified_scalar.cuh"

// ---- A step, from scores to sums, and how sums become results: a function for each way.

DEVICE void add_step(RegisterSoftmax& softmax, MatrixSums& sums, const RawScores& scores, u32 values,
                     const StepScales& scales) {
    u32 lane = threadIdx.x % 32, weights[WARP_KEYS / 16][4];
    float corrections[2];
    softmax.weigh(scores, weights, corrections);
    sums.correct(corrections[0], corrections[1]);
    if constexpr (BY_BLOCK) {
#pragma unroll
        for (u32 key = 0; key < WARP_KEYS; key += RUN)
            sums.add_block(weights + key / 16, values, key, scales.of_values(key), lane);
    } else {
#pragma unroll
        for (u32 block = 0; block < WARP_KEYS / 16; ++block) sums.add(weights[block], values, 16 * block, lane);
    }
}

DEVICE void add_step(SharedSoftmax& softmax, MatrixSums& sums, const RawScores& scores, u32 values,
                     const StepScales& scales) {
    u32 lane = softmax.lane, factors = softmax.memory + FACTORS_AT + (softmax.first_row + lane / 4) * 4;
    softmax.weigh(scores);
    sums.correct(__uint_as_float(load_shared(factors)), __uint_as_float(load_shared(factors + 8 * 4)));
    auto read_weights = [&](u32(&weights)[4], u32 block) {
        u32 area = softmax.memory + WEIGHTS_AT;
        uint4 words = load_matrices(sixteen_rows<WEIGHT_ROW>(area, softmax.first_row, 2 * block, lane));
        weights[0] = words.x, weights[1] = words.y, weights[2] = words.z, weights[3] = words.w;
    };
    if constexpr (BY_BLOCK) {
#pragma unroll
        for (u32 block = 0; block < TILE_N / SCALE_BLOCK; ++block) {
            u32 weights[SCALE_BLOCK / 16][4];
#pragma unroll
            for (u32 index = 0; index < SCALE_BLOCK / 16; ++index)
                read_weights(weights[index], block * (SCALE_BLOCK / 16) + index);
            sums.add_block(weights, values, block * SCALE_BLOCK, scales.of_values(block * SCALE_BLOCK), lane);
        }
    } else {
#pragma unroll
        for (u32 block = 0; block < TILE_N / 16; ++block) {
            u32 weights[4];
            read_weights(weights, block);
            sums.add(weights, values, 16 * block, lane);
        }
    }
}

DEVICE void add_step(SharedSoftmax& softmax, ScalarSums& sums, const RawScores& scores, u32 values,
                     const StepScales& scales) {
    softmax.weigh(scores);
    sums.correct(softmax.memory + FACTORS_AT + softmax.first_row * 4);
    sums.add(softmax.memory + WEIGHTS_AT, softmax.first_row, values, scales, softmax.lane);
}

template <typename Softmax>
DEVICE void finish_sums(Softmax&, MatrixSums& sums, const Work&, Visible visible, float value_scale) {
    float first = row_share(visible.first, sums.totals[0], value_scale);
    sums.correct(first, row_share(visible.second, sums.totals[2], value_scale));
}

DEVICE void finish_sums(SharedSoftmax& softmax, ScalarSums& sums, const Work& work, Visible, float value_scale) {
    softmax.finish(work.sequence, work.tile.query, value_scale);
    sums.correct(softmax.memory + FACTORS_AT + softmax.first_row * 4);
}

// ---- The block.

// Steps that may still be on their way when one is awaited.
constexpr u32 LATER_STEPS = STAGES > 1 ? STAGES - 2 : 0;
// With the most sums and scores there are no registers left for queries, and every step reads them again.
constexpr bool READ_AGAIN = HEAD * WARP_KEYS >= 128 * 128;

template <bool, typename First, typename Second>
struct Either {
    using Type = First;
};
template <typename First, typename Second>
struct Either<false, First, Second> {
    using Type = Second;
};
using Softmax = Either<SCORES_IN_REGISTERS, RegisterSoftmax, SharedSoftmax>::Type;
using Sums = Either<SCALAR, ScalarSums, MatrixSums>::Type;

// What a block has of a tile.
DEVICE void compute(const Parameter& parameter, Work& work, u32 memory) {
    u32 lane = threadIdx.x % 32;
    // Broadcast, so that the compiler knows that a warp takes one branch.
    u32 warp = __shfl_sync(~0u, threadIdx.x / 32, 0), warp_row = 16 * (warp % ROW_WARPS);
    u32 warp_key = warp / ROW_WARPS * WARP_KEYS, warp_bytes = warp_key * PITCH;
    load_rows<TILE_M>(memory + QUERIES_AT, [&](u32 row) { return work.query_at(parameter, row); }, work.rows);
    copy_commit();
    for (u32 step = 1; step < STAGES; ++step) work.load_step(parameter, memory, work.first_step + step - 1);

    u32 row = warp_row + lane / 4;
    Scales scales = work.scales(parameter, row), scales_below = PACKED ? work.scales(parameter, row + 8) : scales;
    BlockScales blocks = work.block_scales(parameter, PACKED ? row : warp_row);
    BlockScales blocks_below = PACKED ? work.block_scales(parameter, row + 8) : blocks;
    u32 visible_to_all = work.fewest_visible(warp_row);
    Visible visible = {work.visible(row), work.visible(row + 8)};
    Softmax softmax(scales.score, scales_below.score, memory, warp_row);
    Sums sums;

    copy_wait<STAGES - 1>();
    __syncthreads();
    Queries queries;
    auto read_again = [&] {
        read_queries(queries, memory + QUERIES_AT, warp_row, scales.flip, scales_below.flip, lane);
    };
    if constexpr (!READ_AGAIN) read_again();
    for (u32 step = work.first_step; step < work.end_step; ++step) {
        // With a ring, one barrier serves two purposes: the step has landed for all threads, and all are done with the
        // previous step, whose slot is loaded next. Without a ring, the only slot is loaded after the barrier and then
        // awaited.
        if constexpr (STAGES > 1) copy_wait<LATER_STEPS>();
        __syncthreads();
        work.load_step(parameter, memory, step + STAGES - 1);
        if constexpr (STAGES == 1) {
            copy_wait<0>();
            __syncthreads();
        }
        u32 slot = step % STAGES * STEP_BYTES + warp_bytes, first_key = step * TILE_N + warp_key;
        if constexpr (READ_AGAIN) read_again();
        RawScores scores;
        multiply_keys(scores, queries, memory + KEYS_AT + slot, lane);
        if constexpr (BY_BLOCK) scale_by_block(scores, blocks, blocks_below, first_key);
        if (first_key + WARP_KEYS > visible_to_all) mask(scores, visible, first_key, lane);
        add_step(softmax, sums, scores, memory + VALUES_AT + slot, StepScales{blocks, first_key});
    }

    if constexpr (KEY_WARPS > 1) {
        finish_shared_rows(parameter, work, softmax, sums, memory, warp, lane);
    } else {
        if constexpr (SPLIT) {
            if (warp_row >= work.rows || work.parts > 1 && !merge_own_rows(parameter, work, softmax, sums, warp))
                return;
        }
        finish_sums(softmax, sums, work, visible, scales.value);
        Results results = {parameter,
                           work,
                           warp_row,
                           work.rows - min(work.rows, warp_row),
                           memory + RESULTS_AT + warp_row * RESULT_ROW,
                           lane};
        sums.element_pairs(lane,
                           [&](u32 row, u32 element, float low, float high) { results.put(row, element, low, high); });
        results.finish();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention_unified(const __grid_constant__ Parameter parameter) {
    extern __shared__ __align__(1024) u8 dynamic[];
    u32 memory = shared_address(dynamic);
    if constexpr (OVERLAP) grid_launch_dependents();
#if RAGGED
    if constexpr (OVERLAP) grid_wait();
    if constexpr (STREAMED) {
        Shares shares(parameter);
        u32 end = shares.begin(blockIdx.x + 1);
        Found found = {0, 0, 0};
        for (u32 step = shares.begin(blockIdx.x); step < end;) {
            Work work(parameter, shares, found, step, end);
            step += max(work.end_step - work.first_step, 1u);
            compute(parameter, work, memory);
            __syncthreads();  // the next tile's operands take the place of what is merged
        }
        return;
    }
#endif
    // Tables are not written by launches, so they are read while the one before is still running; ragged lengths may
    // be.
    Work work(parameter);
    if constexpr (OVERLAP && !RAGGED) grid_wait();
    if (RAGGED && work.rows == 0 || SPLIT && work.part >= work.parts) return;
    compute(parameter, work, memory);
}
