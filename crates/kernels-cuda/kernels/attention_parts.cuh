// Keys of a tile that are split into parts: what a part leaves, and how parts become results.
//
// A part leaves, for each row of the tile, its sums of weights times values, the base of its exponents and its sum of
// weights: results before the division. Parts are merged in their order, so the result has the same bits whichever part
// arrives last. A part in which a row sees no key has the base −∞ and counts nothing.
#pragma once
#include "attention.cuh"

// Of a row of a part: the base of its exponents, and the sum of its weights.
struct Statistics {
    float base, total;
};

// Four neighbours of a row, and what goes with them.
struct Merged {
    float4 sums;
    Statistics row;
};

// What sums relative to `base` are multiplied by to be relative to `highest`; −∞ minus −∞ would be NaN.
DEVICE float part_factor(float base, float highest) {
    return base == -INFINITE ? 0.0f : power_by_hardware(base - highest);
}

DEVICE void add_scaled(float4& sums, float factor, const float4& more) {
    sums.x = fmaf(factor, more.x, sums.x);
    sums.y = fmaf(factor, more.y, sums.y);
    sums.z = fmaf(factor, more.z, sums.z);
    sums.w = fmaf(factor, more.w, sums.w);
}

// Merges `count` parts, of which the functions read a row's statistics and four of its sums. Several parts are read
// before any is used, because each read waits for the cache.
template <typename ReadStatistics, typename ReadSums>
DEVICE Merged merge_parts(u32 count, ReadStatistics statistics, ReadSums sums) {
    constexpr u32 AT_ONCE = 8;
    Merged merged = {make_float4(0.0f, 0.0f, 0.0f, 0.0f), {-INFINITE, 0.0f}};
#pragma unroll 1
    for (u32 begin = 0; begin < count; begin += AT_ONCE) {
        Statistics rows[AT_ONCE];
        float4 values[AT_ONCE];
        float highest = merged.row.base;
#pragma unroll
        for (u32 index = 0; index < AT_ONCE; ++index) {
            bool is_there = begin + index < count;
            rows[index] = is_there ? statistics(begin + index) : Statistics{-INFINITE, 0.0f};
            values[index] = is_there ? sums(begin + index) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
#pragma unroll
        for (u32 index = 0; index < AT_ONCE; ++index) highest = fmaxf(highest, rows[index].base);
        float before = part_factor(merged.row.base, highest);
        float4 earlier = merged.sums;
        merged.sums = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        add_scaled(merged.sums, before, earlier);
        merged.row = {highest, before * merged.row.total};
#pragma unroll
        for (u32 index = 0; index < AT_ONCE; ++index) {
            float factor = part_factor(rows[index].base, highest);
            add_scaled(merged.sums, factor, values[index]);
            merged.row.total = fmaf(factor, rows[index].total, merged.row.total);
        }
    }
    return merged;
}

// ---- In the workspace: of each part of each tile, the sums of ROWS rows, one after another, and then their statistics.

template <u32 ROWS>
struct PartPlace {
    static constexpr u32 FLOATS = ROWS * (HEAD + 2);
    float* begin;

    DEVICE PartPlace(const Parameter& parameter, u32 tile, u32 part)
        : begin(parameter.workspace + ((u64)tile * parameter.parts + part) * FLOATS) {}

    // Of the `index`th part from this one on.
    DEVICE float* row_sums(u32 row, u32 element, u32 index = 0) const {
        return begin + (u64)index * FLOATS + row * HEAD + element;
    }
    DEVICE float2* statistics(u32 row, u32 index = 0) const {
        return (float2*)(begin + (u64)index * FLOATS + ROWS * HEAD) + row;
    }

    DEVICE void put_pair(u32 row, u32 element, float low, float high) const {
        __stcg((float2*)row_sums(row, element), make_float2(low, high));
    }
    DEVICE void put_four(u32 row, u32 element, const float4& sums) const { __stcg((float4*)row_sums(row, element), sums); }
    DEVICE void put_statistics(u32 row, const Statistics& of) const { __stcg(statistics(row), make_float2(of.base, of.total)); }

    // Merges four neighbours of a row over `count` parts, of which this one is the first.
    DEVICE Merged merge(u32 count, u32 row, u32 element) const {
        auto read_statistics = [&](u32 index) {
            float2 of = __ldcg(statistics(row, index));
            return Statistics{of.x, of.y};
        };
        auto read_sums = [&](u32 index) { return __ldcg((const float4*)row_sums(row, element, index)); };
        return merge_parts(count, read_statistics, read_sums);
    }
};

// Counts that a part of a tile is in the workspace, and resets the counter after the last of `parts`; returns whether
// this was the last. By one thread, when all that store the part have met at a barrier after a fence of their own.
DEVICE bool arrive_last(const Parameter& parameter, u32 tile, u32 parts) {
    bool last = atomicAdd(parameter.counters + tile, 1) == parts - 1;
    if (last) parameter.counters[tile] = 0;
    __threadfence();
    return last;
}

// Four neighbours of a row of the result, from `element` on, which is a multiple of four.
DEVICE void store_four(const Parameter& parameter, u64 element, const float4& sums, float factor) {
    store_pair(parameter, element, sums.x * factor, sums.y * factor);
    store_pair(parameter, element + 2, sums.z * factor, sums.w * factor);
}
