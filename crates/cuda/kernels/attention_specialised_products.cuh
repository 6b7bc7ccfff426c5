// Both products of a run of keys, and the softmax between them, by a warp group that has 64 queries.
//
// A lane has of each row r (lane / 4 of its warp's sixteen) and r + 8 the neighbours 2i and 2i + 1 (i = lane % 4) of every
// eight columns: sums[4j], sums[4j + 1] of row r and the next two of row r + 8. (PTX ISA, wgmma: register fragments.)
#pragma once
#include "attention_specialised_ring.cuh"

constexpr u32 SCORE_DEPTH = EIGHTS ? 32 : 16, VALUE_DEPTH = 16;     // of a product
using Scores = float[RUN / 2];
using Outputs = float[HEAD / 2];
using Weights = u32[RUN / VALUE_DEPTH][4];
using Queries = u32[HEAD / 16][4];                                  // fragments, where they are converted
typedef Operand<FORMAT == 2 ? 0 : FORMAT>::Format ValueFormat;      // values of e4m3 are converted, weights not rounded so far

// Rows of 64 bytes, depth first, in the 64-byte swizzle: eight rows are 512 bytes.
DEVICE u64 narrow_descriptor(u32 address) {
    constexpr u64 SWIZZLE_64 = 2ull << 62, EIGHT_ROWS = (u64)(512 >> 4) << 32, UNUSED_LEADING = 1ull << 16;
    return SWIZZLE_64 | EIGHT_ROWS | UNUSED_LEADING | (u64)((address & 0x3FFFF) >> 4);
}

// Depth `step` of operands whose panels are `panel` bytes apart, 32 bytes a step. (`Matrix` says the same in another
// way, of which ptxas makes other code; this is the one that was measured.)
DEVICE u64 depth_descriptor(u32 address, u32 panel, u32 step) {
    if (EIGHTS && HEAD == 64) return narrow_descriptor(address) + 2 * step;
    return matrix_descriptor(address + step / 4 * panel) + step % 4 * 2;
}

// Q·Kᵀ anew. `queries`, `keys`: where the warp group's rows and the run's begin.
DEVICE void multiply_scores(Scores& scores, u32 queries, const Queries& fragments, u32 keys) {
#pragma unroll
    for (u32 step = 0; step < HEAD / SCORE_DEPTH; step++) {
        u64 columns = depth_descriptor(keys, KEYS * 128, step);
        if constexpr (CONVERTED) Product<Format, RUN>::registers(scores, fragments[step], columns, step > 0);
        else Product<Format, RUN>::shared(scores, depth_descriptor(queries, QUERIES * 128, step), columns, step > 0);
    }
}

// Adds P·V. V lies column first: panels of 64 columns are the leading dimension.
DEVICE void multiply_values(Outputs& outputs, const Weights& weights, u32 values) {
    constexpr u64 LEADING = (u64)(KEYS * 128 >> 4) << 16, UNUSED = 1ull << 16;
#pragma unroll
    for (u32 step = 0; step < RUN / VALUE_DEPTH; step++)
        Product<ValueFormat, HEAD>::registers_turned(outputs, weights[step], (matrix_descriptor(values) ^ UNUSED | LEADING) + step * 128, true);
}

// Weights are powers of two, 2^(score · scale + shift): relative to a score that was once the row's largest. To look for the
// largest of every run before the first exponential takes a quarter of the kernel's time (H200); so a run is weighed by the
// shift that is there, and only if its weights turn out too large is the run's maximum looked for, and the run weighed again.
// Where that was so of the last run, of scores that scatter widely, the maximum is looked for at once, if there is a register
// to remember it in.
struct Softmax {
    // Of rows r and r + 8. A row that has seen no key has a shift by which every weight is too large.
    float shift[2], sums[2];
    bool rising = false;

    DEVICE Softmax() : shift{BEYOND, BEYOND}, sums{0.0f, 0.0f} {}

    // Makes weights of scores. True if a shift is another now; what was summed before is then to be multiplied by `factors`.
    // All lanes of a warp take part.
    DEVICE bool weigh(Weights& weights, const Scores& scores, float scale, float table, float (&factors)[2]) {
        float added[2];
        bool moved = rising;
        if (!moved) {
            raise(weights, added, scores, scale, table);
            moved = __any_sync(~0u, added[0] > MOST_ADDED || added[1] > MOST_ADDED);
        }
        if (moved) begin(weights, scores, scale, table, factors, added);
        sums[0] += added[0];
        sums[1] += added[1];
        return moved;
    }

    // Of a row, over all of its lanes.
    DEVICE float sum(u32 row) const {
        float sum = sums[row];
        sum += __shfl_xor_sync(~0u, sum, 1);
        return sum + __shfl_xor_sync(~0u, sum, 2);
    }

    // The same with the first run, of which no weight can be known to be small enough.
    DEVICE void weigh_first(Weights& weights, const Scores& scores, float scale, float table) {
        float factors[2];
        begin(weights, scores, scale, table, factors, sums);
        rising = false;
    }

private:
    static constexpr bool REMEMBERS = PARTS == 1;
    static constexpr float BEYOND = 1e30f;
    // A lane's weights of a run add up to no more; so each of them is far from fp16's largest, 65504.
    static constexpr float MOST_ADDED = 16384.0f;

    // By shifts of maxima that the run's are part of.
    DEVICE void begin(Weights& weights, const Scores& scores, float scale, float table, float (&factors)[2], float (&added)[2]) {
#pragma unroll
        for (u32 row = 0; row < 2; row++) {
            float largest = -INFINITE, before = shift[row];
#pragma unroll
            for (u32 i = 0; i < RUN / 8; i++) largest = fmaxf(largest, fmaxf(scores[4 * i + 2 * row], scores[4 * i + 2 * row + 1]));
            shift[row] = fminf(before, -maximum_of_four(largest) * scale);
            factors[row] = power_by_hardware(shift[row] - before);
            sums[row] *= factors[row];
        }
        rising = REMEMBERS && __any_sync(~0u, factors[0] < 1.0f / MOST_ADDED || factors[1] < 1.0f / MOST_ADDED);
        raise(weights, added, scores, scale, table);
    }

    DEVICE void raise(Weights& weights, float (&added)[2], const Scores& scores, float scale, float table) const {
        added[0] = added[1] = 0.0f;
#pragma unroll
        for (u32 step = 0; step < RUN / VALUE_DEPTH; step++) {
            float raised[VALUE_DEPTH / 2];
#pragma unroll
            for (u32 i = 0; i < VALUE_DEPTH / 2; i++) {
                raised[i] = power(fmaf(scores[step * VALUE_DEPTH / 2 + i], scale, shift[i / 2 % 2]), i, table);
                added[i / 2 % 2] += raised[i];
            }
            round_weights<false>(weights[step], raised);
        }
    }
};

// Hides the keys from `visible` on, of each of the lane's two rows; keys are counted from the run's first.
DEVICE void hide(Scores& scores, u32 lane, int visible, int visible_below) {
#pragma unroll
    for (u32 i = 0; i < RUN / 2; i++) {
        int key = i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (key >= (i / 2 % 2 ? visible_below : visible)) scores[i] = -INFINITE;
    }
}

DEVICE void flip_signs(Scores& scores) {
#pragma unroll
    for (u32 i = 0; i < RUN / 2; i++) scores[i] = -scores[i];
}
