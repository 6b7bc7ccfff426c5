// With ROUTED 1 the host knows neither the tokens of each group nor, therefore, the tiles: each block plans the call
// for itself, from the ends of the groups' tokens, and keeps its own share. All blocks compute the same plan, so they
// agree without a word.
//
// Token tiles are sorted by falling width, because the kernel's code goes from wide to narrow tiles. Whole tiles are
// dealt out in rounds, every other one backwards. What remains after the last full round, or the one before it, may be
// cut into spans of equal work, so that a span begins and ends within the depth of a tile. The quickest of these plans
// by the host's costs is taken.
//
// A plan is made before the launch before is waited for, with the ends as they are then, and again if they have changed
// since. Ends that decrease count as those before them, and ends beyond the rows as their number, so whatever they are,
// nothing outside of the call's memory is read or written.
#pragma once
#include "swapped_ring.cuh"
#if ROUTED

constexpr u32 PLANNERS = CONSUMER_THREADS + 128, PLANNER_WARPS = PLANNERS / 32, ALL = ~0u;
constexpr u32 EIGHTHS = WIDTH / 8;  // widths of tiles, in steps of eight tokens
// Ways to leave tiles for spans, each with two ways to round spans; half of the threads plan each of the former.
constexpr u32 REMAINDERS = 2, SPLITS = 2 * REMAINDERS, TEAM = PLANNERS / 2, TEAM_WARPS = PLANNER_WARPS / 2;
static_assert(EIGHTHS <= 32, "a width has no lane");

// What a tile costs, in the host's units: whole; a part besides its chunks; two chunks; a part for each part beyond
// two.
struct Cost {
    u32 whole, part, pair, further;
};

// Tokens that tiles of all blocks of weight rows share, and the work of all tiles before them.
struct TokenTile {
    u32 group, token, width, before;
};

struct GroupPlace {
    u32 begin, m;
    u32 before_narrow, before_wider;  // tiles of the same width of groups before this one among 32
};

// A group's tokens in as few tiles as possible, as even as possible in steps of eight tokens, the wider ones first; the
// host cuts them in the same way (src/plan/swapped/work.rs).
struct Cut {
    u32 parts, narrow, wider;  // narrow: of the narrower ones, in steps; wider: how many have a step more

    DEVICE Cut(u32 m) : parts((m + WIDTH - 1) / WIDTH), narrow(0), wider(0) {
        if (parts == 0) return;
        u32 eighths = (m + 7) / 8;
        narrow = parts == 1 ? eighths : eighths / parts;
        wider = eighths - narrow * parts;
    }
};

// A place among all tiles, in the order of their token tiles: a tile, and a pair of chunks of it.
struct Bound {
    u32 tile, pair;

    DEVICE bool operator==(const Bound& other) const { return tile == other.tile && pair == other.pair; }
    DEVICE bool is_within(u32 other) const { return tile == other && pair > 0; }
};

// What planning keeps in the memory of the ring, before anything is copied there. The other half is
// src/plan/swapped/routed.rs.
struct Scratch {
    Cost* costs;         // [EIGHTHS + 1], by the eighths of a tile
    u32* of_warps;       // [PLANNER_WARPS]
    u32* makespans;      // [1 + SPLITS]
    Bound* bounds;       // [SPLITS][workers + 1]
    GroupPlace* groups;  // [groups]
    u32* counts;         // [groups / 32][32], of tiles of each width; then the first of them
    TokenTile* tiles;    // and an empty one at the end

    DEVICE Scratch(u8* memory, u32 groups_there, u32 workers) {
        costs = (Cost*)memory;
        of_warps = (u32*)(costs + 33);
        makespans = of_warps + 16;
        bounds = (Bound*)(makespans + 8);
        groups = (GroupPlace*)(((u64)(bounds + SPLITS * (workers + 1)) + 15) / 16 * 16);
        counts = (u32*)(groups + groups_there);
        tiles = (TokenTile*)(counts + (groups_there + 31) / 32 * 32);
    }
};

// The sum or the largest over the threads before this one and this one, of as many warps as plan together.
template <bool LARGEST, u32 WARPS>
DEVICE u32 scanned(u32 value, u32* of_warps, u32& all) {
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (u32 distance = 1; distance < 32; distance *= 2) {
        u32 before = __shfl_up_sync(ALL, value, distance);
        if (lane >= distance) value = LARGEST ? max(value, before) : value + before;
    }
    if (lane == 31) of_warps[warp] = value;
    __syncthreads();
    u32 before = 0, first = warp / WARPS * WARPS;
    all = 0;
#pragma unroll
    for (u32 other = 0; other < WARPS; other++) {
        u32 own = of_warps[first + other];
        if (first + other < warp) before = LARGEST ? max(before, own) : before + own;
        all = LARGEST ? max(all, own) : all + own;
    }
    __syncthreads();
    return LARGEST ? max(value, before) : value + before;
}

// Of the lanes of a warp that have the same key below 32 as this one: the sum of the counts before it, and of all.
DEVICE void sum_by_key(u32 key, u32 count, u32& before, u32& all) {
    u32 lane = threadIdx.x % 32, there = __ballot_sync(ALL, count > 0), lanes = there;
    before = all = 0;
    if (there == 0) return;
#pragma unroll
    for (u32 bit = 0; bit < 5; bit++) {
        u32 set = __ballot_sync(ALL, key >> bit & 1);
        lanes &= key >> bit & 1 ? set : ~set;
    }
    if (__any_sync(ALL, count > 1)) {
#pragma unroll 1
        for (u32 rest = there; rest != 0; rest &= rest - 1) {
            u32 other = __popc(~rest & (rest - 1)), own = __shfl_sync(ALL, count, other);
            if (lanes >> other & 1) {
                all += own;
                if (other < lane) before += own;
            }
        }
        return;
    }
    all = __popc(lanes);
    before = __popc(lanes & ((1u << lane) - 1));
}

// Most loops are not unrolled: a block reads this code once a call, and with 72 KB of it a plan took 7.5 us
// (docs/notebook/cuda-tried.md).
struct Planner {
    const Parameter& parameter;
    const Scratch scratch;
    u32 workers, blocks, pairs, reciprocal;
    u32 token_tiles, tiles, full, all_work;  // full: rounds in which every worker has a whole tile

    DEVICE Planner(const Parameter& parameter, u8* memory)
        : parameter(parameter),
          scratch(memory, parameter.group_count, gridDim.x),
          workers(gridDim.x),
          blocks(parameter.weight_blocks),
          pairs(parameter.shapes[0].k / CHUNK / 2),
          reciprocal(ALL / parameter.weight_blocks) {}

    // A tile's token tile: a division by the blocks takes three times as long. There are fewer than 2^31 tiles.
    DEVICE u32 token_tile_of(u32 tile) const {
        u32 found = __umulhi(tile, reciprocal);
        return found + (tile - found * blocks >= blocks);
    }

    DEVICE const Cost& cost_of(u32 token_tile) const {
        return scratch.costs[(scratch.tiles[token_tile].width + 7) / 8];
    }

    DEVICE u32 work_before(u32 tile) const {
        u32 of_tokens = token_tile_of(tile), rest = tile - of_tokens * blocks;
        return scratch.tiles[of_tokens].before + (rest == 0 ? 0 : rest * cost_of(of_tokens).whole);
    }

    // Which tile a worker has in a round.
    DEVICE u32 in_round(u32 round, u32 worker) const {
        return round * workers + (round % 2 ? workers - 1 - worker : worker);
    }

    // Cuts the groups and sorts their token tiles.
    DEVICE void sort_tiles() {
        u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, group_count = parameter.group_count, before = 0;
#pragma unroll 1
        for (u32 first = 0; first < group_count; first += PLANNERS) {
            u32 group = first + threadIdx.x, all;
            int given = group < group_count ? __ldcg(parameter.ends + group) : 0;
            if (group <= EIGHTHS) scratch.costs[group] = ((const Cost*)parameter.costs)[group];
            u32 end = given < 0 ? 0 : min((u32)given, parameter.rows);
            end = max(before, scanned<true, PLANNER_WARPS>(end, scratch.of_warps, all));
            // The end before it; the lane before has it, but for the first.
            u32 begin = __shfl_up_sync(ALL, end, 1);
            if (lane == 31) scratch.of_warps[warp] = end;
            __syncthreads();
            if (lane == 0) begin = warp == 0 ? before : scratch.of_warps[warp - 1];
            before = max(before, all);
            u32 m = group < group_count ? end - begin : 0;
            Cut cut(m);
            if (first + warp * 32 < group_count) {
                u32 *counts = scratch.counts + (first + warp * 32), key = cut.narrow - 1, count = cut.parts - cut.wider;
                u32 places[2];
                counts[lane] = 0;
                // Of one width, those of groups that are cut into narrower tiles too come behind those of other groups.
#pragma unroll
                for (u32 which = 0; which < 2; which++) {
                    u32 own, all_own, earlier = 0;
                    sum_by_key(key & 31, count, own, all_own);
                    __syncwarp();
                    if (count > 0) earlier = counts[key & 31];
                    __syncwarp();
                    // Of the lanes with one key the first adds for all.
                    if (count > 0 && own == 0) counts[key & 31] = earlier + all_own;
                    places[which] = earlier + own;
                    key = cut.narrow, count = cut.wider;
                }
                if (group < group_count) scratch.groups[group] = {begin, m, places[0], places[1]};
            }
            __syncthreads();
        }
        if (warp == 0) {
            u32 total = 0, groups = (group_count + 31) / 32;
#pragma unroll 1
            for (u32 i = 0; i < groups; i++) total += scratch.counts[i * 32 + lane];
            // Wider ones come before.
            u32 first = total;
#pragma unroll
            for (u32 distance = 1; distance < 32; distance *= 2) {
                u32 wider = __shfl_down_sync(ALL, first, distance);
                if (lane + distance < 32) first += wider;
            }
            if (lane == 0) scratch.of_warps[0] = first;
            first -= total;
#pragma unroll 1
            for (u32 i = 0; i < groups; i++) {
                u32 own = scratch.counts[i * 32 + lane];
                scratch.counts[i * 32 + lane] = first;
                first += own;
            }
        }
        if (threadIdx.x <= SPLITS) scratch.makespans[threadIdx.x] = 0;
        __syncthreads();
        token_tiles = scratch.of_warps[0];
        tiles = token_tiles * blocks;
        full = tiles / workers;
#pragma unroll 1
        for (u32 group = threadIdx.x; group < group_count; group += PLANNERS) {
            GroupPlace place = scratch.groups[group];
            Cut cut(place.m);
            const u32* firsts = scratch.counts + group / 32 * 32;
            u32 token = 0;
#pragma unroll 1
            for (u32 part = 0; part < cut.parts; part++) {
                bool is_wider = part < cut.wider;
                u32 width = 8 * (cut.narrow + is_wider);
                u32 at = is_wider ? firsts[cut.narrow & 31] + place.before_wider + part
                                  : firsts[cut.narrow - 1] + place.before_narrow + part - cut.wider;
                scratch.tiles[at] = {group, place.begin + token, min(place.m - token, width), 0};
                token += width;
            }
        }
        __syncthreads();
        u32 sum = 0;
#pragma unroll 1
        for (u32 first = 0; first < token_tiles; first += PLANNERS) {
            u32 index = first + threadIdx.x, all, own = index < token_tiles ? blocks * cost_of(index).whole : 0;
            u32 end = scanned<false, PLANNER_WARPS>(own, scratch.of_warps, all);
            if (index < token_tiles) scratch.tiles[index].before = sum + end - own;
            sum += all;
        }
        all_work = sum;
        if (threadIdx.x == 0) scratch.tiles[token_tiles] = {0, 0, 0, sum};
        __syncthreads();
    }

    // Where spans begin after so much work. They are rounded to whole tiles where a part would cost more than it saves,
    // or, if `coarse`, wherever that moves a worker by less than half a span.
    DEVICE void bound(Bound* bounds, u32 at, u32 span) const {
        u32 low = 0, high = token_tiles;
#pragma unroll 1
        while (high - low > 1) {
            u32 middle = (low + high) / 2;
            if (scratch.tiles[middle].before <= at) low = middle;
            else high = middle;
        }
        Cost cost = cost_of(low);
        u32 within = at - scratch.tiles[low].before, tile = within / cost.whole;
        within -= tile * cost.whole;
        tile += low * blocks;
        u32 pair = min((u32)((float)within * (float)pairs / (float)cost.whole), pairs - 1);
#pragma unroll
        for (u32 coarse = 0; coarse < 2; coarse++) {
            u32 rounding = min(coarse ? span : 2 * cost.part, cost.whole) / 2;
            Bound found{tile, within <= rounding ? 0 : pair};
            if (within > rounding && cost.whole - within <= rounding) found = {tile + 1, 0};
            bounds[coarse * (workers + 1)] = found;
        }
    }

    DEVICE u32 part_cost(u32 tile, u32 from, u32 to, u32 further) const {
        Cost cost = cost_of(token_tile_of(tile));
        return from == 0 && to == pairs ? cost.whole : cost.part + (to - from) * cost.pair + further * cost.further;
    }

    DEVICE u32 span_pieces(Bound from, Bound to) const { return from == to ? 0 : to.tile - from.tile + (to.pair > 0); }

    DEVICE u32 span_cost(Bound from, Bound to, u32 further) const {
        if (from == to) return 0;
        bool in_one = from.tile == to.tile;
        u32 cost = part_cost(from.tile, from.pair, in_one ? to.pair : pairs, further);
        if (in_one) return cost;
        cost += work_before(to.tile) - work_before(from.tile + 1);
        return to.pair == 0 ? cost : cost + part_cost(to.tile, 0, to.pair, further);
    }

    DEVICE void add_makespan(u32 way, u32 load) const {
        load = __reduce_max_sync(ALL, load);
        if (threadIdx.x % 32 == 0) atomicMax(scratch.makespans + way, load);
    }

    // The quickest plan: 0 without spans, else the number of the spans' way and 1. Spans fill the gaps that whole tiles
    // leave up to the same time.
    DEVICE u32 chosen() const {
        u32 remainder = threadIdx.x / TEAM, worker = threadIdx.x % TEAM, load = 0, last = 0;
        bool works = worker < workers;
        if (works) {
            for (u32 round = 0; round < full; round++) {
                last = cost_of(token_tile_of(in_round(round, worker))).whole;
                load += last;
            }
        }
        u32 beyond = in_round(full, worker);
        add_makespan(0, load + (works && beyond < tiles ? cost_of(token_tile_of(beyond)).whole : 0));
        if (remainder > 0) load -= last;
        u32 rounds = full < remainder ? 0 : full - remainder, rest = tiles - rounds * workers;
        u32 place = work_before(rounds * workers), work = all_work - place;
        u32 sharing = (u32)min((u64)workers, (u64)rest * parameter.most_parts);
        u32 span = sharing == 0 ? 0 : work / sharing, total, *of_warps = scratch.of_warps;
        // The loads of whole tiles are nearly equal, so those who share the rest have their part of the sum.
        u32 level = place / workers + span + 1;
        u32 gap = worker < min(sharing, workers) && load < level ? level - load : 0;
        u32 before = scanned<false, TEAM_WARPS>(gap, of_warps, total) - gap;
        Bound* bounds = scratch.bounds + remainder * 2 * (workers + 1) + worker;
        if (worker <= workers) {
            if (before == total) bounds[0] = bounds[workers + 1] = {tiles, 0};
            else bound(bounds, place + min(work, (u32)((float)before * ((float)work / (float)total))), span);
        }
        __syncthreads();
        u32 further = rest == 0 ? 0 : max((sharing + rest - 1) / rest, 2u) - 2;
#pragma unroll
        for (u32 coarse = 0; coarse < 2; coarse++, bounds += workers + 1) {
            u32 own = 0;
            if (works) {
                Bound from = bounds[0], to = bounds[1];
                own = rounds + span_pieces(from, to) > parameter.tiles_a_worker ? ALL
                                                                                : load + span_cost(from, to, further);
            }
            add_makespan(1 + 2 * remainder + coarse, own);
        }
        __syncthreads();
        u32 best = 0, least = scratch.makespans[0];
#pragma unroll 1
        for (u32 way = 1; way <= SPLITS && parameter.most_parts > 1; way++)
            if (scratch.makespans[way] < least - least / 64) best = way, least = scratch.makespans[way];
        return best;
    }

    DEVICE Tile tile_of(u32 tile, u32 from, u32 to, u32 slot, u32 part, u32 parts, bool is_last) const {
        u32 of_tokens = token_tile_of(tile);
        TokenTile tokens = scratch.tiles[of_tokens];
        u32 rows = DUAL ? WEIGHT_ROWS / 2 : WEIGHT_ROWS;
        return {
            tokens.group, (tile - of_tokens * blocks) * rows,     tokens.token, tokens.width, 2 * from, 2 * (to - from),
            slot,         part | parts << 16 | (u32)is_last << 31};
    }

    // A piece of this worker's span, or a whole tile. Workers whose spans are empty have no part of a tile.
    DEVICE Tile piece(const Bound* bounds, u32 worker, u32 tile, Bound from, Bound to, bool is_last) const {
        u32 begin = tile == from.tile ? from.pair : 0, end = tile == to.tile ? to.pair : pairs;
        u32 part = 0, parts = 1, slot = ALL;
        if (begin > 0 || end < pairs) {
            // Where the tile's parts begin, downwards and upwards from this one.
            u32 first = worker, last = worker + 1;
            if (begin > 0)
#pragma unroll 1
                for (; bounds[first].is_within(tile); first--) part += !(bounds[first] == bounds[first - 1]);
            parts += part, slot = 2 * first;
#pragma unroll 1
            for (; last < workers && bounds[last].is_within(tile); last++) parts += !(bounds[last] == bounds[last + 1]);
        }
        return tile_of(tile, begin, end, slot, part, parts, is_last);
    }

    // Plans the call and keeps this block's tiles.
    DEVICE void plan(Control* control) {
        sort_tiles();
        u32 way = chosen(), worker = blockIdx.x, rounds = full, pieces = 0;
        const Bound* bounds = scratch.bounds + (way == 0 ? 0 : (way - 1) * (workers + 1));
        Bound from{ALL, 0}, to{ALL, 0};
        if (way == 0) {
            rounds += in_round(rounds, worker) < tiles;
        } else {
            u32 remainder = (way - 1) / 2;
            rounds = rounds < remainder ? 0 : rounds - remainder;
            from = bounds[worker], to = bounds[worker + 1];
            pieces = span_pieces(from, to);
        }
        u32 count = rounds + pieces;
        // An earlier launch may still read what it keeps in the same memory.
        if (count > OWN_TILES) grid_wait();
#pragma unroll 1
        for (u32 number = threadIdx.x; number < max(count, 1u); number += PLANNERS) {
            Tile tile{};
            bool whole = number < rounds;
            if (number < count)
                tile = piece(bounds, worker, whole ? in_round(number, worker) : from.tile + number - rounds,
                             whole ? Bound{ALL, 0} : from, whole ? Bound{ALL, 0} : to, number + 1 == count);
            if (number < OWN_TILES) control->own[number] = tile;
            else ((Tile*)first_tile(parameter))[number] = tile;
        }
        fence_async();  // copies take the place of what was kept here
        __syncthreads();
    }

    // Whether the ends are others than those of the plan, or decrease.
    DEVICE bool changed() const {
        u32 own = 0, all;
#pragma unroll 1
        for (u32 group = threadIdx.x; group < parameter.group_count; group += PLANNERS) {
            GroupPlace place = scratch.groups[group];
            if ((u32)__ldcg(parameter.ends + group) != place.begin + place.m) own = 1;
        }
        scanned<true, PLANNER_WARPS>(own, scratch.of_warps, all);
        fence_async();
        __syncthreads();
        return all > 0;
    }
};

#endif
