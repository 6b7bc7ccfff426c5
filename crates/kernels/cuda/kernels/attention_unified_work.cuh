// What a block of the unified attention kernel computes: the rows of its tile, and the steps of keys of its part; and
// where they lie.
#pragma once
#include "attention_unified_memory.cuh"

static_assert(!RAGGED || PACKED && !BY_BLOCK && !STAGED,
              "rows of ragged sequences are of all heads that share a key head");
static_assert(!STREAMED || SPLIT, "blocks share tiles");

#if RAGGED
// What the blocks of a launch for few queries share out: the steps of all tiles, of one sequence after another and one
// key head after another. Each block takes as many, whatever the lengths: it goes on with a tile that the block before
// began, has whole ones, and begins one.
struct Shares {
    u32 total, blocks;  // of all tiles, and blocks that have a share

    DEVICE Shares(const Parameter& parameter)
        : total(count_of_sequences(parameter, [&](u32 index) { return steps_of(parameter, index); })),
          blocks(min(gridDim.x, max(total / MIN_STEPS, 1u))) {}

    // Where a block's share begins, and the block whose share has a step.
    DEVICE u32 begin(u32 block) const { return block >= blocks ? total : (u32)((u64)total * block / blocks); }
    DEVICE u32 block_of(u32 step) const { return (u32)((((u64)step + 1) * blocks - 1) / total); }

    // Of a sequence, which has a tile for each of its key heads. Without a key a tile has a step of zeros, so that its
    // results are written.
    DEVICE static u32 steps_of(const Parameter& parameter, u32 index) {
        Sequence sequence = ragged_sequence(parameter, index);
        u32 rows = min(ragged_rows(parameter, sequence), TILE_M);
        if (rows == 0) return 0;
        u32 seen = visible_keys(sequence, (rows - 1) / (parameter.heads / parameter.kv_heads));
        return max((seen + TILE_N - 1) / TILE_N, 1u) * parameter.kv_heads;
    }
};
#endif

struct Work {
    Sequence sequence;  // if RAGGED, rows are positions, counted over all sequences
    Tile tile;
    u32 number, rows;          // of the tile, and in it
    u32 part, parts;           // of its keys; without a step, the first part is there alone
    u32 first_step, end_step;  // of keys that any of the rows sees
    u32 head, heads;           // of the keys, and query heads that share it
    const u8 *key, *value;     // the head's
#if RAGGED
    u32 all_heads;  // of the queries
#endif

#if RAGGED
    u32 leading;               // STREAMED: the block that has the tile's first part
    u32 entries[TILE_N / 32];  // of the table of pages, for the lane's positions of the step that is loaded next
#endif

    DEVICE Work(const Parameter& parameter) {
        number = SPLIT ? blockIdx.x / parameter.parts : blockIdx.x;
        heads = parameter.heads / parameter.kv_heads;
        find(parameter);
        u32 steps = (most_visible() + TILE_N - 1) / TILE_N;
        parts = SPLIT ? max(min(parameter.parts, steps), 1u) : 1;
        part = SPLIT ? blockIdx.x % parameter.parts : 0;
        first_step = SPLIT ? min((u32)((u64)steps * part / parts), steps) : 0;
        end_step = SPLIT ? min((u32)((u64)steps * (part + 1) / parts), steps) : steps;
        fetch(parameter, first_step);
    }

    // How many keys a row sees, and the fewest of the sixteen rows from `row` on.
    DEVICE u32 visible(u32 row) const { return visible_keys(sequence, query(row)); }
    DEVICE u32 fewest_visible(u32 row) const {
        bool whole = !RAGGED && PACKED && query_head(row) != query_head(row + 15);
        return visible_keys(sequence, whole ? 0 : query(row));
    }

    DEVICE Scales scales(const Parameter& parameter, u32 row) const {
        return load_scales(parameter, tile.sequence, query_head(row));
    }
    DEVICE BlockScales block_scales(const Parameter& parameter, u32 row) const {
        return BlockScales(parameter, tile.sequence, sequence, query_head(row), query(row));
    }

    // Starts the copies of a step, if there is one more; commits a group of copies in either case, so that all threads
    // count alike.
    DEVICE void load_step(const Parameter& parameter, u32 memory, u32 step) {
        if (step < end_step) {
            u32 first = step * TILE_N, slot = step % STAGES * STEP_BYTES, there = sequence.keys - first;
            load_rows<TILE_N>(memory + KEYS_AT + slot, [&](u32 row) { return key_at(parameter, first, row); }, there);
            load_rows<TILE_N>(
                memory + VALUES_AT + slot, [&](u32 row) { return value_at(parameter, first, row); }, there);
            fetch(parameter, step + 1);
        }
        copy_commit();
    }

#if RAGGED
    // What a block has of a tile of few queries, from a step of its share on that ends at `end`.
    // `found` is the sequence of the tile before.
    DEVICE Work(const Parameter& parameter, const Shares& shares, Found& found, u32 step, u32 end) {
        auto steps_of = [&](u32 index) { return Shares::steps_of(parameter, index); };
        if (step >= found.before + found.count) found = find_sequence(parameter, step, steps_of);
        u32 steps = found.count / parameter.kv_heads, of_keys = steps == 0 ? 0 : (step - found.before) / steps;
        u32 begin = found.before + of_keys * steps;
        number = found.sequence * parameter.kv_heads + of_keys;
        heads = parameter.heads / parameter.kv_heads;
        take(parameter, found.sequence, of_keys, 0);
        leading = shares.block_of(begin);
        parts = steps == 0 ? 1 : shares.block_of(begin + steps - 1) + 1 - leading;
        part = blockIdx.x - leading;
        first_step = step - begin;
        end_step = min(steps, end - begin);
        fetch(parameter, first_step);
    }
    DEVICE u64 first_part(const Parameter& parameter) const {
        return STREAMED ? leading : (u64)number * parameter.parts;
    }

    // Tiles of a set of heads are taken from the last queries down, which see the most keys.
    DEVICE void find(const Parameter& parameter) {
        u32 set = number / parameter.tiles_a_set, place = parameter.tiles_a_set - 1 - number % parameter.tiles_a_set;
        take(parameter, set / parameter.kv_heads, set % parameter.kv_heads, place);
    }
    DEVICE void take(const Parameter& parameter, u32 index, u32 of_keys, u32 place) {
        head = of_keys;
        sequence = ragged_sequence(parameter, index);
        u32 all = ragged_rows(parameter, sequence), first = place * TILE_M;
        rows = first < all ? min(all - first, TILE_M) : 0;
        tile = {index, head, first, rows};
        all_heads = parameter.heads;
        key = parameter.key + head * parameter.key_strides.head;
        value = parameter.value + head * parameter.value_strides.head;
        if (parameter.pages == nullptr) {
            key += sequence.key_row * parameter.key_strides.position;
            value += sequence.key_row * parameter.value_strides.position;
        }
    }

    // Looks up the pages of a step, a load before they are needed. Those of positions that there are not are not read.
    DEVICE void fetch(const Parameter& parameter, u32 step) {
        if (parameter.pages == nullptr) return;
#pragma unroll
        for (u32 i = 0; i < TILE_N / 32; ++i) {
            u32 position = step * TILE_N + i * 32 + threadIdx.x % 32;
            u64 entry = (u64)tile.sequence * parameter.pages_a_sequence + (position >> parameter.page_shift);
            entries[i] = position < sequence.keys ? parameter.pages[entry] : 0;
        }
    }
    // By whole warps: the lane that has the position's entry gives it to those that copy the position.
    DEVICE u32 page_of(u32 row) const {
        u32 page = __shfl_sync(~0u, entries[0], row % 32);
#pragma unroll
        for (u32 i = 1; i < TILE_N / 32; ++i) {
            u32 other = __shfl_sync(~0u, entries[i], row % 32);
            if (row / 32 == i) page = other;
        }
        return page;
    }

    // The query of the tile's row, and its head: a query's heads follow one another. Rows beyond the last are like the
    // last.
    DEVICE u32 query(u32 row) const { return (tile.query + min(row, max(rows, 1u) - 1)) / heads; }
    DEVICE u32 query_head(u32 row) const { return head * heads + (tile.query + min(row, max(rows, 1u) - 1)) % heads; }
    DEVICE u32 most_visible() const { return rows == 0 ? 0 : visible(rows - 1); }

    DEVICE const u8* query_at(const Parameter& parameter, u32 row) const {
        u64 position = sequence.query_row + query(row);
        return parameter.query + position * parameter.query_strides.position +
               query_head(row) * parameter.query_strides.head;
    }
    // The position of a row of the step.
    DEVICE const u8* at(const Parameter& parameter, const u8* begin, const Strides& strides, u32 first, u32 row) const {
        u32 position = first + row;
        if (parameter.pages == nullptr) return begin + position * strides.position;
        u64 page = page_of(row);
        return begin + page * strides.page + (position & ((1u << parameter.page_shift) - 1)) * strides.position;
    }
    DEVICE const u8* key_at(const Parameter& parameter, u32 first, u32 row) const {
        return at(parameter, key, parameter.key_strides, first, row);
    }
    DEVICE const u8* value_at(const Parameter& parameter, u32 first, u32 row) const {
        return at(parameter, value, parameter.value_strides, first, row);
    }

    // Of the output, whose positions have the query heads side by side.
    DEVICE u64 result_row(u32 row) const {
        return (u64)(sequence.query_row + query(row)) * all_heads + query_head(row);
    }
#else
    // Entries of both tables are 16 bytes, and so are their loads.
    DEVICE void find(const Parameter& parameter) {
        uint4 words = __ldg((const uint4*)parameter.tiles + number);
        tile = {words.x, words.y, words.z, words.w};
        words = __ldg((const uint4*)parameter.sequences + tile.sequence);
        sequence = {words.x, words.y, words.z, words.w};
        rows = tile.queries;
        head = PACKED ? tile.head : tile.head / heads;
        u64 first = ((u64)sequence.key_row + (u64)head * sequence.keys) * ROW_BYTES;
        key = parameter.key + first;
        value = parameter.value + first;
    }

    // The query of the tile's row, and its head. Rows beyond the last are like the last.
    DEVICE u32 query(u32 row) const {
        return PACKED ? (tile.query + min(row, rows - 1)) % sequence.queries : tile.query + row;
    }
    DEVICE u32 query_head(u32 row) const {
        return PACKED ? tile.head * heads + (tile.query + min(row, rows - 1)) / sequence.queries : tile.head;
    }

    // The most keys that any row of the tile sees.
    DEVICE u32 most_visible() const {
        // Packed rows hold the queries of one head in rising order, then those of the next head from its first query
        // on. So rows of two heads include a head's last query, which sees the most keys.
        bool whole = PACKED && tile.query / sequence.queries != (tile.query + rows - 1) / sequence.queries;
        return visible_keys(sequence, whole ? sequence.queries - 1 : query(rows - 1));
    }

    DEVICE const u8* query_at(const Parameter& parameter, u32 row) const {
        return parameter.query + result_row(row) * ROW_BYTES;
    }
    DEVICE void fetch(const Parameter&, u32) {}
    DEVICE u64 first_part(const Parameter& parameter) const { return (u64)number * parameter.parts; }
    DEVICE const u8* key_at(const Parameter&, u32 first, u32 row) const { return key + (u64)(first + row) * ROW_BYTES; }
    DEVICE const u8* value_at(const Parameter&, u32 first, u32 row) const {
        return value + (u64)(first + row) * ROW_BYTES;
    }

    // Of Q and of the output: a head's queries lie one after another, and heads too.
    DEVICE u64 result_row(u32 row) const {
        u64 before = (u64)tile.head * (PACKED ? heads : 1) * sequence.queries;
        return (u64)sequence.query_row + before + tile.query + row;
    }
#endif
};
