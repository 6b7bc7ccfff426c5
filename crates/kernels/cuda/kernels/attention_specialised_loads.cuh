// The warps that load operands: one issues copies; for 8 bits three more convert the copies for the matrix unit.
#pragma once
#include "attention_specialised_ring.cuh"

constexpr u32 PANEL_ELEMENTS = ROW_BYTES < 128 ? HEAD : 128 / ELEMENT_BYTES, PANELS = HEAD / PANEL_ELEMENTS;

// Copies rows of a head from `row` on, panel after panel; rows beyond the end arrive as zeros and count as bytes.
DEVICE void copy_rows(u32 to, const TensorMap* map, u32 row, u32 head, u32 rows, u32 barrier) {
    barrier_expect(barrier, rows * ROW_BYTES);
#pragma unroll
    for (u32 panel = 0; panel < PANELS; panel++)
        copy_tensor(to + panel * rows * (ROW_BYTES / PANELS), map, panel * PANEL_ELEMENTS, row, head, barrier);
}

DEVICE void copy_to_ring(u32 base, u32 at, u32 bytes, u32 full, u32 empty, Uses& uses, u32 stage, const TensorMap* map,
                         u32 row, u32 head) {
    barrier_wait(base + empty + 8 * stage, uses.empty_parity(stage));
    copy_rows(base + at + stage * bytes, map, row, head, KEYS, base + full + 8 * stage);
    uses.count(stage);
}

// Position in the ring of copied operands that are not converted yet; its stages continue across tiles.
struct RawPlace {
    Uses uses;
    u32 stage = 0;

    DEVICE void advance() {
        if (++stage == RAW_STAGES) stage = 0;
    }
};

DEVICE void copy_raw(u32 base, RawPlace& raw, const TensorMap* map, u32 row, u32 head) {
    copy_to_ring(base, RAW_AT, RAW_BYTES, RAW_FULL, RAW_EMPTY, raw.uses, raw.stage, map, row, head);
    raw.advance();
}

// Run by one thread. A tile's Q is loaded after the scores of the previous tile are done, then K and V as they are
// needed.
DEVICE void load(const Parameter& parameter, u32 base) {
    Uses keys, values;
    RawPlace raw;
    u32 filled = 0;
    for (u32 round = 0; tile_of_round(round) < tile_count(parameter); round++) {
        Job job = locate(parameter, tile_of_round(round));
        if (job.steps == 0) continue;
        const TensorMap* maps = maps_of(parameter, job.index);
        u32 head = job.kv_head(parameter);
        barrier_wait(base + QUERY_EMPTY, filled++ & 1 ^ 1);
        copy_rows(base + QUERIES_AT, maps, job.query, job.head, QUERIES, base + QUERY_FULL);
        for (u32 step = 0; step < job.steps; step++) {
            u32 stage = step % STAGES, row = (job.first_step + step) * KEYS;
            if constexpr (BY_CONVERTERS_KEYS) copy_raw(base, raw, maps + 1, row, head);
            else copy_to_ring(base, KEYS_AT, KEY_BYTES, KEY_FULL, KEY_EMPTY, keys, stage, maps + 1, row, head);
            if constexpr (BY_CONVERTERS_VALUES) copy_raw(base, raw, maps + 2, row, head);
            else
                copy_to_ring(base, VALUES_AT, VALUE_BYTES, VALUE_FULL, VALUE_EMPTY, values, stage, maps + 2, row, head);
        }
    }
}

// Where the 16-byte piece of a copied row of 8 bits lies: rows of 64 bytes are swizzled within 64, two in a line of
// 128.
DEVICE u32 raw_piece(u32 row, u32 piece) {
    return row * ROW_BYTES + (HEAD == 64 ? piece ^ row / 2 % 4 : piece ^ row % 8) * 16;
}

// Pieces of 16 values that a converter's thread loads before it converts the first: a load takes as long as converting
// several.
constexpr u32 CONVERTED_AT_ONCE = CONSUMERS >= 3 ? 1 : 4;

// Converts KEYS rows to fp16, 16 values at a time.
DEVICE void convert_rows(u32 from, u32 to, u32 thread) {
    constexpr u32 PIECES = HEAD / 16, STEP = 32 * CONVERTERS;
#pragma unroll 1
    for (u32 first = thread; first < KEYS * PIECES; first += STEP * CONVERTED_AT_ONCE) {
        uint4 bytes[CONVERTED_AT_ONCE];
#pragma unroll
        for (u32 turn = 0; turn < CONVERTED_AT_ONCE; turn++) {
            u32 index = min(first + turn * STEP, KEYS * PIECES - 1);
            bytes[turn] = load_shared_16(from + raw_piece(index / PIECES, index % PIECES));
        }
#pragma unroll
        for (u32 turn = 0; turn < CONVERTED_AT_ONCE; turn++) {
            u32 index = first + turn * STEP, row = index / PIECES, piece = index % PIECES;
            if (index >= KEYS * PIECES) break;
            u32 words[4] = {bytes[turn].x, bytes[turn].y, bytes[turn].z, bytes[turn].w}, halves[8];
#pragma unroll
            for (u32 i = 0; i < 8; i++) halves[i] = halves_of_bytes((u16)(words[i / 2] >> 16 * (i % 2)));
            u32 panel = to + piece / 4 * (KEYS * 128) + row * 128, place = piece % 4 * 2;
            store_shared_16(panel + (place ^ row % 8) * 16, halves[0], halves[1], halves[2], halves[3]);
            store_shared_16(panel + (place + 1 ^ row % 8) * 16, halves[4], halves[5], halves[6], halves[7]);
        }
    }
}

// Takes the next copied rows, converts them into a stage of the ring, and signals both barriers.
template <bool VALUES>
DEVICE void prepare(u32 base, Uses& uses, u32 stage, RawPlace& raw, u32 thread) {
    constexpr u32 FULL = VALUES ? VALUE_FULL : KEY_FULL, EMPTY = VALUES ? VALUE_EMPTY : KEY_EMPTY;
    u32 to = base + (VALUES ? VALUES_AT + stage * VALUE_BYTES : KEYS_AT + stage * KEY_BYTES);
    barrier_wait(base + RAW_FULL + 8 * raw.stage, raw.uses.full_parity(raw.stage));
    barrier_wait(base + EMPTY + 8 * stage, uses.empty_parity(stage));
    u32 from = base + RAW_AT + raw.stage * RAW_BYTES;
    convert_rows(from, to, thread);
    fence_async();
    __syncwarp();
    if (thread % 32 == 0) {
        barrier_arrive(base + FULL + 8 * stage);
        barrier_arrive(base + RAW_EMPTY + 8 * raw.stage);
    }
    uses.count(stage);
    raw.uses.count(raw.stage);
    raw.advance();
}

// `thread` counts the converters' threads.
DEVICE void convert(const Parameter& parameter, u32 base, u32 thread) {
    Uses keys, values;
    RawPlace raw;
    for (u32 round = 0; tile_of_round(round) < tile_count(parameter); round++) {
        u32 steps = locate(parameter, tile_of_round(round)).steps;
        for (u32 step = 0; step < steps; step++) {
            if constexpr (BY_CONVERTERS_KEYS) prepare<false>(base, keys, step % STAGES, raw, thread);
            prepare<true>(base, values, step % STAGES, raw, thread);
        }
    }
}
