// The products of a stage, issued by one thread: scales into tensor memory, then 64 values of depth at a time.
#pragma once
#include "native_words.cuh"

constexpr u64 VALUE_BITS = matrix_bits(8 * ROW_BYTES, DEPTH == 256 ? Swizzle::Bytes128 : Swizzle::Bytes64);
// A block of scales is 32 rows of 16 bytes, one after the other.
constexpr u64 SCALE_BITS = matrix_bits(8 * 16, Swizzle::None);
constexpr u32 PRODUCT_BITS = product_bits(ROWS, COLUMNS);

// Scales in tensor memory: of each 64 values, the blocks of all operands, rows first.
DEVICE u32 scale_columns(u32 tensor, u32 stage, u32 sixty_four, u32 block) {
    return tensor + TENSOR_SCALES + stage * STAGE_COLUMNS + (sixty_four * BLOCKS + block) * BLOCK_COLUMNS;
}

DEVICE void copy_scales(u32 memory, u32 tensor, u32 stage) {
#pragma unroll
    for (u32 block = 0; block < BLOCKS; ++block)
#pragma unroll
        for (u32 sixty_four = 0; sixty_four < STEPS_OF_64; ++sixty_four) {
            u32 from = memory + SCALES + stage * STAGE_SCALES + block * STEP_SCALES + sixty_four * BLOCK_BYTES;
            tensor_copy_scales(scale_columns(tensor, stage, sixty_four, block), matrix_at(SCALE_BITS, from));
        }
}

// Adds the products of a stage that has been loaded to the sums of a tile, or begins them.
DEVICE void multiply_step(u32 memory, u32 tensor, u32 stage, u32 sums, u32 first_column, bool begins) {
    copy_scales(memory, tensor, stage);
    u32 rows = memory + VALUES + stage * STAGE_VALUES, columns = rows + ROW_MATRICES * ROW_VALUES;
    // A tile of 64 columns may begin in the middle of a block of scales: a column of tensor memory has those of 32.
    u32 within = first_column % BLOCK_ROWS / 32;
#pragma unroll
    for (u32 sixty_four = 0; sixty_four < STEPS_OF_64; ++sixty_four)
#pragma unroll
        for (u32 matrix = 0; matrix < MATRICES; ++matrix) {
            u32 row_matrix = SWAPPED ? matrix : 0, column_matrix = SWAPPED ? 0 : matrix;
            tensor_multiply(
                tensor + sums * SUM_COLUMNS + matrix * COLUMNS,
                matrix_at(VALUE_BITS, rows + row_matrix * ROW_VALUES + sixty_four * 32),
                matrix_at(VALUE_BITS, columns + column_matrix * COLUMN_VALUES + sixty_four * 32), PRODUCT_BITS,
                scale_columns(tensor, stage, sixty_four, row_matrix),
                scale_columns(tensor, stage, sixty_four, ROW_MATRICES + column_matrix * COLUMN_BLOCKS) + within,
                !(begins && sixty_four == 0));
        }
}
