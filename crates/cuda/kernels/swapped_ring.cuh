// The ring of operand buffers between the warps that load and those that multiply.
//
// A unit is one chunk of a tile: converted tokens, then packed weights. Scales have slots of their own: of weights that are
// not repacked they come with every even chunk for two, since a tensor map's box has at least 16 bytes a row, and with units
// of two sizes the ring held two of the widest where three fit (measured: 13 % of all stalls). Units are as long as their tile is wide, so that narrow tiles
// have more of them on their way. All who walk the ring step the same positions.
#pragma once
#include "swapped_problem.cuh"

constexpr u32 CONSUMER_THREADS = 256, CONSUMER_WARPS = 8;     // of both warp groups that multiply
constexpr u32 SLOTS = 8;
constexpr u32 CHUNKS_OF_SCALES = REPACKED ? 1 : 2, SCALE_SLOTS = SLOTS / CHUNKS_OF_SCALES;
constexpr u32 WEIGHT_BYTES = WEIGHT_ROWS * CHUNK / 2, SCALE_BYTES = WEIGHT_ROWS * CHUNK / 16 * CHUNKS_OF_SCALES;
constexpr u32 SCALES_AT = RING, CONTROL_AT = SCALES_AT + SCALE_SLOTS * SCALE_BYTES, CONTROL_BYTES = 1024;

// A tile on its way, for the warps that multiply: from memory it would cost each of them a microsecond a tile. It is written
// before its first unit's barrier, and read until the next tile's. Seven tiles later there have been fourteen units, of which
// at most `SLOTS` were unreleased, so all threads are past the entry that is taken.
struct Announced {
    Tile tile;
    float scales[2];
    u32 unused[2];
};
constexpr u32 ANNOUNCED = SLOTS;

// Barriers and what producers remember, behind the ring.
struct Control {
    u64 full[SLOTS];
    u64 empty[SLOTS];
    u32 weight_ends[SLOTS];
    u32 token_ends[SLOTS];
    u32 arrived_before[2];
    alignas(16) Announced tiles[ANNOUNCED];
};

// Columns that are computed for a tile of so many tokens.
DEVICE u32 computed_width(u32 tokens) {
    return MIXED ? (tokens + 7) / 8 * 8 : WIDTH;
}

DEVICE constexpr u32 token_bytes(u32 width) {
    return width * CHUNK * 2;
}

DEVICE constexpr u32 unit_bytes(u32 width) {
    return token_bytes(width) + WEIGHT_BYTES;
}

struct Ring {
    u32 count = 0, position = 0;

    DEVICE u32 slot() const { return count % SLOTS; }
    DEVICE u32 last_slot() const { return (count - 1) % SLOTS; }
    DEVICE u32 parity() const { return count / SLOTS % 2; }
    DEVICE u32 scales() const { return SCALES_AT + count / CHUNKS_OF_SCALES % SCALE_SLOTS * SCALE_BYTES; }
    DEVICE u32 begin(u32 bytes) const { return position + bytes <= RING ? position : 0; }
    DEVICE void advance(u32 bytes) {
        position = begin(bytes) + bytes;
        count++;
    }
};

static_assert(2 * (ANNOUNCED - 1) >= SLOTS, "a tile has two units or more");
static_assert(sizeof(Control) <= CONTROL_BYTES, "what is behind the ring overlaps");

// A walk that fills units and knows what is still in use behind it. Ends are counted in bytes from the first unit on, the
// skipped ends of the ring included; each producer keeps them for itself, for one may be a lap ahead of the other.
struct Filling {
    Ring ring;
    u32 oldest = 0, oldest_end = 0, end = 0;

    // Waits until the next unit's bytes are free.
    DEVICE void acquire(u32 bytes, u32 empty, u32 ends) {
        if (ring.begin(bytes) != ring.position) end += RING - ring.position;
        end += bytes;
        while (oldest < ring.count && (end - oldest_end > RING || ring.count - oldest == SLOTS)) {
            barrier_wait(empty + 8 * (oldest % SLOTS), oldest / SLOTS % 2);
            oldest_end = load_shared(ends + 4 * (oldest % SLOTS));
            oldest++;
        }
        if (oldest == ring.count) oldest_end = end - bytes;
        __syncwarp();       // all lanes have read the entry that this one may take the place of
        store_shared(ends + 4 * ring.slot(), end);
    }
};
