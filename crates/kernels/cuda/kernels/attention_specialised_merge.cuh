// The multiplying warp groups of the specialised kernel, and the end of a tile: groups that have the same queries
// merge, and one stores, or leaves its part of the keys for the launch that merges parts.
#pragma once
#include "attention_specialised_products.cuh"

DEVICE void release(u32 barrier) {
    if (threadIdx.x % 32 == 0) barrier_arrive(barrier);
}

// A warp group that multiplies, and which stages it has used. Groups of one part follow one another.
struct Consumer {
    // `uses` has bits of stages of K, from here on of V, and one of tiles.
    static constexpr u32 VALUES = 16, TILES = 31;
    u32 base, part;
    Uses uses;  // in one register: there are few left

    DEVICE explicit Consumer(u32 base)
        : base(base), part(PARTS == 1 ? 0 : __shfl_sync(~0u, threadIdx.x / (128 * QUERY_GROUPS), 0)) {}

    // The number of the group among those of its part.
    DEVICE u32 group() const { return threadIdx.x / 128 % QUERY_GROUPS; }
    DEVICE u32 lane() const { return threadIdx.x % 32; }
    // The lane's first row in the tile.
    DEVICE u32 row() const { return threadIdx.x / 32 % (4 * QUERY_GROUPS) * 16 + lane() / 4; }

    // Two groups take turns in starting products: while those of one are under way, the other weighs. Three are 2 to 6
    // % slower so (docs/notebook/cuda-tried.md).
    static constexpr bool TURNS = CONSUMERS == 2 && PARTS == 1 && UNIFORM && !PACKED && !EIGHT_BITS;
    DEVICE void begin_turns() const {
        if (TURNS && group() == QUERY_GROUPS - 1) named_barrier_arrive(1, 256);
    }
    DEVICE void await_turn() const {
        if constexpr (TURNS) named_barrier_sync(1 + group(), 256);
    }
    DEVICE void give_turn() const {
        if constexpr (TURNS) named_barrier_arrive(1 + (group() + 1) % QUERY_GROUPS, 256);
    }

    DEVICE void await_queries() {
        barrier_wait(base + QUERY_FULL, uses.full_parity(TILES));
        uses.count(TILES);
    }
    DEVICE void await_keys(u32 stage) { barrier_wait(base + KEY_FULL + 8 * stage, uses.full_parity(stage)); }
    DEVICE void await_values(u32 stage) {
        barrier_wait(base + VALUE_FULL + 8 * stage, uses.full_parity(VALUES + stage));
    }
    // Where a run of the group's part of a step begins, in the first panel.
    DEVICE u32 key_rows(u32 stage, u32 run) const {
        return base + KEYS_AT + stage * KEY_BYTES +
               (part * RUNS + run) * RUN * (KEY_ROW_BYTES < 128 ? KEY_ROW_BYTES : 128);
    }
    DEVICE u32 value_rows(u32 stage, u32 run) const {
        return base + VALUES_AT + stage * VALUE_BYTES + (part * RUNS + run) * RUN * 128;
    }
    DEVICE void release_keys(u32 stage) {
        release(base + KEY_EMPTY + 8 * stage);
        uses.count(stage);
    }
    DEVICE void release_values(u32 stage) {
        release(base + VALUE_EMPTY + 8 * stage);
        uses.count(VALUES + stage);
    }
};

static_assert(STAGES <= Consumer::TILES - Consumer::VALUES, "a stage has no bit of its own");

// The two barriers between groups of different parts with the same queries. Each tile passes them once, even a tile in
// which a group has no queries, so their phase follows the tile count.
struct Merging {
    u32 full, empty, parity;

    DEVICE explicit Merging(const Consumer& me)
        : full(me.base + MERGED_FULL + 8 * me.group()),
          empty(me.base + MERGED_EMPTY + 8 * me.group()),
          parity(me.uses.full_parity(Consumer::TILES)) {}

    // For the second part: waits until there is room for its sums, and signals that they are stored.
    DEVICE void await_room() const { barrier_wait(empty, parity); }
    DEVICE void hand_over() const { barrier_arrive(full); }
    // For the first part: waits until the sums are stored, and signals that they have been read.
    DEVICE void await_sums() const { barrier_wait(full, parity ^ 1); }
    DEVICE void give_room() const { barrier_arrive(empty); }
};

// Whether groups check if a tile has queries for them. With equal sequences only a head's last tile may have too few,
// and the check costs more than it saves, unless heads are packed, where often no tile is full; four groups with a mask
// have no register left for it.
constexpr bool MAY_IDLE = (PACKED || !UNIFORM) && !(CAUSAL && QUERY_GROUPS == 4);

// A group's work in a tile without queries for it: it releases every stage.
DEVICE void idle(const Job& job, Consumer& me) {
    me.await_queries();
    release(me.base + QUERY_EMPTY);
#pragma unroll 1
    for (u32 step = 0; step < job.steps; step++) {
        u32 stage = step % STAGES;
        me.await_keys(stage);
        me.release_keys(stage);
        me.await_values(stage);
        me.release_values(stage);
    }
    if constexpr (PARTS == 2) {
        Merging merging(me);
        if (me.part == 1) {
            merging.await_room();
            merging.hand_over();
        } else {
            merging.await_sums();
            merging.give_room();
        }
    }
}

DEVICE void store(const Parameter& parameter, const Job& job, const Consumer& me, const Outputs& outputs,
                  const float (&factors)[2]) {
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        u32 query = job.query + me.row() + 8 * half;
        if (query >= job.sequence.queries) continue;
        u64 element =
            ((u64)job.sequence.query_row + (u64)job.head * job.sequence.queries + query) * HEAD + me.lane() % 4 * 2;
#pragma unroll
        for (u32 i = 0; i < HEAD / 8; i++)
            store_pair(parameter, element + 8 * i, outputs[4 * i + 2 * half] * factors[half],
                       outputs[4 * i + 2 * half + 1] * factors[half]);
    }
}

// Leaves what a warp has of a part of a tile's keys for the launch that merges it with the others (attention_merge.cu).
DEVICE void leave_for_merging(const Parameter& parameter, const Job& job, const Outputs& sums, const float (&totals)[2],
                              const float (&shifts)[2], const bool (&seen)[2]) {
    u32 warp = threadIdx.x / 32 % (4 * QUERY_GROUPS);
    if (16 * warp >= job.queries) return;
    Statistics rows[2];
#pragma unroll
    for (u32 row = 0; row < 2; row++) rows[row] = {seen[row] ? -shifts[row] : -INFINITE, totals[row]};
    WarpParts(parameter, job.number * 4 * QUERY_GROUPS + warp)
        .put(job.part, [&](u32 index) { return sums[index]; }, rows);
}

// Ends a tile: the sums of all parts together become results. The second part stores its sums in shared memory, one
// float of all threads after another, and the first part adds them: always in this order, so results are reproducible.
DEVICE void finish(const Parameter& parameter, const Job& job, const Consumer& me, const Scales& scales,
                   const Softmax& softmax, Outputs& sums) {
    float totals[2] = {softmax.sum(0), softmax.sum(1)}, shifts[2] = {softmax.shift[0], softmax.shift[1]}, factors[2];
    if constexpr (PARTS == 2) {
        Merging merging(me);
        u32 at = me.base + MERGED_AT + (me.group() * MERGED_FLOATS * 128 + threadIdx.x % 128) * 4;
        auto left = [&](u32 index) { return __uint_as_float(load_shared(at + 512 * index)); };
        auto leave = [&](u32 index, float value) { store_shared(at + 512 * index, __float_as_uint(value)); };
        if (me.part == 1) {
            merging.await_room();
#pragma unroll
            for (u32 row = 0; row < 2; row++) {
                leave(row, softmax.shift[row]);
                leave(2 + row, totals[row]);
            }
#pragma unroll
            for (u32 i = 0; i < HEAD / 2; i++) leave(4 + i, sums[i]);
            merging.hand_over();
            return;
        }
        merging.await_sums();
        float others[2];
#pragma unroll
        for (u32 row = 0; row < 2; row++) {
            float shift = left(row), least = fminf(softmax.shift[row], shift);
            factors[row] = power_by_hardware(least - softmax.shift[row]);
            others[row] = power_by_hardware(least - shift);
            totals[row] = fmaf(left(2 + row), others[row], totals[row] * factors[row]);
            shifts[row] = least;
        }
#pragma unroll
        for (u32 i = 0; i < HEAD / 2; i++) {
            u32 row = i / 2 % 2;
            sums[i] = fmaf(left(4 + i), others[row], sums[i] * factors[row]);
        }
        merging.give_room();
    }
    // A row that sees no key has the result 0, though its weights may have a nonzero sum: the polynomial and the table
    // do not return 0 for −∞. The first part has the first key, which every row sees that sees any key.
    bool seen[2] = {softmax.has_seen(0), softmax.has_seen(1)};
    if constexpr (SPLIT) {
        if (job.parts > 1) return leave_for_merging(parameter, job, sums, totals, shifts, seen);
    }
#pragma unroll
    for (u32 row = 0; row < 2; row++) factors[row] = seen[row] ? scales.value / totals[row] : 0.0f;
    store(parameter, job, me, sums, factors);
}
