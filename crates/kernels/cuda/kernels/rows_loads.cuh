// Packed operands from memory into a slot of shared memory, guarded by the slot's barriers.
//
// Weights come by bulk tensor copies. Tokens lie wherever the call says, and a tensor map for them would have to be
// encoded for each call; so the loading threads copy them, 16 bytes each, and their copies arrive at the same
// barrier.
#pragma once
#include "rows_words.cuh"
#include "work.cuh"

// Where a tile's operands begin.
struct Operands {
    const u8 *tokens, *token_scales;
    const TensorMap* maps;
    u32 packed_row, scale_row;  // bytes from row to row
    u32 rows;                   // tokens left
    u32 column;                 // first weight row

    DEVICE Operands(const Parameter& parameter, const Tile& tile) {
        const Group& group = parameter.groups[tile.group];
        packed_row = group.k / 2;
        scale_row = group.k / 16;
        tokens = parameter.tokens + group.tokens + (u64)tile.row * packed_row;
        token_scales = parameter.token_scales + group.token_scales + (u64)tile.row * scale_row;
        rows = group.m - tile.row;
        maps = parameter.maps + MAPS_A_GROUP * tile.group;
        column = tile.column;
    }
};

// Place of a 16-byte piece in a row of packed tokens, so that a warp that reads four pieces of eight rows meets each
// bank once. Rows of 64 bytes do so as they are.
DEVICE u32 token_place(u32 row, u32 piece) { return DEPTH == 256 ? piece ^ row % 2 * 4 : piece; }

// Arrivals that fill a slot: each loading thread's copies, and the announcement of the bytes of bulk copies.
constexpr u32 FULL_ARRIVALS = LOADING_THREADS + 1;

DEVICE void load_tokens(const Operands& operands, u32 memory, u32 slot, u32 step, u32 thread) {
    constexpr u32 PIECES = PACKED_ROW / 16, ROWS_AT_ONCE = LOADING_THREADS / PIECES;
    u32 piece = thread % PIECES, to = memory + TOKENS + slot * TOKENS_BYTES;
    const u8* from = operands.tokens + step * PACKED_ROW + piece * 16;
#pragma unroll 4
    for (u32 row = thread / PIECES; row < ROWS; row += ROWS_AT_ONCE) {
        bool there = row < operands.rows;
        copy_16(to + row * PACKED_ROW + token_place(row, piece) * 16, from + (there ? row * operands.packed_row : 0),
                there ? 16 : 0);
    }
    to = memory + TOKEN_SCALES + slot * TOKEN_SCALES_BYTES;
    from = operands.token_scales + step * DEPTH / 256 * SCALE_ROW;
#pragma unroll
    for (u32 row = thread; row < ROWS; row += LOADING_THREADS) {
        bool there = row < operands.rows;
        copy_16(to + row * SCALE_ROW, from + (there ? row * operands.scale_row : 0), there ? 16 : 0);
    }
}

DEVICE void load_weights(const Operands& operands, u32 memory, u32 slot, u32 step, u32 full) {
#pragma unroll
    for (u32 matrix = 0; matrix < MATRICES; ++matrix) {
        u32 place = slot * MATRICES + matrix;
        const TensorMap* map = operands.maps + 2 * matrix;
        copy_tensor(memory + WEIGHTS + place * WEIGHTS_BYTES, map, step * PACKED_ROW, operands.column, full);
        copy_tensor(memory + WEIGHT_SCALES + place * WEIGHT_SCALES_BYTES, map + 1, step * DEPTH / 256 * SCALE_ROW,
                    operands.column, full);
    }
}

// Called by all loading threads, once the slot is empty.
DEVICE void load_step(const Operands& operands, u32 memory, u32 slot, u32 step, u32 thread) {
    u32 full = memory + FULL + slot * 8;
    if (thread < 32 && elect()) {
        barrier_expect(full, MATRICES * (WEIGHTS_BYTES + WEIGHT_SCALES_BYTES));
        load_weights(operands, memory, slot, step, full);
    }
    load_tokens(operands, memory, slot, step, thread);
    copy_arrive(full);
}
