// From sums to results: parts of a split tile added, both products of the dual form combined, scaled, rounded, stored.
#pragma once
#include "swapped_products.cuh"

// In the dual form the first warp group has the first weights' sums and the second the second's, of the same rows; they
// decide together.
DEVICE void reducers_sync(const Lane& at) {
    if (DUAL) named_barrier_sync(3, CONSUMER_THREADS);
    else named_barrier_sync(1 + at.warp_group, 128);
}

// Of a tile whose depth is split, the part that arrives last adds up all in order, whichever it is: the result has the same
// bits in every call. Returns whether this is that part.
template <u32 COLUMNS>
DEVICE bool reduce_parts(const Parameter& parameter, const Tile& tile, Control* control, const Lane& at, float (&sums)[COLUMNS / 2]) {
    constexpr u32 BUFFER = WEIGHT_ROWS * WIDTH / 4, AT_ONCE = COLUMNS % 32 == 0 ? 4 : COLUMNS % 16 == 0 ? 2 : 1;
    u32 part = tile.part(), parts = tile.part_count(), reducer = DUAL ? 0 : at.warp_group;
    float4* all = (float4*)parameter.partials + (u64)tile.slot * BUFFER + at.warp_group * (WIDTH / 8) * 128 + at.thread;
    float4* mine = all + (u64)part * BUFFER;
#pragma unroll
    for (u32 i = 0; i < COLUMNS / 8; i++)
        __stcg(mine + i * 128, make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]));
    __threadfence();
    reducers_sync(at);
    if (at.thread == 0 && at.warp_group == reducer) {
        u32* counter = parameter.counters + tile.slot * 2 + reducer;
        __threadfence();
        u32 before = atomicAdd(counter, 1);
        if (before == parts - 1) *counter = 0;
        __threadfence();
        store_shared(shared_address(&control->arrived_before[reducer]), before);
    }
    reducers_sync(at);
    u32 before = load_shared(shared_address(&control->arrived_before[reducer]));
    if (!__any_sync(~0u, before == parts - 1)) return false;    // a vote: ptxas must see that all threads go one way
#pragma unroll
    for (u32 i = 0; i < COLUMNS / 8; i += AT_ONCE) {
        float4 total[AT_ONCE];
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++) total[j] = __ldcg(all + (i + j) * 128);
        for (u32 other = 1; other < parts; other++)
#pragma unroll
            for (u32 j = 0; j < AT_ONCE; j++) {
                float4 more = __ldcg(all + (u64)other * BUFFER + (i + j) * 128);
                total[j] = make_float4(total[j].x + more.x, total[j].y + more.y, total[j].z + more.z, total[j].w + more.w);
            }
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++) {
            sums[4 * (i + j)] = total[j].x;
            sums[4 * (i + j) + 1] = total[j].y;
            sums[4 * (i + j) + 2] = total[j].z;
            sums[4 * (i + j) + 3] = total[j].w;
        }
    }
    return true;
}

DEVICE u32 round_pair(float low, float high) {
    u32 pair;
    if (OUTPUT == 1) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// What a token's results of a warp group take on their way, 16 bytes more than they are: matrices' rows are in all banks.
constexpr u32 STAGED_ROW = 64 * 2 + 16;
static_assert(2 * WIDTH * STAGED_ROW <= unit_bytes(WIDTH), "the last unit has no room for results");

// Through the unit that was multiplied last, so that whole lines leave, 64 weight rows of a token each: out of the registers
// it would be 16 rows, which leave at a quarter of the rate.
template <u32 COLUMNS, u32 LAST>
DEVICE void store_halves(u16* output, u32 n, u32 row, u32 width, u32 staging, const Lane& at, const float (&sums)[COLUMNS / 2], float scale) {
    u32 to = staging + (at.lane / 16 * 8 + at.lane % 8) * STAGED_ROW + at.thread / 32 * 32 + at.lane / 8 % 2 * 16;
    auto pair = [&](u32 i) { return round_pair(sums[2 * i] * scale, sums[2 * i + 1] * scale); };
    if constexpr (LAST >= 16) {
#pragma unroll
        for (u32 i = 0; i < LAST / 16; i++)
            store_matrices_turned(to + i * 16 * STAGED_ROW, pair(4 * i), pair(4 * i + 1), pair(4 * i + 2), pair(4 * i + 3));
    }
    if constexpr (LAST % 16 != 0) store_matrices_turned(to + LAST / 16 * 16 * STAGED_ROW, pair(LAST / 4 - 2), pair(LAST / 4 - 1));
    named_barrier_sync(1 + at.warp_group, 128);
    if (n % 8 == 0 && (u64)output % 16 == 0) {      // results of groups lie one after another, at any element
        u32 piece = at.thread % 8;
        u16* place = output + row + piece * 8;
        if (row + piece * 8 < n)
#pragma unroll 4
            for (u32 token = at.thread / 8; token < width; token += 16)
                *(uint4*)(place + (u64)token * n) = load_shared_16(staging + token * STAGED_ROW + piece * 16);
    } else {
        u32 piece = at.thread % 64;
        if (row + piece < n)
            for (u32 token = at.thread / 64; token < width; token += 2)
                output[(u64)token * n + row + piece] = load_shared_2(staging + token * STAGED_ROW + piece * 2);
    }
}

template <u32 COLUMNS, u32 LAST>
DEVICE void store_words(float* output, u32 n, u32 row, u32 width, const Lane& at, const float (&sums)[COLUMNS / 2], float scale) {
    row += at.thread / 32 * 16 + at.lane / 4;
#pragma unroll
    for (u32 i = 0; i < LAST / 8; i++)
#pragma unroll
        for (u32 which = 0; which < 4; which++) {
            u32 token = 8 * i + at.lane % 4 * 2 + which % 2, at_row = row + which / 2 * 8;
            if (token < width && at_row < n) output[(u64)token * n + at_row] = sums[4 * i + which] * scale;
        }
}

// The first `LAST` columns of this warp group's rows.
template <u32 COLUMNS, u32 LAST>
DEVICE void store_results(const Parameter& parameter, u32 group, u32 row, u32 token, u32 width, u32 staging, const Lane& at, const float (&sums)[COLUMNS / 2], float scale) {
    u32 n = SHAPE(group, n);
    u64 place = SHAPE(group, output) + (u64)token * n;
    if (OUTPUT == 2) store_words<COLUMNS, LAST>((float*)parameter.output + place, n, row, width, at, sums, scale);
    else store_halves<COLUMNS, LAST>((u16*)parameter.output + place, n, row, width, staging, at, sums, scale);
}

DEVICE float silu(float x) {
    return x / (1.0f + __expf(-x));
}

// silu(first product) × second. Each warp group has one product of all columns; they exchange halves, so that the first
// group finishes the first `HALF` columns and the second the others. Results come to the first sums.
template <u32 COLUMNS, u32 HALF>
DEVICE void combine_products(const Lane& at, float4* exchange, float (&sums)[COLUMNS / 2], float first_scale, float second_scale) {
    constexpr u32 AT_ONCE = 4, BLOCKS = COLUMNS / 8, KEPT = HALF / 8;
    bool second = at.warp_group == 1;
    float4* mine = exchange + at.warp_group * AT_ONCE * 128 + at.thread;
    const float4* theirs = exchange + (1 - at.warp_group) * AT_ONCE * 128 + at.thread;
#pragma unroll
    for (u32 begin = 0; begin < KEPT; begin += AT_ONCE) {
        named_barrier_sync(3, CONSUMER_THREADS);
#pragma unroll
        for (u32 i = begin; i < begin + AT_ONCE && i < KEPT; i++) {
            u32 other = KEPT + i < BLOCKS ? KEPT + i : i;       // of an odd number of blocks the second group has one fewer
            float4 low = make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
            float4 high = make_float4(sums[4 * other], sums[4 * other + 1], sums[4 * other + 2], sums[4 * other + 3]);
            mine[(i - begin) * 128] = second ? low : high;
        }
        named_barrier_sync(3, CONSUMER_THREADS);
#pragma unroll
        for (u32 i = begin; i < begin + AT_ONCE && i < KEPT; i++) {
            u32 other = KEPT + i < BLOCKS ? KEPT + i : i;
            float4 received = theirs[(i - begin) * 128];
            float values[4] = {received.x, received.y, received.z, received.w};
#pragma unroll
            for (u32 j = 0; j < 4; j++) {
                float kept = second ? sums[4 * other + j] : sums[4 * i + j];
                float gate = second ? values[j] : kept, up = second ? kept : values[j];
                sums[4 * i + j] = silu(gate * first_scale) * (up * second_scale);
            }
        }
    }
}

template <u32 COLUMNS>
DEVICE void finish_tile(const Parameter& parameter, const Announced& announced, Control* control, float4* exchange, u32 unit, float (&sums)[COLUMNS / 2], Recorder& recorder, u32 number) {
    Lane at;
    const Tile& tile = announced.tile;
    if (!DUAL && OUTPUT != 2) named_barrier_sync(3, CONSUMER_THREADS);      // both groups have read the unit
    if (tile.part_count() > 1) {
        bool last = reduce_parts<COLUMNS>(parameter, tile, control, at, sums);
        recorder.end(Activity::Reduce, number);
        if (!last) return;
    }
    float scale = announced.scales[0] * CONVERTED_UNIT;
    u32 staging = unit + at.warp_group * COLUMNS * STAGED_ROW;
    if constexpr (DUAL) {
        constexpr u32 HALF = (COLUMNS / 8 + 1) / 2 * 8;
        combine_products<COLUMNS, HALF>(at, exchange, sums, scale, announced.scales[1] * CONVERTED_UNIT);
        u32 begin = at.warp_group * HALF;
        u32 width = min(tile.width > begin ? tile.width - begin : 0, HALF);
        store_results<COLUMNS, HALF>(parameter, tile.group, tile.row, tile.token + begin, width, staging, at, sums, 1.0f);
    } else {
        store_results<COLUMNS, COLUMNS>(parameter, tile.group, tile.row + at.warp_group * 64, tile.token, tile.width, staging, at, sums, scale);
    }
    recorder.end(Activity::Store, number);
}
