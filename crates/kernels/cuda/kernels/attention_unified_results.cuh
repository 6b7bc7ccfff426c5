// Stores results: pairs directly from the lanes that hold them, or through shared memory, in whole 16-byte pieces of
// rows that neighbouring lanes store side by side. A warp stages its own sixteen rows and does not wait for other
// warps.
#pragma once
#include "attention_unified_work.cuh"

struct Results {
    const Parameter& parameter;
    const Work& work;
    u32 warp_row;    // the warp's first in the tile
    u32 rows;        // of the warp's sixteen, that there are
    u32 area, lane;  // where the warp stages

    // Two neighbours of a row, from `element` on.
    DEVICE void put(u32 row, u32 element, float low, float high) const {
        if constexpr (STAGED) {
            u32 byte = element * OUTPUT_BYTES, to = area + place<RESULT_PITCH>(row, byte / 16) + byte % 16;
            if constexpr (OUTPUT == 2) store_shared_8(to, __float_as_uint(low), __float_as_uint(high));
            else store_shared(to, OUTPUT == 1 ? pair_of_brains(low, high) : pair_of_halves(low, high));
        } else if (row < rows) {
            store_pair(parameter, work.result_row(warp_row + row) * HEAD + element, low, high);
        }
    }

    // By the whole warp, once everything is put.
    DEVICE void finish() const {
        if constexpr (STAGED) {
            constexpr u32 PIECES = RESULT_ROW / 16;
            uint4* to = (uint4*)(parameter.output + work.result_row(warp_row) * RESULT_ROW);
            __syncwarp();
#pragma unroll
            for (u32 index = lane; index < 16 * PIECES; index += 32) {
                u32 row = index / PIECES;
                if (row < rows) to[index] = load_shared_16(area + place<RESULT_PITCH>(row, index % PIECES));
            }
        }
    }
};
