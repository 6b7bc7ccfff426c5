// Both products of a run of keys, and the softmax between them, by a warp group that has 64 queries.
//
// A lane has of each row r (lane / 4 of its warp's sixteen) and r + 8 the neighbours 2i and 2i + 1 (i = lane % 4) of
// every eight columns: sums[4j], sums[4j + 1] of row r and the next two of row r + 8. (PTX ISA, wgmma: register
// fragments.)
#pragma once
#include "attention_specialised_ring.cuh"

constexpr u32 SCORE_DEPTH = EIGHTS ? 32 : 16, VALUE_DEPTH = 16;  // of a product
using Scores = float[RUN / 2];
using Outputs = float[HEAD / 2];
using Weights = u32[RUN / VALUE_DEPTH][4];
using Queries = u32[HEAD / SCORE_DEPTH][4];  // fragments, where they are in registers
// Values of 8 bits are converted, weights not rounded so far.
typedef Operand<EIGHT_BITS ? 0 : FORMAT>::Format ValueFormat;

// Rows of 64 bytes, depth first, in the 64-byte swizzle: eight rows are 512 bytes.
DEVICE u64 narrow_descriptor(u32 address) {
    constexpr u64 SWIZZLE_64 = 2ull << 62, EIGHT_ROWS = (u64)(512 >> 4) << 32, UNUSED_LEADING = 1ull << 16;
    return SWIZZLE_64 | EIGHT_ROWS | UNUSED_LEADING | (u64)((address & 0x3FFFF) >> 4);
}

// Depth `step` of operands whose panels are `panel` bytes apart, 32 bytes a step. (`Matrix` computes the same in
// another way, but ptxas generates different code for it; the measurements are of this version.)
DEVICE u64 depth_descriptor(u32 address, u32 panel, u32 step) {
    if (EIGHTS && HEAD == 64) return narrow_descriptor(address) + 2 * step;
    return matrix_descriptor(address + step / 4 * panel) + step % 4 * 2;
}

// Starts new sums of Q·Kᵀ. `queries`, `keys`: where the warp group's rows and the run's keys begin.
DEVICE void multiply_scores(Scores& scores, u32 queries, const Queries& fragments, u32 keys) {
#pragma unroll
    for (u32 step = 0; step < HEAD / SCORE_DEPTH; step++) {
        u64 columns = depth_descriptor(keys, KEYS * 128, step);
        if constexpr (QUERIES_IN_REGISTERS) Product<Format, RUN>::registers(scores, fragments[step], columns, step > 0);
        else Product<Format, RUN>::shared(scores, depth_descriptor(queries, QUERIES * 128, step), columns, step > 0);
    }
}

// Adds P·V. V lies column first: panels of 64 columns are the leading dimension.
DEVICE void multiply_values(Outputs& outputs, const Weights& weights, u32 values) {
    constexpr u64 LEADING = (u64)(KEYS * 128 >> 4) << 16, UNUSED = 1ull << 16;
#pragma unroll
    for (u32 step = 0; step < RUN / VALUE_DEPTH; step++)
        Product<ValueFormat, HEAD>::registers_turned(outputs, weights[step],
                                                     (matrix_descriptor(values) ^ UNUSED | LEADING) + step * 128, true);
}

// Weights are powers of two, 2^(score · scale + shift), relative to an earlier maximum of the row. Finding the maximum
// of every run before the first exponential takes a quarter of the kernel's time (H200). So a run is weighed with the
// current shift. Only where weights turn out too large is the shift replaced, based on the run's sum or, where fp32
// does not hold the sum, on its maximum. Then only the affected one of the lanes' two rows is weighed again: even with
// widely scattered scores both are seldom affected.
struct Softmax {
    // Of rows r and r + 8. The initial shift of a row that has seen no key makes every weight too large.
    float shift[2], sums[2];

    DEVICE Softmax() : shift{BEYOND, BEYOND}, sums{0.0f, 0.0f} {}

    // Turns scores into weights; where a row's shift changes, earlier sums are rescaled. All lanes of a warp take part.
    //
    // Rounding errors of weights cancel over many rows, but over `few` rows they are a bias. With `few`, maxima are
    // always computed, so that a row's largest weight, which may dominate its result, is exactly 1. Then rounded
    // weights are summed, so that V = 1 gives 1.
    DEVICE void weigh(Weights& weights, Outputs& outputs, const Scores& scores, const float (&scale)[2], float table,
                      bool few) {
        float added[2] = {};
        bool large[2] = {few, few};
        if (!few) {
            raise(weights, added, 0, 2, scores, scale, table);
            large[0] = added[0] > MAX_ADDED;
            large[1] = added[1] > MAX_ADDED;
        }
        if (__any_sync(~0u, large[0] || large[1])) {
#pragma unroll
            for (u32 row = 0; row < 2; row++) {
                if (!__any_sync(~0u, large[row])) continue;
                float total = sum_of_four(added[row]);
                bool by_maximum = few || NO_SHIFT_BY_SUM || __any_sync(~0u, total >= BEYOND_SUMS);
                float factor = by_maximum ? shift_to_maximum(row, scores, scale[row]) : shift_by_sum(row, total);
#pragma unroll
                for (u32 i = 0; i < HEAD / 4; i++) outputs[i / 2 * 4 + 2 * row + i % 2] *= factor;
                raise(weights, added, row, row + 1, scores, scale, table);
            }
        }
        if (few) add_rounded(added, weights);
        sums[0] += added[0];
        sums[1] += added[1];
    }

    // The same for the first run, where no weight is known to be small enough.
    DEVICE void weigh_first(Weights& weights, const Scores& scores, const float (&scale)[2], float table, bool few) {
        shift_to_maximum(0, scores, scale[0]);
        shift_to_maximum(1, scores, scale[1]);
        raise(weights, sums, 0, 2, scores, scale, table);
        if (few) add_rounded(sums, weights);
    }

    // Whether a row has seen a key.
    DEVICE bool has_seen(u32 row) const { return shift[row] < BEYOND; }

    // The sum of a row over all of its lanes.
    DEVICE float sum(u32 row) const { return sum_of_four(sums[row]); }

private:
    // Sums of the run's rounded weights; each lane has a quarter of its row's sum.
    DEVICE static void add_rounded(float (&added)[2], const Weights& weights) {
        float rows[4] = {};
#pragma unroll
        for (u32 step = 0; step < RUN / VALUE_DEPTH; step++) add_rows<false>(rows, weights[step]);
        added[0] = 0.25f * rows[0];
        added[1] = 0.25f * rows[2];
    }

    // With all of these options there is no register left for it.
    static constexpr bool NO_SHIFT_BY_SUM = FEW && BY_BLOCK && CAUSAL;
    static constexpr float BEYOND = 1e30f;
    // 2¹²⁶. The polynomial and the table saturate at 2¹²⁷ and slightly below; from there on, a sum no longer tells how
    // large its weights are.
    static constexpr float BEYOND_SUMS = 8.507059e37f;
    // A lane's weights of a run add up to at most this, so none exceeds the largest fp16 number.
    static constexpr float MAX_ADDED = 65504.0f;

    // Changes a row's shift, given the sum `total` of its lanes' weights of the run, so that this sum becomes less than
    // 2. This is as good as using the maximum, and the sum is already known. Returns the factor for earlier sums.
    DEVICE float shift_by_sum(u32 row, float total) {
        u32 powers = max(__float_as_uint(total) >> 23, 127u) - 127;  // of two, from 1 up to it
        float factor = __uint_as_float(127 - powers << 23);
        shift[row] -= (float)powers;
        sums[row] *= factor;
        return factor;
    }

    // Changes a row's shift to a maximum that includes the run's; returns the factor for earlier sums.
    DEVICE float shift_to_maximum(u32 row, const Scores& scores, float scale) {
        float largest = -INFINITE, before = shift[row];
#pragma unroll
        for (u32 i = 0; i < RUN / 8; i++)
            largest = fmaxf(largest, fmaxf(scores[4 * i + 2 * row], scores[4 * i + 2 * row + 1]));
        shift[row] = fminf(before, -maximum_of_four(largest) * scale);
        float factor = power_by_hardware(shift[row] - before);
        sums[row] *= factor;
        return factor;
    }

    // Weights of the run of rows `first` to `last` − 1, by their shifts, and a lane's sums of them.
    DEVICE void raise(Weights& weights, float (&added)[2], u32 first, u32 last, const Scores& scores,
                      const float (&scale)[2], float table) const {
#pragma unroll
        for (u32 row = first; row < last; row++) added[row] = 0.0f;
#pragma unroll
        for (u32 i = 0; i < RUN / 8; i++)
#pragma unroll
            for (u32 row = first; row < last; row++) {
                float raised[2];
#pragma unroll
                for (u32 j = 0; j < 2; j++) {
                    u32 place = 4 * i + 2 * row + j;
                    raised[j] = power(fmaf(scores[place], scale[row], shift[row]), place, table);
                    added[row] += raised[j];
                }
                weights[i / 2][i % 2 * 2 + row] = pair_of_weights(raised[0], raised[1]);
            }
    }
};

// If BY_BLOCK, the unit of the sums of weights and values: the scale of the values that are added next. When the scale
// changes, earlier sums are converted to the new unit.
struct Unit {
    float unit = 1.0f, largest = 0.0f;

    DEVICE void enter(Outputs& outputs, float scale) {
        // A scale of 0, or one negligible beside earlier ones, would make sums infinite: it is replaced by a scale
        // small enough that the added values do not count.
        constexpr float LEAST = 1.17549435e-38f, MIN_PART = 5.42101086e-20f;  // 2⁻¹²⁶, 2⁻⁶⁴
        largest = fmaxf(largest, fabsf(scale));
        float next = copysignf(fmaxf(fmaxf(fabsf(scale), largest * MIN_PART), LEAST), scale);
        if (next == unit) return;
        float factor = __fdividef(unit, next);
        unit = next;
#pragma unroll
        for (u32 i = 0; i < HEAD / 2; i++) outputs[i] *= factor;
    }

    DEVICE void leave(Outputs& outputs) const {
#pragma unroll
        for (u32 i = 0; i < HEAD / 2; i++) outputs[i] *= unit;
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

// Of one of the lane's two rows.
DEVICE void flip_signs(Scores& scores, u32 row) {
#pragma unroll
    for (u32 i = 0; i < RUN / 2; i++)
        if (i / 2 % 2 == row) scores[i] = -scores[i];
}
