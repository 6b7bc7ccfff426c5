// What a block of the unified attention kernel computes: the rows of its tile, and the steps of keys of its part.
#pragma once
#include "attention_unified_memory.cuh"

struct Work {
    Sequence sequence;
    Tile tile;
    u32 number, rows;               // of the tile, and in it
    u32 part, parts;                // of its keys; without a step, the first part is there alone
    u32 first_step, end_step;       // of keys that any of the rows sees
    u32 head, heads;                // of the keys, and query heads that share it
    const u8 *key, *value;          // the head's

    // Entries of both tables are 16 bytes, and so are their loads.
    DEVICE Work(const Parameter& parameter) {
        number = SPLIT ? blockIdx.x / parameter.parts : blockIdx.x;
        uint4 words = __ldg((const uint4*)parameter.tiles + number);
        tile = {words.x, words.y, words.z, words.w};
        words = __ldg((const uint4*)parameter.sequences + tile.sequence);
        sequence = {words.x, words.y, words.z, words.w};
        rows = tile.queries;
        heads = parameter.heads / parameter.kv_heads;
        head = PACKED ? tile.head : tile.head / heads;
        u64 first = ((u64)sequence.key_row + (u64)head * sequence.keys) * ROW_BYTES;
        key = parameter.key + first;
        value = parameter.value + first;
        u32 steps = (most_visible() + TILE_N - 1) / TILE_N;
        parts = SPLIT ? max(min(parameter.parts, steps), 1u) : 1;
        part = SPLIT ? blockIdx.x % parameter.parts : 0;
        first_step = SPLIT ? min((u32)((u64)steps * part / parts), steps) : 0;
        end_step = SPLIT ? min((u32)((u64)steps * (part + 1) / parts), steps) : steps;
    }

    // Of Q and of the output: a head's queries lie one after another, and heads too.
    DEVICE u64 first_row() const {
        u64 before = (u64)tile.head * (PACKED ? heads : 1) * sequence.queries;
        return (u64)sequence.query_row + before + tile.query;
    }

    // The query of the tile's row, and its head. Rows beyond the last are like the last.
    DEVICE u32 query(u32 row) const {
        return PACKED ? (tile.query + min(row, rows - 1)) % sequence.queries : tile.query + row;
    }
    DEVICE u32 query_head(u32 row) const {
        return PACKED ? tile.head * heads + (tile.query + min(row, rows - 1)) / sequence.queries : tile.head;
    }

    // How many keys a row sees, the most that any row of the tile sees, and the fewest of the sixteen rows from `row` on.
    DEVICE u32 visible(u32 row) const { return visible_keys(sequence, query(row)); }
    DEVICE u32 most_visible() const {
        // Packed rows hold the queries of one head in rising order, then those of the next head from its first query on. So
        // rows of two heads include a head's last query, which sees the most keys.
        bool whole = PACKED && tile.query / sequence.queries != (tile.query + rows - 1) / sequence.queries;
        return visible_keys(sequence, whole ? sequence.queries - 1 : query(rows - 1));
    }
    DEVICE u32 fewest_visible(u32 row) const {
        bool whole = PACKED && query_head(row) != query_head(row + 15);
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
    DEVICE void load_step(u32 memory, u32 step) const {
        if (step < end_step) {
            u32 first = step * TILE_N, slot = step % STAGES * STEP_BYTES;
            load_rows<TILE_N>(memory + KEYS_AT + slot, key + (u64)first * ROW_BYTES, sequence.keys - first);
            load_rows<TILE_N>(memory + VALUES_AT + slot, value + (u64)first * ROW_BYTES, sequence.keys - first);
        }
        copy_commit();
    }
};
