// The sizes of the native kernel: its operands in a stage, its shared memory, and its tensor memory.
#pragma once
#include "schedule.cuh"
#include "tcgen05.cuh"

// The rows of a tile are multiplied by one instruction, its columns too (PTX ISA, tcgen05.mma: shapes of
// .kind::mxf4nvf4). Of a pair of blocks each has half of the rows, of which it stores the results, and brings half of
// the columns.
static_assert(ROWS == BLOCKS_A_TILE * 128 && COLUMNS % (BLOCKS_A_TILE * 8) == 0 && COLUMNS <= 256,
              "shapes of tcgen05.mma");
static_assert(!PAIRED || (SPECIALISED && order != Order::Dynamic), "both blocks of a pair know the next tile");
constexpr u32 OWN_ROWS = ROWS / BLOCKS_A_TILE, OWN_COLUMNS = COLUMNS / BLOCKS_A_TILE;
static_assert(DEPTH == 128 || DEPTH == 256, "a row of a stage is swizzled within its 64 or 128 bytes");

// Matrices on each side of a tile: in the dual form the weights are two. Matrices of rows come first.
constexpr u32 ROW_MATRICES = SWAPPED ? MATRICES : 1, COLUMN_MATRICES = SWAPPED ? 1 : MATRICES;
constexpr u32 OPERANDS = ROW_MATRICES + COLUMN_MATRICES;

// Four warps read sums, each 32 lanes of tensor memory. With special roles one more loads and another multiplies; one
// thread of them does so.
constexpr u32 STORING_THREADS = 128, LOADING_WARP = 4, MULTIPLYING_WARP = 5;
constexpr u32 THREADS = SPECIALISED ? 192 : STORING_THREADS;

// ---- A stage. Values: rows of DEPTH / 2 bytes, as a tensor copy swizzles them. Scales: blocks of 128 rows and 64
// values, 512 bytes, in the layout of crates/kernels/nvfp4/src/swizzle.rs; a tile of columns lies in up to
// COLUMN_BLOCKS blocks of rows, since it begins at a multiple of 64. Each block of a pair has those of all columns.

constexpr u32 STEPS_OF_64 = DEPTH / 64, ROW_BYTES = DEPTH / 2;
constexpr u32 ROW_VALUES = OWN_ROWS * ROW_BYTES, COLUMN_VALUES = OWN_COLUMNS * ROW_BYTES;
constexpr u32 STAGE_VALUES = ROW_MATRICES * ROW_VALUES + COLUMN_MATRICES * COLUMN_VALUES;
constexpr u32 BLOCK_ROWS = 128, BLOCK_BYTES = 512, BLOCK_COLUMNS = 4;
constexpr u32 COLUMN_BLOCKS = (COLUMNS + BLOCK_ROWS - 1) / BLOCK_ROWS;
constexpr u32 BLOCKS = ROW_MATRICES + COLUMN_MATRICES * COLUMN_BLOCKS, STEP_SCALES = STEPS_OF_64 * BLOCK_BYTES;
constexpr u32 STAGE_SCALES = BLOCKS * STEP_SCALES;

// ---- Shared memory of a block, in bytes from its begin, which is a multiple of 1024: the period of the
// swizzle.

// Rows of staged results, those of one warp after the other's, lie in different banks.
constexpr u32 STAGED_ROWS = SWAPPED ? COLUMNS : 32, STAGED_ELEMENTS = SWAPPED ? 32 : COLUMNS;
constexpr u32 STAGED_ROW = STAGED_ELEMENTS * ELEMENT_BYTES + 16, STAGED_WARP = STAGED_ROWS * STAGED_ROW;
// Works that the loading warp may be ahead of the warps that store.
constexpr u32 WORKS = SPECIALISED ? 4 : 1;

constexpr u32 VALUES = 0;
constexpr u32 SCALES = VALUES + STAGES * STAGE_VALUES;
constexpr u32 STAGING = SCALES + STAGES * STAGE_SCALES;
constexpr u32 WORK = STAGING + (epilogue == Epilogue::Staged ? 4 * STAGED_WARP : 0);
constexpr u32 FULL = WORK + WORKS * WORK_BYTES, EMPTY = FULL + STAGES * 8, PEER_FULL = EMPTY + STAGES * 8;
constexpr u32 SUMS_FULL = PEER_FULL + (PAIRED ? STAGES * 8 : 0), SUMS_EMPTY = SUMS_FULL + TILE_SUMS * 8;
constexpr u32 WORK_FULL = SUMS_EMPTY + TILE_SUMS * 8, WORK_EMPTY = WORK_FULL + WORKS * 8;
// Where tensor memory begins, as its allocation says; then padding.
constexpr u32 TENSOR_MEMORY = WORK_EMPTY + WORKS * 8;
static_assert(TENSOR_MEMORY + 8 == SHARED_BYTES, "the host counts shared memory as the device does");

// ---- Tensor memory, in columns from its begin: the sums of TILE_SUMS tiles, then the scales of all stages. With fewer
// places for scales, a copy would overwrite those of a product that may still run: a product and a later copy are no
// pair that runs in order.

constexpr u32 SUM_COLUMNS = MATRICES * COLUMNS;
constexpr u32 TENSOR_SCALES = TILE_SUMS * SUM_COLUMNS, STAGE_COLUMNS = BLOCKS * STEPS_OF_64 * BLOCK_COLUMNS;
static_assert(TENSOR_SCALES + STAGES * STAGE_COLUMNS <= TENSOR_COLUMNS,
              "the host counts tensor memory as the device does");

// Which block of a pair this is; the first multiplies.
DEVICE u32 rank_in_pair() { return PAIRED ? blockIdx.x % 2 : 0; }

using StageCursor = RingCursor<STAGES>;
using SumsCursor = RingCursor<TILE_SUMS>;
using WorkCursor = RingCursor<WORKS>;
