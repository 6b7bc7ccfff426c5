// Attention by specialised warps: one loads, warp groups of 64 queries each multiply, and, for 8 bits, three warps
// convert.
//
// A warp group starts the score products of its next run of keys and the value products of the current one, then
// computes the next weights from the scores; meanwhile the matrix unit works for the other groups. With PARTS, that
// many groups have the same queries, each with a part of every step's keys; they merge at the end of a tile.
//
// Definitions, beside those of attention.cuh: CONSUMERS, warp groups that multiply; PARTS of the keys, 1 or 2; KEYS of
// a step; STAGES of the rings; ARITHMETIC, for e4m3: 0 converted to fp16, 1 Q·Kᵀ of what was copied; UNIFORM 1, all
// sequences are equal, and the host passes them as one with all heads; DESCENDING 1, they are to be computed from their
// last queries down; FEW 1, some have fewer than 64 queries; SPLIT 1, a tile's keys are split over Parameter::parts
// blocks; PACKED 1, the rows of a head are the queries of Parameter::row_heads heads, one after another; SHARED bytes.
#include "attention_specialised_loads.cuh"
#include "attention_specialised_merge.cuh"

// Together they equal the registers of the launch; converting takes more registers than copying.
constexpr u32 LOADER_REGISTERS = CONSUMERS >= 3 ? 32 : EIGHT_BITS ? 56 : 24;
constexpr u32 CONSUMER_REGISTERS = CONSUMERS == 4 ? 112 : CONSUMERS == 3 ? 160 : EIGHT_BITS ? 224 : 240;

DEVICE void compute(const Parameter& parameter, u32 round, Consumer& me, float table) {
    const Job job = locate(parameter, tile_of_round(round));
    const Scales scales = load_scales(parameter, job.index, job.row_head(parameter, me.row()));
    // Packed rows are of several heads.
    const Scales below = PACKED ? load_scales(parameter, job.index, job.row_head(parameter, me.row() + 8)) : scales;
    if (job.steps == 0) {
        if (me.part == 0 && job.part == 0) store(parameter, job, me, Outputs{}, {0.0f, 0.0f});
        return;
    }
    if (MAY_IDLE && me.group() * 64 >= job.queries) return idle(job, me);
    Outputs sums = {};
    const BlockScales blocks(parameter, job.index, job.sequence, job.head, job.query + me.group() * 64);
    Scores scores;
    Weights weights;
    Queries fragments;
    Softmax softmax;
    Unit unit;
    u32 queries = me.base + QUERIES_AT + me.group() * 64 * (ROW_BYTES < 128 ? ROW_BYTES : 128), runs = job.steps * RUNS;
    me.await_queries();
    if (QUERIES_IN_REGISTERS)
        load_queries<Matrix<QUERIES, ROW_BYTES>>(fragments, me.base + QUERIES_AT, me.row(), me.lane());
    auto begin_scores = [&](u32 stage, u32 run) {
        if (run == 0) me.await_keys(stage);
        products_fence();
        multiply_scores(scores, queries, fragments, me.key_rows(stage, run));
        products_commit();
    };
    auto begin_values = [&](u32 stage, u32 run) {
        if (run == 0) me.await_values(stage);
        products_fence();
        multiply_values(sums, weights, me.value_rows(stage, run));
        products_commit();
    };
    // The number of keys that the group's first query sees; each following query sees one more, up to all. Negative if
    // some queries see none. Of packed heads, what any head's first query sees.
    int keys = job.sequence.keys, seen = keys, row_sees[2] = {keys, keys};
    if (CAUSAL && PACKED) {
        seen = keys + 1 - (int)job.period(parameter);
        row_sees[0] = seen + (int)job.row_query(parameter, me.row());
        row_sees[1] = seen + (int)job.row_query(parameter, me.row() + 8);
    } else if (CAUSAL) {
        seen = (int)(job.query + me.group() * 64 + 1 - job.sequence.queries) + keys;
    }
    // The first key of number `number` of the tile's runs, the `run`th of a step, and the scales of its keys and
    // values.
    auto first_key = [&](u32 run, u32 number) {
        return (job.first_step + number / RUNS) * KEYS + (me.part * RUNS + run) * RUN;
    };
    auto scales_of_run = [&](u32 run, u32 number) { return BY_BLOCK ? blocks.at(first_key(run, number)) : scales; };
    // The scales of a run's scores, and whether they change their sign, of the lane's two rows.
    struct OfRows {
        float score[2];
        bool flip[2];
    };
    auto of_rows = [&](const Scales& run) {
        return PACKED ? OfRows{{scales.score, below.score}, {scales.flip != 0, below.flip != 0}}
                      : OfRows{{run.score, run.score}, {run.flip != 0, run.flip != 0}};
    };
    auto finish_scores = [&](u32 stage, u32 run, u32 number, const OfRows& rows) {
        pin(scores);
        if (run == RUNS - 1) me.release_keys(stage);
        if (EIGHT_BITS && rows.flip[0]) flip_signs(scores, 0);
        if (EIGHT_BITS && rows.flip[1]) flip_signs(scores, 1);
        int before = first_key(run, number);
        if (before + (int)RUN > min(seen, keys)) {
            int row = me.row() % 64;
            auto sees = [&](u32 half) {
                return !CAUSAL ? keys : PACKED ? row_sees[half] : min(seen + row + 8 * (int)half, keys);
            };
            hide(scores, me.lane(), sees(0) - before, sees(1) - before);
        }
    };
    bool few = FEW && job.sequence.queries < 64;
    Scales first = scales_of_run(0, 0);
    me.await_turn();
    begin_scores(0, 0);
    me.give_turn();
    products_wait<0>();
    finish_scores(0, 0, 0, of_rows(first));
    softmax.weigh_first(weights, scores, of_rows(first).score, table, few);
    if (BY_BLOCK) unit.enter(sums, first.value);
    auto take_run = [&](u32 place, u32 number) {
        u32 stage = place / RUNS % STAGES, run = place % RUNS;
        u32 last = (place + STAGES * RUNS - 1) / RUNS % STAGES, last_run = (place + RUNS - 1) % RUNS;
        Scales of_run = scales_of_run(run, number);
        me.await_turn();
        begin_scores(stage, run);
        begin_values(last, last_run);
        me.give_turn();
        // Waits for both products: instructions that take weights from registers are issued only when the matrix unit
        // reaches them, so little waiting remains, and afterwards weights can be overwritten.
        products_wait<0>();
        pin(sums);
        finish_scores(stage, run, number, of_rows(of_run));
        if (last_run == RUNS - 1) me.release_values(last);
        softmax.weigh(weights, sums, scores, of_rows(of_run).score, table, few);
        if (BY_BLOCK) unit.enter(sums, of_run.value);
    };
    // A turn of the loop takes all stages, so that each is known when it is compiled.
#pragma unroll 1
    for (u32 number = 1; number < runs; number += STAGES * RUNS)
#pragma unroll
        for (u32 i = 0; i < STAGES * RUNS; i++)
            if (number + i < runs) take_run(1 + i, number + i);
    release(me.base + QUERY_EMPTY);
    u32 last = (job.steps - 1) % STAGES;
    begin_values(last, RUNS - 1);
    products_wait<0>();
    pin(sums);
    me.release_values(last);
    if (BY_BLOCK) unit.leave(sums);
    if constexpr (UNIFORM) {
        finish(parameter, job, me, scales, softmax, sums);
    } else {
        // The output position is looked up again: kept, it would take registers that the loop needs.
        asm volatile("" : "+r"(round));
        finish(parameter, locate(parameter, tile_of_round(round)), me, scales, softmax, sums);
    }
}

extern "C" __global__ void __launch_bounds__(CONSUMER_THREADS + 128, 1)
    attention_specialised(const __grid_constant__ Parameter parameter) {
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
        } else if (EIGHT_BITS) {
            convert(parameter, base, threadIdx.x - CONSUMER_THREADS - 32);
        }
    } else {
        registers_increase<CONSUMER_REGISTERS>();
        Consumer me(base);
        me.begin_turns();
        float table = power_table();
        for (u32 round = 0; tile_of_round(round) < tile_count(parameter); round++) compute(parameter, round, me, table);
    }
}
