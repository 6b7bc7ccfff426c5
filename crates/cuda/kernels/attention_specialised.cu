// Attention by specialised warps: one loads, warp groups of 64 queries each multiply, and, for e4m3, three warps convert.
//
// A warp group begins the scores of the next step before the weighted sum of this one, so the matrix unit works while it
// computes exponentials. Groups are not made to take turns, neither in products nor in exponentials: it was slower (H200).
//
// Definitions, beside those of attention.cuh: CONSUMERS, warp groups that multiply; KEYS of a step; STAGES of the rings;
// ARITHMETIC, for e4m3: 0 converted to fp16, 1 multiplied as it is; UNIFORM 1, all sequences are equal; DESCENDING 1,
// they are to be computed from their last queries down; SHARED bytes.
#include "attention_specialised_loads.cuh"
#include "attention_specialised_products.cuh"

// Together what a block is launched with; converting takes more of them than copying.
constexpr u32 LOADER_REGISTERS = CONSUMERS == 3 ? 32 : CONVERTED ? 40 : 24;
constexpr u32 CONSUMER_REGISTERS = CONSUMERS == 3 ? 160 : CONVERTED ? 232 : 240;

DEVICE void release(u32 barrier) {
    if (threadIdx.x % 32 == 0) barrier_arrive(barrier);
}

// Steps a turn of the loop: all stages, so that each is known when it is compiled. Long heads of e4m3 leave no registers for
// that.
constexpr u32 UNROLLED = EIGHTS && HEAD == 128 ? 1 : STAGES;

// A warp group that multiplies, and which stages it has used.
struct Consumer {
    u32 base, group, lane, row;     // row: the lane's first, in the tile
    Uses keys, values;
    u32 tiles = 0;

    DEVICE explicit Consumer(u32 base) : base(base), group(threadIdx.x / 128), lane(threadIdx.x % 32), row(threadIdx.x / 32 * 16 + lane / 4) {}

    DEVICE void await_keys(u32 stage) { barrier_wait(base + KEY_FULL + 8 * stage, keys.full_parity(stage)); }
    DEVICE void await_values(u32 stage) { barrier_wait(base + VALUE_FULL + 8 * stage, values.full_parity(stage)); }
    DEVICE u32 key_rows(u32 stage) const { return base + KEYS_AT + stage * KEY_BYTES; }
    DEVICE u32 value_rows(u32 stage) const { return base + VALUES_AT + stage * VALUE_BYTES; }
    DEVICE void release_keys(u32 stage) {
        release(base + KEY_EMPTY + 8 * stage);
        keys.count(stage);
    }
    DEVICE void release_values(u32 stage) {
        release(base + VALUE_EMPTY + 8 * stage);
        values.count(stage);
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

// Scores that have been waited for become weights.
DEVICE void weigh(Scores& scores, Softmax& softmax, const Job& job, const Consumer& me, const Scales& scales, float table, u32 step, float (&factors)[2]) {
    if (FORMAT == 2 && scales.flip) flip_signs(scores);
    u32 first = job.query + me.group * 64;
    if ((step + 1) * KEYS > visible_keys(job.sequence, first)) {
        int before = step * KEYS;
        u32 query = job.query + me.row;
        hide(scores, me.lane, (int)visible_keys(job.sequence, query) - before, (int)visible_keys(job.sequence, query + 8) - before);
    }
    softmax.weigh(scores, scales.score, table, factors);
}

DEVICE void compute(const Parameter& parameter, const Job& job, Consumer& me, float table) {
    Scales scales = load_scales(parameter, job.index, job.head);
    if (job.steps == 0) return store(parameter, job, me, Outputs{}, {0.0f, 0.0f});
    Total total;
    Scores scores;
    Weights weights;
    Queries fragments;
    Softmax softmax;
    float factors[2];
    u32 queries = me.base + QUERIES_AT + me.group * 64 * (ROW_BYTES < 128 ? ROW_BYTES : 128);
    barrier_wait(me.base + QUERY_FULL, me.tiles++ & 1);
    if constexpr (CONVERTED) convert_queries<Matrix<QUERIES, ROW_BYTES>>(fragments, me.base + QUERIES_AT, me.row, me.lane);
    me.await_keys(0);
    products_fence();
    multiply_scores(scores, queries, fragments, me.key_rows(0));
    products_commit();
    products_wait<0>();
    pin(scores);
    me.release_keys(0);
    weigh(scores, softmax, job, me, scales, table, 0, factors);
    softmax.round(weights, scores);
    if (job.steps > 1) me.await_keys(1);
    // Begins this step's scores and the sum with the last one's weights, then makes of the scores the next weights.
    auto take_step = [&](u32 stage, u32 step) {
        u32 last = (stage + STAGES - 1) % STAGES, next = (stage + 1) % STAGES;
        products_fence();
        multiply_scores(scores, queries, fragments, me.key_rows(stage));
        products_commit();
        me.await_values(last);
        products_fence();
        total.multiply(weights, me.value_rows(last));
        products_commit();
        products_wait<1>();
        pin(scores);
        me.release_keys(stage);
        weigh(scores, softmax, job, me, scales, table, step, factors);
        pin(scores);
        // The loop in it keeps ptxas from waiting for the values before it computes the exponentials.
        if (step + 1 < job.steps) me.await_keys(next);
        products_wait<0>();
        total.finish_step(factors);
        me.release_values(last);
        softmax.round(weights, scores);
    };
#pragma unroll 1
    for (u32 step = 1; step < job.steps; step += UNROLLED)
#pragma unroll
        for (u32 i = 0; i < UNROLLED; i++)
            if (step + i < job.steps) take_step(UNROLLED == 1 ? step % STAGES : (1 + i) % STAGES, step + i);
    release(me.base + QUERY_EMPTY);
    u32 last = (job.steps - 1) % STAGES;
    me.await_values(last);
    products_fence();
    total.multiply(weights, me.value_rows(last));
    products_commit();
    products_wait<0>();
    total.finish_step({1.0f, 1.0f});
    me.release_values(last);
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        float sum = softmax.sum(half);
        factors[half] = sum > 0.0f ? scales.value / sum : 0.0f;
    }
    store(parameter, job, me, total.sums, factors);
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
        } else if (FORMAT == 2) {
            convert(parameter, base, threadIdx.x - CONSUMER_THREADS - 32);
        }
    } else {
        registers_increase<CONSUMER_REGISTERS>();
        Consumer me(base);
        float table = power_table();
        for (u32 tile = blockIdx.x; tile < parameter.tile_count; tile += gridDim.x) compute(parameter, locate(parameter, tile), me, table);
    }
}
