// What a block of the unified attention kernel computes: the rows of its tile, and the steps of keys of its part; and
// where they lie.
#pragma once
#include "attention_unified_memory.cuh"

static_assert(!RAGGED || PACKED && !BY_BLOCK && !STAGED,
              "rows of ragged sequences are of all heads that share a key head");

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

    DEVICE Work(const Parameter& parameter) {
        number = SPLIT ? blockIdx.x / parameter.parts : blockIdx.x;
        heads = parameter.heads / parameter.kv_heads;
        find(parameter);
        u32 steps = (most_visible() + TILE_N - 1) / TILE_N;
        parts = SPLIT ? max(min(parameter.parts, steps), 1u) : 1;
        part = SPLIT ? blockIdx.x % parameter.parts : 0;
        first_step = SPLIT ? min((u32)((u64)steps * part / parts), steps) : 0;
        end_step = SPLIT ? min((u32)((u64)steps * (part + 1) / parts), steps) : steps;
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
    DEVICE void load_step(const Parameter& parameter, u32 memory, u32 step) const {
        if (step < end_step) {
            u32 first = step * TILE_N, slot = step % STAGES * STEP_BYTES, there = sequence.keys - first;
            load_rows<TILE_N>(memory + KEYS_AT + slot, [&](u32 row) { return key_at(parameter, first + row); }, there);
            load_rows<TILE_N>(
                memory + VALUES_AT + slot, [&](u32 row) { return value_at(parameter, first + row); }, there);
        }
        copy_commit();
    }

#if RAGGED
    // Tiles of a set of heads are taken from the last queries down, which see the most keys. What a sequence's lengths
    // say is believed only as far as they are no fewer than none. Launches before this one may have written them while
    // it was starting, so they are not loaded through the cache for constants.
    DEVICE void find(const Parameter& parameter) {
        u32 set = number / parameter.tiles_a_set, place = parameter.tiles_a_set - 1 - number % parameter.tiles_a_set;
        u32 index = set / parameter.kv_heads;
        head = set % parameter.kv_heads;
        u32 begin = parameter.query_begins[index], end = parameter.query_begins[index + 1];
        u32 key_begin = 0, keys;
        if (parameter.key_begins) key_begin = parameter.key_begins[index];
        if (parameter.key_counts) keys = parameter.key_counts[index];
        else keys = parameter.key_begins[index + 1] - key_begin;
        sequence = {begin, key_begin, (u32)max((int)(end - begin), 0), (u32)max((int)keys, 0)};
        u32 all = sequence.queries * heads, first = place * TILE_M;
        rows = first < all ? min(all - first, TILE_M) : 0;
        tile = {index, head, first, rows};
        all_heads = parameter.heads;
        key = parameter.key + head * parameter.key_strides.head;
        value = parameter.value + head * parameter.value_strides.head;
        if (parameter.pages == nullptr) {
            key += key_begin * parameter.key_strides.position;
            value += key_begin * parameter.value_strides.position;
        }
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
    DEVICE const u8* at(const Parameter& parameter, const u8* begin, const Strides& strides, u32 position) const {
        if (parameter.pages == nullptr) return begin + position * strides.position;
        u64 page =
            parameter.pages[(u64)tile.sequence * parameter.pages_a_sequence + (position >> parameter.page_shift)];
        return begin + page * strides.page + (position & ((1u << parameter.page_shift) - 1)) * strides.position;
    }
    DEVICE const u8* key_at(const Parameter& parameter, u32 position) const {
        return at(parameter, key, parameter.key_strides, position);
    }
    DEVICE const u8* value_at(const Parameter& parameter, u32 position) const {
        return at(parameter, value, parameter.value_strides, position);
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
    DEVICE const u8* key_at(const Parameter&, u32 position) const { return key + (u64)position * ROW_BYTES; }
    DEVICE const u8* value_at(const Parameter&, u32 position) const { return value + (u64)position * ROW_BYTES; }

    // Of Q and of the output: a head's queries lie one after another, and heads too.
    DEVICE u64 result_row(u32 row) const {
        u64 before = (u64)tile.head * (PACKED ? heads : 1) * sequence.queries;
        return (u64)sequence.query_row + before + tile.query + row;
    }
#endif
};
