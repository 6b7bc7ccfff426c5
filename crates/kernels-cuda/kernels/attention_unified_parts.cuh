// How parts of a tile's keys become results: those of warps with the same queries through shared memory, then those of
// blocks through the workspace, where the block that arrives last merges them.
#pragma once
#include "attention_unified_softmax.cuh"
#include "attention_unified_work.cuh"

constexpr bool IN_PARTS = SPLIT || KEY_WARPS > 1;
static_assert(!IN_PARTS || SCORES_IN_REGISTERS && !STAGED, "parts are merged by rows, from registers to the output");
static_assert(!PACKED || SCORES_IN_REGISTERS, "packed rows have scales of their own, which a softmax in registers takes");

// Calls `take` with each row that there is, and each element of it that is a multiple of four, over all threads.
template <typename Take>
DEVICE void for_each_four(u32 rows, Take take) {
    constexpr u32 FOURS = HEAD / 4;
    for (u32 index = threadIdx.x; index < rows * FOURS; index += THREADS) take(index / FOURS, index % FOURS * 4);
}

DEVICE void store_merged(const Parameter& parameter, const Work& work, u32 row, u32 element, const Merged& merged) {
    float factor = row_share(work.visible(row), merged.row.total, work.scales(parameter, row).value);
    store_four(parameter, (work.first_row() + row) * HEAD + element, merged.sums, factor);
}

// Stores what a warp has of its rows: the functions put two neighbours, and a row's statistics.
template <typename Softmax, typename Sums, typename PutPair, typename PutStatistics>
DEVICE void leave_part(const Softmax& softmax, const Sums& sums, u32 rows, u32 lane, PutPair pair, PutStatistics statistics) {
    sums.element_pairs(lane, [&](u32 row, u32 element, float low, float high) {
        if (row < rows) pair(row, element, low, high);
    });
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
        u32 row = lane / 4 + 8 * half;
        if (lane % 4 == 0 && row < rows) statistics(row, softmax.rows[half].statistics(sums.totals[2 * half]));
    }
}

// Merges what the block's warps, which have the same queries, have of four neighbours of a row.
DEVICE Merged merge_warps(u32 memory, u32 row, u32 element) {
    auto statistics = [&](u32 part) {
        uint2 words = load_shared_8(memory + part * PART_BYTES + TILE_M * PART_ROW + row * 8);
        return Statistics{__uint_as_float(words.x), __uint_as_float(words.y)};
    };
    auto sums = [&](u32 part) {
        uint4 words = load_shared_16(memory + part * PART_BYTES + row * PART_ROW + element * 4);
        return make_float4(__uint_as_float(words.x), __uint_as_float(words.y), __uint_as_float(words.z), __uint_as_float(words.w));
    };
    return merge_parts(KEY_WARPS, statistics, sums);
}

// From a warp's sums to results, by the whole block.
template <typename Softmax, typename Sums>
DEVICE void finish_parts(const Parameter& parameter, const Work& work, const Softmax& softmax, const Sums& sums, u32 memory,
                         u32 warp, u32 lane) {
    PartPlace<TILE_M> mine(parameter, work.number, work.part);
    if constexpr (KEY_WARPS > 1) {
        __syncthreads();        // all warps are done with queries and steps, in whose place parts lie
        u32 area = memory + warp * PART_BYTES;
        auto put_pair = [&](u32 row, u32 element, float low, float high) {
            store_shared_8(area + row * PART_ROW + element * 4, __float_as_uint(low), __float_as_uint(high));
        };
        auto put_statistics = [&](u32 row, const Statistics& of) {
            store_shared_8(area + TILE_M * PART_ROW + row * 8, __float_as_uint(of.base), __float_as_uint(of.total));
        };
        leave_part(softmax, sums, work.rows, lane, put_pair, put_statistics);
        __syncthreads();
        for_each_four(work.rows, [&](u32 row, u32 element) {
            Merged merged = merge_warps(memory, row, element);
            if (!SPLIT || work.parts == 1) return store_merged(parameter, work, row, element, merged);
            mine.put_four(row, element, merged.sums);
            if (element == 0) mine.put_statistics(row, merged.row);
        });
        if (!SPLIT || work.parts == 1) return;
    } else {
        u32 first = 16 * warp;
        auto put_pair = [&](u32 row, u32 element, float low, float high) { mine.put_pair(first + row, element, low, high); };
        auto put_statistics = [&](u32 row, const Statistics& of) { mine.put_statistics(first + row, of); };
        leave_part(softmax, sums, work.rows - min(work.rows, first), lane, put_pair, put_statistics);
    }
    if constexpr (SPLIT) {
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) store_shared(memory + LAST_AT, arrive_last(parameter, work.number, work.parts));
        __syncthreads();
        if (load_shared(memory + LAST_AT) == 0) return;
        __threadfence();
        PartPlace<TILE_M> all(parameter, work.number, 0);
        for_each_four(work.rows, [&](u32 row, u32 element) {
            store_merged(parameter, work, row, element, all.merge(work.parts, row, element));
        });
    }
}
