// Both products of a step, and the softmax between them, by a warp group that has 64 queries.
//
// A lane has of each row r (lane / 4 of its warp's sixteen) and r + 8 the neighbours 2i and 2i + 1 (i = lane % 4) of every
// eight columns: sums[4j], sums[4j + 1] of row r and the next two of row r + 8. (PTX ISA, wgmma: register fragments.)
#pragma once
#include "attention_specialised_ring.cuh"

constexpr u32 DEPTH = EIGHTS ? 32 : 16;         // of a product
using Scores = float[KEYS / 2];
using Outputs = float[HEAD / 2];
using Weights = u32[KEYS / DEPTH][4];
using Queries = u32[HEAD / 16][4];                          // fragments, where they are converted

static_assert(!EIGHTS || KEYS == 128, "rows of Vᵀ fill a line of the swizzle");

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

// Q·Kᵀ anew. `queries`, `keys`: where the warp group's rows and the step's begin.
template <class Operand = Format>
DEVICE void multiply_scores(Scores& scores, u32 queries, const Queries& fragments, u32 keys) {
#pragma unroll
    for (u32 step = 0; step < HEAD / DEPTH; step++) {
        u64 columns = depth_descriptor(keys, KEYS * 128, step);
        if constexpr (CONVERTED) Product<Operand, KEYS>::registers(scores, fragments[step], columns, step > 0);
        else Product<Operand, KEYS>::shared(scores, depth_descriptor(queries, QUERIES * 128, step), columns, step > 0);
    }
}

// Adds P·V, or begins with it. 16-bit V lies column first: panels of 64 columns are the leading dimension.
template <class Operand = Format>
DEVICE void multiply_values(Outputs& outputs, const Weights& weights, u32 values, bool add) {
    constexpr u64 LEADING = (u64)(KEYS * 128 >> 4) << 16, UNUSED = 1ull << 16;
#pragma unroll
    for (u32 step = 0; step < KEYS / DEPTH; step++) {
        if constexpr (EIGHTS)
            Product<Operand, HEAD>::registers(outputs, weights[step], matrix_descriptor(values) + step * 2, add || step > 0);
        else
            Product<Operand, HEAD>::registers_turned(outputs, weights[step], (matrix_descriptor(values) ^ UNUSED | LEADING) + step * 128, add || step > 0);
    }
}

// The weighted sum over steps. The matrix unit adds e4m3 products to sums of which it keeps some 14 bits, rounding toward
// zero: over 2048 keys with V = 1 that left 0.95 of 1. So each step's products get sums of their own, which are added in
// fp32; 16-bit formats have no such loss, and add up where they are.
struct Total {
    static constexpr bool APART = EIGHTS;
    Outputs sums, step_sums;
    float pending[2];       // by what `sums` are to be multiplied before the step's are added

    DEVICE Total() : pending{0.0f, 0.0f} {
#pragma unroll
        for (u32 i = 0; i < HEAD / 2; i++) sums[i] = 0.0f;
    }

    DEVICE void multiply(const Weights& weights, u32 values) {
        if constexpr (APART) multiply_values(step_sums, weights, values, false);
        else multiply_values(sums, weights, values, true);
    }

    // Once products are done; weights of later steps are `factors` of what these are.
    DEVICE void finish_step(const float (&factors)[2]) {
        pin(APART ? step_sums : sums);
#pragma unroll
        for (u32 i = 0; i < HEAD / 2; i++) {
            if (APART) sums[i] = fmaf(sums[i], pending[i / 2 % 2], step_sums[i]);
            else sums[i] *= factors[i / 2 % 2];
        }
        pending[0] = factors[0];
        pending[1] = factors[1];
    }
};

// Row sums are of unrounded weights, added in the shadow of the exponentials; those of e4m3 by the matrix unit, of rounded
// ones, for their errors are not small beside V's.
struct Softmax {
    float maximum[2], sums[4];      // of rows r and r + 8; raw scores; sums as `add_rows` has them

    DEVICE Softmax() : maximum{-INFINITE, -INFINITE}, sums{} {}

    // Scores become weights 2^(score · scale − the row's maximum); what was summed before is to be multiplied by `factors`.
    // e4m3 has no room for small weights: they are 2⁸ as large, so the largest is 256 of at most 448.
    DEVICE void weigh(Scores& scores, float scale, float table, float (&factors)[2]) {
        constexpr float RAISED = EIGHTS ? 8.0f : 0.0f;
        float shift[2], added[2] = {};
#pragma unroll
        for (u32 row = 0; row < 2; row++) {
            float largest = maximum[row];
#pragma unroll
            for (u32 i = 0; i < KEYS / 8; i++) largest = fmaxf(largest, fmaxf(scores[4 * i + 2 * row], scores[4 * i + 2 * row + 1]));
            largest = maximum_of_four(largest);
            // A row that has seen no key yet has no maximum to subtract.
            float base = largest == -INFINITE ? 0.0f : largest * scale;
            factors[row] = power_by_hardware(maximum[row] * scale - base);
            maximum[row] = largest;
            shift[row] = RAISED - base;
            sums[2 * row] *= factors[row];
        }
#pragma unroll
        for (u32 i = 0; i < KEYS / 2; i++) {
            u32 row = i / 2 % 2;
            scores[i] = power(fmaf(scores[i], scale, shift[row]), i, table);
            if (!EIGHTS) added[row] += scores[i];
        }
        sums[0] += added[0];
        sums[2] += added[1];
    }

    DEVICE void round(Weights& weights, const Scores& scores) {
#pragma unroll
        for (u32 step = 0; step < KEYS / DEPTH; step++) {
            round_weights(weights[step], scores + step * DEPTH / 2);
            if (EIGHTS) add_rows<true>(sums, weights[step]);
        }
    }

    // Of a row, over all of its lanes.
    DEVICE float sum(u32 row) const {
        float sum = sums[2 * row];
        if (EIGHTS) return sum;
        sum += __shfl_xor_sync(~0u, sum, 1);
        return sum + __shfl_xor_sync(~0u, sum, 2);
    }
};

// Hides the keys from `visible` on, of each of the lane's two rows; keys are counted from the step's first.
DEVICE void hide(Scores& scores, u32 lane, int visible, int visible_below) {
#pragma unroll
    for (u32 i = 0; i < KEYS / 2; i++) {
        int key = i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (key >= (i / 2 % 2 ? visible_below : visible)) scores[i] = -INFINITE;
    }
}

DEVICE void flip_signs(Scores& scores) {
#pragma unroll
    for (u32 i = 0; i < KEYS / 2; i++) scores[i] = -scores[i];
}
