// Products by mma.sync.m16n8k16, and its operands from rows in shared memory.
//
// Fragments are those of `multiply_fragments`: queries and weights are rows (A), keys and values columns (B).
//
// With e4m3 as it is (ARITHMETIC 1), a piece of 16 bytes of Q or K is what a lane needs of half of an m16n8k32: scores
// are products of e4m3, and values are converted.
//
// 16-bit operands lie in shared memory as ldmatrix takes them: Q and K with the depth along rows, V, whose depth is
// keys, transposed. Pairs of 8 bits travel as if they were one 16-bit element and become fp16 on arrival, in registers,
// so fragments hold other elements than above, of which no one need know:
//   Q and K: lane t has head elements 4t … 4t + 3 where 2t, 2t + 1, 2t + 8 and 2t + 9 belong. Both operands have them
//            in the same order, and the order of a sum is free.
//   V:       lane g has head elements 2g and 2g + 1 of keys 2t and 2t + 1; exchanging the bytes in the middle gives
//            columns of even elements and columns of odd ones. `element_pairs` puts the results right.
#pragma once
#include "attention_unified_memory.cuh"

constexpr u32 HEAD_BLOCKS = DEPTH / 8, KEY_BLOCKS = WARP_KEYS / 8;
// Two 16-byte pieces of each row are read at a time: this many blocks of 16 elements.
constexpr u32 PIECE_PAIRS = DEPTH * ELEMENT_BYTES / 32, PAIR_DEPTHS = DEPTH / 16 / PIECE_PAIRS;

DEVICE void multiply(float (&sums)[4], const u32 (&rows)[4], u32 first, u32 second) {
    multiply_fragments<FORMAT == 1>(sums, rows, first, second);
}

// Whether queries and keys are multiplied as e4m3.
constexpr bool EIGHTS = FORMAT == 2 && ARITHMETIC == 1;
static_assert(EIGHTS || ARITHMETIC == 0, "only e4m3 is multiplied as it is");

// The same of e4m3, 32 deep: four elements where the others have two.
DEVICE void multiply_eights(float (&sums)[4], const u32 (&rows)[4], u32 first, u32 second) {
    asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(first), "r"(second));
}

DEVICE u32 lower_halves(u32 bytes) { return halves_of_bytes((u16)bytes); }

DEVICE u32 upper_halves(u32 bytes) { return halves_of_bytes((u16)(bytes >> 16)); }

// The address that a lane gives ldmatrix: the matrices are rows 0 … 7 and 8 … 15 of a piece, then of the next piece.
template <u32 ROW>
DEVICE u32 sixteen_rows(u32 area, u32 row, u32 piece, u32 lane) {
    return area + place<ROW>(row + lane % 16, piece + lane / 16);
}

// The same matrices in the other order: two pieces of rows 0 … 7, then of rows 8 … 15.
template <u32 ROW>
DEVICE u32 two_pieces(u32 area, u32 row, u32 piece, u32 lane) {
    return area + place<ROW>(row + lane % 8 + lane / 16 * 8, piece + lane / 8 % 2);
}

// ---- Q, whole, as rows.

typedef u32 Queries[DEPTH / (EIGHTS ? 32 : 16)][4];

// If raw scores of the lane's rows g and g + 8 change their sign (only for 8 bits: Scales), their queries are negated.
DEVICE void read_queries(Queries& queries, u32 area, u32 first_row, bool flip, bool flip_below, u32 lane) {
    constexpr u32 SIGNS = EIGHTS ? 0x80808080u : 0x80008000u;
    u32 signs = flip ? SIGNS : 0, below = flip_below ? SIGNS : 0;
#pragma unroll
    for (u32 pair = 0; pair < PIECE_PAIRS; ++pair) {
        uint4 words = load_matrices(sixteen_rows<PITCH>(area, first_row, 2 * pair, lane));
        u32(&low)[4] = queries[EIGHTS ? pair : pair * PAIR_DEPTHS];
        if constexpr (EIGHTS) {
            low[0] = words.x ^ signs, low[1] = words.y ^ below, low[2] = words.z ^ signs, low[3] = words.w ^ below;
        } else if constexpr (EIGHT_BITS) {
            u32(&high)[4] = queries[pair * PAIR_DEPTHS + 1];
            low[0] = lower_halves(words.x) ^ signs, low[2] = upper_halves(words.x) ^ signs;
            low[1] = lower_halves(words.y) ^ below, low[3] = upper_halves(words.y) ^ below;
            high[0] = lower_halves(words.z) ^ signs, high[2] = upper_halves(words.z) ^ signs;
            high[1] = lower_halves(words.w) ^ below, high[3] = upper_halves(words.w) ^ below;
        } else {
            low[0] = words.x, low[1] = words.y, low[2] = words.z, low[3] = words.w;
        }
    }
}

// ---- Q·Kᵀ: keys are columns.

typedef float RawScores[KEY_BLOCKS][4];

DEVICE void multiply_keys(RawScores& scores, const Queries& queries, u32 keys, u32 lane) {
#pragma unroll
    for (u32 block = 0; block < KEY_BLOCKS; ++block)
#pragma unroll
        for (u32 index = 0; index < 4; ++index) scores[block][index] = 0.0f;
#pragma unroll
    for (u32 pair = 0; pair < PIECE_PAIRS; ++pair)
#pragma unroll
        for (u32 block = 0; block < KEY_BLOCKS; block += 2) {
            uint4 words = load_matrices(two_pieces<PITCH>(keys, 8 * block, 2 * pair, lane));
            const u32(&low)[4] = queries[EIGHTS ? pair : pair * PAIR_DEPTHS];
            if constexpr (EIGHTS) {
                multiply_eights(scores[block], low, words.x, words.y);
                multiply_eights(scores[block + 1], low, words.z, words.w);
            } else if constexpr (EIGHT_BITS) {
                const u32(&high)[4] = queries[pair * PAIR_DEPTHS + 1];
                multiply(scores[block], low, lower_halves(words.x), upper_halves(words.x));
                multiply(scores[block], high, lower_halves(words.y), upper_halves(words.y));
                multiply(scores[block + 1], low, lower_halves(words.z), upper_halves(words.z));
                multiply(scores[block + 1], high, lower_halves(words.w), upper_halves(words.w));
            } else {
                multiply(scores[block], low, words.x, words.y);
                multiply(scores[block + 1], low, words.z, words.w);
            }
        }
}

// ---- P·V: keys are the depth, head elements columns. A column of ones beside them sums the weights as they were
// rounded, in the same order, so values of 1 give 1.

// Keys of a warp's step that share a scale, if blocks have their own.
constexpr u32 RUN = WARP_KEYS < SCALE_BLOCK ? WARP_KEYS : SCALE_BLOCK;

struct MatrixSums {
    float sums[HEAD_BLOCKS][4];
    float totals[4];  // of row g: 0, of row g + 8: 2

    DEVICE MatrixSums() {
#pragma unroll
        for (u32 index = 0; index < 4; ++index) {
            totals[index] = 0.0f;
#pragma unroll
            for (u32 block = 0; block < HEAD_BLOCKS; ++block) sums[block][index] = 0.0f;
        }
    }

    // Multiplies what there is of rows g and g + 8.
    DEVICE void correct(float first, float second) {
#pragma unroll
        for (u32 index = 0; index < 4; ++index) {
            float factor = index < 2 ? first : second;
            totals[index] *= factor;
#pragma unroll
            for (u32 block = 0; block < HEAD_BLOCKS; ++block) sums[block][index] *= factor;
        }
    }

    // Adds 16 keys from `first_key` on of a step's values.
    DEVICE void add(const u32 (&weights)[4], u32 values, u32 first_key, u32 lane) {
        add_rows<false>(totals, weights);
#pragma unroll
        for (u32 pair = 0; pair < PIECE_PAIRS; ++pair)
            multiply_pair(sums + 2 * PAIR_DEPTHS * pair, weights, values, first_key, pair, lane);
    }

    // Adds RUN keys, of a block whose values are multiplied by a scale: in fp32, because weights and values are already
    // rounded.
    DEVICE void add_block(const u32 (*weights)[4], u32 values, u32 first_key, float scale, u32 lane) {
        constexpr u32 FRAGMENTS = RUN / 16, BLOCKS = 2 * PAIR_DEPTHS;
#pragma unroll
        for (u32 index = 0; index < FRAGMENTS; ++index) add_rows<false>(totals, weights[index]);
#pragma unroll
        for (u32 pair = 0; pair < PIECE_PAIRS; ++pair) {
            float part[BLOCKS][4] = {};
#pragma unroll
            for (u32 index = 0; index < FRAGMENTS; ++index)
                multiply_pair(part, weights[index], values, first_key + 16 * index, pair, lane);
#pragma unroll
            for (u32 block = 0; block < BLOCKS; ++block)
#pragma unroll
                for (u32 index = 0; index < 4; ++index)
                    sums[BLOCKS * pair + block][index] =
                        fmaf(scale, part[block][index], sums[BLOCKS * pair + block][index]);
        }
    }

    // Multiplies 16 keys by a pair of pieces of their values, and adds that to the blocks of sums which they belong to.
    DEVICE static void multiply_pair(float (*blocks)[4], const u32 (&weights)[4], u32 values, u32 first_key, u32 pair,
                                     u32 lane) {
        uint4 words = load_matrices_turned(sixteen_rows<PITCH>(values, first_key, 2 * pair, lane));
        if constexpr (EIGHT_BITS) {
            constexpr u32 EVEN_THEN_ODD = 0x3120;
            u32 low = __byte_perm(words.x, 0, EVEN_THEN_ODD), high = __byte_perm(words.y, 0, EVEN_THEN_ODD);
            multiply(blocks[0], weights, lower_halves(low), lower_halves(high));
            multiply(blocks[1], weights, upper_halves(low), upper_halves(high));
            low = __byte_perm(words.z, 0, EVEN_THEN_ODD), high = __byte_perm(words.w, 0, EVEN_THEN_ODD);
            multiply(blocks[2], weights, lower_halves(low), lower_halves(high));
            multiply(blocks[3], weights, upper_halves(low), upper_halves(high));
        } else {
            multiply(blocks[0], weights, words.x, words.y);
            multiply(blocks[1], weights, words.z, words.w);
        }
    }

    // Calls `put` with the row, the head element and the two sums from there on: neighbours, whatever the format.
    template <typename Put>
    DEVICE void element_pairs(u32 lane, Put put) const {
#pragma unroll
        for (u32 block = 0; block < HEAD / 8; block += 2)
#pragma unroll
            for (u32 half = 0; half < 2; ++half) {
                u32 row = lane / 4 + 8 * half, element = 8 * block;
                const float (&first)[4] = sums[block], (&second)[4] = sums[block + 1];
                if constexpr (EIGHT_BITS) {
                    put(row, element + lane % 4 * 4, first[2 * half], second[2 * half]);
                    put(row, element + lane % 4 * 4 + 2, first[2 * half + 1], second[2 * half + 1]);
                } else {
                    put(row, element + lane % 4 * 2, first[2 * half], first[2 * half + 1]);
                    put(row, element + lane % 4 * 2 + 8, second[2 * half], second[2 * half + 1]);
                }
            }
    }
};
