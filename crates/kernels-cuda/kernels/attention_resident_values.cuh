// Weights of a warp group's keys, and their product with V.
#pragma once
#include "attention_resident_weights.cuh"

constexpr u32 RUN_STEPS = WEIGHT_STEPS / RUNS;
static_assert(WEIGHT_STEPS % RUNS == 0, "runs are equally long");

typedef float Sums[HEAD / 2];

// Adds a step to sums; the first step overwrites them.
template <class FORMAT_TAG>
DEVICE void multiply_step(Sums& sums, const u32 (&weights)[4], u32 values, u32 step, bool first) {
    if constexpr (EIGHTS)
        Product<FORMAT_TAG, HEAD>::registers(
            sums, weights, TransposedMatrix::descriptor(values) + TransposedMatrix::deeper(step), !first);
    else
        Product<FORMAT_TAG, HEAD>::registers_turned(
            sums, weights, MultipliedMatrix::turned_descriptor(values) + MultipliedMatrix::further(step), !first);
}

DEVICE Statistics multiply_values(Sums& sums, Scores& scores, const Place& place, float score_scale) {
    u32 values = place.memory + MULTIPLIED_VALUE_AT + place.group * MultipliedMatrix::SIZE;
    Softmax softmax(scores, score_scale);
    u32 weights[RUNS][RUN_STEPS][4];        // products read them while the next are computed
#pragma unroll
    for (u32 run = 0; run < RUNS; ++run) {
#pragma unroll
        for (u32 step = 0; step < RUN_STEPS; ++step)
            softmax.compute_step(weights[run][step], scores, run * RUN_STEPS + step);
        pin(weights[run]);
        if (run == 0) barrier_wait(place.memory + (EIGHT_BITS ? VALUE_CONVERTED : VALUE_FULL) + 8 * place.group, 0);
        products_fence();
#pragma unroll
        for (u32 step = 0; step < RUN_STEPS; ++step)
            multiply_step<Format>(sums, weights[run][step], values, run * RUN_STEPS + step, run + step == 0);
        products_commit();
    }
    products_wait<0>();
    pin(sums);
    return softmax.finish();
}

// The same where each block of values has a scale of its own: blocks, or their runs, are multiplied apart, and their sums
// added as fp32. Scores are exponents of two.
DEVICE Statistics multiply_values_by_block(Sums& sums, Scores& scores, const Place& place, const BlockScales& blocks) {
    constexpr u32 TURNS = RUNS * SCALE_BLOCK > KEYS ? RUNS : KEYS / SCALE_BLOCK, STEPS = WEIGHT_STEPS / TURNS;
    u32 values = place.memory + MULTIPLIED_VALUE_AT + place.group * MultipliedMatrix::SIZE;
    Softmax softmax(scores, 1.0f);
    u32 weights[TURNS][STEPS][4];       // as above
    Sums part;
    auto collect = [&](u32 turn) {
        float scale = blocks.at(place.first_key() + turn * (KEYS / TURNS)).value;
        products_wait<0>();
        pin(part);
#pragma unroll
        for (u32 index = 0; index < HEAD / 2; ++index)
            sums[index] = turn == 0 ? scale * part[index] : fmaf(scale, part[index], sums[index]);
    };
#pragma unroll
    for (u32 turn = 0; turn < TURNS; ++turn) {
#pragma unroll
        for (u32 step = 0; step < STEPS; ++step) softmax.compute_step(weights[turn][step], scores, turn * STEPS + step);
        pin(weights[turn]);
        if (turn == 0) barrier_wait(place.memory + VALUE_CONVERTED + 8 * place.group, 0);
        else collect(turn - 1);
        products_fence();
#pragma unroll
        for (u32 step = 0; step < STEPS; ++step)
            multiply_step<Format>(part, weights[turn][step], values, turn * STEPS + step, step == 0);
        products_commit();
    }
    collect(TURNS - 1);
    return softmax.finish();
}
