// Tokens to fp16, by the multiplying warps before they begin.
//
// Each token is multiplied with every block of weight rows, so it is converted once a call, by all blocks together, and kept
// in memory (in the second-level cache, mostly), in the order in which tiles copy it: [chunk][eight tokens][half a chunk]
// [token][64], swizzled. Eight tokens by one chunk are an item, 2 KB. A warp takes up to four at a time, one after another
// along K: a quarter of its lanes loads each.
//
// Until all have come together again and the first copy is there, microseconds pass. A block fills them with its own first
// units, whose tokens it converts once more, right into the ring.
#pragma once
#include "convert.cuh"
#include "swapped_ring.cuh"

constexpr u32 CONSUMER_THREADS = 256, CONSUMER_WARPS = 8;
constexpr u32 ITEM_BYTES = 2048, ITEMS_AT_ONCE = 4;
constexpr u32 PACKED_BYTES = 8 * (64 + 8);      // of an item, with its scales
constexpr u32 OWN_ITEMS = ITEMS_AT_ONCE * CONSUMER_WARPS;   // that a block converts for itself, at most: four a warp
static_assert(RING >= CONSUMER_WARPS * ITEMS_AT_ONCE * (ITEM_BYTES + PACKED_BYTES) + unit_bytes(WIDTH),
              "staging leaves no room for the first unit");
static_assert(OWN_ITEMS >= WIDTH / 8, "a block cannot convert its first unit");

// How a block begins: all its roles come to the same.
struct Start {
    u32 at_once;        // items of all that a warp converts at a time: no warp has two while another has none
    u32 units;          // whose tokens the block converts itself
    u32 staging;        // bytes of a warp, at the end of the ring, behind these units

    DEVICE Start(const Parameter& parameter, const Tile& first) {
        u32 warps = CONSUMER_WARPS * parameter.converters;
        at_once = 1 + (parameter.items > warps) + (parameter.items > 2 * warps) + (parameter.items > 3 * warps);
        staging = ITEMS_AT_ONCE * PACKED_BYTES + at_once * ITEM_BYTES;
        u32 width = computed_width(first.width), room = RING - CONSUMER_WARPS * staging;
        units = first.chunks == 0 ? 0 : min(min(first.chunks, SLOTS), min(room / unit_bytes(width), OWN_ITEMS / (width / 8)));
    }
};

// What a lane loads of its item: 16 bytes of every second token, and 8 scales of one.
struct Packed {
    uint4 values[4];
    uint2 scales;
};

// Where a lane finds its part of an item. It is looked for while the launch before still computes: sizes come from memory.
struct Place {
    const u8* values;
    const u8* scales;
    u32 stride;         // bytes between two tokens of the lane's
    u32 tokens;         // of the lane's four that are there
    bool scaled;        // whether the token of its scales is
    u8* to;             // where the item belongs in memory; none beyond the last, and of the block's own

    DEVICE Place() : tokens(0), scaled(false), to(nullptr) {}

    DEVICE Place(const Parameter& parameter, u32 group, u32 block, u32 chunk) : to(nullptr) {
        u32 lane = threadIdx.x % 32, m = SHAPE(group, m), k = SHAPE(group, k);
        u32 token = block * 8 + lane / 16, scales_token = block * 8 + lane / 16 * 4 + lane % 4;
        values = parameter.tokens + SHAPE(group, tokens) + (u64)token * (k / 2) + chunk * 64 + lane % 4 * 16;
        scales = parameter.token_scales + SHAPE(group, token_scales) + (u64)scales_token * (k / 16) + chunk * 8;
        stride = k;
        tokens = token < m ? (m - token + 1) / 2 : 0;
        scaled = scales_token < m;
    }

    // Not by __ldg: the launch before may have written it.
    DEVICE Packed load() const {
        Packed packed{};
#pragma unroll
        for (u32 i = 0; i < 4; i++)
            if (i < tokens) packed.values[i] = *(const uint4*)(values + (u64)i * stride);
        if (scaled) packed.scales = *(const uint2*)scales;
        return packed;
    }
};

// This lane's of the shared items from `first` on.
DEVICE Place shared_place(const Parameter& parameter, u32 first, u32 at_once) {
    u32 mine = threadIdx.x / 4 % 4, index = first + mine, group = 0;
    if (mine >= at_once || index >= parameter.items) return {};
    while (index >= ITEM_OFFSET(group + 1)) group++;
    index -= ITEM_OFFSET(group);
    u32 chunks = SHAPE(group, k) / CHUNK, block = index / chunks, chunk = index - block * chunks;
    Place place(parameter, group, block, chunk);
    place.to = parameter.workspace + SHAPE(group, workspace) + (u64)(chunk * ((SHAPE(group, m) + 7) / 8) + block) * ITEM_BYTES;
    return place;
}

// Sixteen bytes of a token lie exchanged with those of others, so that lanes of all tokens read from all banks.
DEVICE u32 packed_place(u32 token, u32 quad) {
    return token * 64 + (quad ^ (token / 2 % 4)) * 16;
}

DEVICE void stage_packed(const Packed& packed, u32 staging) {
    u32 lane = threadIdx.x % 32, item = staging + lane / 4 % 4 * PACKED_BYTES;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        uint4 value = packed.values[i];
        store_shared_16(item + packed_place(lane / 16 + 2 * i, lane % 4), value.x, value.y, value.z, value.w);
    }
    store_shared_8(item + 512 + (lane / 16 * 4 + lane % 4) * 8, packed.scales.x, packed.scales.y);
}

// A lane converts the same word of the chunk's four quads for one token: each 16-byte line of the operand holds two values
// of each quad.
DEVICE void convert_item(u32 from, u32 to, bool is_there) {
    u32 lane = threadIdx.x % 32, token = lane / 2 % 8, word = lane % 2 + lane / 16 * 2;     // eight lanes store to all banks
    uint2 scales = load_shared_8(from + 512 + token * 8);
    u32 lines[4][4];
#pragma unroll
    for (u32 quad = 0; quad < 4; quad++) {
        u32 scale = (quad < 2 ? scales.x : scales.y) >> (quad % 2 * 2 + word / 2) * 8;
        u32 packed = load_shared(from + packed_place(token, quad) + word * 4);
        convert_8(packed, convert_scales((u16)scale), false, lines[0][quad], lines[1][quad], lines[2][quad], lines[3][quad]);
    }
    to += word / 2 * 1024 + token * 128;
#pragma unroll
    for (u32 line = 0; line < 4; line++)
        if (is_there) store_shared_16(to + ((word % 2 * 4 + line) ^ token) * 16, lines[line][0], lines[line][1], lines[line][2], lines[line][3]);
}

// This warp's items of the block's own units: four after one another along K, so that lanes together load whole lines.
struct OwnItems {
    u32 group, token_block, first_chunk;
    u32 units, count, first;    // units; items in them; the first of this warp's four
    u32 unit;                   // bytes of a unit

    DEVICE OwnItems(const Tile& tile, const Start& start, u32 warp)
        : group(tile.group),
          token_block(tile.token / 8),
          first_chunk(tile.first_chunk),
          units(start.units),
          count(start.units * ((tile.width + 7) / 8)),
          first(warp * ITEMS_AT_ONCE),
          unit(unit_bytes(computed_width(tile.width))) {}

    // The lane's.
    DEVICE Place place(const Parameter& parameter) const {
        u32 item = first + threadIdx.x / 4 % 4, block = item / units;
        if (item >= count) return {};
        return Place(parameter, group, token_block + block, first_chunk + item - block * units);
    }

    // Side by side: one after another, they would take as long as each waits for itself.
    DEVICE void convert(const Packed& packed, u32 packed_at, u32 ring_base) const {
        if (first >= count) return;
        __syncwarp();       // what was staged here has been read
        stage_packed(packed, packed_at);
        __syncwarp();
#pragma unroll
        for (u32 i = 0; i < ITEMS_AT_ONCE; i++) {
            u32 item = first + i, block = item / units;
            u32 to = ring_base + (item - block * units) * unit + block * ITEM_BYTES;
            convert_item(packed_at + i * PACKED_BYTES, to, item < count);
        }
    }
};

// What a warp converts before it multiplies: its share of all items, then of the block's own.
struct Conversion {
    const Parameter& parameter;
    u32 warp, ring_base, first;
    Start start;
    OwnItems own;
    Place shared, own_place;

    DEVICE Conversion(const Parameter& parameter, const Tile& tile, u32 ring_base)
        : parameter(parameter),
          warp(__shfl_sync(~0u, threadIdx.x / 32, 0)),
          ring_base(ring_base),
          start(parameter, tile),
          own(tile, start, warp) {
        bool shares = blockIdx.x < parameter.converters;
        first = shares ? (warp * parameter.converters + blockIdx.x) * start.at_once : parameter.items;
        shared = shared_place(parameter, first, start.at_once);
        own_place = own.place(parameter);
    }

    // All is loaded before any is converted. When it returns, what is shared is in memory and the staging is free.
    DEVICE void run() {
        u32 lane = threadIdx.x % 32, mine = lane / 4 % 4;
        u32 packed_at = ring_base + RING - (CONSUMER_WARPS - warp) * start.staging;
        u32 staging = packed_at + ITEMS_AT_ONCE * PACKED_BYTES;
        bool stores = lane % 4 == 0 && lane < 16;       // each item's bytes leave by one of the lanes that loaded it
        u32 stride = CONSUMER_WARPS * parameter.converters * start.at_once;
        Packed packed = shared.load(), own_packed = own_place.load();
        while (first < parameter.items) {
            u8* to = shared.to;
            stage_packed(packed, packed_at);
            first += stride;
            if (first < parameter.items) {
                shared = shared_place(parameter, first, start.at_once);
                packed = shared.load();
            }
            if (stores) store_bulk_wait_read<0>();
            __syncwarp();
#pragma unroll 1
            for (u32 pair = 0; pair < start.at_once; pair += 2)
#pragma unroll
                for (u32 item = pair; item < pair + 2; item++)
                    convert_item(packed_at + item * PACKED_BYTES, staging + item * ITEM_BYTES, item < start.at_once);
            fence_async();
            __syncwarp();
            if (stores && to) store_bulk(to, staging + mine * ITEM_BYTES, ITEM_BYTES);
            store_bulk_commit();
        }
        own.convert(own_packed, packed_at, ring_base);
        store_bulk_wait<0>();
        fence_async();
    }
};

// For a producer's warp, once this block's share is in memory.
DEVICE void count_converted(const Parameter& parameter) {
    if (blockIdx.x < parameter.converters && elect()) {
        __threadfence();
        atomicAdd(parameter.counters, 1);
    }
}

DEVICE void wait_for_tokens(const Parameter& parameter) {
    u32 arrived;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(parameter.counters) : "memory");
    while (arrived < parameter.converters);
    __syncwarp();           // one lane may go on to make the counter zero again
    asm volatile("fence.proxy.async.global;" ::: "memory");     // the copy engine reads what others wrote
}
