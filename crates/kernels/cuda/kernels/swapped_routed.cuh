// With ROUTED 1 the host knows neither the tokens of each group nor, therefore, the tiles: each block plans the call
// for itself, from the ends of the groups' tokens, and keeps its own share. All blocks compute the same plan, so they
// agree without a word.
//
// Token tiles are sorted by falling width, because the kernel's code goes from wide to narrow tiles. Whole tiles are
// dealt out in rounds, every other one backwards. What remains after the last full round, or the one before it, may be
// cut into spans of equal work, so that a span begins and ends within the depth of a tile. The quickest of these plans
// by the host's costs is taken.
//
// Ends that decrease count as those before them, and ends beyond the rows as their number, so whatever they are,
// nothing outside of the call's memory is read or written.
#pragma once
#include "swapped_ring.cuh"
#if ROUTED

constexpr u32 PLANNERS = CONSUMER_THREADS + 128, PLANNER_WARPS = PLANNERS / 32, ALL = ~0u;
constexpr u32 EIGHTHS = WIDTH / 8;  // widths of tiles, in steps of eight tokens
// Ways to leave tiles for spans, each with two ways to round spans.
constexpr u32 REMAINDERS = 2, SPLITS = 2 * REMAINDERS;
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

struct Gaps {
    u32 total, work, place;  // of all workers; the work that fills them, and where it begins
    u32 span;                // the work of a worker
    u32 rounds;              // of whole tiles before
    u32 further;             // parts beyond two that a tile has
};

// What planning keeps in the memory of the ring, before anything is copied there. The other half is
// src/plan/swapped/routed.rs.
struct Scratch {
    Cost* costs;         // [EIGHTHS + 1], by the eighths of a tile
    u32* of_warps;       // [PLANNER_WARPS]
    u32* makespans;      // [1 + SPLITS]
    Gaps* remainders;    // [REMAINDERS]
    u32* loads;          // [REMAINDERS][workers + 1]: of whole tiles; then the gaps before each worker's
    Bound* bounds;       // [SPLITS][workers + 1]
    GroupPlace* groups;  // [groups]
    u32* counts;         // [groups / 32][32], of tiles of each width; then the first of them
    TokenTile* tiles;    // and an empty one at the end

    DEVICE Scratch(u8* memory, u32 groups_there, u32 workers) {
        costs = (Cost*)memory;
        of_warps = (u32*)(costs + 33);
        makespans = of_warps + 16;
        remainders = (Gaps*)(makespans + 8);
        loads = (u32*)(remainders + REMAINDERS);
        bounds = (Bound*)(loads + REMAINDERS * (workers + 1));
        groups = (GroupPlace*)(((u64)(bounds + SPLITS * (workers + 1)) + 15) / 16 * 16);
        counts = (u32*)(groups + groups_there);
        tiles = (TokenTile*)(counts + (groups_there + 31) / 32 * 32);
    }
};

// The sum or the largest over the threads before this one and this one, for the whole block.
template <bool LARGEST>
DEVICE u32 scanned(u32 value, u32* of_warps, u32& all) {
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (u32 distance = 1; distance < 32; distance *= 2) {
        u32 before = __shfl_up_sync(ALL, value, distance);
        if (lane >= distance) value = LARGEST ? max(value, before) : value + before;
    }
    if (lane == 31) of_warps[warp] = value;
    __syncthreads();
    u32 before = 0;
    all = 0;
#pragma unroll
    for (u32 other = 0; other < PLANNER_WARPS; other++) {
        u32 own = of_warps[other];
        if (other < warp) before = LARGEST ? max(before, own) : before + own;
        all = LARGEST ? max(all, own) : all + own;
    }
    __syncthreads();
    return LARGEST ? max(value, before) : value + before;
}

// Of the lanes of a warp that have the same key below 32 as this one: the sum of the counts before it, and of all.
DEVICE void sum_by_key(u32 key, u32 count, u32& before, u32& all) {
    u32 lane = threadIdx.x % 32, lanes = __ballot_sync(ALL, count > 0);
    before = all = 0;
    if (lanes == 0) return;
#pragma unroll
    for (u32 bit = 0; bit < 5; bit++) {
        u32 set = __ballot_sync(ALL, key >> bit & 1);
        lanes &= key >> bit & 1 ? set : ~set;
    }
    if (__any_sync(ALL, count > 1)) {
        for (u32 other = 0; other < 32; other++) {
            u32 own = __shfl_sync(ALL, count, other);
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

struct Planner {
    const Parameter& parameter;
    const Scratch scratch;
    u32 workers, blocks, pairs;
    u32 token_tiles, tiles;

    DEVICE Planner(const Parameter& parameter, u8* memory)
        : parameter(parameter),
          scratch(memory, parameter.group_count, gridDim.x),
          workers(gridDim.x),
          blocks(parameter.weight_blocks),
          pairs(parameter.shapes[0].k / CHUNK / 2) {}

    // Before any launch is waited for: the host wrote it.
    DEVICE void load_costs() const {
        if (threadIdx.x <= EIGHTHS) scratch.costs[threadIdx.x] = ((const Cost*)parameter.costs)[threadIdx.x];
        if (threadIdx.x <= SPLITS) scratch.makespans[threadIdx.x] = 0;
    }

    DEVICE const Cost& cost_of(u32 token_tile) const {
        return scratch.costs[(scratch.tiles[token_tile].width + 7) / 8];
    }

    DEVICE u32 work_before(u32 tile) const {
        u32 of_tokens = tile / blocks, rest = tile - of_tokens * blocks;
        return scratch.tiles[of_tokens].before + (rest == 0 ? 0 : rest * cost_of(of_tokens).whole);
    }

    // Which tile a worker has in a round.
    DEVICE u32 in_round(u32 round, u32 worker) const {
        return round * workers + (round % 2 ? workers - 1 - worker : worker);
    }

    // Cuts the groups and sorts their token tiles.
    DEVICE void sort_tiles() {
        u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, group_count = parameter.group_count, before = 0;
        for (u32 first = 0; first < group_count; first += PLANNERS) {
            u32 group = first + threadIdx.x, all;
            int given = group < group_count ? __ldcg(parameter.ends + group) : 0;
            u32 end =
                max(before, scanned<true>(given < 0 ? 0 : min((u32)given, parameter.rows), scratch.of_warps, all));
            // The end before it; the lane before has it, but for the first.
            u32 begin = __shfl_up_sync(ALL, end, 1);
            if (lane == 31) scratch.of_warps[warp] = end;
            __syncthreads();
            if (lane == 0) begin = warp == 0 ? before : scratch.of_warps[warp - 1];
            before = max(before, all);
            u32 m = group < group_count ? end - begin : 0;
            Cut cut(m);
            u32 narrow_before, narrow_all, wider_before, wider_all;
            u32 narrow_key = cut.narrow - 1 & 31, wider_key = cut.narrow & 31;
            if (first + warp * 32 < group_count) {
                u32* counts = scratch.counts + (first + warp * 32);
                counts[lane] = 0;
                sum_by_key(narrow_key, cut.parts - cut.wider, narrow_before, narrow_all);
                sum_by_key(wider_key, cut.wider, wider_before, wider_all);
                __syncwarp();
                // Of the lanes with one key the first adds for all.
                if (cut.parts > cut.wider && narrow_before == 0) counts[narrow_key] = narrow_all;
                __syncwarp();
                if (cut.wider > 0 && wider_before == 0) counts[wider_key] += wider_all;
                // Of one width, those of groups that are cut into narrower tiles too come behind those of other groups.
                __syncwarp();
                u32 of_key = 0;
                if (cut.wider > 0) of_key = counts[wider_key] - wider_all;
                if (group < group_count) scratch.groups[group] = {begin, m, narrow_before, wider_before + of_key};
            }
            __syncthreads();
        }
        if (warp == 0) {
            u32 total = 0, groups = (group_count + 31) / 32;
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
            for (u32 i = 0; i < groups; i++) {
                u32 own = scratch.counts[i * 32 + lane];
                scratch.counts[i * 32 + lane] = first;
                first += own;
            }
        }
        __syncthreads();
        token_tiles = scratch.of_warps[0];
        tiles = token_tiles * blocks;
        for (u32 group = threadIdx.x; group < group_count; group += PLANNERS) {
            GroupPlace place = scratch.groups[group];
            Cut cut(place.m);
            const u32* firsts = scratch.counts + group / 32 * 32;
            u32 token = 0;
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
        for (u32 first = 0; first < token_tiles; first += PLANNERS) {
            u32 index = first + threadIdx.x, all, own = index < token_tiles ? blocks * cost_of(index).whole : 0;
            u32 end = scanned<false>(own, scratch.of_warps, all);
            if (index < token_tiles) scratch.tiles[index].before = sum + end - own;
            sum += all;
        }
        if (threadIdx.x == 0) scratch.tiles[token_tiles] = {0, 0, 0, sum};
        __syncthreads();
    }

    // What each worker has to do in all full rounds, and in all but the last of them.
    DEVICE void find_loads() const {
        u32 rounds = tiles / workers;
        for (u32 worker = threadIdx.x; worker < workers; worker += PLANNERS) {
            u32 load = 0, before = 0;
            for (u32 round = 0; round < rounds; round++) {
                before = load;
                load += cost_of(in_round(round, worker) / blocks).whole;
            }
            scratch.loads[worker] = load;
            scratch.loads[workers + 1 + worker] = before;
            u32 last = in_round(rounds, worker);
            if (last < tiles) load += cost_of(last / blocks).whole;
            atomicMax(scratch.makespans, load);
        }
        __syncthreads();
    }

    // The gaps that whole tiles leave up to the same time, by one warp for each way.
    DEVICE void find_gaps() const {
        u32 way = threadIdx.x / 32, lane = threadIdx.x % 32;
        if (way < REMAINDERS) {
            u32 rounds = tiles / workers, *loads = scratch.loads + way * (workers + 1);
            rounds = rounds < way ? 0 : rounds - way;
            u32 rest = tiles - rounds * workers, place = work_before(rounds * workers);
            u32 work = scratch.tiles[token_tiles].before - place;
            u32 sharing = (u32)min((u64)workers, (u64)rest * parameter.most_parts);
            u32 each = (workers + 31) / 32, begin = min(lane * each, workers), end = min(begin + each, workers),
                sum = 0;
            for (u32 worker = begin; worker < end; worker++) sum += worker < sharing ? loads[worker] : 0;
#pragma unroll
            for (u32 distance = 1; distance < 32; distance *= 2) sum += __shfl_xor_sync(ALL, sum, distance);
            u32 level = sharing == 0 ? 0 : (sum + work + sharing - 1) / sharing, own = 0;
            for (u32 worker = begin; worker < end; worker++)
                own += worker < sharing && loads[worker] < level ? level - loads[worker] : 0;
            u32 before = own;
#pragma unroll
            for (u32 distance = 1; distance < 32; distance *= 2) {
                u32 other = __shfl_up_sync(ALL, before, distance);
                if (lane >= distance) before += other;
            }
            u32 total = __shfl_sync(ALL, before, 31);
            before -= own;
            // The makespans need the loads too: they are what is left of the level.
            for (u32 worker = begin; worker < end; worker++) {
                u32 gap = worker < sharing && loads[worker] < level ? level - loads[worker] : 0;
                loads[worker] = before;
                before += gap;
            }
            if (lane == 0) {
                loads[workers] = total;
                scratch.remainders[way] = {total,  work,
                                           place,  sharing == 0 ? 0 : work / sharing,
                                           rounds, rest == 0 ? 0 : max((sharing + rest - 1) / rest, 2u) - 2};
            }
        }
        __syncthreads();
    }

    // Where a worker's span begins. Spans are rounded to whole tiles where a part would cost more than it saves, or, if
    // `coarse`, wherever that moves a worker by less than half a span.
    DEVICE Bound bound(const Gaps& gaps, u32 gap, bool coarse) const {
        if (gap == gaps.total) return {tiles, 0};
        u32 at = gaps.place + (u32)((u64)gap * gaps.work / gaps.total), low = 0, high = token_tiles;
        while (high - low > 1) {
            u32 middle = (low + high) / 2;
            if (scratch.tiles[middle].before <= at) low = middle;
            else high = middle;
        }
        Cost cost = cost_of(low);
        u32 within = at - scratch.tiles[low].before, tile = within / cost.whole;
        within -= tile * cost.whole;
        tile += low * blocks;
        u32 rounding = min(coarse ? gaps.span : 2 * cost.part, cost.whole) / 2;
        if (within <= rounding) return {tile, 0};
        if (cost.whole - within <= rounding) return {tile + 1, 0};
        u32 pair = (u32)((u64)within * pairs / cost.whole);
        return pair == 0 ? Bound{tile, 0} : Bound{tile, pair};
    }

    DEVICE u32 part_cost(u32 tile, u32 from, u32 to, u32 further) const {
        Cost cost = cost_of(tile / blocks);
        return from == 0 && to == pairs ? cost.whole : cost.part + (to - from) * cost.pair + further * cost.further;
    }

    DEVICE u32 span_pieces(Bound from, Bound to) const { return from == to ? 0 : to.tile - from.tile + (to.pair > 0); }

    DEVICE u32 span_cost(Bound from, Bound to, u32 further) const {
        if (from == to) return 0;
        if (from.tile == to.tile) return part_cost(from.tile, from.pair, to.pair, further);
        u32 cost = part_cost(from.tile, from.pair, pairs, further) + work_before(to.tile) - work_before(from.tile + 1);
        return to.pair == 0 ? cost : cost + part_cost(to.tile, 0, to.pair, further);
    }

    // The quickest plan: 0 without spans, else the number of the spans' way and 1.
    DEVICE u32 chosen() const {
        if (parameter.most_parts <= 1 || tiles == 0) return 0;
        u32 places = workers + 1;
        for (u32 index = threadIdx.x; index < SPLITS * places; index += PLANNERS) {
            u32 way = index / places, worker = index - way * places;
            const Gaps& gaps = scratch.remainders[way / 2];
            scratch.bounds[index] = bound(gaps, scratch.loads[way / 2 * places + worker], way % 2);
        }
        __syncthreads();
        for (u32 index = threadIdx.x; index < SPLITS * workers; index += PLANNERS) {
            u32 way = index / workers, worker = index - way * workers;
            const Gaps& gaps = scratch.remainders[way / 2];
            const Bound* bounds = scratch.bounds + way * places + worker;
            u32 load = 0;
            for (u32 round = 0; round < gaps.rounds; round++) load += cost_of(in_round(round, worker) / blocks).whole;
            load += span_cost(bounds[0], bounds[1], gaps.further);
            bool fits = gaps.rounds + span_pieces(bounds[0], bounds[1]) <= parameter.tiles_a_worker;
            atomicMax(scratch.makespans + 1 + way, fits ? load : ALL);
        }
        __syncthreads();
        u32 best = 0, least = scratch.makespans[0];
        for (u32 way = 1; way <= SPLITS; way++)
            if (scratch.makespans[way] < least - least / 64) best = way, least = scratch.makespans[way];
        return best;
    }

    DEVICE Tile tile_of(u32 tile, u32 from, u32 to, u32 slot, u32 part, u32 parts, bool is_last) const {
        u32 of_tokens = tile / blocks;
        TokenTile tokens = scratch.tiles[of_tokens];
        u32 rows = DUAL ? WEIGHT_ROWS / 2 : WEIGHT_ROWS;
        return {
            tokens.group, (tile - of_tokens * blocks) * rows,     tokens.token, tokens.width, 2 * from, 2 * (to - from),
            slot,         part | parts << 16 | (u32)is_last << 31};
    }

    // A piece of this worker's span. Workers whose spans are empty have no part of a tile.
    DEVICE Tile piece(const Bound* bounds, u32 worker, u32 number, bool is_last) const {
        Bound from = bounds[worker], to = bounds[worker + 1];
        u32 tile = from.tile + number, begin = number == 0 ? from.pair : 0, end = tile == to.tile ? to.pair : pairs;
        if (begin == 0 && end == pairs) return tile_of(tile, 0, pairs, ALL, 0, 1, is_last);
        u32 part = 0, more = 0, first = worker, last = worker + 1;
        // Where the tile's parts begin, downwards and upwards from this one.
        if (begin > 0)
            for (; bounds[first].is_within(tile); first--) part += !(bounds[first] == bounds[first - 1]);
        for (; last < workers && bounds[last].is_within(tile); last++) more += !(bounds[last] == bounds[last + 1]);
        return tile_of(tile, begin, end, 2 * first, part, part + more + 1, is_last);
    }

    // Plans the call and keeps this block's tiles.
    DEVICE void plan(Control* control) {
        sort_tiles();
        find_loads();
        find_gaps();
        u32 way = chosen(), worker = blockIdx.x, rounds = tiles / workers, pieces = 0;
        const Bound* bounds = scratch.bounds + (way == 0 ? 0 : (way - 1) * (workers + 1));
        if (way == 0) {
            rounds += in_round(rounds, worker) < tiles;
        } else {
            rounds = scratch.remainders[(way - 1) / 2].rounds;
            pieces = span_pieces(bounds[worker], bounds[worker + 1]);
        }
        u32 count = rounds + pieces;
        // An earlier launch may still read what it keeps in the same memory.
        if (count > OWN_TILES && parameter.ends_are_ready) grid_wait();
        for (u32 number = threadIdx.x; number < max(count, 1u); number += PLANNERS) {
            Tile tile{};
            bool is_last = number + 1 == count;
            if (number < rounds) tile = tile_of(in_round(number, worker), 0, pairs, ALL, 0, 1, is_last);
            else if (number < count) tile = piece(bounds, worker, number - rounds, is_last);
            if (number < OWN_TILES) control->own[number] = tile;
            else ((Tile*)first_tile(parameter))[number] = tile;
        }
        fence_async();  // copies take the place of what was kept here
        __syncthreads();
    }
};

#endif
