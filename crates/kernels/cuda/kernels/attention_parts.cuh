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

// Counts that a part is in the workspace, and resets the counter after the last of `parts`; returns whether this was
// the last. By one thread, when all that store the part have met after a fence of their own.
DEVICE bool arrive_last(const Parameter& parameter, u32 counter, u32 parts) {
    bool last = atomicAdd(parameter.counters + counter, 1) == parts - 1;
    if (last) parameter.counters[counter] = 0;
    __threadfence();
    return last;
}

// ---- Parts of a block: of each part of each tile, the sums of ROWS rows, one after another, and then their
// statistics. With SHARED_OUT a tile's parts are those of blocks that follow one another, and each block has two
// places: for the tile that it begins, and for the one that it goes on with.

template <u32 ROWS, bool SHARED_OUT>
struct BlockParts {
    static constexpr u32 FLOATS = ROWS * (HEAD + 2);
    float* begin;

    // `first` is the number of the tile's first part among all, or, with SHARED_OUT, that of its block.
    DEVICE BlockParts(const Parameter& parameter, u64 first)
        : begin(parameter.workspace + (SHARED_OUT ? 2 : 1) * first * FLOATS) {}

    DEVICE float* of(u32 part) const { return begin + (u64)(SHARED_OUT ? 2 * part + (part == 0) : part) * FLOATS; }
    DEVICE float4* sums(u32 part, u32 row, u32 element) const { return (float4*)(of(part) + row * HEAD + element); }
    DEVICE float2* statistics(u32 part, u32 row) const { return (float2*)(of(part) + ROWS * HEAD) + row; }

    // Four neighbours of a row, from `element` on.
    DEVICE void put(u32 part, u32 row, u32 element, const Merged& merged) const {
        __stcg(sums(part, row, element), merged.sums);
        if (element == 0) __stcg(statistics(part, row), make_float2(merged.row.base, merged.row.total));
    }

    DEVICE Merged merge(u32 count, u32 row, u32 element) const {
        auto read_statistics = [&](u32 part) {
            float2 of = __ldcg(statistics(part, row));
            return Statistics{of.x, of.y};
        };
        return merge_parts(count, read_statistics, [&](u32 part) { return __ldcg(sums(part, row, element)); });
    }
};

// ---- Parts of a warp, which has sixteen rows of a tile to itself: its sums as its lanes have them. Of DEPTH / 2 sums
// of a lane, those with numbers 4i and 4i + 1 are of row g, the next two of row g + 8. Warps do not wait for each
// other. In a launch of its own many warps merge the parts of one (attention_merge.cu); else the warp that arrives last
// does.

struct WarpParts {
    static constexpr u32 FOURS = DEPTH / 8, STRIDE = 32 * (FOURS + 1);  // of a lane; between parts of a warp
    const Parameter& parameter;
    u32 number;     // of the warp among those of all tiles
    float4* begin;  // of the lane's first part

    DEVICE WarpParts(const Parameter& parameter, u32 number)
        : parameter(parameter),
          number(number),
          begin((float4*)parameter.workspace + (u64)number * parameter.parts * STRIDE + threadIdx.x % 32) {}

    // Stores a part, of which `sum` gives a reference to each sum.
    template <typename Sum>
    DEVICE void put(u32 part, Sum sum, const Statistics (&rows)[2]) const {
        float4* mine = begin + (u64)part * STRIDE;
#pragma unroll
        for (u32 i = 0; i < FOURS; ++i)
            __stcg(mine + i * 32, make_float4(sum(4 * i), sum(4 * i + 1), sum(4 * i + 2), sum(4 * i + 3)));
        __stcg(mine + FOURS * 32, make_float4(rows[0].base, rows[0].total, rows[1].base, rows[1].total));
    }

    // The same; returns whether it is the last of `parts`.
    template <typename Sum>
    DEVICE bool leave(u32 part, u32 parts, Sum sum, const Statistics (&rows)[2]) const {
        put(part, sum, rows);
        __threadfence();
        __syncwarp();
        bool last = threadIdx.x % 32 == 0 && arrive_last(parameter, number, parts);
        // A vote, so that the compiler sees a branch that whole warps take.
        if (!__any_sync(~0u, last)) return false;
        __threadfence();
        return true;
    }

    // Replaces sums and statistics by those of the parts from `first` to `end`, AT_ONCE of which are read before any is
    // used: COUNT fours of sums, from the lane's four number `four` on.
    template <u32 AT_ONCE, u32 COUNT, typename Sum>
    DEVICE void merge(u32 first, u32 end, u32 four, Sum sum, Statistics (&rows)[2]) const {
#pragma unroll
        for (u32 i = 0; i < 4 * COUNT; ++i) sum(i) = 0.0f;
        rows[0] = rows[1] = {-INFINITE, 0.0f};
#pragma unroll 1
        for (; first < end; first += AT_ONCE) {
            float4 more[AT_ONCE][COUNT + 1];
#pragma unroll
            for (u32 index = 0; index < AT_ONCE; ++index) {
                // Beyond the last part, it is read again and counts nothing.
                const float4* from = begin + (u64)min(first + index, end - 1) * STRIDE;
#pragma unroll
                for (u32 i = 0; i < COUNT; ++i) more[index][i] = __ldcg(from + (four + i) * 32);
                more[index][COUNT] = __ldcg(from + FOURS * 32);
            }
#pragma unroll
            for (u32 index = 0; index < AT_ONCE; ++index) {
                const float4& of = more[index][COUNT];
                bool is_there = first + index < end;
                Statistics part[2] = {{is_there ? of.x : -INFINITE, of.y}, {is_there ? of.z : -INFINITE, of.w}};
                float before[2], factors[2];
#pragma unroll
                for (u32 row = 0; row < 2; ++row) {
                    float highest = fmaxf(rows[row].base, part[row].base);
                    before[row] = part_factor(rows[row].base, highest);
                    factors[row] = part_factor(part[row].base, highest);
                    rows[row] = {highest, fmaf(factors[row], part[row].total, before[row] * rows[row].total)};
                }
#pragma unroll
                for (u32 i = 0; i < COUNT; ++i) {
                    const float4& sums = more[index][i];
                    sum(4 * i) = fmaf(factors[0], sums.x, before[0] * sum(4 * i));
                    sum(4 * i + 1) = fmaf(factors[0], sums.y, before[0] * sum(4 * i + 1));
                    sum(4 * i + 2) = fmaf(factors[1], sums.z, before[1] * sum(4 * i + 2));
                    sum(4 * i + 3) = fmaf(factors[1], sums.w, before[1] * sum(4 * i + 3));
                }
            }
        }
    }
};

// Four neighbours of a row of the result, from `element` on, which is a multiple of four.
DEVICE void store_four(const Parameter& parameter, u64 element, const float4& sums, float factor) {
    store_pair(parameter, element, sums.x * factor, sums.y * factor);
    store_pair(parameter, element + 2, sums.z * factor, sums.w * factor);
}
