// Merging of partial results: each warp sends those of its slot of 16 rows to the block that owns the slot, and the
// owner merges all parts.
#pragma once
#include "attention_resident_values.cuh"

// A scale as a number from 1 up to 2 and a power of two. Multiplied by the number before they are rounded to fp16,
// partial results that make up a whole row are not rounded again at its end, because the power changes no digit.
// Multiplied by the scale itself they could exceed fp16 even if the result does not.
struct ScaleParts {
    float digits, power;

    DEVICE explicit ScaleParts(float scale)
        : digits(__uint_as_float((__float_as_uint(scale) & 0x807FFFFFu) | 0x3F800000u)),
          power(__uint_as_float(__float_as_uint(scale) & 0x7F800000u)) {}
};

// A warp's partial results in fp16 are divided by their sums of weights, so their magnitude is about that of the
// values.
DEVICE u32 partial_word(const Sums& sums, u32 word, const float (&factors)[2]) {
    if (PARTIALS == 0) return __float_as_uint(sums[word]);
    return pair_of_halves(sums[2 * word] * factors[word % 2], sums[2 * word + 1] * factors[word % 2]);
}

template <class Store>
DEVICE void write_partial(const Sums& sums, const Statistics& statistics, float digits, u32 partial, u32 row, u32 lane,
                          Store store) {
    float factors[2];
#pragma unroll
    for (u32 index = 0; index < 2; ++index)
        factors[index] = statistics.sum[index] > 0.0f ? __fdividef(digits, statistics.sum[index]) : 0.0f;
    if (lane % 4 == 0)
        store(row, __float_as_uint(statistics.maximum[0]), __float_as_uint(statistics.sum[0]),
              __float_as_uint(statistics.maximum[1]), __float_as_uint(statistics.sum[1]));
#pragma unroll
    for (u32 piece = 0; piece < PIECES; ++piece)
        store(partial + piece * PIECE_BYTES, partial_word(sums, 4 * piece, factors),
              partial_word(sums, 4 * piece + 1, factors), partial_word(sums, 4 * piece + 2, factors),
              partial_word(sums, 4 * piece + 3, factors));
}

// To the owner of the warp's slot, by stores that count at its barrier if it is another block.
//
// A block may exit as soon as it has merged: it has waited for all bytes that others send it, and the data it sends is
// in registers until it arrives in blocks that wait for it. So no final cluster barrier is needed.
DEVICE void send_partial(const Sums& sums, const Statistics& statistics, float digits, const Place& place) {
    u32 owner = place.slot() / OWNED, number = place.part() * OWNED + place.slot() % OWNED;
    u32 partial = place.memory + PARTIALS_AT + number * PIECES * PIECE_BYTES + place.lane * 16;
    u32 row = place.memory + STATISTICS_AT + number * STATISTICS_BYTES + place.lane / 4 * 16;
    if (SPLIT > 1 && owner != place.rank) {
        u32 barrier = address_in_block(place.memory + MERGE_FULL, owner);
        write_partial(sums, statistics, digits, address_in_block(partial, owner), address_in_block(row, owner), place.lane,
                      [&](u32 to, u32 a, u32 b, u32 c, u32 d) { store_remote_16(to, a, b, c, d, barrier); });
    } else {
        write_partial(sums, statistics, digits, partial, row, place.lane,
                      [](u32 to, u32 a, u32 b, u32 c, u32 d) { store_shared_16(to, a, b, c, d); });
        if (SPLIT > 1) barrier_arrive(place.memory + MERGE_FULL);
    }
    // Acquired at the block's scope: bytes from other blocks are in this one's shared memory when they count. (At the
    // cluster's scope the wait would empty the first-level cache.)
    if (SPLIT > 1) barrier_wait(place.memory + MERGE_FULL, 0);
    else __syncthreads();
}

// The weight of each part's row in the result; without visible keys the result is 0.
struct Shares {
    float share[PARTS][2];

    DEVICE Shares(u32 statistics, float value_scale) {
        float maximum[2] = {-INFINITE, -INFINITE}, total[2] = {}, of_part[PARTS][4];
#pragma unroll
        for (u32 part = 0; part < PARTS; ++part) {
            uint4 words = load_shared_16(statistics + part * OWNED * STATISTICS_BYTES);
            of_part[part][0] = __uint_as_float(words.x), of_part[part][1] = __uint_as_float(words.y);
            of_part[part][2] = __uint_as_float(words.z), of_part[part][3] = __uint_as_float(words.w);
#pragma unroll
            for (u32 row = 0; row < 2; ++row) maximum[row] = fmaxf(maximum[row], of_part[part][2 * row]);
        }
#pragma unroll
        for (u32 row = 0; row < 2; ++row) {
            float base = maximum[row] == -INFINITE ? 0.0f : maximum[row];
#pragma unroll
            for (u32 part = 0; part < PARTS; ++part) {
                float power = power_by_hardware(of_part[part][2 * row] - base);
                float weight = power * of_part[part][2 * row + 1];
                share[part][row] = PARTIALS == 1 ? weight : power;
                total[row] += weight;
            }
            float scale = total[row] > 0.0f ? __fdividef(value_scale, total[row]) : 0.0f;
#pragma unroll
            for (u32 part = 0; part < PARTS; ++part) share[part][row] *= scale;
        }
    }
};

DEVICE float2 floats_of_halves(u32 pair) {
    float2 values;
    asm("{ .reg .f16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
        : "=f"(values.x), "=f"(values.y)
        : "r"(pair));
    return values;
}

// Adds a part's piece: pairs of neighbours, alternately of the first row and of the second.
DEVICE void add_piece(float2 (&sums)[PARTIALS == 1 ? 4 : 2], uint4 piece, const float (&share)[2]) {
    auto add = [&](u32 index, float2 pair) {
        sums[index].x = fmaf(share[index % 2], pair.x, sums[index].x);
        sums[index].y = fmaf(share[index % 2], pair.y, sums[index].y);
    };
    if constexpr (PARTIALS == 1) {
        add(0, floats_of_halves(piece.x)), add(1, floats_of_halves(piece.y));
        add(2, floats_of_halves(piece.z)), add(3, floats_of_halves(piece.w));
    } else {
        add(0, make_float2(__uint_as_float(piece.x), __uint_as_float(piece.y)));
        add(1, make_float2(__uint_as_float(piece.z), __uint_as_float(piece.w)));
    }
}

// A warp takes every eighth of the pieces of the slots that the block owns.
DEVICE void merge(const Parameter& parameter, const Work& work, const Place& place, float value_scale) {
    constexpr u32 PAIRS = PARTIALS == 1 ? 4 : 2, TASKS = OWNED * PIECES;
    u64 first_row = work.lengths.query_row + (u64)work.head * work.lengths.queries;
#pragma unroll
    for (u32 turn = 0; turn < (TASKS + WARPS - 1) / WARPS; ++turn) {
        u32 task = turn * WARPS + place.warp, slot = task / PIECES, piece = task % PIECES;
        if (TASKS % WARPS != 0 && task >= TASKS) return;
        u32 partial = place.memory + PARTIALS_AT + task * PIECE_BYTES + place.lane * 16;
        Shares shares(place.memory + STATISTICS_AT + slot * STATISTICS_BYTES + place.lane / 4 * 16, value_scale);
        float2 sums[PAIRS] = {};
#pragma unroll
        for (u32 part = 0; part < PARTS; ++part)
            add_piece(sums, load_shared_16(partial + part * TASKS * PIECE_BYTES), shares.share[part]);
        u32 query = work.query + (place.rank * OWNED + slot) * 16 + place.lane / 4;
        u32 column = piece * (PAIRS * 4) + place.lane % 4 * 2;
#pragma unroll
        for (u32 index = 0; index < PAIRS; ++index) {
            u32 of = query + index % 2 * 8;
            if (of < work.lengths.queries)
                store_pair(parameter, (first_row + of) * HEAD + column + index / 2 * 8, sums[index].x, sums[index].y);
        }
    }
}
