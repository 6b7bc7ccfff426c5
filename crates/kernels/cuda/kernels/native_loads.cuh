// Packed values and their scales from memory into a stage, by the copy engine; one thread asks for them.
//
// Values come by tensor copies, which fill what lies beyond a matrix with zeros. Scales lie in memory as tensor memory
// takes them: a row of blocks holds 128 rows, one block of 64 values after the other, so that a stage's are contiguous.
#pragma once
#include "native_maps.cuh"
#include "work.cuh"

// Where a tile's operands begin.
struct Operands {
    const TensorMap* maps[OPERANDS];
    const u8* scales[OPERANDS];  // of the first row of blocks
    u32 row, column;             // of the values; scales of columns begin at that of the tile
    u32 tile_column;
    u32 last_row_block, last_column_block;
    u32 block_row_bytes;

    DEVICE Operands(const Parameter& parameter, const Tile& tile, const TensorMap* all)
        : row(tile.row + rank_in_pair() * OWN_ROWS),
          column(tile.column + rank_in_pair() * OWN_COLUMNS),
          tile_column(tile.column) {
        const Group& group = parameter.groups[tile.group];
        block_row_bytes = group.k / 64 * BLOCK_BYTES;
        last_row_block = (rows_of(group) - 1) / BLOCK_ROWS;
        last_column_block = (columns_of(group) - 1) / BLOCK_ROWS;
#pragma unroll
        for (u32 operand = 0; operand < OPERANDS; ++operand) {
            bool is_row = operand < ROW_MATRICES;
            u32 matrix = is_row ? operand : operand - ROW_MATRICES;
            maps[operand] = all + (is_row == SWAPPED ? 1 + matrix : 0);
            scales[operand] =
                is_row == SWAPPED ? group.weight_scales[matrix] : parameter.token_scales + group.token_scales;
        }
    }
};

// Called once the stage is empty.
DEVICE void load_step(const Operands& operands, u32 memory, u32 stage, u32 step) {
    u32 full = memory + FULL + stage * 8;
    u32 values = memory + VALUES + stage * STAGE_VALUES, scales = memory + SCALES + stage * STAGE_SCALES;
    barrier_expect(full, STAGE_VALUES + STAGE_SCALES);
#pragma unroll
    for (u32 operand = 0; operand < OPERANDS; ++operand) {
        bool is_row = operand < ROW_MATRICES;
        copy_tensor(values, operands.maps[operand], step * ROW_BYTES, is_row ? operands.row : operands.column, full);
        values += is_row ? ROW_VALUES : COLUMN_VALUES;
#pragma unroll
        for (u32 block = 0; block < (is_row ? 1 : COLUMN_BLOCKS); ++block) {
            // Beyond the last there is none; rows and columns that are not there may have any scales.
            u32 place = is_row ? min(operands.row / BLOCK_ROWS, operands.last_row_block)
                               : min(operands.tile_column / BLOCK_ROWS + block, operands.last_column_block);
            copy_bulk(scales, operands.scales[operand] + (u64)place * operands.block_row_bytes + step * STEP_SCALES,
                      STEP_SCALES, full);
            scales += STEP_SCALES;
        }
    }
}
