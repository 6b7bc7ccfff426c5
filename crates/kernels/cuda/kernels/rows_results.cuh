// From sums to the result: parts of a split depth added, scales and SwiGLU applied, rounded, stored.
//
// A lane's sums are, for each eight columns, two neighbours of row r and two of row r + 8 of its warp's sixteen; a
// warp shares nothing with another, so warps store without waiting for each other.
#pragma once
#include "place.cuh"
#include "rows_products.cuh"

using Results = float[COLUMNS / 2];

// ---- Split depth: parts lie in the workspace, and the warp that arrives last adds them in their order, so that the
// result does not depend on which warp is last. Returns true in that warp.

DEVICE bool add_parts(const Parameter& parameter, const Work& work, Sums& sums, u32 warp, u32 lane) {
    constexpr u32 WARP_SUMS = MATRICES * COLUMNS / 2 * 32;
    u64 tile = (u64)work.number * SPLIT_K * MULTIPLYING_WARPS + warp;
    float* parts = parameter.workspace + tile * WARP_SUMS + lane;
    float* mine = parts + (u64)work.part * MULTIPLYING_WARPS * WARP_SUMS;
#pragma unroll
    for (u32 matrix = 0; matrix < MATRICES; ++matrix)
#pragma unroll
        for (u32 index = 0; index < COLUMNS / 2; ++index)
            __stcg(mine + (matrix * COLUMNS / 2 + index) * 32, sums[matrix][index]);
    __threadfence();
    __syncwarp();
    u32 arrived = 0;
    if (lane == 0) {
        // The first counter is used by the tile order.
        u32* counter = parameter.counters + 1 + work.number * MULTIPLYING_WARPS + warp;
        arrived = atomicAdd(counter, 1);
        if (arrived == SPLIT_K - 1) *counter = 0;
    }
    // A vote, so that the compiler sees a branch that whole warps take.
    if (!__any_sync(~0u, arrived == SPLIT_K - 1)) return false;
    __threadfence();
#pragma unroll
    for (u32 matrix = 0; matrix < MATRICES; ++matrix)
#pragma unroll
        for (u32 index = 0; index < COLUMNS / 2; ++index) sums[matrix][index] = 0.0f;
#pragma unroll 1
    for (u32 part = 0; part < SPLIT_K; ++part) {
#pragma unroll
        for (u32 matrix = 0; matrix < MATRICES; ++matrix)
#pragma unroll
            for (u32 index = 0; index < COLUMNS / 2; ++index)
                sums[matrix][index] += __ldcg(parts + (matrix * COLUMNS / 2 + index) * 32);
        parts += MULTIPLYING_WARPS * WARP_SUMS;
    }
    return true;
}

// ---- Scales and SwiGLU, in fp32.

DEVICE Results& finish(Sums& sums, const Group& group) {
    float scale = group.scale[0] * CONVERTED_UNIT, second_scale = group.scale[1] * CONVERTED_UNIT;
#pragma unroll
    for (u32 index = 0; index < COLUMNS / 2; ++index) {
        sums[0][index] *= scale;
        if constexpr (DUAL) sums[0][index] = silu(sums[0][index]) * (sums[1][index] * second_scale);
    }
    return sums[0];
}

// ---- Stores of one or two neighbours.

DEVICE void store_pair(u8* to, float first, float second) {
    if constexpr (output == Output::F32) *(float2*)to = make_float2(first, second);
    else *(u32*)to = round_pair(first, second);
}

DEVICE void store_one(u8* to, float value) {
    if constexpr (output == Output::F32) *(float*)to = value;
    else *(u16*)to = (u16)round_pair(value, 0.0f);
}

// ---- Direct: each lane stores its own.

template <u32 WHICH>
DEVICE void store_row(const Place& place, const Results& results, bool pairs, u32 lane) {
    u32 row = lane / 4 + WHICH * 8;
    u32 columns = row < place.rows ? place.columns : 0;
    u8* to = place.first + row * place.row_bytes + lane % 4 * 2 * ELEMENT_BYTES;
#pragma unroll
    for (u32 eight = 0; eight < COLUMNS / 8; ++eight, to += 8 * ELEMENT_BYTES) {
        u32 column = eight * 8 + lane % 4 * 2;
        float first = results[eight * 4 + WHICH * 2], second = results[eight * 4 + WHICH * 2 + 1];
        if (pairs) {
            if (column < columns) store_pair(to, first, second);
        } else {
            if (column < columns) store_one(to, first);
            if (column + 1 < columns) store_one(to + ELEMENT_BYTES, second);
        }
    }
}

DEVICE void store_direct(const Place& place, const Results& results, u32 lane) {
    bool pairs = place.aligned(2 * ELEMENT_BYTES);
    store_row<0>(place, results, pairs, lane);
    store_row<1>(place, results, pairs, lane);
}

// ---- Staged: through shared memory, then whole rows by bulk stores; rows that do not lie on 16 bytes by plain ones.

DEVICE void store_staged(const Place& place, const Results& results, u32 staging, u32 lane) {
    store_bulk_wait_read<0>();
    __syncwarp();
#pragma unroll
    for (u32 which = 0; which < 2; ++which)
#pragma unroll
        for (u32 eight = 0; eight < COLUMNS / 8; ++eight) {
            u32 to = staging + (lane / 4 + which * 8) * STAGING_ROW + (eight * 8 + lane % 4 * 2) * ELEMENT_BYTES;
            float first = results[eight * 4 + which * 2], second = results[eight * 4 + which * 2 + 1];
            if constexpr (output == Output::F32) store_shared_8(to, __float_as_uint(first), __float_as_uint(second));
            else store_shared(to, round_pair(first, second));
        }
    store_staged_rows(place, staging, STAGING_ROW, lane);
}

DEVICE void store(const Parameter& parameter, const Work& work, Sums& sums, u32 memory, u32 warp, u32 lane,
                  Recorder& recorder) {
    if constexpr (SPLIT_K > 1) {
        bool last = add_parts(parameter, work, sums, warp, lane);
        recorder.end(Activity::Reduce, work.number);
        if (!last) return;
    }
    const Group& group = parameter.groups[work.tile.group];
    Results& results = finish(sums, group);
    Place place(parameter, group, work.tile.row + warp * 16, 16, work.tile.column, COLUMNS);
    if constexpr (epilogue == Epilogue::Direct) store_direct(place, results, lane);
    else store_staged(place, results, memory + STAGING + warp * 16 * STAGING_ROW, lane);
    recorder.end(Activity::Store, work.number);
}
