// The binary interface of the swapped kernel: its parameter and tiles; the other half is src/plan/swapped/abi.rs. The
// preceding kernel, which converts tokens, takes the same parameter.
//
// With ROUTED 1 the host does not know the token counts, and each block plans the call for itself (swapped_routed.cuh).
// All groups have the same sizes then, which the first of the shapes has; its tokens, results and workspace are those
// of all groups, and its m counts the tokens for which there is room in the workspace. Tiles have tokens counted over
// all groups.
#pragma once
#include "trace.cuh"

#ifndef ROUTED
#define ROUTED 0
#endif
// Whether sums get biases, and the dual form another activation than silu; only if ROUTED.
#ifndef EPILOGUE
#define EPILOGUE 0
#endif

constexpr u32 CHUNK = 128;         // values of K that are loaded at a time
constexpr u32 WEIGHT_ROWS = 128;   // of a tile, 64 for each warp group; in the dual form 64 of each of the two weights
constexpr u32 ITEM_BYTES = 2048;   // of eight tokens by one chunk, converted
constexpr u32 TOKEN_MAPS = 6;      // see src/plan/token_matrix.rs
constexpr u32 INLINE_SHAPES = 16;  // groups that fit the parameter: a table in memory costs a microsecond at the start

// The numbers of a group that all warps need; see Group.
struct Shape {
    u64 tokens, token_scales, output;
    u64 workspace;  // bytes from the workspace's begin to its converted tokens
    u32 m, n, k, columns;
};

struct Tile {
    u32 group;
    u32 row, token;           // the first of the group's; if ROUTED, the token counts over all groups
    u32 width;                // tokens
    u32 first_chunk, chunks;  // both even; a first tile without chunks: the worker has none
    u32 slot;                 // the first of the buffers for its partial sums
    u32 parts;  // low half: which part of the depth this is; then of how many; top bit: the worker's last tile

    DEVICE u32 part() const { return parts & 0xFFFF; }
    DEVICE u32 part_count() const { return parts >> 16 & 0x7FFF; }
    DEVICE bool is_last() const { return parts >> 31; }
};

struct Parameter {
    const u8* tokens;
    const u8* token_scales;
    u8* output;
    const Group* group_table;
    const u32* item_table;
    const TensorMap* map_table;  // four a group
    const Tile* tiles;           // [workers][tiles_a_worker]; if ROUTED, each block writes its own
    u8* workspace;
    float* partials;
    u32* counters;  // arrivals a slot and warp group
    u32 tiles_a_worker, group_count, items;
    u32 weight_blocks;  // of a group; only if ROUTED, where all groups have the same sizes
    Shape shapes[INLINE_SHAPES];
    u32 item_offsets[INLINE_SHAPES + 1];
    u32 reserved;
    const int* ends;     // of each group's tokens, counted over all groups; this and what follows only if ROUTED
    const void* costs;   // of tiles by their eighths of tokens; see Cost
    u32 rows;            // of tokens of all groups
    u32 most_parts;      // of a tile's depth
    u32 ends_are_ready;  // whether launches before the one before wrote the ends
    u32 bias_format;     // 0: fp16, 1: bf16, 2: fp32
    // Of the sums, [groups][n] of each of the weights, or null; this and what follows only if EPILOGUE.
    const void* biases[2];
    float alpha, beta, limit;  // silu with alpha, times the second sums and beta; sums are limited before
    u32 also_reserved;
#if REPACKED == 2
    TensorMap token_maps[TOKEN_MAPS];  // of all groups' tokens, in boxes of 8, 16, … 256
#endif
};

#define SHAPE(group, field)                                                   \
    (ROUTED                                   ? parameter.shapes[0].field     \
     : parameter.group_count <= INLINE_SHAPES ? parameter.shapes[group].field \
                                              : parameter.group_table[group].field)
#define ITEM_OFFSET(group) \
    (parameter.group_count <= INLINE_SHAPES ? parameter.item_offsets[group] : parameter.item_table[group])

DEVICE Tile load_tile(const Tile* from) {
    uint4 low = __ldg((const uint4*)from), high = __ldg((const uint4*)from + 1);
    return {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
}

DEVICE const Tile* first_tile(const Parameter& parameter) {
    return parameter.tiles + (u64)blockIdx.x * parameter.tiles_a_worker;
}
