// The producers: one warp for weights, one for tokens. One alone is bound by its own instructions on narrow tiles.
#pragma once
#include "swapped_ring.cuh"

DEVICE float2 load_scales(const Parameter& parameter, const Tile& tile) {
    return *(const float2*)parameter.group_table[tile.group].scale;
}

// Where a tensor map's box begins.
struct Box {
    u32 column, row;
};

// Repacked weights lie chunk after chunk, sixteen rows after one another.
DEVICE u32 sixteens(const Parameter& parameter, const Tile& tile, u32 chunk) {
    return chunk * ((SHAPE(tile.group, n) + 15) / 16) + tile.row / 16;
}

// 64 bytes of a row, or 256 of four rows.
DEVICE Box value_box(const Parameter& parameter, const Tile& tile, u32 chunk) {
    if (REPACKED) return {0, sixteens(parameter, tile, chunk) * 4};
    return {chunk * 64, tile.row};
}

// Thirty-two bytes of a row, or the 128 of sixteen rows.
DEVICE Box scale_box(const Parameter& parameter, const Tile& tile, u32 chunk) {
    if (REPACKED) return {0, sixteens(parameter, tile, chunk)};
    return {chunk * 8, tile.row};
}

// A chunk of a tile's weights, and of scales what comes with it.
struct WeightCopies {
    const TensorMap* maps;
    u32 to, barrier, scales;

    DEVICE void values(Box box) const {
        copy_tensor(to, maps, box.column, box.row, barrier, EVICT_FIRST);
        if (DUAL) copy_tensor(to + WEIGHT_BYTES / 2, maps + 2, box.column, box.row, barrier, EVICT_FIRST);
    }

    DEVICE void of_scales(Box box) const {
        copy_tensor(scales, maps + 1, box.column, box.row, barrier, EVICT_FIRST);
        if (DUAL) copy_tensor(scales + SCALE_COPY_BYTES / 2, maps + 3, box.column, box.row, barrier, EVICT_FIRST);
    }
};

DEVICE void load_weights(const Parameter& parameter, u32 ring_base, Control* control, Recorder& recorder) {
    Filling filling;
    // Where the next scales go, and how many units may be in use then: as many as have theirs in the other place.
    u32 scale_place = 0, in_other_place = SLOTS - 1;
    Tile next = worker_tile(parameter, control, 0);
    float2 next_scales = load_scales(parameter, next);
    for (u32 i = 0; next.chunks > 0; i++) {
        Tile tile = next;
        // Written before the tile's first unit is announced; the tile in this entry was finished long ago.
        if (elect()) control->tiles[i % ANNOUNCED] = {tile, {next_scales.x, next_scales.y}};
        // The next tile is loaded early, so that its first unit does not wait for it.
        if (tile.is_last()) next.chunks = 0;
        else next = worker_tile(parameter, control, i + 1);
        u32 width = computed_width(tile.width), bytes = unit_bytes(width);
        const TensorMap* maps = parameter.map_table + 4 * tile.group;
#pragma unroll 1
        for (u32 chunk = tile.first_chunk, last = chunk + tile.chunks; chunk < last; chunk += 2) {
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                bool with_scales = REPACKED || (half == 0 && (chunk - tile.first_chunk) % SCALE_CHUNKS == 0);
                u32 to = filling.acquire(bytes, ring_base, !REPACKED && with_scales ? in_other_place : SLOTS - 1) +
                         token_bytes(width);
                u32 scales = SCALES_AT + (REPACKED ? filling.ring.packed_scales(half) : scale_place);
                WeightCopies copies{maps, to, ring_base + filling.ring.full(half), ring_base + scales};
                if (elect()) {
                    barrier_expect(copies.barrier, bytes + (with_scales ? SCALE_COPY_BYTES : 0));
                    if (with_scales) copies.of_scales(scale_box(parameter, tile, chunk + half));
                    copies.values(value_box(parameter, tile, chunk + half));
                }
                if (with_scales) scale_place ^= SCALE_COPY_BYTES;
            }
            in_other_place = SCALE_CHUNKS;
            filling.ring.next_pair();
            if (chunk == tile.first_chunk) next_scales = load_scales(parameter, next);
        }
        if (tile.chunks % SCALE_CHUNKS != 0) in_other_place = tile.chunks % SCALE_CHUNKS;
        recorder.end(Activity::Load, tile_number(parameter, i));
    }
}

#if REPACKED == 2

// Asks for chunks of a tile's tokens as they lie in memory: 64 values of all of them, then the other 64. Tokens of the
// next group that a tile's last eight columns take only make sums that are not stored.
struct TokenCopies {
    const TensorMap* maps;
    u32 row, column;  // of the tile's first token among all groups', and of the next chunk

    DEVICE TokenCopies(const Parameter& parameter, const Tile& tile)
        : maps(parameter.token_maps),
          row((u32)(SHAPE(tile.group, tokens) / 16) / (SHAPE(tile.group, columns) / 8) + tile.token),
          column(tile.first_chunk * CHUNK) {}

    // The maps, while the launch before still writes tokens.
    DEVICE static void prefetch(const Parameter& parameter) {
        u32 lane = threadIdx.x % 32;
        if (lane < TOKEN_MAPS) prefetch_tensor_map(parameter.token_maps + lane);
    }

    DEVICE void chunk(u32 to, u32 width, u32 barrier) {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 done = 0;
#pragma unroll
            for (u32 map = TOKEN_MAPS; map-- > 0;)
                if (width & 8 << map) {
                    copy_tensor(to + (half * width + done) * 128, maps + map, column + half * 64, row + done, barrier,
                                EVICT_LAST);
                    done += 8 << map;
                }
        }
    }

    DEVICE void next_chunk() { column += CHUNK; }
};

#else

// Asks for chunks of a tile's converted tokens.
struct TokenCopies {
    const u8* from;
    u64 stride;  // of a chunk: 16 million tokens take 4 GiB

    DEVICE TokenCopies(const Parameter& parameter, const Tile& tile)
        : stride((u64)((SHAPE(tile.group, m) + 7) / 8) * ITEM_BYTES) {
        // Each of several groups may fill up its last eight tokens.
        u32 eighth = tile.token / 8 + (ROUTED ? tile.group : 0);
        from =
            parameter.workspace + SHAPE(tile.group, workspace) + tile.first_chunk * stride + (u64)eighth * ITEM_BYTES;
    }

    DEVICE static void prefetch(const Parameter&) {}

    DEVICE void chunk(u32 to, u32 width, u32 barrier) { copy_bulk(to, from, token_bytes(width), barrier, EVICT_LAST); }

    DEVICE void next_chunk() { from += stride; }
};

#endif

DEVICE void load_tokens(const Parameter& parameter, u32 ring_base, const Control* control, Recorder& recorder) {
    Filling filling;
    Tile next = worker_tile(parameter, control, 0);
    TokenCopies::prefetch(parameter);
    // Waits until the launch before is complete, that which converts tokens or, if there is none, any other, and with
    // it all earlier launches, because that launch waited for them. No other warp has to wait: none stores anything
    // before tokens have arrived.
    grid_wait();
    // The next launch, if it begins now, may rely on it that the ends were ready too.
    if (ROUTED && parameter.ends_are_ready) grid_launch_dependents();
    fence_async_global();
    recorder.end(Activity::Wait, NO_TILE);
    for (u32 i = 0; next.chunks > 0; i++) {
        Tile tile = next;
        if (tile.is_last()) next.chunks = 0;
        else next = worker_tile(parameter, control, i + 1);
        u32 width = computed_width(tile.width), bytes = unit_bytes(width);
        TokenCopies copies(parameter, tile);
#pragma unroll 1
        for (u32 chunk = 0; chunk < tile.chunks; chunk += 2) {
#pragma unroll
            for (u32 half = 0; half < 2; half++, copies.next_chunk()) {
                u32 to = filling.acquire(bytes, ring_base);
                if (elect()) copies.chunk(to, width, ring_base + filling.ring.full(half));
            }
            filling.ring.next_pair();
        }
        recorder.end(Activity::Load, tile_number(parameter, i));
    }
}
