// Weights of a warp group's keys, and their product with V.
#pragma once
#include "attention_resident_weights.cuh"

constexpr u32 RUN_STEPS = WEIGHT_STEPS / RUNS;
static_assert(WEIGHT_STEPS % RUNS == 0, "runs are equally long");

typedef float Sums[HEAD / 2];

template <class FORMAT_TAG>
DEVICE void multiply_step(Sums& sums, const u32 (&weights)[4], u32 values, u32 step) {
    if constexpr (EIGHTS)
        Product<FORMAT_TAG, HEAD>::registers(
            sums, weights, TransposedMatrix::descriptor(values) + TransposedMatrix::deeper(step), step > 0);
    else
        Product<FORMAT_TAG, HEAD>::registers_turned(
            sums, weights, MultipliedMatrix::turned_descriptor(values) + MultipliedMatrix::further(step), step > 0);
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
        if (run == 0) barrier_wait(place.memory + (FORMAT == 2 ? VALUE_CONVERTED : VALUE_FULL) + 8 * place.group, 0);
        products_fence();
#pragma unroll
        for (u32 step = 0; step < RUN_STEPS; ++step)
            multiply_step<Format>(sums, weights[run][step], values, run * RUN_STEPS + step);
        products_commit();
    }
    products_wait<0>();
    pin(sums);
    return softmax.finish();
}
