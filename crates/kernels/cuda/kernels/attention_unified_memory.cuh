// Shared memory of the unified attention kernel: where its areas lie, how their rows lie in them, and copies to them.
//
// Every area is rows: Q, K and V as in memory, scores, weights, and results that wait to be stored. Plain rows begin
// a multiple of 128 bytes apart, so eight lanes that read the same 16-byte piece of eight rows meet the same four
// banks eight times. Swizzled, piece p of row r lies at p ^ (r % 8), and they meet every bank once. Rows are
// padded to a multiple of 64 bytes; where that is no multiple of 128, the last 64 bytes of two neighbours lie in
// different halves of the banks, so there both take the same turn: p ^ (r / 2 % 4).
#pragma once
#include "attention.cuh"

static_assert(TILE_M == 16 || TILE_M == 64 || TILE_M == 128, "warps have 16 queries each");
static_assert(TILE_N == 64 || TILE_N == 128, "rows of scores are whole groups of 128 bytes");
static_assert(SCORES != 0 || VALUES == 0, "scalar products read weights from shared memory");

// With 16 queries, four warps have the same ones, each with its keys of every step.
constexpr u32 ROW_WARPS = TILE_M / 16, KEY_WARPS = TILE_M == 16 ? 4 : 1, WARPS = ROW_WARPS * KEY_WARPS,
              THREADS = 32 * WARPS;
constexpr u32 WARP_KEYS = TILE_N / KEY_WARPS;
// Whether blocks take equal shares of all tiles' steps, of MIN_STEPS at least: tiles of 16 queries on ragged
// sequences.
constexpr bool STREAMED = RAGGED && KEY_WARPS > 1;
constexpr u32 MIN_STEPS = 2;
constexpr bool SCORES_IN_REGISTERS = SCORES == 0, WEIGHTS_APART = SCORES == 2, SCALAR = VALUES == 1;
constexpr bool SWIZZLED = LAYOUT == 1, STAGED = EPILOGUE == 1;

// From a row to the next in shared memory, of Q, K and V.
constexpr u32 PITCH = (DEPTH * ELEMENT_BYTES + 63) / 64 * 64;
constexpr u32 STEP_BYTES = TILE_N * PITCH;
constexpr u32 SCORE_ROW = TILE_N * 4;
// In place, the weights of a row take the first half of the space of its scores, or, in fp32, all of it.
constexpr u32 WEIGHT_ROW = WEIGHTS_APART ? TILE_N * (SCALAR ? 4 : 2) : SCORE_ROW;
constexpr u32 OUTPUT_BYTES = OUTPUT == 2 ? 4 : 2, RESULT_ROW = HEAD * OUTPUT_BYTES;
constexpr u32 RESULT_PITCH = (RESULT_ROW + 63) / 64 * 64;

// ---- Areas, in bytes from the begin of shared memory. Those that a variant has no use for are empty.

constexpr u32 QUERIES_AT = 0;
constexpr u32 KEYS_AT = QUERIES_AT + TILE_M * PITCH;      // STAGES steps of keys
constexpr u32 VALUES_AT = KEYS_AT + STAGES * STEP_BYTES;  // and of values
constexpr u32 SCORES_AT = VALUES_AT + STAGES * STEP_BYTES;
constexpr u32 WEIGHTS_AT = WEIGHTS_APART ? SCORES_AT + TILE_M * SCORE_ROW : SCORES_AT;
constexpr u32 FACTORS_AT = SCORES_IN_REGISTERS ? SCORES_AT : WEIGHTS_AT + TILE_M * WEIGHT_ROW;  // fp32, one a query
constexpr u32 RESULTS_AT = SCORES_IN_REGISTERS ? SCORES_AT : FACTORS_AT + TILE_M * 4;
constexpr u32 END = RESULTS_AT + (STAGED ? TILE_M * RESULT_PITCH : 0);

// What warps with the same queries leave for one another takes the place of all the above, when that is done with: of
// each warp, rows of sums with padding, so that the lanes of a fragment meet all banks, and the rows' statistics.
constexpr u32 PART_ROW = (DEPTH + 8) * 4, PART_BYTES = KEY_WARPS == 1 ? 0 : TILE_M * (PART_ROW + 8);
constexpr u32 PARTS_END = KEY_WARPS * PART_BYTES;
constexpr u32 LAST_AT = END > PARTS_END ? END : PARTS_END;  // a word: whether this is a tile's last part
static_assert(LAST_AT + (SPLIT && KEY_WARPS > 1 ? 16 : 0) == SHARED_BYTES,
              "the host counts shared memory as the device does");

// Byte of a 16-byte piece in an area whose rows have `ROW` bytes.
template <u32 ROW>
DEVICE u32 place(u32 row, u32 piece) {
    static_assert(ROW % 64 == 0, "rows are padded");
    bool is_tail = ROW % 128 != 0 && piece >= ROW / 128 * 8;
    return row * ROW + (piece ^ (!SWIZZLED ? 0 : is_tail ? row / 2 % 4 : row % 8)) * 16;
}

// ---- Copies, by all threads, of rows of which `row_at` has the address. Rows from `there` on become zeros, and the
// memory behind them is not read; so does what is behind a row's end, up to DEPTH.

template <u32 ROWS, typename RowAt>
DEVICE void load_rows(u32 to, RowAt row_at, u32 there) {
    constexpr u32 PIECES = DEPTH * ELEMENT_BYTES / 16, TURNS = (ROWS * PIECES + THREADS - 1) / THREADS;
#pragma unroll
    for (u32 turn = 0; turn < TURNS; ++turn) {
        u32 index = turn * THREADS + threadIdx.x, row = index / PIECES;
        if (ROWS * PIECES % THREADS != 0 && index >= ROWS * PIECES) break;  // whole warps do
        u32 piece = index % PIECES;
        bool copied = row < there && piece < ROW_BYTES / 16;
        copy_16(to + place<PITCH>(row, piece), row_at(copied ? row : 0) + (copied ? piece * 16 : 0), copied ? 16 : 0);
    }
}
