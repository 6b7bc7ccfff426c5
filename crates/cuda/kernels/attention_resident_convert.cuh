// What e4m3 operands go through in shared memory, by the warp group that multiplies them: to fp16, or, of V, to columns
// first. The copies have landed.
#pragma once
#include "attention_resident_layout.cuh"

// Keys or values to fp16.
DEVICE void convert_matrix(u32 from, u32 to) {
    constexpr u32 PIECES_A_ROW = HEAD / 16;
#pragma unroll
    for (u32 index = 0; index < KEYS * PIECES_A_ROW / GROUP_THREADS; ++index) {
        u32 number = index * GROUP_THREADS + threadIdx.x % GROUP_THREADS;
        u32 row = number / PIECES_A_ROW, piece = number % PIECES_A_ROW;
        uint4 eights = load_shared_16(from + KeyMatrix::place(row, piece));
        auto low = [](u32 word) { return halves_of_eights((u16)word); };
        auto high = [](u32 word) { return halves_of_eights((u16)(word >> 16)); };
        store_shared_16(to + MultipliedMatrix::place(row, 2 * piece), low(eights.x), high(eights.x), low(eights.y),
                        high(eights.y));
        store_shared_16(to + MultipliedMatrix::place(row, 2 * piece + 1), low(eights.z), high(eights.z), low(eights.w),
                        high(eights.w));
    }
}

// A warp's 16 queries as fragments of fp16, 16 deep each.
DEVICE void convert_queries(u32 (&fragments)[HEAD / 16][4], u32 from, u32 row, u32 lane) {
#pragma unroll
    for (u32 step = 0; step < HEAD / 16; ++step)
#pragma unroll
        for (u32 index = 0; index < 4; ++index) {
            u32 at = from + QueryMatrix::place(row + index % 2 * 8, step) + index / 2 * 8 + lane % 4 * 2;
            fragments[step][index] = halves_of_eights(load_shared_2(at));
        }
}

// V with a head element a row, keys along it: the order that the matrix unit wants of 8-bit operands. In each 32 keys
// they lie as a thread's scores do (see round_weights): a lane i has of keys 8m to 8m + 7, seen as pairs of head
// elements and transposed, keys 2·(i % 4) and the next; of two such eights it makes four bytes of each element of the
// pair.
DEVICE void transpose_values(u32 from, u32 to, u32 warp, u32 lane) {
    constexpr u32 PIECES_A_ROW = HEAD / 16, BLOCKS = KEYS / 32 * PIECES_A_ROW;
    static_assert(BLOCKS % GROUP_WARPS == 0, "warps transpose equally many blocks");
#pragma unroll
    for (u32 index = 0; index < BLOCKS / GROUP_WARPS; ++index) {
        u32 number = index * GROUP_WARPS + warp, keys = number / PIECES_A_ROW, piece = number % PIECES_A_ROW;
        uint4 pairs = load_matrices_turned(from + KeyMatrix::place(keys * 32 + lane, piece));
        // Lanes 0 to 7 name the rows of even elements of the first 16 keys, the next those of odd ones; then of the
        // other keys.
        u32 row = piece * 16 + lane % 8 * 2 + lane / 8 % 2;
        store_matrices(to + TransposedMatrix::place(row, keys * 2 + lane / 16), __byte_perm(pairs.x, pairs.y, 0x6420),
                       __byte_perm(pairs.x, pairs.y, 0x7531), __byte_perm(pairs.z, pairs.w, 0x6420),
                       __byte_perm(pairs.z, pairs.w, 0x7531));
    }
}
