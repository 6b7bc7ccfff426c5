// Softmax of a warp group's keys: scores become weights, powers of two that are 1 at a row's largest score (2⁸ in e4m3,
// so that small ones are not lost), rounded to the format of the second product.
#pragma once
#include "attention_resident_scores.cuh"

constexpr u32 WEIGHT_STEPS = KEYS / (EIGHTS ? 32 : 16);     // instructions of the second product
constexpr float WEIGHT_EXPONENT = EIGHTS ? 8.0f : 0.0f;

// Of a thread's two rows: the largest score, as an exponent of two, −∞ if nothing is visible; and the sum of the
// weights.
struct Statistics {
    float maximum[2], sum[2];
};

// Scores remain unchanged until their step is processed.
struct Softmax {
    Statistics statistics;
    float scale, bias[2], table, sums[4] = {};

    DEVICE Softmax(const Scores& scores, float scale) : scale(scale), table(EXPONENTIAL == 2 ? power_table() : 0.0f) {
#pragma unroll
        for (u32 row = 0; row < 2; ++row) {
            float maximum = scores[2 * row];
#pragma unroll
            for (u32 index = 0; index < KEYS / 8; ++index)
                maximum = fmaxf(maximum, fmaxf(scores[4 * index + 2 * row], scores[4 * index + 2 * row + 1]));
            maximum = maximum_of_four(maximum);
            bool visible = maximum != -INFINITE;    // else −∞ would be taken from −∞
            statistics.maximum[row] = visible ? maximum * scale : -INFINITE;
            bias[row] = WEIGHT_EXPONENT - (visible ? maximum * scale : 0.0f);
        }
    }

    DEVICE void compute_step(u32 (&rounded)[4], Scores& scores, u32 step) {
        constexpr u32 COUNT = KEYS / 2 / WEIGHT_STEPS;
        float* weights = scores + step * COUNT;
#pragma unroll
        for (u32 index = 0; index < COUNT; ++index)
            weights[index] = power(fmaf(weights[index], scale, bias[index / 2 % 2]), index, table);
        round_weights<EIGHTS>(rounded, weights);
        add_rows<EIGHTS>(sums, rounded);
    }

    // Once all steps are computed.
    DEVICE Statistics finish() {
        statistics.sum[0] = sums[0];
        statistics.sum[1] = sums[2];
        return statistics;
    }
};
