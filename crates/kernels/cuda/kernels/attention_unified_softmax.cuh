// Scores to weights: which keys a query sees, and the softmax, in registers or in shared memory.
//
// The softmax is online: weights are powers of two of scores minus the largest score so far; when a larger score
// arrives, earlier sums are rescaled. In shared memory, each warp owns its rows: it stores their scores, reads them row
// by row, eight lanes a row, and stores the weights. It needs only warp-level barriers, three in all: between storing
// scores and reading them by the lanes of their row; in place, between reading a row's scores and overwriting them with
// weights; and between storing weights and reading them for the product.
#pragma once
#include "attention_parts.cuh"
#include "attention_unified_fragments.cuh"

// ---- Where each block of keys has a scale of its own: raw scores become exponents of two.

// `scales` and `below` are of the lane's rows g and g + 8.
DEVICE void scale_by_block(RawScores& scores, const BlockScales& scales, const BlockScales& below, u32 first_key) {
#pragma unroll
    for (u32 block = 0; block < KEY_BLOCKS; ++block) {
        u32 key = first_key + block * 8 / SCALE_BLOCK * SCALE_BLOCK;
        float factors[2] = {scales.of_scores(key), below.of_scores(key)};
#pragma unroll
        for (u32 index = 0; index < 4; ++index) scores[block][index] *= factors[index / 2];
    }
}

// Those of a step's values.
struct StepScales {
    const BlockScales& scales;
    u32 first_key;

    // Of the block that the step's value `key` is in.
    DEVICE float of_values(u32 key) const { return scales.at(first_key + key).value; }
};

// ---- Masks.

// The keys, from the first, that the queries of a lane's rows g and g + 8 see.
struct Visible {
    u32 first, second;
};

// `first_key` is the step's.
DEVICE void mask(RawScores& scores, Visible visible, u32 first_key, u32 lane) {
#pragma unroll
    for (u32 block = 0; block < KEY_BLOCKS; ++block)
#pragma unroll
        for (u32 index = 0; index < 4; ++index) {
            u32 key = first_key + 8 * block + lane % 4 * 2 + index % 2;
            if (key >= (index < 2 ? visible.first : visible.second)) scores[block][index] = -INFINITE;
        }
}

// ---- A row so far.

struct Row {
    float maximum = -INFINITE;  // of raw scores
    float base = 0.0f;          // what exponents are less by: the maximum's own

    // Updates the maximum with further scores; returns the factor for earlier sums.
    DEVICE float raise(float largest, float scale) {
        // Products are not fused with the subtraction, so that equal maxima give exactly 1.
        float before = __fmul_rn(maximum, scale);
        maximum = fmaxf(maximum, largest);
        // If no key was seen, −∞ minus −∞ would be NaN.
        base = maximum == -INFINITE ? 0.0f : __fmul_rn(maximum, scale);
        return power_by_hardware(__fsub_rn(before, base));
    }

    // What a part of the keys leaves of the row, with its sum of weights.
    DEVICE Statistics statistics(float total) const { return {maximum == -INFINITE ? -INFINITE : base, total}; }

    DEVICE float weight(float score, float scale, u32 index, float table) const {
        return power(fmaf(score, scale, -base), index, table);
    }
};

// The final factor of a row's sums. Where no key is seen, exponentials that do not reach 0 leave a nonzero total.
DEVICE float row_share(u32 visible, float total, float value_scale) {
    return visible == 0 ? 0.0f : value_scale / total;
}

// ---- In registers: sums of Q·Kᵀ are, pair by pair, rows of P·V.

struct RegisterSoftmax {
    Row rows[2];
    float scales[2], table;

    // `scale` and `below` are of rows g and g + 8.
    DEVICE RegisterSoftmax(float scale, float below, u32, u32)
        : scales{scale, below}, table(EXPONENTIAL == 2 ? power_table() : 0.0f) {}

    // Corrections are of rows g and g + 8.
    DEVICE void weigh(const RawScores& scores, u32 (&weights)[WARP_KEYS / 16][4], float (&corrections)[2]) {
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
            float largest = -INFINITE;
#pragma unroll
            for (u32 block = 0; block < KEY_BLOCKS; ++block)
                largest = fmaxf(largest, fmaxf(scores[block][2 * half], scores[block][2 * half + 1]));
            corrections[half] = rows[half].raise(maximum_of_four(largest), scales[half]);
        }
#pragma unroll
        for (u32 block = 0; block < KEY_BLOCKS; ++block)
#pragma unroll
            for (u32 half = 0; half < 2; ++half) {
                u32 index = 4 * block + 2 * half;
                float low = rows[half].weight(scores[block][2 * half], scales[half], index, table);
                float high = rows[half].weight(scores[block][2 * half + 1], scales[half], index + 1, table);
                weights[block / 2][block % 2 * 2 + half] = pair_of_weights(low, high);
            }
    }
};

// ---- In shared memory: lanes 8q … 8q + 7 have rows q, q + 4, q + 8 and q + 12 of the warp's sixteen.

struct SharedSoftmax {
    static constexpr u32 TURNS = 4, PIECES = SCORE_ROW / 128;  // rows of a lane, and 16-byte pieces it has of each
    Row rows[TURNS];
    float totals[TURNS];  // of this lane's weights, for scalar products
    float scale, table;
    u32 memory, first_row, lane;

    // `first_row` is the warp's in the tile, whose rows have one scale.
    DEVICE SharedSoftmax(float scale, float, u32 memory, u32 first_row)
        : totals{},
          scale(scale),
          table(EXPONENTIAL == 2 ? power_table() : 0.0f),
          memory(memory),
          first_row(first_row),
          lane(threadIdx.x % 32) {}

    DEVICE u32 row(u32 turn) const { return first_row + 4 * turn + lane / 8; }

    // Scores as Q·Kᵀ leaves them.
    DEVICE void store_scores(const RawScores& scores) const {
#pragma unroll
        for (u32 block = 0; block < KEY_BLOCKS; ++block)
#pragma unroll
            for (u32 half = 0; half < 2; ++half) {
                u32 row = first_row + lane / 4 + 8 * half, piece = 2 * block + lane % 4 / 2;
                u32 to = memory + SCORES_AT + place<SCORE_ROW>(row, piece);
                store_shared_8(to + lane % 2 * 8, __float_as_uint(scores[block][2 * half]),
                               __float_as_uint(scores[block][2 * half + 1]));
            }
    }

    DEVICE void store_weights(u32 turn, u32 piece, const float (&weights)[4]) const {
        u32 area = memory + WEIGHTS_AT;
        if constexpr (SCALAR) {
            store_shared_16(area + place<WEIGHT_ROW>(row(turn), piece), __float_as_uint(weights[0]),
                            __float_as_uint(weights[1]), __float_as_uint(weights[2]), __float_as_uint(weights[3]));
        } else {
            u32 to = area + place<WEIGHT_ROW>(row(turn), piece / 2) + piece % 2 * 8;
            store_shared_8(to, pair_of_weights(weights[0], weights[1]), pair_of_weights(weights[2], weights[3]));
        }
    }

    DEVICE void weigh_row(u32 turn) {
        float scores[PIECES][4], largest = -INFINITE;
#pragma unroll
        for (u32 index = 0; index < PIECES; ++index) {
            uint4 words = load_shared_16(memory + SCORES_AT + place<SCORE_ROW>(row(turn), 8 * index + lane % 8));
            scores[index][0] = __uint_as_float(words.x), scores[index][1] = __uint_as_float(words.y);
            scores[index][2] = __uint_as_float(words.z), scores[index][3] = __uint_as_float(words.w);
#pragma unroll
            for (u32 element = 0; element < 4; ++element) largest = fmaxf(largest, scores[index][element]);
        }
        largest = maximum_of_four(largest);
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 4));
        float correction = rows[turn].raise(largest, scale);
        totals[turn] *= correction;
        if constexpr (!WEIGHTS_APART) __syncwarp();
#pragma unroll
        for (u32 index = 0; index < PIECES; ++index) {
            float weights[4];
#pragma unroll
            for (u32 element = 0; element < 4; ++element) {
                weights[element] = rows[turn].weight(scores[index][element], scale, 4 * index + element, table);
                totals[turn] += weights[element];
            }
            store_weights(turn, 8 * index + lane % 8, weights);
        }
        if (lane % 8 == 0) store_shared(memory + FACTORS_AT + row(turn) * 4, __float_as_uint(correction));
    }

    // Leaves weights and corrections in shared memory for the whole warp. The warp must be done with those of the
    // previous step.
    DEVICE void weigh(const RawScores& scores) {
        store_scores(scores);
        __syncwarp();
#pragma unroll
        for (u32 turn = 0; turn < TURNS; ++turn) weigh_row(turn);
        __syncwarp();
    }

    // Leaves the final factors of the sums in place of the corrections; `query` is the tile's first.
    DEVICE void finish(const Sequence& sequence, u32 query, float value_scale) {
        __syncwarp();
#pragma unroll
        for (u32 turn = 0; turn < TURNS; ++turn) {
            float total = sum_of_four(totals[turn]);
            total += __shfl_xor_sync(~0u, total, 4);
            float share = row_share(visible_keys(sequence, query + row(turn)), total, value_scale);
            if (lane % 8 == 0) store_shared(memory + FACTORS_AT + row(turn) * 4, __float_as_uint(share));
        }
        __syncwarp();
    }
};
