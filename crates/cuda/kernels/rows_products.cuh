// A step: weights converted into swizzled shared memory, tokens in registers, and their product.
//
// The order of the depth inside of 128 values is ours to choose, if tokens and weights agree on it. A row of 128 values
// is four quarters of 16 bytes, one for each lane of the four that hold a row of wgmma's A; word w of a quarter is eight
// values, converted into four pairs. Piece 4w + p of a converted row (16 bytes) is pair p of word w of each quarter; so a
// lane finds both its columns of every instruction in its own quarter, with one 16-byte load for 32 values.
#pragma once
#include "convert.cuh"
#include "rows_words.cuh"
#include "wgmma.cuh"

using Sums = float[MATRICES][COLUMNS / 2];

constexpr u32 CHUNKS = DEPTH / 128;
// Bytes of a converted chunk of 64: what one swizzled matrix is.
constexpr u32 CONVERTED_64 = COLUMNS * 128;

// The eight scales of 128 values within a row of 16: a step of 128 uses one half or the other.
DEVICE u32 scale_half(u32 step, u32 chunk) {
    return DEPTH == 256 ? chunk * 8 : step % 2 * 8;
}

// ---- Weights. A warp converts eight rows of 128 values at a time, a lane word w of each quarter of one row. Lanes are
// laid out so that neither loads nor stores of eight neighbours meet in a bank.

DEVICE void convert_block(u32 packed, u32 scales, u32 to, u32 block, u32 chunk, u32 half, u32 lane) {
    u32 row = block * 8 + lane % 8, word = lane / 8;
    uint2 eight = load_shared_8(scales + row * SCALE_ROW + half);
    // One scale of each quarter: its words 0 and 1 have the first, 2 and 3 the second.
    u32 four = __byte_perm(eight.x, eight.y, word < 2 ? 0x6420 : 0x7531);
    u32 low = convert_scales((u16)four), high = convert_scales((u16)(four >> 16));
    u32 scale[4] = {both_halves<0>(low), both_halves<1>(low), both_halves<0>(high), both_halves<1>(high)};
    u32 pairs[4][4];
#pragma unroll
    for (u32 quarter = 0; quarter < 4; ++quarter) {
        u32 eight_values = load_shared(packed + row * PACKED_ROW + swizzled(row, chunk * 4 + quarter) * 16 + word * 4);
        convert_8(eight_values, scale[quarter], pairs[0][quarter], pairs[1][quarter], pairs[2][quarter],
                  pairs[3][quarter]);
    }
    to += (chunk * 2 + word / 2) * CONVERTED_64 + row * 128;
#pragma unroll
    for (u32 pair = 0; pair < 4; ++pair) {
        u32 piece = word % 2 * 4 + pair;
        store_shared_16(to + (piece ^ row % 8) * 16, pairs[pair][0], pairs[pair][1], pairs[pair][2], pairs[pair][3]);
    }
}

DEVICE void convert_weights(u32 memory, u32 slot, u32 converted_slot, u32 step, u32 warp, u32 lane) {
    constexpr u32 BLOCKS = COLUMNS / 8, TASKS = MATRICES * CHUNKS * BLOCKS;
#pragma unroll 2
    for (u32 task = warp; task < TASKS; task += MULTIPLYING_WARPS) {
        u32 matrix = task / (CHUNKS * BLOCKS), chunk = task / BLOCKS % CHUNKS, block = task % BLOCKS;
        u32 place = slot * MATRICES + matrix;
        convert_block(memory + WEIGHTS + place * WEIGHTS_BYTES, memory + WEIGHT_SCALES + place * WEIGHT_SCALES_BYTES,
                      memory + CONVERTED + (converted_slot * MATRICES + matrix) * CONVERTED_BYTES, block, chunk,
                      scale_half(step, chunk), lane);
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
                                                         swizzled(row, chunk * 4 + quarter) * 16);
            tokens.scales[chunk][which] = load_shared_2(memory + TOKEN_SCALES + slot * TOKEN_SCALES_BYTES +
                                                        row * SCALE_ROW + scale_half(step, chunk) + quarter * 2);
        }
}

// Rows of A for the four instructions of 64 values: words 2b and 2b + 1, b = `half`, of the lane's quarter.
template <u32 HALF>
DEVICE void convert_tokens(const PackedTokens& tokens, u32 chunk, u32 (&rows)[4][4]) {
#pragma unroll
    for (u32 which = 0; which < 2; ++which) {
        const uint4& quarter = tokens.values[chunk][which];
        u32 scale = both_halves<HALF>(convert_scales(tokens.scales[chunk][which]));
        convert_8(HALF == 0 ? quarter.x : quarter.z, scale, rows[0][which], rows[0][2 + which], rows[1][which],
                  rows[1][2 + which]);
        convert_8(HALF == 0 ? quarter.y : quarter.w, scale, rows[2][which], rows[2][2 + which], rows[3][which],
                  rows[3][2 + which]);
    }
}

// ---- Products: each 64 values are multiplied as soon as the lane has converted its tokens; all are left running.

template <u32 HALF>
DEVICE void multiply_64(Sums& sums, const PackedTokens& tokens, u32 chunk, u64 weights) {
    u32 rows[4][4];
    convert_tokens<HALF>(tokens, chunk, rows);
    products_fence();
#pragma unroll
    for (u32 index = 0; index < 4; ++index)
#pragma unroll
        for (u32 matrix = 0; matrix < MATRICES; ++matrix)
            Wgmma<COLUMNS>::registers(sums[matrix], rows[index],
                                      weights + (matrix * CONVERTED_BYTES + (chunk * 2 + HALF) * CONVERTED_64) / 16 +
                                          index * DESCRIPTOR_16_DEEP);
}

DEVICE void multiply(Sums& sums, const PackedTokens& tokens, u32 memory, u32 converted_slot) {
    u64 weights = matrix_descriptor(memory + CONVERTED + converted_slot * MATRICES * CONVERTED_BYTES);
#pragma unroll
    for (u32 chunk = 0; chunk < CHUNKS; ++chunk) {
        multiply_64<0>(sums, tokens, chunk, weights);
        multiply_64<1>(sums, tokens, chunk, weights);
    }
    products_commit();
}
