// Converts NVFP4 tokens to fp16, or reorders 16-bit tokens, in a launch of its own before that of the swapped
// kernel, whose parameter it takes.
//
// Each token is multiplied by every block of weight rows, so it is converted once a call and kept in memory (mostly in
// the second-level cache), in the order in which tiles copy it: [chunk][eight tokens][half a chunk][token][64],
// swizzled. Eight tokens by one chunk are an item; a warp has one at a time.
//
// One block of sixteen warps a multiprocessor: the host requests so much shared memory that no second one fits. A
// launch that may begin before the previous one has ended places its blocks wherever there is room first. Several small
// blocks a multiprocessor would pile up on the few that are free, and leave the others without work (measured on an
// H200: a call of 13.1 µs took 14.9).
//
// FORMAT is 0, or 1 for all 16-bit tokens, so that few variants serve all plans; ROUTED, see swapped_problem.cuh.
#include "format.cuh"
#include "swapped_problem.cuh"

constexpr u32 WARPS = 16;
constexpr u32 SCALES_AT = 8 * CHUNK / 2;
constexpr u32 PACKED_BYTES = HALF ? 8 * CHUNK * 2 : SCALES_AT + 8 * CHUNK / 16;  // of an item, with its scales

// What a lane loads of an item: 32 values of a token, 16 bytes of NVFP4 or four times as much; of NVFP4, the first
// eight lanes also load all scales of one token.
constexpr u32 QUADS = HALF ? 4 : 1;
struct Packed {
    uint4 values[QUADS];
    uint2 scales;
};

// Which tokens of which group an item has, and where it belongs.
struct ItemPlace {
    u32 group, first, m;  // the group's first token: if ROUTED, of all groups' tokens
    u32 block, chunk;
    u64 to;
};

#if ROUTED

// Where the tokens of a group begin among all groups', and its eights of tokens among all groups' eights.
struct GroupBegin {
    u32 token, eighth;
};

// Reads the ends into shared memory, with an entry behind the last group's; for the whole block. Ends are limited as in
// swapped_routed.cuh.
DEVICE void load_groups(const Parameter& parameter, GroupBegin* groups) {
    __shared__ u32 of_warps[2][WARPS];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, before = 0, eighths_before = 0;
    for (u32 first = 0; first < parameter.group_count; first += WARPS * 32) {
        u32 group = first + threadIdx.x;
        int given = group < parameter.group_count ? __ldcg(parameter.ends + group) : 0;
        u32 end = given < 0 ? 0 : min((u32)given, parameter.rows);
#pragma unroll
        for (u32 distance = 1; distance < 32; distance *= 2) {
            u32 other = __shfl_up_sync(~0u, end, distance);
            if (lane >= distance) end = max(end, other);
        }
        if (lane == 31) of_warps[0][warp] = end;
        __syncthreads();
        u32 last = before;
        for (u32 other = 0; other < WARPS; other++) {
            if (other < warp) before = max(before, of_warps[0][other]);
            last = max(last, of_warps[0][other]);
        }
        end = max(end, before);
        u32 begin = __shfl_up_sync(~0u, end, 1);
        if (lane == 0) begin = before;
        u32 own = (end - begin + 7) / 8, eighth = own;
#pragma unroll
        for (u32 distance = 1; distance < 32; distance *= 2) {
            u32 other = __shfl_up_sync(~0u, eighth, distance);
            if (lane >= distance) eighth += other;
        }
        if (lane == 31) of_warps[1][warp] = eighth;
        __syncthreads();
        u32 all = eighths_before;
        for (u32 other = 0; other < WARPS; other++) {
            if (other < warp) eighths_before += of_warps[1][other];
            all += of_warps[1][other];
        }
        if (group < parameter.group_count) {
            groups[group] = {begin, eighths_before + eighth - own};
            if (group + 1 == parameter.group_count) groups[group + 1] = {end, eighths_before + eighth};
        }
        before = last;
        eighths_before = all;
        __syncthreads();
    }
}

DEVICE ItemPlace place_of(const Parameter& parameter, const GroupBegin* groups, u32 index) {
    u32 chunks = parameter.shapes[0].k / CHUNK, eighth = index / chunks, group = 0, passed;
    do {
        u32 next = min(group + threadIdx.x % 32 + 1, parameter.group_count);
        passed = __popc(__ballot_sync(~0u, eighth >= groups[next].eighth));
        group += passed;
    } while (passed == 32);
    u32 begin = groups[group].token, block = eighth - groups[group].eighth, chunk = index - eighth * chunks;
    u64 stride = (parameter.shapes[0].m + 7) / 8;
    return {group, begin, groups[group + 1].token - begin,
            block, chunk, (chunk * stride + begin / 8 + block + group) * ITEM_BYTES};
}

DEVICE u32 item_count(const Parameter& parameter, const GroupBegin* groups) {
    return groups[parameter.group_count].eighth * (parameter.shapes[0].k / CHUNK);
}

#else

struct GroupBegin {};

DEVICE ItemPlace place_of(const Parameter& parameter, const GroupBegin*, u32 index) {
    u32 group = 0;
    while (index >= ITEM_OFFSET(group + 1)) group++;
    index -= ITEM_OFFSET(group);
    u32 m = SHAPE(group, m), chunks = SHAPE(group, k) / CHUNK, block = index / chunks, chunk = index - block * chunks;
    return {group, 0, m, block, chunk, SHAPE(group, workspace) + (u64)(chunk * ((m + 7) / 8) + block) * ITEM_BYTES};
}

DEVICE u32 item_count(const Parameter& parameter, const GroupBegin*) { return parameter.items; }

#endif

// Where a lane finds its part of an item, and where the item belongs.
struct Item {
    const u8* values;
    const u8* scales;
    bool has_values, has_scales;  // beyond the group's last token there are none
    u32 sixteens;  // how many sixteens of the lane's 32 values the row has: rows of 16-bit tokens are not padded
    u8* to;

    DEVICE Item(const Parameter& parameter, const GroupBegin* groups, u32 index) {
        ItemPlace place = place_of(parameter, groups, index);
        u32 lane = threadIdx.x % 32, group = place.group, m = place.m, k = SHAPE(group, k), block = place.block,
            chunk = place.chunk;
        u32 token = block * 8 + lane / 4, scales_token = block * 8 + lane % 8;
        u32 columns = SHAPE(group, columns), column = chunk * CHUNK + lane % 4 * 32;
        values = parameter.tokens + SHAPE(group, tokens) +
                 ((u64)(place.first + token) * columns + column) * (HALF ? 4 : 1) / 2;
        sixteens = column + 16 < columns ? 2 : column < columns;
        scales = parameter.token_scales + SHAPE(group, token_scales) + (u64)(place.first + scales_token) * (k / 16) +
                 chunk * 8;
        has_values = token < m && sixteens > 0;
        has_scales = !HALF && lane < 8 && scales_token < m;
        to = parameter.workspace + place.to;
    }

    // Prefetches into the second-level cache while the previous launch still computes; that launch's writes also arrive
    // there.
    DEVICE void prefetch() const {
        if (has_values) prefetch_level_2(values);
        if (has_scales) prefetch_level_2(scales);
    }

    // Not by __ldg: the previous launch may have written it.
    DEVICE Packed load() const {
        Packed packed{};
        if (has_values)
#pragma unroll
            for (u32 i = 0; i < QUADS; i++)
                if (i / 2 < sixteens) packed.values[i] = ((const uint4*)values)[i];
        if (has_scales) packed.scales = *(const uint2*)scales;
        return packed;
    }
};

// Puts four lines of the operand where the swapped kernel's products read them.
DEVICE void store_lines(u32 to, u32 token, u32 word, const u32 (&lines)[4][4]) {
    to += word / 2 * 1024 + token * 128;
#pragma unroll
    for (u32 line = 0; line < 4; line++)
        store_shared_16(to + ((word % 2 * 4 + line) ^ token) * 16, lines[line][0], lines[line][1], lines[line][2],
                        lines[line][3]);
}

#if FORMAT

// A token has sixteen lines of 16 bytes, exchanged with those of others so that lanes of all tokens use all banks.
DEVICE u32 packed_place(u32 token, u32 line) { return token * 256 + (line ^ token) * 16; }

DEVICE void stage_packed(const Packed& packed, u32 to) {
    u32 lane = threadIdx.x % 32;
#pragma unroll
    for (u32 i = 0; i < QUADS; i++) {
        const uint4& values = packed.values[i];
        store_shared_16(to + packed_place(lane / 4, lane % 4 * 4 + i), values.x, values.y, values.z, values.w);
    }
}

// The order is that of `convert_8`: values 8 · `word` + i and + 4 of each quad are neighbours in line i.
DEVICE void convert_item(u32 from, u32 to) {
    u32 lane = threadIdx.x % 32, token = lane / 2 % 8, word = lane % 2 + lane / 16 * 2;
    u32 lines[4][4];
#pragma unroll
    for (u32 quad = 0; quad < 4; quad++) {
        uint4 values = load_shared_16(from + packed_place(token, quad * 4 + word));
        pair_8(values, lines[0][quad], lines[1][quad], lines[2][quad], lines[3][quad]);
    }
    store_lines(to, token, word, lines);
}

#else

// Sixteen bytes of a token lie exchanged with those of others, so that lanes of all tokens read from all banks.
DEVICE u32 packed_place(u32 token, u32 quad) { return token * 64 + (quad ^ (token / 2 % 4)) * 16; }

DEVICE void stage_packed(const Packed& packed, u32 to) {
    u32 lane = threadIdx.x % 32;
    const uint4& values = packed.values[0];
    store_shared_16(to + packed_place(lane / 4, lane % 4), values.x, values.y, values.z, values.w);
    if (lane < 8) store_shared_8(to + SCALES_AT + lane * 8, packed.scales.x, packed.scales.y);
}

// A lane converts the same word of the chunk's four quads for one token: each 16-byte line of the operand holds two
// values of each quad.
DEVICE void convert_item(u32 from, u32 to) {
    // Eight lanes store to all banks.
    u32 lane = threadIdx.x % 32, token = lane / 2 % 8, word = lane % 2 + lane / 16 * 2;
    uint2 scales = load_shared_8(from + SCALES_AT + token * 8);
    u32 lines[4][4];
#pragma unroll
    for (u32 quad = 0; quad < 4; quad++) {
        u32 scale = (quad < 2 ? scales.x : scales.y) >> (quad % 2 * 2 + word / 2) * 8;
        u32 packed = load_shared(from + packed_place(token, quad) + word * 4);
        convert_8(packed, convert_scales((u16)scale), false, lines[0][quad], lines[1][quad], lines[2][quad],
                  lines[3][quad]);
    }
    store_lines(to, token, word, lines);
}

#endif

// In whole lines.
DEVICE void store_item(u8* to, u32 from) {
#pragma unroll
    for (u32 i = 0; i < ITEM_BYTES / 512; i++) {
        u32 at = i * 512 + threadIdx.x % 32 * 16;
        *(uint4*)(to + at) = load_shared_16(from + at);
    }
}

extern "C" __global__ void __launch_bounds__(WARPS * 32, 1) tokens(const __grid_constant__ Parameter parameter) {
    extern __shared__ __align__(16) u8 memory[];
    Recorder recorder;
    GroupBegin* groups = (GroupBegin*)(memory + WARPS * (PACKED_BYTES + ITEM_BYTES));
#if ROUTED
    // An earlier launch writes the ends. The next one relies on it that they are there.
    grid_wait();
    grid_launch_dependents();
    load_groups(parameter, groups);
#else
    grid_launch_dependents();
#endif
    u32 warp = threadIdx.x / 32, index = warp * gridDim.x + blockIdx.x, items = item_count(parameter, groups);
    if (index >= items) return;
    u32 packed = shared_address(memory) + warp * (PACKED_BYTES + ITEM_BYTES), converted = packed + PACKED_BYTES;
    // Located while the previous launch still computes: sizes may come from memory.
    Item item(parameter, groups, index);
    item.prefetch();
    // Each warp that reads tokens or writes the workspace waits: the previous call may still write the tokens and read
    // the workspace.
    grid_wait();
    recorder.begin(Role::Everyone, 0, threadIdx.x == 0);
    while (true) {
        stage_packed(item.load(), packed);
        __syncwarp();
        convert_item(packed, converted);
        __syncwarp();
        store_item(item.to, converted);
        index += gridDim.x * WARPS;
        if (index >= items) break;
        item = Item(parameter, groups, index);
    }
    recorder.end(Activity::Convert, NO_TILE);
}
