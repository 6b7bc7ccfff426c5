// Attention's operands for the matrix unit (wgmma): their formats, their layout in shared memory, and the conversion of
// 8-bit operands there.
//
// Definitions, beside those of attention.cuh: ARITHMETIC of 8-bit operands: 0 fp16 (an exact conversion), 1 e4m3,
// without conversion.
#pragma once
#include "attention.cuh"
#include "products.cuh"

constexpr bool EIGHTS = FORMAT == 2 && ARITHMETIC == 1;    // e4m3 is multiplied without conversion
constexpr bool CONVERTED = EIGHT_BITS && ARITHMETIC == 0;  // 8 bits become fp16

template <u32 FORMAT_NUMBER>
struct Operand {
    typedef Half Format;
};
template <>
struct Operand<1> {
    typedef Brain Format;
};
template <>
struct Operand<2> {
    typedef Eight Format;
};
typedef Operand<CONVERTED ? 0 : FORMAT>::Format Format;  // of both products

// ---- Matrices.

// Rows as a swizzling tensor copy leaves them and the matrix unit takes them; rows longer than 128 bytes are split into
// panels, one after another. (PTX ISA, "Tensor swizzling modes" and wgmma, "Matrix descriptor".)
template <u32 ROWS, u32 BYTES>
struct Matrix {
    static constexpr u32 PANEL = BYTES < 128 ? BYTES : 128, PANELS = BYTES / PANEL;
    static constexpr u32 PANEL_SIZE = ROWS * PANEL, SIZE = ROWS * BYTES;
    static_assert((PANEL == 64 || PANEL == 128) && BYTES % PANEL == 0, "rows fill panels of 64 or 128 bytes");
    static_assert(PANEL_SIZE % 1024 == 0, "panels begin where the swizzle does");

    // Where a 16-byte piece of a row lies.
    DEVICE static u32 place(u32 row, u32 piece) {
        constexpr u32 PIECES = PANEL / 16;
        u32 turn = PANEL == 128 ? row % 8 : row / 2 % 4;
        return piece / PIECES * PANEL_SIZE + row * PANEL + (piece % PIECES ^ turn) * 16;
    }

    // With depth along rows.
    DEVICE static u64 descriptor(u32 address) {
        constexpr u64 SWIZZLE = (PANEL == 128 ? 1ull : 2ull) << 62, EIGHT_ROWS = (u64)(8 * PANEL >> 4) << 32;
        return SWIZZLE | EIGHT_ROWS | 1ull << 16 | (u64)((address & 0x3FFFF) >> 4);
    }

    // The increment for `step` instructions, each 32 bytes deep.
    DEVICE static constexpr u64 deeper(u32 step) {
        return step / (PANEL / 32) * (PANEL_SIZE >> 4) + step % (PANEL / 32) * 2;
    }

    // With depth along columns ("turned"; 16-bit elements), 64 columns a panel.
    DEVICE static u64 turned_descriptor(u32 address) {
        static_assert(PANEL == 128, "turned matrices have panels of 128 bytes");
        constexpr u64 SWIZZLE = 1ull << 62, EIGHT_ROWS = (u64)(1024 >> 4) << 32;
        constexpr u64 NEXT_PANEL = (u64)(PANEL_SIZE >> 4) << 16;
        return SWIZZLE | EIGHT_ROWS | NEXT_PANEL | (u64)((address & 0x3FFFF) >> 4);
    }

    // The increment for `step` instructions, each 16 rows deep.
    DEVICE static constexpr u64 further(u32 step) { return step * (16 * PANEL >> 4); }
};

// ---- Operands in 8 bits, in shared memory.

// Piece `number` of 16 values, of matrices of HEAD values a row, to fp16.
template <class From, class To>
DEVICE void convert_piece(u32 from, u32 to, u32 number) {
    constexpr u32 PIECES_A_ROW = HEAD / 16;
    u32 row = number / PIECES_A_ROW, piece = number % PIECES_A_ROW;
    uint4 bytes = load_shared_16(from + From::place(row, piece));
    auto low = [](u32 word) { return halves_of_bytes((u16)word); };
    auto high = [](u32 word) { return halves_of_bytes((u16)(word >> 16)); };
    store_shared_16(to + To::place(row, 2 * piece), low(bytes.x), high(bytes.x), low(bytes.y), high(bytes.y));
    store_shared_16(to + To::place(row, 2 * piece + 1), low(bytes.z), high(bytes.z), low(bytes.w), high(bytes.w));
}

// A warp's 16 queries of 8 bits as fragments; the lane has rows `row` and `row` + 8. They are converted to fp16, 16
// deep each, or remain e4m3, 32 deep each.
template <class From, u32 STEPS>
DEVICE void load_queries(u32 (&fragments)[STEPS][4], u32 from, u32 row, u32 lane) {
#pragma unroll
    for (u32 step = 0; step < STEPS; ++step)
#pragma unroll
        for (u32 index = 0; index < 4; ++index) {
            u32 of = row + index % 2 * 8;
            fragments[step][index] =
                CONVERTED ? halves_of_bytes(load_shared_2(from + From::place(of, step) + index / 2 * 8 + lane % 4 * 2))
                          : load_shared(from + From::place(of, 2 * step + index / 2) + lane % 4 * 4);
        }
}

// Transposes block `number` of V, by one warp: the result has a head element a row and keys along it, as the matrix
// unit requires for 8-bit operands. Each 32 keys are ordered like a thread's scores (see round_weights). Of keys 8m to
// 8m + 7, seen as pairs of head elements and transposed, lane i has keys 2·(i % 4) and the next; from two such groups
// of eight it makes four bytes of each element of the pair.
template <class From, class To>
DEVICE void transpose_block(u32 from, u32 to, u32 number, u32 lane) {
    constexpr u32 PIECES_A_ROW = HEAD / 16;
    u32 keys = number / PIECES_A_ROW, piece = number % PIECES_A_ROW;
    uint4 pairs = load_matrices_turned(from + From::place(keys * 32 + lane, piece));
    // Lanes 0 to 7 address the rows of even elements of the first 16 keys, the next eight the odd ones; the other lanes
    // address the remaining keys.
    u32 row = piece * 16 + lane % 8 * 2 + lane / 8 % 2;
    store_matrices(to + To::place(row, keys * 2 + lane / 16), __byte_perm(pairs.x, pairs.y, 0x6420),
                   __byte_perm(pairs.x, pairs.y, 0x7531), __byte_perm(pairs.z, pairs.w, 0x6420),
                   __byte_perm(pairs.z, pairs.w, 0x7531));
}

// ---- Fragments: a thread has columns 8j + 2·(lane % 4) and the next of two rows, 8 apart.

// Fragments of the second product's rows from a step's weights. In e4m3 a register takes four neighbours of depth,
// while a thread has pairs. So its four values are keys 2i, 2i + 1, 8 + 2i and 9 + 2i of 16, i = lane % 4; V has the
// same order (transpose_block), so the sums do not change.
template <bool TO_EIGHTS>
DEVICE void round_weights(u32 (&rounded)[4], const float* weights) {
#pragma unroll
    for (u32 index = 0; index < 4; ++index) {
        if (TO_EIGHTS) {
            const float* four = weights + index / 2 * 8 + index % 2 * 2;
            rounded[index] = four_eights(four[0], four[1], four[4], four[5]);
        } else {
            rounded[index] = pair_of_weights(weights[index * 2], weights[index * 2 + 1]);
        }
    }
}

// Keeps the compiler from moving work on registers across this point. Nothing else tells it that a wait for products
// concerns these registers, and it would move that wait above the exponentials.
template <u32 COUNT>
DEVICE void pin(float (&values)[COUNT]) {
#pragma unroll
    for (u32 index = 0; index < COUNT; ++index) asm volatile("" : "+f"(values[index])::"memory");
}

template <u32 COUNT>
DEVICE void pin(u32 (&fragments)[COUNT][4]) {
#pragma unroll
    for (u32 index = 0; index < COUNT; ++index)
        asm volatile(""
                     : "+r"(fragments[index][0]), "+r"(fragments[index][1]), "+r"(fragments[index][2]),
                       "+r"(fragments[index][3])::"memory");
}
