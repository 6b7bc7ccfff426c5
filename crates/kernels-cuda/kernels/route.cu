// Plans a call of the swapped kernel on the device, from the ends of each group's tokens: the first of three launches, before
// tokens.cu and swapped.cu. One block. It writes the groups with their sizes and places, where their items of conversion
// begin, and the token tiles, the widest first, because the swapped kernel takes them in that order.
//
// Ends that decrease count as those before them, and ends beyond the tokens as their number, so whatever they are, nothing
// is written outside the workspace.
//
// WIDTH, the most tokens of a tile, is its one definition.
#include "ptx.cuh"
#include "swapped_problem.cuh"

// The other half is src/plan/swapped/abi.rs.
struct RouteParameter {
    const int* ends;                // of each group's tokens, counted over all groups
    const Group* layer;             // the groups without their tokens
    Group* groups;
    u32* items;                     // [group_count + 2]: where each group's begin, their number, and that of the token tiles
    TokenTile* tiles;
    u32 group_count;
    u32 tokens;                     // rows that there are, of all groups
    u32 token_bytes, scale_bytes;   // of a row of tokens
};

constexpr u32 THREADS = 1024, ALL = ~0u;
constexpr u32 WIDTHS = WIDTH / 8;       // of tiles, in steps of eight tokens: a warp deals out those of one width
static_assert(WIDTHS <= THREADS / 32, "a width has no warp");

// The sum over this lane and those before it.
DEVICE u32 sum_up_to(u32 value) {
#pragma unroll
    for (u32 distance = 1; distance < 32; distance *= 2) {
        u32 before = __shfl_up_sync(ALL, value, distance);
        if (threadIdx.x % 32 >= distance) value += before;
    }
    return value;
}

DEVICE u32 largest_up_to(u32 value) {
#pragma unroll
    for (u32 distance = 1; distance < 32; distance *= 2) {
        u32 before = __shfl_up_sync(ALL, value, distance);
        if (threadIdx.x % 32 >= distance) value = max(value, before);
    }
    return value;
}

// Writes the groups and where their items begin; for one warp.
DEVICE void place_groups(const RouteParameter& parameter) {
    u32 lane = threadIdx.x % 32, tokens_before = 0, eighths_before = 0, chunks = 0;
    for (u32 first = 0; first < parameter.group_count; first += 32) {
        u32 index = first + lane;
        bool exists = index < parameter.group_count;
        int given = exists ? parameter.ends[index] : 0;
        u32 end = max(tokens_before, largest_up_to(given < 0 ? 0 : min((u32)given, parameter.tokens)));
        u32 begin = __shfl_up_sync(ALL, end, 1);
        if (lane == 0) begin = tokens_before;
        u32 m = end - begin, eighths = (m + 7) / 8, eighths_end = eighths_before + sum_up_to(eighths);
        if (exists) {
            Group group = parameter.layer[index];
            chunks = group.k / CHUNK;
            group.tokens = (u64)begin * parameter.token_bytes;
            group.token_scales = (u64)begin * parameter.scale_bytes;
            group.output = (u64)begin * group.n;
            group.workspace = (u64)(eighths_end - eighths) * chunks * ITEM_BYTES;
            group.m = m;
            parameter.groups[index] = group;
            parameter.items[index] = (eighths_end - eighths) * chunks;
        }
        tokens_before = __shfl_sync(ALL, end, 31);
        eighths_before = __shfl_sync(ALL, eighths_end, 31);
    }
    if (lane == 0) parameter.items[parameter.group_count] = eighths_before * chunks;
}

// A group's tokens in as few tiles as possible, as even as possible in steps of eight tokens, the wider ones first; the host
// cuts them in the same way (src/plan/swapped/work.rs).
struct Cut {
    u32 m, parts, narrow, wider;    // narrow: of the narrower ones, in steps; wider: how many have a step more

    DEVICE Cut(u32 m) : m(m), parts((m + WIDTH - 1) / WIDTH), narrow(0), wider(0) {
        if (parts == 0) return;
        u32 eighths = (m + 7) / 8;
        narrow = eighths / parts;
        wider = eighths % parts;
    }

    // How many tiles have this width.
    DEVICE u32 count(u32 width) const {
        return (width == narrow + 1 ? wider : 0) + (width == narrow ? parts - wider : 0);
    }

    // The first token of one of them.
    DEVICE u32 token(u32 width, u32 number) const {
        return 8 * (width == narrow ? wider * (narrow + 1) + number * narrow : number * (narrow + 1));
    }
};

// Calls `work` with each lane's group, its cut, and how many tiles of this width precede it; returns how many there are. For
// one warp.
template <typename Work>
DEVICE u32 for_each_group(const RouteParameter& parameter, u32 width, Work work) {
    u32 before = 0;
    for (u32 first = 0; first < parameter.group_count; first += 32) {
        u32 index = first + threadIdx.x % 32;
        Cut cut(index < parameter.group_count ? parameter.groups[index].m : 0);
        u32 count = cut.count(width), end = before + sum_up_to(count);
        work(index, cut, end - count);
        before = __shfl_sync(ALL, end, 31);
    }
    return before;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) route(const __grid_constant__ RouteParameter parameter) {
    __shared__ u32 counts[WIDTHS];      // of tiles of each width, the narrowest first
    grid_launch_dependents();
    grid_wait();        // the previous call may still read what this one writes, and an earlier launch writes the ends
    u32 warp = threadIdx.x / 32, width = warp + 1;
    if (warp == 0) place_groups(parameter);
    __syncthreads();
    if (warp < WIDTHS) {
        u32 count = for_each_group(parameter, width, [](u32, const Cut&, u32) {});
        if (threadIdx.x % 32 == 0) counts[warp] = count;
    }
    __syncthreads();
    if (warp >= WIDTHS) return;
    u32 wider = 0;
    for (u32 other = width; other < WIDTHS; other++) wider += counts[other];
    u32 count = for_each_group(parameter, width, [&](u32 group, const Cut& cut, u32 before) {
        for (u32 number = 0; number < cut.count(width); number++) {
            u32 token = cut.token(width, number);
            parameter.tiles[wider + before + number] = {group, token, min(cut.m - token, 8 * width), 0};
        }
    });
    if (warp == 0 && threadIdx.x == 0) parameter.items[parameter.group_count + 1] = wider + count;
}
