// Tokens to fp16, once a call, by the multiplying warps of all blocks together before they begin.
//
// Each token is multiplied with every block of weight rows, so it is converted once and kept in memory (in the second-level
// cache, mostly), in the order in which tiles copy it: [chunk][eight tokens][half a chunk][token][64], swizzled. Eight tokens
// by one chunk are an item, 2 KB. A warp takes four at a time, one after another along K: a quarter of its lanes loads each.
#pragma once
#include "convert.cuh"
#include "swapped_problem.cuh"

constexpr u32 ITEM_BYTES = 2048, ITEMS_AT_ONCE = 4;
constexpr u32 PACKED_BYTES = 8 * (64 + 8);                                          // of an item, with its scales
constexpr u32 STAGING_BYTES = ITEMS_AT_ONCE * (ITEM_BYTES + PACKED_BYTES + 64);     // of a warp, at the end of the ring
static_assert(RING >= 8 * STAGING_BYTES + WIDTH * CHUNK * 2 + WEIGHT_ROWS * CHUNK / 2, "staging leaves no room for the first unit");

// What a lane loads of its item: 16 bytes of every second token, and 8 scales of one.
struct Packed {
    uint4 values[4];
    uint2 scales;
    u8* to;             // where the item belongs; none beyond the last
};

DEVICE Packed load_item(const Parameter& parameter, u32 index) {
    u32 lane = threadIdx.x % 32, group = 0;
    Packed packed{};
    if (index >= parameter.items) return packed;
    while (index >= ITEM_OFFSET(group + 1)) group++;
    index -= ITEM_OFFSET(group);
    u32 m = SHAPE(group, m), k = SHAPE(group, k), block = index / (k / CHUNK), chunk = index - block * (k / CHUNK);
    packed.to = parameter.workspace + SHAPE(group, workspace) + (u64)(chunk * ((m + 7) / 8) + block) * ITEM_BYTES;
    u32 token = block * 8 + lane / 16;
    const u8* from = parameter.tokens + SHAPE(group, tokens) + (u64)token * (k / 2) + chunk * 64 + lane % 4 * 16;
#pragma unroll
    for (u32 i = 0; i < 4; i++, from += k)
        if (token + 2 * i < m) packed.values[i] = *(const uint4*)from;     // not __ldg: the launch before may have written it
    token = block * 8 + lane / 16 * 4 + lane % 4;
    if (token < m)
        packed.scales = *(const uint2*)(parameter.token_scales + SHAPE(group, token_scales) + (u64)token * (k / 16) + chunk * 8);
    return packed;
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
DEVICE void convert_item(u32 from, u32 to) {
    u32 lane = threadIdx.x % 32, token = lane / 2 % 8, word = lane % 2 + lane / 16 * 2;     // eight lanes store to all banks
    uint2 scales = load_shared_8(from + 512 + token * 8);
    u32 lines[4][4];
#pragma unroll
    for (u32 quad = 0; quad < 4; quad++) {
        u32 scale = __byte_perm(quad < 2 ? scales.x : scales.y, 0, (quad % 2 * 2 + word / 2) * 0x11);
        u32 packed = load_shared(from + packed_place(token, quad) + word * 4);
        convert_8(packed, convert_scales((u16)scale), lines[0][quad], lines[1][quad], lines[2][quad], lines[3][quad]);
    }
    to += word / 2 * 1024 + token * 128;
#pragma unroll
    for (u32 line = 0; line < 4; line++)
        store_shared_16(to + ((word % 2 * 4 + line) ^ token) * 16, lines[line][0], lines[line][1], lines[line][2], lines[line][3]);
}

// This warp's share of all items. When it returns, they are in memory and the staging is free.
DEVICE void convert_tokens(const Parameter& parameter, u32 warp, u32 warps, u32 staging) {
    u32 lane = threadIdx.x % 32, mine = lane / 4 % 4, packed_at = staging + ITEMS_AT_ONCE * ITEM_BYTES;
    bool stores = lane % 4 == 0 && lane < 16;       // each item's bytes leave by one of the lanes that loaded it
    u32 first = warp * ITEMS_AT_ONCE;
    Packed packed = load_item(parameter, first + mine);
    while (first < parameter.items) {
        u8* to = packed.to;
        stage_packed(packed, packed_at);
        first += warps * ITEMS_AT_ONCE;
        if (first < parameter.items) packed = load_item(parameter, first + mine);
        if (stores) store_bulk_wait_read<0>();
        __syncwarp();
#pragma unroll
        for (u32 item = 0; item < ITEMS_AT_ONCE; item++) convert_item(packed_at + item * PACKED_BYTES, staging + item * ITEM_BYTES);
        fence_async();
        __syncwarp();
        if (stores && to) store_bulk(to, staging + mine * ITEM_BYTES, ITEM_BYTES);
        store_bulk_commit();
    }
    store_bulk_wait<0>();
}

DEVICE void wait_for_tokens(const Parameter& parameter) {
    u32 arrived;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(parameter.counters) : "memory");
    while (arrived < parameter.converters);
    __syncwarp();           // one lane may go on to make the counter zero again
    asm volatile("fence.proxy.async.global;" ::: "memory");     // the copy engine reads what others wrote
}
