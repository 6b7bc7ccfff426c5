// The work of a block of the resident kernel, and the layout of its shared memory.
//
// Definitions: KEYS of a warp group; SPLIT, the blocks of a cluster, each with keys of its own; PARTIALS, in which
// blocks exchange results: 0 fp32, 1 fp16; UNIFORM 1, all sequences are equal, and the host describes them as one with
// the heads of all, of TILES tiles each: then neither a table nor a division stands before the loads; RUNS, into how
// many the weights are divided: V is multiplied by one while the next is computed.
#pragma once
#include "attention_operands.cuh"

constexpr u32 QUERIES = 64, GROUPS = 2, WARPS = 8, GROUP_WARPS = 4, GROUP_THREADS = 128;

// ---- Matrices.

typedef Matrix<QUERIES, ROW_BYTES> QueryMatrix;
typedef Matrix<KEYS, ROW_BYTES> KeyMatrix;                          // V too
typedef Matrix<KEYS, EIGHTS ? HEAD : 2 * HEAD> MultipliedMatrix;    // K and V as the matrix unit takes them
typedef Matrix<HEAD, KEYS> TransposedMatrix;                        // V of e4m3, which is multiplied depth first only

// ---- Partial results: each of the 2·SPLIT parts of the keys has one of each of the tile's four slots of 16 rows, in
// the order of the accumulators: pieces of 16 bytes a lane. A block owns slots: it merges and stores them.

constexpr u32 PARTS = GROUPS * SPLIT, SLOTS = QUERIES / 16, OWNED = SLOTS / SPLIT;
constexpr u32 PIECES = PARTIALS == 1 ? HEAD / 16 : HEAD / 8, PIECE_BYTES = 32 * 16;
constexpr u32 STATISTICS_BYTES = 8 * 16;            // of a slot: maxima and sums of rows r and r + 8 together
constexpr u32 REMOTE_BYTES = GROUPS * (SPLIT - 1) * OWNED * (PIECES * PIECE_BYTES + STATISTICS_BYTES);
static_assert(SPLIT == 1 || SPLIT == 2 || SPLIT == 4, "a block owns whole slots");

// ---- Shared memory, in bytes from its begin.

constexpr u32 QUERY_AT = 0;
constexpr u32 KEY_AT = QUERY_AT + QueryMatrix::SIZE;
constexpr u32 VALUE_AT = KEY_AT + GROUPS * KeyMatrix::SIZE;
constexpr u32 CONVERTED_KEY_AT = VALUE_AT + GROUPS * KeyMatrix::SIZE;
constexpr u32 CONVERTED_VALUE_AT = CONVERTED_KEY_AT + (CONVERTED ? GROUPS * MultipliedMatrix::SIZE : 0);
constexpr u32 PARTIALS_AT = CONVERTED_VALUE_AT + (EIGHT_BITS ? GROUPS * MultipliedMatrix::SIZE : 0);
constexpr u32 STATISTICS_AT = PARTIALS_AT + PARTS * OWNED * PIECES * PIECE_BYTES;
constexpr u32 BARRIERS_AT = STATISTICS_AT + PARTS * OWNED * STATISTICS_BYTES;
constexpr u32 MULTIPLIED_KEY_AT = CONVERTED ? CONVERTED_KEY_AT : KEY_AT;
constexpr u32 MULTIPLIED_VALUE_AT = EIGHT_BITS ? CONVERTED_VALUE_AT : VALUE_AT;

// Barriers, each used for one phase: that of parity 0.
constexpr u32 QUERY_FULL = BARRIERS_AT, MERGE_FULL = QUERY_FULL + 8;
constexpr u32 KEY_FULL = MERGE_FULL + 8, VALUE_FULL = KEY_FULL + 8 * GROUPS, VALUE_CONVERTED = VALUE_FULL + 8 * GROUPS;

// ---- Work.

struct Work {
    u32 sequence, head, query;      // 64 queries of a head, from `query` on
    Sequence lengths;
};

// What a cluster computes.
DEVICE Work find_work(const Parameter& parameter) {
    u32 number = blockIdx.x / SPLIT;
    if (UNIFORM) {
        return {0, number / TILES, number % TILES * QUERIES, {0, 0, parameter.queries, parameter.keys}};
    }
    uint4 tile = __ldg((const uint4*)parameter.tiles + number);
    uint4 lengths = __ldg((const uint4*)parameter.sequences + tile.x);
    return {tile.x, tile.y, tile.z, {lengths.x, lengths.y, lengths.z, lengths.w}};
}

// The position of a thread.
struct Place {
    u32 memory;             // where shared memory begins
    u32 rank;               // of the block in its cluster
    u32 warp, lane, group;

    DEVICE u32 part() const { return rank * GROUPS + group; }
    DEVICE u32 first_key() const { return part() * KEYS; }
    DEVICE u32 slot() const { return warp % GROUP_WARPS; }
    // The first of the two rows of the tile that a thread has of its warp's results; the second is 8 further.
    DEVICE u32 row() const { return slot() * 16 + lane / 4; }
};

DEVICE Place find_place(u32 memory) {
    // Broadcast, so that the compiler knows that a warp takes one branch.
    u32 warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    return {memory, blockIdx.x % SPLIT, warp, threadIdx.x % 32, warp / GROUP_WARPS};
}
