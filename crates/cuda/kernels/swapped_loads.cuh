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

// Sixteen bytes of a row, or the 128 of sixteen rows.
DEVICE Box scale_box(const Parameter& parameter, const Tile& tile, u32 chunk) {
    if (REPACKED) return {0, sixteens(parameter, tile, chunk)};
    return {chunk * 8, tile.row};
}

DEVICE void load_weights(const Parameter& parameter, u32 ring_base, Control* control, Recorder& recorder) {
    u32 full = shared_address(control->full), empty = shared_address(control->empty), ends = shared_address(control->weight_ends);
    Filling filling;
    const Tile* tiles = first_tile(parameter);
    Tile next = load_tile(tiles);
    float2 next_scales = load_scales(parameter, next);
    for (u32 i = 0; next.chunks > 0; i++) {
        Tile tile = next;
        Announced announced{tile, {next_scales.x, next_scales.y}};
        // The next tile is asked for early, so that its first unit does not wait for it.
        if (tile.is_last()) next.chunks = 0;
        else next = load_tile(tiles + i + 1);
        u32 width = computed_width(tile.width), bytes = unit_bytes(width);
        const TensorMap* maps = parameter.map_table + 4 * tile.group;
#pragma unroll 1
        for (u32 chunk = tile.first_chunk, last = chunk + tile.chunks; chunk < last; chunk++) {
            if (chunk == tile.first_chunk + 1) next_scales = load_scales(parameter, next);
            filling.acquire(bytes, empty, ends);
            u32 barrier = full + 8 * filling.ring.slot(), scales = ring_base + filling.ring.scales();
            u32 to = ring_base + filling.ring.begin(bytes) + token_bytes(width);
            if (elect()) {
                bool with_scales = chunk % CHUNKS_OF_SCALES == 0;
                Box values = value_box(parameter, tile, chunk), of_scales = scale_box(parameter, tile, chunk);
                if (chunk == tile.first_chunk) control->tiles[i % ANNOUNCED] = announced;
                barrier_expect(barrier, bytes + (with_scales ? SCALE_BYTES : 0));
                if (with_scales) {
                    copy_tensor(scales, maps + 1, of_scales.column, of_scales.row, barrier, EVICT_FIRST);
                    if (DUAL) copy_tensor(scales + SCALE_BYTES / 2, maps + 3, of_scales.column, of_scales.row, barrier, EVICT_FIRST);
                }
                copy_tensor(to, maps, values.column, values.row, barrier, EVICT_FIRST);
                if (DUAL) copy_tensor(to + WEIGHT_BYTES / 2, maps + 2, values.column, values.row, barrier, EVICT_FIRST);
            }
            filling.ring.advance(bytes);
        }
        recorder.end(Activity::Load, tiles + i - parameter.tiles);
    }
}

DEVICE void load_tokens(const Parameter& parameter, u32 ring_base, Control* control, Recorder& recorder) {
    u32 full = shared_address(control->full), empty = shared_address(control->empty), ends = shared_address(control->token_ends);
    Filling filling;
    const Tile* tiles = first_tile(parameter);
    Tile next = load_tile(tiles);
    // Until the launch that converts tokens is complete, and since that waited itself, all before it. No other warp has to
    // wait: none stores anything before tokens have come.
    grid_wait();
    fence_async_global();
    recorder.end(Activity::Wait, NO_TILE);
    for (u32 i = 0; next.chunks > 0; i++) {
        Tile tile = next;
        if (tile.is_last()) next.chunks = 0;
        else next = load_tile(tiles + i + 1);
        u32 width = computed_width(tile.width), bytes = unit_bytes(width), blocks = (SHAPE(tile.group, m) + 7) / 8;
        const u8* from = parameter.workspace + SHAPE(tile.group, workspace) + (u64)(tile.first_chunk * blocks + tile.token / 8) * ITEM_BYTES;
#pragma unroll 1
        for (u32 chunk = 0; chunk < tile.chunks; chunk++, from += (u64)blocks * ITEM_BYTES) {
            filling.acquire(bytes, empty, ends);
            u32 to = ring_base + filling.ring.begin(bytes);
            if (elect()) copy_bulk(to, from, token_bytes(width), full + 8 * filling.ring.slot(), EVICT_LAST);
            filling.ring.advance(bytes);
        }
        recorder.end(Activity::Load, tiles + i - parameter.tiles);
    }
}
