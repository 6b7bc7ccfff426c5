// How parts of a tile's keys become results: those of warps with the same queries through shared memory, then those of
// blocks through the workspace, where the block that arrives last merges them.
#pragma once
#include "attention_unified_softmax.cuh"
#include "attention_unified_work.cuh"

static_assert(!SPLIT && KEY_WARPS == 1 || SCORES_IN_REGISTERS && !STAGED,
              "parts are merged by rows, from registers to the output");
static_assert(!PACKED || SCORES_IN_REGISTERS,
              "packed rows have scales of their own, which a softmax in registers takes");

// Calls `take` with each row that there is, and each element of it that is a multiple of four, over all threads.
template <typename Take>
DEVICE void for_each_four(u32 rows, Take take) {
    constexpr u32 FOURS = HEAD / 4;
    for (u32 index = threadIdx.x; index < rows * FOURS; index += THREADS) take(index / FOURS, index % FOURS * 4);
}

DEVICE void store_merged(const Parameter& parameter, const Work& work, u32 row, u32 element, const Merged& merged) {
    float factor = row_share(work.visible(row), merged.row.total, work.scales(parameter, row).value);
    store_four(parameter, work.result_row(row) * HEAD + element, merged.sums, factor);
}

// Leaves what a warp has of its rows in shared memory, for the others that have the same rows.
template <typename Softmax, typename Sums>
DEVICE void leave_part(const Softmax& softmax, const Sums& sums, u32 rows, u32 area, u32 lane) {
    sums.element_pairs(lane, [&](u32 row, u32 element, float low, float high) {
        if (row < rows)
            store_shared_8(area + row * PART_ROW + element * 4, __float_as_uint(low), __float_as_uint(high));
    });
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
        u32 row = lane / 4 + 8 * half;
        Statistics of = softmax.rows[half].statistics(sums.totals[2 * half]);
        if (lane % 4 == 0 && row < rows)
            store_shared_8(area + TILE_M * PART_ROW + row * 8, __float_as_uint(of.base), __float_as_uint(of.total));
    }
}

// Merges what the block's warps have of four neighbours of a row.
DEVICE Merged merge_warps(u32 memory, u32 row, u32 element) {
    auto statistics = [&](u32 part) {
        uint2 words = load_shared_8(memory + part * PART_BYTES + TILE_M * PART_ROW + row * 8);
        return Statistics{__uint_as_float(words.x), __uint_as_float(words.y)};
    };
    auto sums = [&](u32 part) {
        uint4 words = load_shared_16(memory + part * PART_BYTES + row * PART_ROW + element * 4);
        return make_float4(__uint_as_float(words.x), __uint_as_float(words.y), __uint_as_float(words.z),
                           __uint_as_float(words.w));
    };
    return merge_parts(KEY_WARPS, statistics, sums);
}

// From sums of warps that have the same rows to results, by the whole block; of the blocks that have a tile's parts, by
// the last.
template <typename Softmax, typename Sums>
DEVICE void finish_shared_rows(const Parameter& parameter, const Work& work, const Softmax& softmax, const Sums& sums,
                               u32 memory, u32 warp, u32 lane) {
    __syncthreads();  // all warps are done with queries and steps, in whose place parts lie
    leave_part(softmax, sums, work.rows, memory + warp * PART_BYTES, lane);
    __syncthreads();
    if (!SPLIT || work.parts == 1) {
        for_each_four(work.rows, [&](u32 row, u32 element) {
            store_merged(parameter, work, row, element, merge_warps(memory, row, element));
        });
        return;
    }
    BlockParts<TILE_M, STREAMED> parts(parameter, work.first_part(parameter));
    for_each_four(work.rows,
                  [&](u32 row, u32 element) { parts.put(work.part, row, element, merge_warps(memory, row, element)); });
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) store_shared(memory + LAST_AT, arrive_last(parameter, work.number, work.parts));
    __syncthreads();
    if (load_shared(memory + LAST_AT) == 0) return;
    __threadfence();
    for_each_four(work.rows, [&](u32 row, u32 element) {
        store_merged(parameter, work, row, element, parts.merge(work.parts, row, element));
    });
}

// Of a warp with rows of its own: whether it has the last part of its tile's keys. Then its sums are those of all
// parts.
template <typename Softmax, typename Sums>
DEVICE bool merge_own_rows(const Parameter& parameter, const Work& work, const Softmax& softmax, Sums& sums, u32 warp) {
    WarpParts parts(parameter, work.number * WARPS + warp);
    auto sum = [&](u32 index) -> float& { return sums.sums[index / 4][index % 4]; };
    Statistics rows[2] = {softmax.rows[0].statistics(sums.totals[0]), softmax.rows[1].statistics(sums.totals[2])};
    if (!parts.leave(work.part, work.parts, sum, rows)) return false;
    parts.merge<2, WarpParts::FOURS>(0, work.parts, 0, sum, rows);
    sums.totals[0] = rows[0].total, sums.totals[2] = rows[1].total;
    return true;
}
