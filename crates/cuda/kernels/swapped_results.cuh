// From sums to results: parts of a split tile added, both products of the dual form combined, scaled, rounded, stored.
//
// This code is run once a tile, so what it costs is to fetch it: unrolled over a tile's sums, eight instructions a line of
// 128 bytes, it took longer than its stores (measured: 8 µs for 248 columns, 1 µs now). So only what names registers is
// unrolled: sums go to shared memory piece by piece, and a loop makes results of a piece.
#pragma once
#include "swapped_products.cuh"

constexpr u32 RESULT_BYTES = OUTPUT == 2 ? 4 : 2;
constexpr u32 LINE_BYTES = 32 * 16;                     // a warp's sums of 16 rows by 8 tokens, four a lane
constexpr u32 PIECE_LINES = WIDTH > 232 ? 2 : 4;        // the widest tiles leave no room for more beside three stages
constexpr u32 PIECE_BYTES = PIECE_LINES * LINE_BYTES;

// In the dual form the first warp group has the first weights' sums and the second the second's, of the same rows; they
// decide together.
DEVICE void reducers_sync(const Lane& at) {
    if (DUAL) named_barrier_sync(3, CONSUMER_THREADS);
    else named_barrier_sync(1 + at.warp_group, 128);
}

// Those who share a piece: a warp, or in the dual form the two that have the same rows.
DEVICE void piece_sync(const Lane& at) {
    __syncwarp();       // a hardware barrier wants warps whole, and some lanes have no results to make
    if (DUAL) named_barrier_sync(4 + at.thread / 32, 64);
}

DEVICE float4* partial_sums(const Parameter& parameter, const Tile& tile, const Lane& at, u32 part) {
    constexpr u32 BUFFER = WEIGHT_ROWS * WIDTH / 4;
    return (float4*)parameter.partials + (u64)(tile.slot + part) * BUFFER + at.warp_group * (WIDTH / 8) * 128 + at.thread;
}

// Keeps this part's sums in memory. The part that comes last adds up all in order, whichever it is: the result has the same
// bits in every call. Returns whether this is that part.
template <u32 COLUMNS>
DEVICE bool keep_part(const Parameter& parameter, const Tile& tile, Control* control, const Lane& at, const float (&sums)[COLUMNS / 2]) {
    u32 reducer = DUAL ? 0 : at.warp_group, parts = tile.part_count();
    float4* mine = partial_sums(parameter, tile, at, tile.part());
#pragma unroll
    for (u32 i = 0; i < COLUMNS / 8; i++)
        __stcg(mine + i * 128, make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]));
    __threadfence();
    reducers_sync(at);
    if (at.thread == 0 && at.warp_group == reducer) {
        u32* counter = parameter.counters + 4 + tile.slot * 2 + reducer;
        __threadfence();
        u32 before = atomicAdd(counter, 1);
        if (before == parts - 1) *counter = 0;
        __threadfence();
        store_shared(shared_address(&control->arrived_before[reducer]), before);
    }
    reducers_sync(at);
    u32 before = load_shared(shared_address(&control->arrived_before[reducer]));
    return __any_sync(~0u, before == parts - 1);    // a vote: ptxas must see that all threads go one way
}

// Where a lane's line of a piece is: the other half of a warp exchanges banks, so that a quarter reads from all of them.
DEVICE u32 line_place(u32 lane) {
    return (lane ^ lane / 16 * 4) * 16;
}

DEVICE void stage_line(u32 to, float4 sums) {
    store_shared_16(to, __float_as_uint(sums.x), __float_as_uint(sums.y), __float_as_uint(sums.z), __float_as_uint(sums.w));
}

template <u32 COLUMNS>
DEVICE void stage_sums(u32 piece, u32 to, const float (&sums)[COLUMNS / 2]) {
#pragma unroll
    for (u32 one = 0; one < (COLUMNS / 8 + PIECE_LINES - 1) / PIECE_LINES; one++) {
        if (one != piece) continue;
#pragma unroll
        for (u32 i = one * PIECE_LINES; i < (one + 1) * PIECE_LINES && i < COLUMNS / 8; i++)
            stage_line(to + i % PIECE_LINES * LINE_BYTES, make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]));
    }
}

// The same of all parts' sums.
DEVICE void stage_parts(const Parameter& parameter, const Tile& tile, const Lane& at, u32 piece, u32 lines, u32 to) {
    float4 total[PIECE_LINES]{}, more[PIECE_LINES]{};
    for (u32 part = 0; part < tile.part_count(); part++) {
        const float4* from = partial_sums(parameter, tile, at, part) + piece * PIECE_LINES * 128;
#pragma unroll
        for (u32 i = 0; i < PIECE_LINES; i++)
            if (i < lines) more[i] = __ldcg(from + i * 128);
#pragma unroll
        for (u32 i = 0; i < PIECE_LINES; i++)
            total[i] = make_float4(total[i].x + more[i].x, total[i].y + more[i].y, total[i].z + more[i].z, total[i].w + more[i].w);
    }
#pragma unroll
    for (u32 i = 0; i < PIECE_LINES; i++) stage_line(to + i * LINE_BYTES, total[i]);
}

// Where results of a warp's sixteen rows go.
struct Place {
    u8* output;             // of the tile's first token, row 0
    u32 n, row, width;
    float scale, second_scale;

    // The results of eight rows of a token begin at a multiple of 16 bytes and are all there, or none is. Results of groups
    // lie one after another, at any element.
    DEVICE bool is_aligned() const { return n % 8 == 0 && (u64)output % 16 == 0; }
};

DEVICE float silu(float x) {
    return x / (1.0f + __expf(-x));
}

DEVICE u32 round_pair(float low, float high) {
    u32 pair;
    if (OUTPUT == 1) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

DEVICE void store_eight(const Place& place, u32 token, u32 row, const float (&results)[8]) {
    if (token >= place.width || row >= place.n) return;
    u8* to = place.output + ((u64)token * place.n + row) * RESULT_BYTES;
    if (place.is_aligned()) {
        if (OUTPUT == 2) {
            ((float4*)to)[0] = make_float4(results[0], results[1], results[2], results[3]);
            ((float4*)to)[1] = make_float4(results[4], results[5], results[6], results[7]);
        } else {
            *(uint4*)to = make_uint4(round_pair(results[0], results[1]), round_pair(results[2], results[3]),
                                     round_pair(results[4], results[5]), round_pair(results[6], results[7]));
        }
        return;
    }
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        if (row + i >= place.n) continue;
        if (OUTPUT == 2) ((float*)to)[i] = results[i];
        else ((u16*)to)[i] = (u16)round_pair(results[i], 0.0f);
    }
}

// Eight rows by two tokens of a line, from where four lanes have put them.
DEVICE void load_results(u32 line, u32 half, u32 pair, float (&results)[2][8]) {
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        uint4 four = load_shared_16(line + line_place((4 * half + i) * 4 + pair));
        u32 row = i / 2 * 4 + i % 2;
        results[0][row] = __uint_as_float(four.x), results[1][row] = __uint_as_float(four.y);
        results[0][row + 2] = __uint_as_float(four.z), results[1][row + 2] = __uint_as_float(four.w);
    }
}

// Each lane makes results of eight rows by two tokens; in the dual form the two warps share them out.
DEVICE void finish_piece(const Place& place, const Lane& at, u32 piece, u32 staging) {
    constexpr u32 ITEMS = PIECE_LINES * 8 / (DUAL ? 2 : 1);
    if (at.lane >= ITEMS) return;
    u32 item = DUAL ? at.warp_group * ITEMS + at.lane : at.lane, line = item / 8, half = item / 4 % 2, pair = item % 4;
    float results[2][8];
    load_results(staging + line * LINE_BYTES, half, pair, results);
    if constexpr (DUAL) {
        float second[2][8];
        load_results(staging + 4 * PIECE_BYTES + line * LINE_BYTES, half, pair, second);
#pragma unroll
        for (u32 i = 0; i < 16; i++)
            results[i / 8][i % 8] = silu(results[i / 8][i % 8] * place.scale) * (second[i / 8][i % 8] * place.second_scale);
    } else {
#pragma unroll
        for (u32 i = 0; i < 16; i++) results[i / 8][i % 8] *= place.scale;
    }
#pragma unroll
    for (u32 i = 0; i < 2; i++) store_eight(place, (piece * PIECE_LINES + line) * 8 + pair * 2 + i, place.row + half * 8, results[i]);
}

template <u32 COLUMNS>
DEVICE void finish_tile(const Parameter& parameter, const Announced& announced, Control* control, u32 results, float (&sums)[COLUMNS / 2], Recorder& recorder, u32 number) {
    Lane at;
    Tile tile = announced.tile;
    bool split = tile.part_count() > 1;
    if (split) {
        bool last = keep_part<COLUMNS>(parameter, tile, control, at, sums);
        recorder.end(Activity::Reduce, number);
        if (!last) return;
    }
    u32 warp = at.thread / 32, n = SHAPE(tile.group, n);
    u32 staging = results + warp * PIECE_BYTES;     // of the first warp group's warp
    u32 mine = staging + at.warp_group * 4 * PIECE_BYTES;
    Place place{parameter.output + (SHAPE(tile.group, output) + (u64)tile.token * n) * RESULT_BYTES,
                n,
                tile.row + warp * 16 + (DUAL ? 0 : at.warp_group * 64),
                tile.width,
                announced.scales[0] * CONVERTED_UNIT,
                announced.scales[1] * CONVERTED_UNIT};
#pragma unroll 1
    for (u32 piece = 0; piece * PIECE_LINES < COLUMNS / 8; piece++) {
        piece_sync(at);     // what was staged before has been read
        if (split) stage_parts(parameter, tile, at, piece, min(PIECE_LINES, COLUMNS / 8 - piece * PIECE_LINES), mine + line_place(at.lane));
        else stage_sums<COLUMNS>(piece, mine + line_place(at.lane), sums);
        piece_sync(at);
        finish_piece(place, at, piece, DUAL ? staging : mine);
    }
    recorder.end(Activity::Store, number);
}
