// Shared memory of the specialised kernel: Q of the tile, a ring of K and one of V as the matrix unit takes them, for
// 8-bit operands a ring of copies that are not converted yet, and the data exchanged by warp groups with the same
// queries.
//
// Rows of 16-bit operands lie in panels of 64 elements, 128 bytes a row, swizzled; e4m3 rows of a head in one panel.
#pragma once
#include "attention_operands.cuh"
#include "attention_parts.cuh"

constexpr u32 QUERIES = 64 * CONSUMERS / PARTS;  // of a tile
constexpr u32 QUERY_GROUPS = CONSUMERS / PARTS;  // warp groups that share out the queries
// Keys whose scores a warp group holds at a time: as many as fit in its registers beside the sums.
constexpr u32 MOST = BY_BLOCK ? SCALE_BLOCK : CONSUMERS == 2 || CONSUMERS == 3 && HEAD == 64 ? 128 : 64;
constexpr u32 RUN = KEYS / PARTS < MOST ? KEYS / PARTS : MOST, RUNS = KEYS / PARTS / RUN;  // runs of a step
constexpr u32 RAW_STAGES = EIGHT_BITS ? 3 : 0;
constexpr u32 CONSUMER_THREADS = 128 * CONSUMERS, CONSUMER_WARPS = 4 * CONSUMERS, CONVERTERS = 3;

constexpr u32 QUERY_BYTES = QUERIES * ROW_BYTES, KEY_ROW_BYTES = HEAD * (EIGHTS ? 1 : 2);
constexpr u32 KEY_BYTES = KEYS * KEY_ROW_BYTES, VALUE_BYTES = KEYS * HEAD * 2, RAW_BYTES = KEYS * ROW_BYTES;
// For each thread of a warp group: its sums, and for two rows the shift and the sum of weights.
constexpr u32 MERGED_FLOATS = HEAD / 2 + 4, MERGED_BYTES = PARTS == 1 ? 0 : QUERY_GROUPS * 128 * 4 * MERGED_FLOATS;

constexpr u32 QUERIES_AT = 0, KEYS_AT = QUERIES_AT + QUERY_BYTES, VALUES_AT = KEYS_AT + STAGES * KEY_BYTES;
constexpr u32 RAW_AT = VALUES_AT + STAGES * VALUE_BYTES, MERGED_AT = RAW_AT + RAW_STAGES * RAW_BYTES;
constexpr u32 BARRIERS_AT = MERGED_AT + MERGED_BYTES;

// Barriers, 8 bytes each: the filling warps arrive at full barriers, the reading warps at empty ones.
constexpr u32 QUERY_FULL = BARRIERS_AT, QUERY_EMPTY = QUERY_FULL + 8, KEY_FULL = QUERY_EMPTY + 8;
constexpr u32 KEY_EMPTY = KEY_FULL + 8 * STAGES, VALUE_FULL = KEY_EMPTY + 8 * STAGES;
constexpr u32 VALUE_EMPTY = VALUE_FULL + 8 * STAGES, RAW_FULL = VALUE_EMPTY + 8 * STAGES;
constexpr u32 RAW_EMPTY = RAW_FULL + 8 * RAW_STAGES, MERGED_FULL = RAW_EMPTY + 8 * RAW_STAGES;
constexpr u32 MERGED_EMPTY = MERGED_FULL + 8 * QUERY_GROUPS, END = MERGED_EMPTY + 8 * QUERY_GROUPS;
static_assert(END <= SHARED, "the plan has reserved less than the kernel needs");

constexpr bool BY_CONVERTERS_KEYS = CONVERTED, BY_CONVERTERS_VALUES = EIGHT_BITS;
// Converted queries exist only in registers. Those of e4m3 are in registers where some are left, because these products
// otherwise wait for shared memory: with 64 keys it delivers as many bytes of queries as of keys, which is all its
// bandwidth.
constexpr bool QUERIES_IN_REGISTERS = CONVERTED || EIGHTS && HEAD == 128 && !(BY_BLOCK && CAUSAL);

DEVICE void init_barriers(u32 base) {
    barrier_init(base + QUERY_FULL, 1);
    barrier_init(base + QUERY_EMPTY, CONSUMER_WARPS);
    for (u32 stage = 0; stage < STAGES; stage++) {
        barrier_init(base + KEY_FULL + 8 * stage, BY_CONVERTERS_KEYS ? CONVERTERS : 1);
        barrier_init(base + KEY_EMPTY + 8 * stage, CONSUMER_WARPS);
        barrier_init(base + VALUE_FULL + 8 * stage, BY_CONVERTERS_VALUES ? CONVERTERS : 1);
        barrier_init(base + VALUE_EMPTY + 8 * stage, CONSUMER_WARPS);
    }
    for (u32 stage = 0; stage != RAW_STAGES; stage++) {
        barrier_init(base + RAW_FULL + 8 * stage, 1);
        barrier_init(base + RAW_EMPTY + 8 * stage, CONVERTERS);
    }
    for (u32 group = 0; group < QUERY_GROUPS; group++) {
        barrier_init(base + MERGED_FULL + 8 * group, 128);
        barrier_init(base + MERGED_EMPTY + 8 * group, 128);
    }
    barrier_init_fence();
}

// How often, modulo 2, each stage of a ring has been used: a bit a stage. Each tile begins with the first stage, so
// that stages are compile-time constants in the unrolled loops over steps, and so are descriptors and barriers.
struct Uses {
    u32 bits = 0;

    DEVICE u32 full_parity(u32 stage) const { return bits >> stage & 1; }
    DEVICE u32 empty_parity(u32 stage) const { return full_parity(stage) ^ 1; }  // passes immediately the first time
    DEVICE void count(u32 stage) { bits ^= 1u << stage; }
};

// What blocks take one after another: tiles, or, if SPLIT, parts of their keys, those of a tile side by side.
DEVICE u32 tile_count(const Parameter& parameter) {
    return SPLIT ? parameter.tile_count * parameter.parts : parameter.tile_count;
}

// The block's tile of each round; beyond the last tile there is none. Every other round runs backward, so that blocks
// get about equal work from tiles in descending order.
DEVICE u32 tile_of_round(u32 round) {
    return round * gridDim.x + (round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
}

// A tile with the numbers that its loops need.
struct Job {
    Sequence sequence;
    u32 index, head, query, queries;
    u32 steps;  // of KEYS keys, up to the last that any of its queries sees; if SPLIT, those of the part
    u32 first_step;
    u32 number, part, parts;  // of the tile among all, and of its keys; without a step the first part is there alone

    DEVICE u32 kv_head(const Parameter& parameter) const { return head / (parameter.heads / parameter.kv_heads); }

    // The place of a row's query in its head, of which there are `period`, and the head; a row beyond the last is like
    // the last.
    DEVICE u32 period(const Parameter& parameter) const { return sequence.queries / parameter.row_heads; }
    DEVICE u32 row_query(const Parameter& parameter, u32 row) const {
        return min(query + row, sequence.queries - 1) % period(parameter);
    }
    DEVICE u32 row_head(const Parameter& parameter, u32 row) const {
        if (!PACKED) return head;
        return head * parameter.row_heads + min(query + row, sequence.queries - 1) / period(parameter);
    }
};

// Equal sequences need no table: reading it would take a microsecond before the first copy. With DESCENDING, the
// queries that see the most keys come first: a head's last.
DEVICE Job locate(const Parameter& parameter, u32 unit) {
    Job job;
    u32 tile = SPLIT ? unit / parameter.parts : unit;
    if (UNIFORM) {
        u32 tiles = (parameter.queries + QUERIES - 1) / QUERIES, slices = parameter.tile_count / tiles, slice;
        if (DESCENDING) {
            slice = tile % slices;
            job.query = (tiles - 1 - tile / slices) * QUERIES;
        } else {
            slice = tile / tiles;
            job.query = tile % tiles * QUERIES;
        }
        job.index = slice / parameter.heads;
        job.head = slice % parameter.heads;
        job.sequence = {job.index * parameter.heads * parameter.queries,
                        job.index * parameter.kv_heads * parameter.keys, parameter.queries, parameter.keys};
        job.queries = min(job.query + QUERIES, parameter.queries) - job.query;
    } else {
        uint4 entry = __ldg((const uint4*)parameter.tiles + tile);
        uint4 lengths = __ldg((const uint4*)parameter.sequences + entry.x);
        job.index = entry.x;
        job.head = entry.y;
        job.query = entry.z;
        job.queries = entry.w;
        job.sequence = {lengths.x, lengths.y, lengths.z, lengths.w};
    }
    u32 last = (UNIFORM ? min(job.query + QUERIES, job.sequence.queries) : job.query + job.queries) - 1;
    // Of packed heads every tile has a row of some head's last query.
    job.steps = ((PACKED ? job.sequence.keys : visible_keys(job.sequence, last)) + KEYS - 1) / KEYS;
    job.number = tile;
    job.part = SPLIT ? unit % parameter.parts : 0;
    job.parts = SPLIT ? max(min(parameter.parts, job.steps), 1u) : 1;
    job.first_step = 0;
    if (SPLIT) {
        job.first_step = min((u32)((u64)job.steps * job.part / job.parts), job.steps);
        job.steps = min((u32)((u64)job.steps * (job.part + 1) / job.parts), job.steps) - job.first_step;
    }
    return job;
}
