// Conversion of 8-bit operands in shared memory, by the warp group that multiplies them: to fp16, or, for V, to columns
// first. The copies have landed.
#pragma once
#include "attention_resident_layout.cuh"

// Keys or values to fp16.
DEVICE void convert_matrix(u32 from, u32 to) {
    constexpr u32 PIECES = KEYS * (HEAD / 16);
#pragma unroll
    for (u32 turn = 0; turn < PIECES / GROUP_THREADS; ++turn)
        convert_piece<KeyMatrix, MultipliedMatrix>(from, to, turn * GROUP_THREADS + threadIdx.x % GROUP_THREADS);
}

DEVICE void transpose_values(u32 from, u32 to, u32 warp, u32 lane) {
    constexpr u32 BLOCKS = KEYS / 32 * (HEAD / 16);
    static_assert(BLOCKS % GROUP_WARPS == 0, "warps transpose equally many blocks");
#pragma unroll
    for (u32 turn = 0; turn < BLOCKS / GROUP_WARPS; ++turn)
        transpose_block<KeyMatrix, TransposedMatrix>(from, to, turn * GROUP_WARPS + warp, lane);
}
