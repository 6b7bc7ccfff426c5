// Attention by mma.sync and cp.async, with the same work for every warp: the staircase from one stage with scores,
// weights and scalar products in shared memory to a ring of stages with all of it in registers.
//
// A block has one tile, TILE_M queries of a head, and goes over the keys they see, TILE_N a step. All threads copy K
// and V of a step to a slot of shared memory, STAGES − 1 steps ahead; each warp then has its sixteen queries to
// itself: scores (attention_unified_fragments.cuh), their softmax (attention_unified_softmax.cuh), its products with
// the values (the same, or attention_unified_scalar.cuh), and the results' way out (attention_unified_results.cuh).
// The words of a schedule are definitions, so each step of the staircase is this file compiled once more.
//
// Definitions beside those of attention.cuh: TILE_M, TILE_N, STAGES; SCORES: 0 stay in registers, 1 go to shared
// memory and weights overwrite them, 2 weights lie apart; VALUES, P·V: 0 on the matrix unit, 1 scalar; LAYOUT: 0
// plain, 1 swizzled; EPILOGUE: 0 direct, 1 staged; ARITHMETIC of e4m3 queries and keys: 0 fp16, 1 as they are; OVERLAP 1, the launch may begin before the one before it has
// ended.
#include "attention_unified_results.cuh"
#include "attention_unified_scalar.cuh"

// ---- The work of a block.

struct Work {
    Sequence sequence;
    Tile tile;
    u32 rows, steps;                // queries, and steps of keys that they see
    const u8 *key, *value;          // the head's

    // Entries of both tables are 16 bytes, and so are their loads.
    DEVICE Work(const Parameter& parameter) {
        uint4 words = __ldg((const uint4*)parameter.tiles + blockIdx.x);
        tile = {words.x, words.y, words.z, words.w};
        words = __ldg((const uint4*)parameter.sequences + tile.sequence);
        sequence = {words.x, words.y, words.z, words.w};
        rows = min(sequence.queries - tile.query, (u32)TILE_M);
        steps = (visible_keys(sequence, tile.query + rows - 1) + TILE_N - 1) / TILE_N;
        u32 head = tile.head / (parameter.heads / parameter.kv_heads);
        u64 first = ((u64)sequence.key_row + (u64)head * sequence.keys) * ROW_BYTES;
        key = parameter.key + first;
        value = parameter.value + first;
    }

    // Of Q and of the output.
    DEVICE u64 first_row() const {
        return (u64)sequence.query_row + (u64)tile.head * sequence.queries + tile.query;
    }

    // Starts the copies of a step, if there is one more; commits a group of copies in either case, so that all threads
    // count alike.
    DEVICE void load_step(u32 memory, u32 step) const {
        if (step < steps) {
            u32 first = step * TILE_N, slot = step % STAGES * STEP_BYTES;
            load_rows<TILE_N>(memory + KEYS_AT + slot, key + (u64)first * ROW_BYTES, sequence.keys - first);
            load_rows<TILE_N>(memory + VALUES_AT + slot, value + (u64)first * ROW_BYTES, sequence.keys - first);
        }
        copy_commit();
    }
};

// ---- A step, from scores to sums, and how sums become results: a function for each way.

DEVICE void add_step(RegisterSoftmax& softmax, MatrixSums& sums, const RawScores& scores, u32 values, const StepScales& scales) {
    u32 lane = threadIdx.x % 32, weights[TILE_N / 16][4];
    float corrections[2];
    softmax.weigh(scores, weights, corrections);
    sums.correct(corrections[0], corrections[1]);
    if constexpr (BY_BLOCK) {
#pragma unroll
        for (u32 block = 0; block < TILE_N / SCALE_BLOCK; ++block)
            sums.add_block(weights + block * (SCALE_BLOCK / 16), values, block * SCALE_BLOCK, scales.of_values(block * SCALE_BLOCK), lane);
    } else {
#pragma unroll
        for (u32 block = 0; block < TILE_N / 16; ++block) sums.add(weights[block], values, 16 * block, lane);
    }
}

DEVICE void add_step(SharedSoftmax& softmax, MatrixSums& sums, const RawScores& scores, u32 values, const StepScales& scales) {
    u32 lane = softmax.lane, factors = softmax.memory + FACTORS_AT + (softmax.first_row + lane / 4) * 4;
    softmax.weigh(scores);
    sums.correct(__uint_as_float(load_shared(factors)), __uint_as_float(load_shared(factors + 8 * 4)));
    auto read_weights = [&](u32 (&weights)[4], u32 block) {
        u32 area = softmax.memory + WEIGHTS_AT;
        uint4 words = load_matrices(sixteen_rows<WEIGHT_ROW>(area, softmax.first_row, 2 * block, lane));
        weights[0] = words.x, weights[1] = words.y, weights[2] = words.z, weights[3] = words.w;
    };
    if constexpr (BY_BLOCK) {
#pragma unroll
        for (u32 block = 0; block < TILE_N / SCALE_BLOCK; ++block) {
            u32 weights[SCALE_BLOCK / 16][4];
#pragma unroll
            for (u32 index = 0; index < SCALE_BLOCK / 16; ++index) read_weights(weights[index], block * (SCALE_BLOCK / 16) + index);
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

DEVICE void add_step(SharedSoftmax& softmax, ScalarSums& sums, const RawScores& scores, u32 values, const StepScales& scales) {
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
constexpr bool READ_AGAIN = HEAD == 128 && TILE_N == 128;

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

extern "C" __global__ void __launch_bounds__(THREADS, 1)
attention_unified(const __grid_constant__ Parameter parameter) {
    extern __shared__ __align__(1024) u8 dynamic[];
    u32 memory = shared_address(dynamic), lane = threadIdx.x % 32;
    // Broadcast, so that the compiler knows that a warp takes one branch.
    u32 warp = __shfl_sync(~0u, threadIdx.x / 32, 0), warp_row = 16 * warp;
    if constexpr (OVERLAP) {
        grid_launch_dependents();
        grid_wait();
    }
    Work work(parameter);
    load_rows<TILE_M>(memory + QUERIES_AT, parameter.query + work.first_row() * ROW_BYTES, work.rows);
    copy_commit();
    for (u32 step = 1; step < STAGES; ++step) work.load_step(memory, step - 1);

    Scales scales = load_scales(parameter, work.tile.sequence, work.tile.head);
    BlockScales blocks(parameter, work.tile.sequence, work.sequence, work.tile.head, work.tile.query + warp_row);
    u32 query = work.tile.query + warp_row, visible_to_all = visible_keys(work.sequence, query);
    query += lane / 4;
    Visible visible = {visible_keys(work.sequence, query), visible_keys(work.sequence, query + 8)};
    Softmax softmax(scales.score, memory, warp_row);
    Sums sums;

    copy_wait<STAGES - 1>();
    __syncthreads();
    Queries queries;
    if constexpr (!READ_AGAIN) read_queries(queries, memory + QUERIES_AT, warp_row, scales.flip, lane);
    for (u32 step = 0; step < work.steps; ++step) {
        // With a ring, one barrier serves two purposes: the step has landed for all threads, and all are done with the
        // previous step, whose slot is loaded next. Without a ring, the only slot is loaded after the barrier and then
        // awaited.
        if constexpr (STAGES > 1) copy_wait<LATER_STEPS>();
        __syncthreads();
        work.load_step(memory, step + STAGES - 1);
        if constexpr (STAGES == 1) {
            copy_wait<0>();
            __syncthreads();
        }
        u32 slot = step % STAGES * STEP_BYTES;
        if constexpr (READ_AGAIN) read_queries(queries, memory + QUERIES_AT, warp_row, scales.flip, lane);
        RawScores scores;
        multiply_keys(scores, queries, memory + KEYS_AT + slot, lane);
        if constexpr (BY_BLOCK) scale_by_block(scores, blocks, step * TILE_N);
        if ((step + 1) * TILE_N > visible_to_all) mask(scores, visible, step * TILE_N, lane);
        add_step(softmax, sums, scores, memory + VALUES_AT + slot, StepScales{blocks, step * TILE_N});
    }

    finish_sums(softmax, sums, work, visible, scales.value);
    Results results = {parameter, work.first_row() + warp_row, work.rows - min(work.rows, warp_row),
                       memory + RESULTS_AT + warp_row * RESULT_ROW, lane};
    sums.element_pairs(lane, [&](u32 row, u32 element, float low, float high) {
        results.put(row, element, low, high);
    });
    results.finish();
}
