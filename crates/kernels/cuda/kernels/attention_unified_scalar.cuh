// P·V by fused multiply-adds, from weights in fp32 and values in shared memory: the kernel that the matrix unit is
// compared with.
//
// A lane has HEAD / 32 neighbouring head elements of all of its warp's sixteen rows, so a value that it converts is
// used sixteen times, and four weights of a row come by one load that all lanes share.
#pragma once
#include "attention_unified_softmax.cuh"

// Not used for other heads, but compiled.
constexpr u32 LANE_ELEMENTS = HEAD == 128 ? 4 : 2, LANE_BYTES = LANE_ELEMENTS * ELEMENT_BYTES;
static_assert(!SCALAR || HEAD == 64 || HEAD == 128, "a lane has two or four elements");

// Two values as fp32.
DEVICE void widen(u32 pair, float& low, float& high) {
    if constexpr (FORMAT == 1) {
        low = __uint_as_float(pair << 16);
        high = __uint_as_float(pair & 0xFFFF0000u);
    } else {
        asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
            : "=f"(low), "=f"(high)
            : "r"(pair));
    }
}

struct ScalarSums {
    float sums[16][LANE_ELEMENTS];

    DEVICE ScalarSums() {
#pragma unroll
        for (u32 row = 0; row < 16; ++row)
#pragma unroll
            for (u32 element = 0; element < LANE_ELEMENTS; ++element) sums[row][element] = 0.0f;
    }

    // Multiplies each row by its factor; `factors` are the warp's.
    DEVICE void correct(u32 factors) {
#pragma unroll
        for (u32 row = 0; row < 16; row += 4) {
            uint4 words = load_shared_16(factors + row * 4);
            const u32 four[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
            for (u32 index = 0; index < 4; ++index)
#pragma unroll
                for (u32 element = 0; element < LANE_ELEMENTS; ++element)
                    sums[row + index][element] *= __uint_as_float(four[index]);
        }
    }

    // This lane's elements of a key.
    DEVICE static void read_values(float (&elements)[LANE_ELEMENTS], u32 values, u32 key, u32 lane) {
        u32 byte = lane * LANE_BYTES, from = values + place<PITCH>(key, byte / 16) + byte % 16;
        if constexpr (LANE_BYTES == 8) {
            uint2 words = load_shared_8(from);
            widen(words.x, elements[0], elements[1]);
            widen(words.y, elements[2], elements[3]);
        } else if constexpr (!EIGHT_BITS) {
            widen(load_shared(from), elements[0], elements[1]);
        } else if constexpr (LANE_BYTES == 4) {
            u32 word = load_shared(from);
            widen(lower_halves(word), elements[0], elements[1]);
            widen(upper_halves(word), elements[2], elements[3]);
        } else {
            widen(halves_of_bytes(load_shared_2(from)), elements[0], elements[1]);
        }
    }

    // Adds a step; `weights` are of the block, the warp's from `first_row` on.
    DEVICE void add(u32 weights, u32 first_row, u32 values, const StepScales& scales, u32 lane) {
#pragma unroll 1
        for (u32 key = 0; key < TILE_N; key += 4) {
            float scale = BY_BLOCK ? scales.of_values(key) : 1.0f;
            float elements[4][LANE_ELEMENTS];
#pragma unroll
            for (u32 index = 0; index < 4; ++index) {
                read_values(elements[index], values, key + index, lane);
                if (BY_BLOCK) {
#pragma unroll
                    for (u32 element = 0; element < LANE_ELEMENTS; ++element) elements[index][element] *= scale;
                }
            }
#pragma unroll
            for (u32 row = 0; row < 16; ++row) {
                uint4 words = load_shared_16(weights + place<WEIGHT_ROW>(first_row + row, key / 4));
                const u32 four[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
                for (u32 index = 0; index < 4; ++index) {
                    float weight = __uint_as_float(four[index]);
#pragma unroll
                    for (u32 element = 0; element < LANE_ELEMENTS; ++element)
                        sums[row][element] = fmaf(weight, elements[index][element], sums[row][element]);
                }
            }
        }
    }

    // Calls `put` with the row, the head element and the two sums from there on.
    template <typename Put>
    DEVICE void element_pairs(u32 lane, Put put) const {
#pragma unroll
        for (u32 row = 0; row < 16; ++row)
#pragma unroll
            for (u32 element = 0; element < LANE_ELEMENTS; element += 2)
                put(row, lane * LANE_ELEMENTS + element, sums[row][element], sums[row][element + 1]);
    }
};
