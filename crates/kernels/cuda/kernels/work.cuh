// Which tiles a block computes: order, lookup, and the parts of a split depth.
#pragma once
#include "schedule.cuh"

// A tile, as in the table that the host makes.
struct Tile {
    u32 group, row, column, steps;
};

// A tile, or a part of its depth; no steps: there is no more.
struct Work {
    Tile tile;
    u32 number;  // of the tile
    u32 part;
    u32 first_step, steps;
};
static_assert(sizeof(Work) == WORK_BYTES, "work lies in shared memory");

constexpr Work NO_WORK = {};

// Walks the groups from the first. Tiles of a group go along its tokens first, so that neighbours share weights.
DEVICE Tile find_tile(const Group* groups, u32 number) {
    for (u32 index = 0;; ++index) {
        u32 rows = (rows_of(groups[index]) + ROWS - 1) / ROWS,
            columns = (columns_of(groups[index]) + COLUMNS - 1) / COLUMNS;
        if (number < rows * columns) {
            u32 row = SWAPPED ? number / columns : number % rows, column = SWAPPED ? number % columns : number / rows;
            return {index, row * ROWS, column * COLUMNS, groups[index].k / DEPTH};
        }
        number -= rows * columns;
    }
}

DEVICE Tile look_up(const Parameter& parameter, u32 number) {
    if constexpr (lookup == Lookup::Precomputed) {
        uint4 tile = __ldg((const uint4*)parameter.order + number);
        return {tile.x, tile.y, tile.z, tile.w};
    } else {
        return find_tile(parameter.groups, BY_COST ? __ldg((const u32*)parameter.order + number) : number);
    }
}

DEVICE Work work_at(const Parameter& parameter, u32 place) {
    if (place >= parameter.tiles * SPLIT_K) return NO_WORK;
    u32 number = place / SPLIT_K, part = place % SPLIT_K;
    Tile tile = look_up(parameter, number);
    u32 first = tile.steps * part / SPLIT_K, end = tile.steps * (part + 1) / SPLIT_K;
    return {tile, number, part, first, end - first};
}

// Takes places from the counter. Each block takes one too many; the last of these resets the counter.
DEVICE u32 take_place(const Parameter& parameter) {
    u32 place = atomicAdd(parameter.counters, 1);
    if (place == parameter.tiles * SPLIT_K + gridDim.x - 1) *parameter.counters = 0;
    return place;
}

// The block's first place, without a counter, and its next one after `place`: one tile, or one for each of all blocks
// in turn.
DEVICE u32 first_place() { return blockIdx.x / BLOCKS_A_TILE; }

DEVICE u32 next_place(u32 place) { return order == Order::PerTile ? ~0u : place + gridDim.x / BLOCKS_A_TILE; }

// The block's next work, for all its threads. With a counter, one thread takes the place and leaves it for the others
// at `shared`, a word of shared memory.
DEVICE Work next_work(const Parameter& parameter, u32 shared, u32& place) {
    if constexpr (order == Order::Dynamic) {
        if (threadIdx.x == 0) store_shared(shared, take_place(parameter));
        __syncthreads();
        place = load_shared(shared);
        __syncthreads();
        return work_at(parameter, place);
    }
    Work work = work_at(parameter, place);
    place = next_place(place);
    return work;
}

DEVICE void write_work(u32 address, const Work& work) {
    store_shared_16(address, work.tile.group, work.tile.row, work.tile.column, work.tile.steps);
    store_shared_16(address + 16, work.number, work.part, work.first_step, work.steps);
}

DEVICE Work read_work(u32 address) {
    uint4 tile = load_shared_16(address), part = load_shared_16(address + 16);
    return {{tile.x, tile.y, tile.z, tile.w}, part.x, part.y, part.z, part.w};
}
