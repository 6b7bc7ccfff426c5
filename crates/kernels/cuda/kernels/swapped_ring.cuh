// The ring of operand buffers between the warps that load and those that multiply.
//
// A unit is one chunk of a tile: converted tokens, then packed weights. Scales have places of their own: if weights are
// not repacked, they arrive with every fourth chunk for four chunks, 32 bytes of a row, the least that the level-2
// cache delivers (docs/notebook/cuda-tried.md), in two places that alternate. With units of two sizes the ring held two
// of the widest where three fit (measured: 13 % of all stalls). Units are as long as their tile is wide, so that more
// units of narrow tiles are in flight. All warps that walk the ring step through the same positions.
//
// All warps and the matrix unit share a scheduler's issue slots: each additional instruction for a chunk, in any warp,
// delays products (docs/notebook/cuda-tried.md). So a walk keeps the counters that its users need, not the fewest
// variables.
#pragma once
#include "swapped_problem.cuh"

constexpr bool STEPS = REPACKED == 2;                      // whether tokens come as they lie in memory
constexpr u32 CONSUMER_THREADS = 256, CONSUMER_WARPS = 8;  // of both warp groups that multiply
constexpr u32 SLOTS = 8;
constexpr u32 WEIGHT_BYTES = WEIGHT_ROWS * CHUNK / 2;
constexpr u32 SCALE_CHUNKS = REPACKED ? 1 : 4;  // whose scales come together
constexpr u32 CHUNK_SCALE_BYTES = WEIGHT_ROWS * CHUNK / 16, SCALE_COPY_BYTES = SCALE_CHUNKS * CHUNK_SCALE_BYTES;
constexpr u32 SCALE_ROW = SCALE_CHUNKS * CHUNK / 16;  // bytes of a row
constexpr u32 SCALES_AT = RING, CONTROL_AT = SCALES_AT + SLOTS * CHUNK_SCALE_BYTES, CONTROL_BYTES = 1024;
constexpr u32 FULL_AT = CONTROL_AT, EMPTY_AT = CONTROL_AT + 8 * SLOTS;

// A tile in flight, for the warps that multiply: reading it from memory would cost each of them a microsecond a tile.
// It is written before its first unit is acquired, and read until the next tile's. Seven tiles later there have been
// fourteen units, of which at most `SLOTS` were unreleased, so all threads are past the entry that is overwritten.
struct Announced {
    Tile tile;
    float scales[2];
    u32 unused[2];
};
constexpr u32 ANNOUNCED = SLOTS;

// With ROUTED, a block's first tiles, which it need not write to memory.
constexpr u32 OWN_TILES = ROUTED ? 14 : 0;

// Data behind the ring. Barriers are first.
struct Control {
    u64 full[SLOTS];
    u64 empty[SLOTS];
    u32 arrived_before[2];
    alignas(16) Announced tiles[ANNOUNCED];
#if ROUTED
    Tile own[OWN_TILES];
#endif
};

DEVICE Tile worker_tile(const Parameter& parameter, const Control* control, u32 number) {
#if ROUTED
    if (number < OWN_TILES) return control->own[number];
    const uint4* from = (const uint4*)(first_tile(parameter) + number);
    uint4 low = __ldcg(from), high = __ldcg(from + 1);
    return {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#else
    return load_tile(first_tile(parameter) + number);
#endif
}

// The number of a worker's tile among all, for traces.
DEVICE u32 tile_number(const Parameter& parameter, u32 number) {
    return blockIdx.x * parameter.tiles_a_worker + number;
}

// The distance between neighbouring widths that have code, at `columns` columns; src/plan/swapped/geometry.rs says why.
DEVICE constexpr u32 width_step(u32 columns) { return columns <= FINE ? 8 : 16; }

// Whether the kernel has code for tiles of `columns` columns.
DEVICE constexpr bool has_code(u32 columns) {
    return columns == WIDTH || (MIXED && columns < WIDTH && columns % width_step(columns) == 0);
}

// Columns that are computed for a tile of `tokens` tokens.
DEVICE u32 computed_width(u32 tokens) {
    u32 step = width_step(tokens);
    return MIXED ? min((tokens + step - 1) / step * step, WIDTH) : WIDTH;
}

DEVICE constexpr u32 token_bytes(u32 width) { return width * CHUNK * 2; }

DEVICE constexpr u32 unit_bytes(u32 width) { return token_bytes(width) + WEIGHT_BYTES; }

// The position of a walk. Tiles have an even number of chunks, so units come in pairs, and a pair's slots and phase are
// counted once.
struct Ring {
    u32 position = 0;  // where the unit before ended, in bytes
    u32 pair = 0;      // bytes from the first barrier to those of the pair's two slots
    u32 parity = 0;    // of the phase in which the pair's barriers are

    DEVICE u32 full(u32 chunk) const { return FULL_AT + pair + 8 * chunk; }
    DEVICE u32 empty_before(u32 chunk) const { return EMPTY_AT + (pair + 8 * SLOTS - 16) % (8 * SLOTS) + 8 * chunk; }
    DEVICE u32 packed_scales(u32 chunk) const { return (pair / 8 + chunk) * CHUNK_SCALE_BYTES; }
    DEVICE u32 begin(u32 bytes) const { return position + bytes <= RING ? position : 0; }
    DEVICE void advance(u32 bytes) { position = begin(bytes) + bytes; }
    DEVICE void next_pair() {
        pair = (pair + 16) % (8 * SLOTS);
        parity ^= pair == 0;
    }
};

// Units are a number of pieces long: eight tokens by a chunk.
constexpr u32 PIECE = ITEM_BYTES;
static_assert(RING % PIECE == 0 && WEIGHT_BYTES % PIECE == 0 && 2 * RING / PIECE < 256,
              "a unit's pieces have no room in a byte");

static_assert(2 * (ANNOUNCED - 1) > SLOTS, "a tile has two units or more");
static_assert(sizeof(Control) <= CONTROL_BYTES, "what is behind the ring overlaps");

// A walk that fills units and tracks the units still in use behind it: the size of each, including the bytes skipped
// before it at the end of the ring. Each producer tracks this itself, because one may be a lap ahead of the other.
struct Filling {
    Ring ring;
    u32 oldest = 0, oldest_parity = 0;  // bytes from the first barrier to that of the oldest unit in use; its phase
    u32 count = 0, used = 0;            // units in use, and the pieces that they take
    u64 taken = 0;                      // by each of them, the oldest in the lowest byte

    // Waits until the next unit's bytes are free and at most `most` units are in use before it; returns where it
    // begins.
    DEVICE u32 acquire(u32 bytes, u32 ring_base, u32 most = SLOTS - 1) {
        u32 begin = ring.begin(bytes),
            need = bytes / PIECE + (begin == ring.position ? 0 : (RING - ring.position) / PIECE);
#pragma unroll 1
        while (count > 0 && (used + need > RING / PIECE || count > most)) {
            barrier_wait(ring_base + EMPTY_AT + oldest, oldest_parity);
            used -= (u32)taken & 0xFF;
            taken >>= 8;
            count--;
            oldest = (oldest + 8) % (8 * SLOTS);
            oldest_parity ^= oldest == 0;
        }
        if (count == 0) need = bytes / PIECE;  // what was skipped is free
        taken |= (u64)need << 8 * count;
        used += need;
        count++;
        ring.position = begin + bytes;
        return ring_base + begin;
    }
};
