// From sums in tensor memory to the result: parts of a split depth added, scales and SwiGLU applied, rounded, stored.
//
// Lane i of warp w has row 32w + i of a tile, all columns of it, a few at a time. Without swap-AB its results are
// neighbours in a row of the output; with it, the lanes' are.
#pragma once
#include "native_words.cuh"
#include "place.cuh"
#include "work.cuh"

// Columns at a time.
constexpr u32 AT_ONCE = COLUMNS % 32 == 0 ? 32 : 8;

using Sums = float[MATRICES][AT_ONCE];

// The part of a tile that a warp stores.
struct Part {
    u32 number, part;   // of the tile, and of its depth
    u32 tensor;         // its sums in tensor memory
    u32 row;            // first row
    u32 rows, columns;  // that there are
    u32 warp;           // of the blocks that compute the tile
    u32 lane;

    DEVICE Part(const Work& work, const Group& group, u32 tensor, u32 sums, u32 warp, u32 lane)
        : number(work.number),
          part(work.part),
          row(work.tile.row + rank_in_pair() * OWN_ROWS + warp * 32),
          warp(rank_in_pair() * 4 + warp),
          lane(lane) {
        this->tensor = tensor + sums * SUM_COLUMNS + (warp * 32 << 16);
        rows = row < rows_of(group) ? min(rows_of(group) - row, 32) : 0;
        columns = min(columns_of(group) - work.tile.column, COLUMNS);
        // A warp without rows has nothing to do.
        if (rows == 0) columns = 0;
    }
};

DEVICE void read_sums(Sums& sums, const Part& part, u32 first) {
#pragma unroll
    for (u32 matrix = 0; matrix < MATRICES; ++matrix) tensor_load(sums[matrix], part.tensor + matrix * COLUMNS + first);
#pragma unroll
    for (u32 matrix = 0; matrix < MATRICES; ++matrix) tensor_load_wait(sums[matrix]);
}

// Called when this thread has read all of a tile's sums: the next tile may take their place. Of a pair, the first block
// waits for both.
DEVICE void release_sums(u32 memory, u32 sums) {
    u32 barrier = memory + SUMS_EMPTY + sums * 8;
    tensor_fence_before();
    if constexpr (PAIRED) barrier_arrive_in_cluster(address_in_block(barrier, 0));
    else barrier_arrive(barrier);
}

// ---- Split depth: parts lie in the workspace, and the warp that arrives last adds them in their order, so that the
// result does not depend on which warp is last.

constexpr u32 TILE_WARPS = 4 * BLOCKS_A_TILE;

DEVICE float* workspace_of(const Parameter& parameter, const Part& part, u32 number, u32 first) {
    u64 place = ((u64)part.number * SPLIT_K + number) * TILE_WARPS + part.warp;
    return parameter.workspace + (place * MATRICES * COLUMNS + first) * 32 + part.lane;
}

DEVICE void keep_part(const Parameter& parameter, const Part& part) {
#pragma unroll 1
    for (u32 first = 0; first < part.columns; first += AT_ONCE) {
        Sums sums;
        read_sums(sums, part, first);
#pragma unroll
        for (u32 matrix = 0; matrix < MATRICES; ++matrix)
#pragma unroll
            for (u32 index = 0; index < AT_ONCE; ++index)
                __stcg(workspace_of(parameter, part, part.part, matrix * COLUMNS + first) + index * 32,
                       sums[matrix][index]);
    }
}

// Whether this warp's part is the last of the tile's.
DEVICE bool is_last_part(const Parameter& parameter, const Part& part) {
    __threadfence();
    __syncwarp();
    u32 arrived = 0;
    if (part.lane == 0) {
        // The first counter is used by the tile order.
        u32* counter = parameter.counters + 1 + part.number * TILE_WARPS + part.warp;
        arrived = atomicAdd(counter, 1);
        if (arrived == SPLIT_K - 1) *counter = 0;
    }
    bool last = __any_sync(~0u, arrived == SPLIT_K - 1);
    __threadfence();
    return last;
}

DEVICE void add_parts(const Parameter& parameter, const Part& part, Sums& sums, u32 first) {
#pragma unroll
    for (u32 matrix = 0; matrix < MATRICES; ++matrix)
#pragma unroll
        for (u32 index = 0; index < AT_ONCE; ++index) sums[matrix][index] = 0.0f;
#pragma unroll 1
    for (u32 number = 0; number < SPLIT_K; ++number)
#pragma unroll
        for (u32 matrix = 0; matrix < MATRICES; ++matrix)
#pragma unroll
            for (u32 index = 0; index < AT_ONCE; ++index)
                sums[matrix][index] +=
                    __ldcg(workspace_of(parameter, part, number, matrix * COLUMNS + first) + index * 32);
}

// ---- Scales and SwiGLU, in fp32.

DEVICE void finish(Sums& sums, const Group& group) {
#pragma unroll
    for (u32 index = 0; index < AT_ONCE; ++index) {
        sums[0][index] *= group.scale[0];
        if constexpr (DUAL) sums[0][index] = silu(sums[0][index]) * (sums[1][index] * group.scale[1]);
    }
}

// Four words of rounded results from result `index`, which lie on 16 bytes; eight results, or four of fp32.
DEVICE uint4 sixteen_bytes(const float (&results)[AT_ONCE], u32 index) {
    if constexpr (output == Output::F32)
        return make_uint4(__float_as_uint(results[index]), __float_as_uint(results[index + 1]),
                          __float_as_uint(results[index + 2]), __float_as_uint(results[index + 3]));
    else
        return make_uint4(
            round_pair(results[index], results[index + 1]), round_pair(results[index + 2], results[index + 3]),
            round_pair(results[index + 4], results[index + 5]), round_pair(results[index + 6], results[index + 7]));
}

constexpr u32 IN_SIXTEEN = 16 / ELEMENT_BYTES;

// ---- Columns of a tile to memory, or to where they are staged. Without swap-AB a lane has neighbours of one row of
// the output; with it, an element of each of several rows.

DEVICE void store_neighbours(const Place& place, const Part& part, const float (&results)[AT_ONCE], u32 first) {
    if (part.lane >= part.rows) return;
    u8* row = place.first + part.lane * place.row_bytes;
    bool whole = place.aligned(16);
#pragma unroll
    for (u32 index = 0; index < AT_ONCE; index += IN_SIXTEEN) {
        if (whole) {
            if (first + index < part.columns)
                *(uint4*)(row + (first + index) * ELEMENT_BYTES) = sixteen_bytes(results, index);
            continue;
        }
#pragma unroll
        for (u32 one = index; one < index + IN_SIXTEEN; ++one)
            if (first + one < part.columns) store_one(row, first + one, results[one]);
    }
}

DEVICE void store_elements(const Place& place, const Part& part, const float (&results)[AT_ONCE], u32 first) {
    if (part.lane >= part.rows) return;
#pragma unroll
    for (u32 index = 0; index < AT_ONCE; ++index)
        if (first + index < part.columns)
            store_one(place.first + (first + index) * place.row_bytes, part.lane, results[index]);
}

DEVICE void stage_neighbours(u32 staging, const Part& part, const float (&results)[AT_ONCE], u32 first) {
#pragma unroll
    for (u32 index = 0; index < AT_ONCE; index += IN_SIXTEEN) {
        uint4 words = sixteen_bytes(results, index);
        store_shared_16(staging + part.lane * STAGED_ROW + (first + index) * ELEMENT_BYTES, words.x, words.y, words.z,
                        words.w);
    }
}

DEVICE void stage_elements(u32 staging, const Part& part, const float (&results)[AT_ONCE], u32 first) {
#pragma unroll
    for (u32 index = 0; index < AT_ONCE; ++index) {
        u32 to = staging + (first + index) * STAGED_ROW + part.lane * ELEMENT_BYTES;
        if constexpr (output == Output::F32) store_shared(to, __float_as_uint(results[index]));
        else store_shared_2(to, (u16)round_pair(results[index], 0.0f));
    }
}

DEVICE void put(const Place& place, u32 staging, const Part& part, const float (&results)[AT_ONCE], u32 first) {
    if constexpr (epilogue == Epilogue::Staged)
        SWAPPED ? stage_elements(staging, part, results, first) : stage_neighbours(staging, part, results, first);
    else SWAPPED ? store_elements(place, part, results, first) : store_neighbours(place, part, results, first);
}

// Called by a warp when the sums of a tile are complete.
DEVICE void store(const Parameter& parameter, const Work& work, u32 memory, u32 tensor, u32 sums, u32 warp, u32 lane,
                  Recorder& recorder) {
    const Group& group = parameter.groups[work.tile.group];
    Part part(work, group, tensor, sums, warp, lane);
    if constexpr (SPLIT_K > 1) {
        keep_part(parameter, part);
        release_sums(memory, sums);
        bool last = is_last_part(parameter, part);
        recorder.end(Activity::Reduce, work.number);
        if (!last) return;
    }
    u32 staging = memory + STAGING + warp * STAGED_WARP;
    if constexpr (epilogue == Epilogue::Staged) {
        store_bulk_wait_read<0>();  // the previous tile's rows
        __syncwarp();
    }
    Place place = SWAPPED ? Place(parameter, group, work.tile.column, COLUMNS, part.row, 32)
                          : Place(parameter, group, part.row, 32, work.tile.column, COLUMNS);
#pragma unroll 1
    for (u32 first = 0; first < part.columns; first += AT_ONCE) {
        Sums of_columns;
        if constexpr (SPLIT_K > 1) add_parts(parameter, part, of_columns, first);
        else read_sums(of_columns, part, first);
        finish(of_columns, group);
        put(place, staging, part, of_columns[0], first);
    }
    if constexpr (SPLIT_K == 1) release_sums(memory, sums);
    // A bulk store of no bytes is none.
    if (epilogue == Epilogue::Staged && part.columns > 0) store_staged_rows(place, staging, STAGED_ROW, lane);
    recorder.end(Activity::Store, work.number);
}
