// A step: weights converted into swizzled shared memory, tokens in registers, and their product.
//
// The order of the depth within 128 values is free, as long as tokens and weights use the same. A row of 128 values is
// four quarters of 16 bytes, one for each lane of the four that hold a row of wgmma's A; word w of a quarter is eight
// values, converted into four pairs. Piece 4w + p of a converted row (16 bytes) is pair p of word w of each quarter: so
// a lane finds both its columns of every instruction in its own quarter, with one 16-byte load for 32 values.
#pragma once
#include "convert.cuh"
#include "rows_loads.cuh"
#include "wgmma.cuh"

using Sums = float[MATRICES][COLUMNS / 2];

// Depth is converted 128 values at a time and multiplied 64 at a time: what one swizzled matrix holds.
constexpr u32 CHUNKS = DEPTH / 128, CONVERTED_64 = COLUMNS * 128;
// Products of a step, and with them the conversion of the next, are done in parts of 64 values.
constexpr u32 PARTS = 2 * CHUNKS;

// Place of a chunk's eight scales within a row of 16: a step of 128 uses one half or the other.
DEVICE u32 scale_half(u32 step, u32 chunk) { return DEPTH == 256 ? chunk * 8 : step % 2 * 8; }

DEVICE u32 word_of(const uint4& words, u32 index) {
    return index == 0 ? words.x : index == 1 ? words.y : index == 2 ? words.z : words.w;
}

// ---- Weights. A warp converts eight rows of 128 values at a time, a lane a quarter of one row: pair p of word w of
// all lanes is then an 8×8 matrix, stored by one instruction. With rows of 256 values a warp takes four rows of one
// chunk and the other four of the other, so that neither loads nor stores have bank conflicts; `turn` selects which.

struct BlockRow {
    u32 row, chunk;

    // The `index`-th of a block's rows.
    DEVICE BlockRow(u32 index, u32 turn) {
        chunk = DEPTH == 256 ? index % 2 : 0;
        row = DEPTH == 256 ? index / 2 + (chunk ^ turn) * 4 : index;
    }
};

DEVICE void convert_block(u32 packed, u32 scales, u32 to, u32 turn, u32 step, u32 lane) {
    u32 quarter = lane % 4;
    BlockRow from(lane / 4, turn), stored(lane % 8, turn);
    uint4 words = load_shared_16(packed + from.row * PACKED_ROW + from.chunk * 64 + quarter * 16);
    u32 both =
        convert_scales(load_shared_2(scales + from.row * SCALE_ROW + scale_half(step, from.chunk) + quarter * 2));
    // This lane's address is that of a row of matrix `lane / 8`.
    to += stored.chunk * 2 * CONVERTED_64 + stored.row * 128 + (lane / 8 ^ stored.row) * 16;
#pragma unroll
    for (u32 word = 0; word < 4; ++word) {
        u32 pairs[4];
        convert_8(word_of(words, word), both, word >= 2, pairs[0], pairs[1], pairs[2], pairs[3]);
        store_matrices((to ^ word % 2 * 64) + word / 2 * CONVERTED_64, pairs[0], pairs[1], pairs[2], pairs[3]);
    }
}

// One of the parts of the step's conversion.
DEVICE void convert_weights(u32 memory, u32 slot, u32 converted_slot, u32 step, u32 part, u32 warp, u32 lane) {
    constexpr u32 BLOCKS = COLUMNS / 8, TASKS = MATRICES * CHUNKS * BLOCKS;
    constexpr u32 OF_A_WARP = (TASKS + MULTIPLYING_WARPS - 1) / MULTIPLYING_WARPS;
    constexpr u32 OF_A_PART = (OF_A_WARP + PARTS - 1) / PARTS;
#pragma unroll 1
    for (u32 index = 0; index < OF_A_PART; ++index) {
        u32 task = (part * OF_A_PART + index) * MULTIPLYING_WARPS + warp;
        if (TASKS % (PARTS * OF_A_PART * MULTIPLYING_WARPS) != 0 && task >= TASKS) break;
        u32 matrix = task / (CHUNKS * BLOCKS), row = task / CHUNKS % BLOCKS * 8, place = slot * MATRICES + matrix;
        convert_block(memory + WEIGHTS + place * WEIGHTS_BYTES + row * PACKED_ROW,
                      memory + WEIGHT_SCALES + place * WEIGHT_SCALES_BYTES + row * SCALE_ROW,
                      memory + CONVERTED + (converted_slot * MATRICES + matrix) * CONVERTED_BYTES + row * 128,
                      task % CHUNKS, step, lane);
    }
}

// ---- Tokens: a lane's quarter of rows r and r + 8 of its warp's sixteen.

struct PackedTokens {
    uint4 values[CHUNKS][2];
    u16 scales[CHUNKS][2];
};

DEVICE void read_tokens(PackedTokens& tokens, u32 memory, u32 slot, u32 step, u32 warp, u32 lane) {
#pragma unroll
    for (u32 chunk = 0; chunk < CHUNKS; ++chunk)
#pragma unroll
        for (u32 which = 0; which < 2; ++which) {
            u32 row = warp * 16 + lane / 4 + which * 8, quarter = lane % 4;
            tokens.values[chunk][which] = load_shared_16(memory + TOKENS + slot * TOKENS_BYTES + row * PACKED_ROW +
                                                         token_place(row, chunk * 4 + quarter) * 16);
            tokens.scales[chunk][which] = load_shared_2(memory + TOKEN_SCALES + slot * TOKEN_SCALES_BYTES +
                                                        row * SCALE_ROW + scale_half(step, chunk) + quarter * 2);
        }
}

// Rows of A for the four instructions of a part of 64 values: two words of the lane's quarter.
DEVICE void convert_tokens(const PackedTokens& tokens, u32 part, u32 (&rows)[4][4]) {
    u32 chunk = part / 2, half = part % 2;
#pragma unroll
    for (u32 which = 0; which < 2; ++which) {
        u32 scales = convert_scales(tokens.scales[chunk][which]);
#pragma unroll
        for (u32 word = 0; word < 2; ++word)
            convert_8(word_of(tokens.values[chunk][which], 2 * half + word), scales, half, rows[2 * word][which],
                      rows[2 * word][2 + which], rows[2 * word + 1][which], rows[2 * word + 1][2 + which]);
    }
}

// ---- Products of 64 values, left running.

DEVICE void multiply(Sums& sums, const PackedTokens& tokens, u32 memory, u32 converted_slot, u32 part) {
    u32 rows[4][4];
    convert_tokens(tokens, part, rows);
    u64 weights =
        matrix_descriptor(memory + CONVERTED + converted_slot * MATRICES * CONVERTED_BYTES + part * CONVERTED_64);
    products_fence();
#pragma unroll
    for (u32 index = 0; index < 4; ++index)
#pragma unroll
        for (u32 matrix = 0; matrix < MATRICES; ++matrix)
            Wgmma<COLUMNS>::registers(sums[matrix], rows[index],
                                      weights + matrix * (CONVERTED_BYTES / 16) + index * DESCRIPTOR_16_DEEP);
    products_commit();
}
