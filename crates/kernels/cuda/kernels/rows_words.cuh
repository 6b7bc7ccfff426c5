// The sizes of the rows kernel, and its shared memory.
#pragma once
#include "schedule.cuh"

static_assert(ROWS % 64 == 0 && COLUMNS % 8 == 0 && COLUMNS <= 256, "shapes of wgmma");
static_assert(!SWAPPED, "tokens are the rows");
static_assert(DEPTH == 128 || DEPTH == 256, "rows are padded to 256 values");

// The maps of a group are as many in both forms.
constexpr u32 MAPS_A_GROUP = 4;
// A warp group of four warps holds the sums of 64 rows. With special roles a warp of one more group loads; a group,
// since only whole ones can give their registers to others.
constexpr u32 MULTIPLYING_WARPS = ROWS / 16, MULTIPLYING_THREADS = 32 * MULTIPLYING_WARPS;
constexpr u32 LOADING_THREADS = SPECIALISED ? 32 : MULTIPLYING_THREADS;
constexpr u32 THREADS = MULTIPLYING_THREADS + (SPECIALISED ? 128 : 0);
// Registers a thread of each role after the exchange; together no more than the launch's share of 65536. Two groups
// have all that a thread can address without one.
constexpr bool EXCHANGE_REGISTERS = SPECIALISED && ROWS > 64;
constexpr bool WIDEST = COLUMNS * MATRICES > 224;
constexpr u32 LOADING_REGISTERS = ROWS == 256 ? 32 : ROWS == 128 && WIDEST ? 40 : 56;
constexpr u32 MULTIPLYING_REGISTERS = ROWS == 256 ? 112 : ROWS == 192 ? 152 : WIDEST ? 232 : 224;

// ---- Shared memory of a block, in bytes from its begin, which is a multiple of 1024.

constexpr u32 PACKED_ROW = DEPTH / 2, SCALE_ROW = 16;
constexpr u32 WEIGHTS_BYTES = COLUMNS * PACKED_ROW, WEIGHT_SCALES_BYTES = COLUMNS * SCALE_ROW;
constexpr u32 TOKENS_BYTES = ROWS * PACKED_ROW, TOKEN_SCALES_BYTES = ROWS * SCALE_ROW;
constexpr u32 CONVERTED_BYTES = COLUMNS * DEPTH * 2;
// One slot of converted weights is filled while products read the other; a single stage overlaps nothing.
constexpr u32 CONVERTED_SLOTS = STAGES > 1 ? 2 : 1;
// Rows of results are 8 elements apart from their neighbours' banks.
constexpr u32 STAGING_ROW = (COLUMNS + 8) * ELEMENT_BYTES;

constexpr u32 CONVERTED = 0;
constexpr u32 WEIGHTS = CONVERTED + CONVERTED_SLOTS * MATRICES * CONVERTED_BYTES;
constexpr u32 TOKENS = WEIGHTS + STAGES * MATRICES * WEIGHTS_BYTES;
constexpr u32 WEIGHT_SCALES = TOKENS + STAGES * TOKENS_BYTES;
constexpr u32 TOKEN_SCALES = WEIGHT_SCALES + STAGES * MATRICES * WEIGHT_SCALES_BYTES;
constexpr u32 STAGING = TOKEN_SCALES + STAGES * TOKEN_SCALES_BYTES;
constexpr u32 WORK = STAGING + (epilogue == Epilogue::Staged ? ROWS * STAGING_ROW : 0);
constexpr u32 FULL = WORK + STAGES * WORK_BYTES;
constexpr u32 EMPTY = FULL + STAGES * 8;
static_assert(EMPTY + STAGES * 8 == SHARED_BYTES, "the host counts shared memory as the device does");

using Cursor = RingCursor<STAGES>;
