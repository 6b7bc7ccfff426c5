// Attention by specialised warps: one loads, warp groups of 64 queries each multiply, and, for e4m3, three warps convert.
//
// A warp group begins the scores of the next step before the weighted sum of this one, so the matrix unit works while it
// computes exponentials; groups take turns in beginning, so that one computes exponentials while another's products run.
//
// Definitions, beside those of attention.cuh: CONSUMERS, warp groups that multiply; KEYS of a step; STAGES of the rings;
// ARITHMETIC, for e4m3: 0 converted to fp16, 1 multiplied as it is; UNIFORM 1, all sequences are equal; DESCENDING 1,
// they are to be computed from their last queries down; SHARED bytes.
#include "attention_specialised_loads.cuh"
#include "attention_specialised_products.cuh"

// Together what a block is launched with; converting takes more of them than copying.
constexpr u32 LOADER_REGISTERS = CONSUMERS == 3 ? 32 : WAY == Way::Copied ? 24 : 40;
constexpr u32 CONSUMER_REGISTERS = CONSUMERS == 3 ? 160 : WAY == Way::Copied ? 240 : 232;
constexpr u32 FIRST_TURN = 1;       // hardware barriers, one a warp group

DEVICE void take_turn(u32 group) {
    named_barrier_sync(FIRST_TURN + group, 256);
}

DEVICE void pass_turn(u32 group) {
    named_barrier_arrive(FIRST_TURN + (group + 1) % CONSUMERS, 256);
}

DEVICE void release(u32 barrier) {
    if (threadIdx.x % 32 == 0) barrier_arrive(barrier);
}

// One tile's state in a warp group.
struct Consumer {
    u32 base, group, lane, row;     // row: the lane's first, in the tile
    Place<STAGES> keys, values;
    u32 tiles = 0;

    DEVICE explicit Consumer(u32 base) : base(base), group(threadIdx.x / 128), lane(threadIdx.x % 32), row(threadIdx.x / 32 * 16 + lane / 4) {}

    DEVICE void await_keys() { barrier_wait(base + KEY_FULL + 8 * keys.stage, keys.full_parity()); }
    DEVICE void await_values() { barrier_wait(base + VALUE_FULL + 8 * values.stage, values.full_parity()); }
    DEVICE u32 key_rows() const { return base + KEYS_AT + keys.stage * KEY_BYTES; }
    DEVICE u32 value_rows() const { return base + VALUES_AT + values.stage * VALUE_BYTES; }
    DEVICE void release_keys() {
        release(base + KEY_EMPTY + 8 * keys.stage);
        keys.advance();
    }
    DEVICE void release_values() {
        release(base + VALUE_EMPTY + 8 * values.stage);
        values.advance();
    }
};

DEVICE void store(const Parameter& parameter, const Job& job, const Consumer& me, const Outputs& outputs, const float (&factors)[2]) {
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        u32 query = job.query + me.row + 8 * half;
        if (query >= job.sequence.queries) continue;
        u64 element = ((u64)job.sequence.query_row + (u64)job.head * job.sequence.queries + query) * HEAD + me.lane % 4 * 2;
#pragma unroll
        for (u32 i = 0; i < HEAD / 8; i++)
            store_pair(parameter, element + 8 * i, outputs[4 * i + 2 * half] * factors[half], outputs[4 * i + 2 * half + 1] * factors[half]);
    }
}

// Scores that have been waited for become weights; true if what was summed before is to be multiplied by `factors`.
DEVICE bool weigh(Scores& scores, Softmax& softmax, const Job& job, const Consumer& me, const Scales& scales, float table, u32 step, Weights& weights, float (&factors)[2]) {
    if (FORMAT == 2 && scales.flip) flip_signs(scores);
    u32 first = job.query + me.group * 64;
    if ((step + 1) * KEYS > visible_keys(job.sequence, first)) {
        int before = step * KEYS;
        u32 query = job.query + me.row;
        hide(scores, me.lane, (int)visible_keys(job.sequence, query) - before, (int)visible_keys(job.sequence, query + 8) - before);
    }
    if (Softmax::GUESSES && step > 0 && softmax.weigh_by_guess(scores, scales.score, table, weights)) return false;
    softmax.weigh(scores, scales.score, table, weights, factors);
    return true;
}

DEVICE void compute(const Parameter& parameter, const Job& job, Consumer& me, float table) {
    Scales scales = load_scales(parameter, job.index, job.head);
    if (job.steps == 0) return store(parameter, job, me, Outputs{}, {0.0f, 0.0f});
    Total total;
    Scores scores;
    Weights weights, others;        // those of one step, and, ROUNDS_AHEAD, of the next
    Queries fragments;
    Softmax softmax;
    float factors[2];
    u32 queries = me.base + QUERIES_AT + me.group * 64 * (ROW_BYTES < 128 ? ROW_BYTES : 128);
    barrier_wait(me.base + QUERY_FULL, me.tiles++ & 1);
    if constexpr (WAY == Way::Converted) convert_queries(fragments, me.base + QUERIES_AT, me.row, me.lane);
    me.await_keys();
    products_fence();
    multiply_scores(scores, queries, fragments, me.key_rows());
    products_commit();
    products_wait<0>();
    pin(scores);
    me.release_keys();
    weigh(scores, softmax, job, me, scales, table, 0, weights, factors);
    if (!ROUNDS_AHEAD) softmax.round_all(weights, scores);
    if (job.steps > 1) me.await_keys();
    // Begins this step's scores and the sum with the last one's weights, then makes of the scores the next weights.
    auto take_step = [&](const Weights& last, Weights& next, u32 step) {
        take_turn(me.group);
        products_fence();
        multiply_scores(scores, queries, fragments, me.key_rows());
        products_commit();
        me.await_values();
        products_fence();
        total.multiply(last, me.value_rows(), step == 1);
        products_commit();
        pass_turn(me.group);
        products_wait<1>();
        pin(scores);
        me.release_keys();
        bool rescales = weigh(scores, softmax, job, me, scales, table, step, next, factors);
        if (!ROUNDS_AHEAD) pin(scores);
        // The loop in it keeps ptxas from waiting for the values before it computes the exponentials.
        if (step + 1 < job.steps) me.await_keys();
        products_wait<0>();
        total.finish_step(rescales, factors);
        me.release_values();
        if (!ROUNDS_AHEAD) softmax.round_all(next, scores);
    };
    auto finish = [&](const Weights& last) {
        release(me.base + QUERY_EMPTY);
        me.await_values();
        products_fence();
        total.multiply(last, me.value_rows(), job.steps == 1);
        products_commit();
        products_wait<0>();
        total.finish_step(false, factors);
        me.release_values();
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            float sum = softmax.sum(half);
            factors[half] = sum > 0.0f ? scales.value / sum : 0.0f;
        }
        store(parameter, job, me, total.sums, factors);
    };
    u32 step = 1;
    if constexpr (ROUNDS_AHEAD) {
#pragma unroll 1
        for (; step + 1 < job.steps; step += 2) {
            take_step(weights, others, step);
            take_step(others, weights, step + 1);
        }
        if (step < job.steps) {
            take_step(weights, others, step);
            finish(others);
        } else {
            finish(weights);
        }
    } else {
#pragma unroll 1
        for (; step < job.steps; step++) take_step(weights, weights, step);
        finish(weights);
    }
}

extern "C" __global__ void __launch_bounds__(CONSUMER_THREADS + 128, 1) attention_specialised(const __grid_constant__ Parameter parameter) {
    extern __shared__ __align__(1024) u8 memory[];
    u32 base = shared_address(memory);
    if (threadIdx.x == 0) init_barriers(base);
    __syncthreads();
    if (OVERLAP) {
        grid_launch_dependents();
        grid_wait();
    }
    if (threadIdx.x >= CONSUMER_THREADS) {
        registers_decrease<LOADER_REGISTERS>();
        u32 warp = __shfl_sync(~0u, (threadIdx.x - CONSUMER_THREADS) / 32, 0);
        if (warp == 0) {
            if (elect()) load(parameter, base);
        } else if (WAY != Way::Copied) {
            convert(parameter, base, threadIdx.x - CONSUMER_THREADS - 32);
        }
    } else {
        registers_increase<CONSUMER_REGISTERS>();
        Consumer me(base);
        float table = power_table();
        // The last group passes the first turn, and the first group takes the last one.
        if (me.group == CONSUMERS - 1) pass_turn(me.group);
        for (u32 tile = blockIdx.x; tile < parameter.tile_count; tile += gridDim.x) compute(parameter, locate(parameter, tile), me, table);
        if (me.group == 0) take_turn(me.group);
    }
}
