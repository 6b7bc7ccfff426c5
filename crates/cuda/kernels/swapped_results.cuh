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
    constexpr u32 BUFFER = WEIGHT_ROWS * WIDTH / 4, BLOCKS = COLUMNS / 8, AT_ONCE = COLUMNS <= 192 ? 8 : 4;     // as registers allow
    u32 part = tile.part(), parts = tile.part_count(), reducer = DUAL ? 0 : at.warp_group;
    float4* all = (float4*)parameter.partials + (u64)tile.slot * BUFFER + at.warp_group * (WIDTH / 8) * 128 + at.thread;
    float4* mine = all + (u64)part * BUFFER;
#pragma unroll
    for (u32 i = 0; i < BLOCKS; i++)
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
    auto sums_of = [&](u32 other, u32 i) { return __ldcg(all + (u64)other * BUFFER + i * 128); };
#pragma unroll
    for (u32 begin = 0; begin < BLOCKS; begin += AT_ONCE) {
        float4 total[AT_ONCE];
#pragma unroll
        for (u32 i = begin; i < begin + AT_ONCE && i < BLOCKS; i++) total[i - begin] = sums_of(0, i);
#pragma unroll 1
        for (u32 other = 1; other < parts; other++) {
            float4 more[AT_ONCE];
#pragma unroll
            for (u32 i = begin; i < begin + AT_ONCE && i < BLOCKS; i++) more[i - begin] = sums_of(other, i);
#pragma unroll
            for (u32 i = 0; i < AT_ONCE && begin + i < BLOCKS; i++)
                total[i] = make_float4(total[i].x + more[i].x, total[i].y + more[i].y, total[i].z + more[i].z, total[i].w + more[i].w);
        }
#pragma unroll
        for (u32 i = begin; i < begin + AT_ONCE && i < BLOCKS; i++) {
            sums[4 * i] = total[i - begin].x;
            sums[4 * i + 1] = total[i - begin].y;
            sums[4 * i + 2] = total[i - begin].z;
            sums[4 * i + 3] = total[i - begin].w;
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
template <u32 COLUMNS>
DEVICE void store_halves(u16* output, u32 n, u32 row, u32 width, u32 staging, const Lane& at, const float (&sums)[COLUMNS / 2], float scale) {
    u32 to = staging + (at.lane / 16 * 8 + at.lane % 8) * STAGED_ROW + at.thread / 32 * 32 + at.lane / 8 % 2 * 16;
    auto pair = [&](u32 i) { return round_pair(sums[2 * i] * scale, sums[2 * i + 1] * scale); };
    if constexpr (COLUMNS >= 16) {
#pragma unroll
        for (u32 i = 0; i < COLUMNS / 16; i++)
            store_matrices_turned(to + i * 16 * STAGED_ROW, pair(4 * i), pair(4 * i + 1), pair(4 * i + 2), pair(4 * i + 3));
    }
    if constexpr (COLUMNS % 16 != 0) store_matrices_turned(to + COLUMNS / 16 * 16 * STAGED_ROW, pair(COLUMNS / 4 - 2), pair(COLUMNS / 4 - 1));
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

template <u32 COLUMNS>
DEVICE void store_words(float* output, u32 n, u32 row, u32 width, const Lane& at, const float (&sums)[COLUMNS / 2], float scale) {
    row += at.thread / 32 * 16 + at.lane / 4;
#pragma unroll
    for (u32 i = 0; i < COLUMNS / 8; i++)
#pragma unroll
        for (u32 which = 0; which < 4; which++) {
            u32 token = 8 * i + at.lane % 4 * 2 + which % 2, at_row = row + which / 2 * 8;
            if (token < width && at_row < n) output[(u64)token * n + at_row] = sums[4 * i + which] * scale;
        }
}

// The one product of a tile, each warp group its rows.
template <u32 COLUMNS>
DEVICE void store_results(const Parameter& parameter, const Tile& tile, u32 unit, const Lane& at, const float (&sums)[COLUMNS / 2], float scale) {
    u32 n = SHAPE(tile.group, n), row = tile.row + at.warp_group * 64;
    u64 place = SHAPE(tile.group, output) + (u64)tile.token * n;
    if (OUTPUT == 2) {
        store_words<COLUMNS>((float*)parameter.output + place, n, row, tile.width, at, sums, scale);
        return;
    }
    store_halves<COLUMNS>((u16*)parameter.output + place, n, row, tile.width, unit + at.warp_group * COLUMNS * STAGED_ROW, at, sums, scale);
}

// x / (1 + e⁻ˣ). Numbers below 2⁻¹²⁶ make no difference here, so C++'s own functions, which mind them, are not needed.
DEVICE float silu(float x) {
    constexpr float LOG2_E = 1.4426950408889634f;
    return x * reciprocal_by_hardware(1.0f + power_by_hardware(-LOG2_E * x));
}

// Words that a token's 64 sums of a product take on their way: four more than they are, so that both ways use all banks.
constexpr u32 SUMS_ROW = 64 + 4;

// Bytes of a product's sums of so many columns.
DEVICE constexpr u32 product_bytes(u32 columns) {
    return columns * SUMS_ROW * 4;
}
static_assert(!DUAL || 2 * product_bytes((WIDTH / 8 + 1) / 2 * 8) <= unit_bytes(WIDTH), "the last unit has no room for sums");

// `COUNT` columns' sums of this warp group's product, from column `FIRST` on, token after token.
template <u32 COLUMNS, u32 FIRST, u32 COUNT>
DEVICE void put_sums(const Lane& at, u32 to, const float (&sums)[COLUMNS / 2]) {
    to += at.warp_group * product_bytes(COUNT) + (at.lane % 4 * 2 * SUMS_ROW + at.row % 64) * 4;
#pragma unroll
    for (u32 i = 0; i < COUNT / 8; i++)
#pragma unroll
        for (u32 which = 0; which < 4; which++)
            store_shared(to + ((8 * i + which % 2) * SUMS_ROW + which / 2 * 8) * 4, __float_as_uint(sums[FIRST / 2 + 4 * i + which]));
}

// Four results of a token: silu(first product) × second.
DEVICE float4 gated(u32 gates_at, u32 ups_at, const float (&scales)[2]) {
    uint4 gates = load_shared_16(gates_at), ups = load_shared_16(ups_at);
    auto one = [&](u32 gate, u32 up) { return silu(__uint_as_float(gate) * scales[0]) * (__uint_as_float(up) * scales[1]); };
    return make_float4(one(gates.x, ups.x), one(gates.y, ups.y), one(gates.z, ups.z), one(gates.w, ups.w));
}

// Results of tokens whose sums lie at `from`, the second product's `second` bytes further; four rows a thread, sixteen threads
// a token. A loop of a few dozen instructions: where each thread computed from its own registers, code for every sum, storing
// took a fifth of a call (docs/cuda-measured.md).
DEVICE void store_gated(const Parameter& parameter, const Tile& tile, u32 token, u32 width, u32 from, u32 second, const float (&scales)[2]) {
    constexpr u32 BYTES = OUTPUT == 2 ? 4 : 2, STEP = CONSUMER_THREADS / 16;        // of a result; tokens at a time
    u32 n = SHAPE(tile.group, n), piece = threadIdx.x % 16, first = threadIdx.x / 16, row = tile.row + piece * 4;
    u8* to = parameter.output + (SHAPE(tile.group, output) + (u64)(token + first) * n + row) * BYTES;
    u64 stride = (u64)STEP * n * BYTES;
    from += (first * SUMS_ROW + piece * 4) * 4;
    if (n % 4 == 0 && (u64)to % (4 * BYTES) == 0) {      // results of groups lie one after another, at any element
        if (row < n)
#pragma unroll 2
            for (u32 i = first; i < width; i += STEP, from += STEP * SUMS_ROW * 4, to += stride) {
                float4 results = gated(from, from + second, scales);
                if (OUTPUT == 2) *(float4*)to = results;
                else *(uint2*)to = make_uint2(round_pair(results.x, results.y), round_pair(results.z, results.w));
            }
    } else {
#pragma unroll 1
        for (u32 i = first; i < width; i += STEP, from += STEP * SUMS_ROW * 4, to += stride) {
            float4 results = gated(from, from + second, scales);
            float values[4] = {results.x, results.y, results.z, results.w};
#pragma unroll
            for (u32 j = 0; j < 4; j++)
                if (row + j < n) {
                    if (OUTPUT == 2) ((float*)to)[j] = values[j];
                    else ((u16*)to)[j] = (u16)round_pair(values[j], 0.0f);
                }
        }
    }
}

// Both products of a tile, which the two warp groups have, through the unit that was multiplied last: half of the columns at
// a time, for which it has room.
template <u32 COLUMNS>
DEVICE void finish_products(const Parameter& parameter, const Tile& tile, u32 unit, const Lane& at, const float (&sums)[COLUMNS / 2], const float (&scales)[2]) {
    constexpr u32 HALF = (COLUMNS / 8 + 1) / 2 * 8, OTHER = COLUMNS - HALF;
    put_sums<COLUMNS, 0, HALF>(at, unit, sums);
    named_barrier_sync(3, CONSUMER_THREADS);
    store_gated(parameter, tile, tile.token, min(tile.width, HALF), unit, product_bytes(HALF), scales);
    if constexpr (OTHER > 0) {
        named_barrier_sync(3, CONSUMER_THREADS);
        put_sums<COLUMNS, HALF, OTHER>(at, unit, sums);
        named_barrier_sync(3, CONSUMER_THREADS);
        store_gated(parameter, tile, tile.token + HALF, tile.width > HALF ? tile.width - HALF : 0, unit, product_bytes(OTHER), scales);
    }
}

template <u32 COLUMNS>
DEVICE void finish_tile(const Parameter& parameter, const Announced& announced, Control* control, u32 unit, float (&sums)[COLUMNS / 2], Recorder& recorder, u32 number) {
    Lane at;
    const Tile& tile = announced.tile;
    // Both groups have read the unit. Not later: of a split tile one may have nothing left to do.
    named_barrier_sync(3, CONSUMER_THREADS);
    if (tile.part_count() > 1) {
        bool last = reduce_parts<COLUMNS>(parameter, tile, control, at, sums);
        recorder.end(Activity::Reduce, number);
        if (!last) return;
    }
    float scales[2] = {announced.scales[0] * CONVERTED_UNIT, announced.scales[1] * CONVERTED_UNIT};
    if constexpr (DUAL) finish_products<COLUMNS>(parameter, tile, unit, at, sums, scales);
    else store_results<COLUMNS>(parameter, tile, unit, at, sums, scales[0]);
    recorder.end(Activity::Store, number);
}
