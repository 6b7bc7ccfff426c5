// From sums to results: adds parts of a split tile, combines both products of the dual form, scales, rounds, stores.
// Each warp group does this by itself, and may finish well before the other.
#pragma once
#include "swapped_products.cuh"

// For a tile whose depth is split, the part that arrives last adds all parts in a fixed order: the result has the same
// bits in every call. Returns whether this is the last part.
template <u32 COLUMNS>
DEVICE bool reduce_parts(const Parameter& parameter, const Tile& tile, Control* control, const Lane& at,
                         float (&sums)[COLUMNS / 2]) {
    // As registers allow.
    constexpr u32 BUFFER = WEIGHT_ROWS * WIDTH / 4, BLOCKS = COLUMNS / 8, AT_ONCE = COLUMNS <= 192 ? 8 : 4;
    u32 part = tile.part(), parts = tile.part_count();
    float4* all = (float4*)parameter.partials + (u64)tile.slot * BUFFER + at.warp_group * (WIDTH / 8) * 128 + at.thread;
    float4* mine = all + (u64)part * BUFFER;
#pragma unroll
    for (u32 i = 0; i < BLOCKS; i++)
        __stcg(mine + i * 128, make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]));
    __threadfence();
    at.group_sync();
    if (at.thread == 0) {
        u32* counter = parameter.counters + tile.slot * 2 + at.warp_group;
        __threadfence();
        u32 before = atomicAdd(counter, 1);
        if (before == parts - 1) *counter = 0;
        __threadfence();
        store_shared(shared_address(&control->arrived_before[at.warp_group]), before);
    }
    at.group_sync();
    u32 before = load_shared(shared_address(&control->arrived_before[at.warp_group]));
    if (!__any_sync(~0u, before == parts - 1)) return false;  // a vote: ptxas must see that all threads go one way
    auto sums_of = [&](u32 other, u32 i) { return __ldcg(all + (u64)other * BUFFER + i * 128); };
#pragma unroll
    for (u32 begin = 0; begin < BLOCKS; begin += AT_ONCE) {
        float4 total[AT_ONCE];
#pragma unroll
        for (u32 i = begin; i < begin + AT_ONCE && i < BLOCKS; i++) total[i - begin] = sums_of(0, i);
#pragma unroll 1
        for (u32 other = 1; other < parts; other++) {
            float4 more[AT_ONCE];
#pragma unroll
            for (u32 i = begin; i < begin + AT_ONCE && i < BLOCKS; i++) more[i - begin] = sums_of(other, i);
#pragma unroll
            for (u32 i = 0; i < AT_ONCE && begin + i < BLOCKS; i++)
                total[i] = make_float4(total[i].x + more[i].x, total[i].y + more[i].y, total[i].z + more[i].z,
                                       total[i].w + more[i].w);
        }
#pragma unroll
        for (u32 i = begin; i < begin + AT_ONCE && i < BLOCKS; i++) {
            sums[4 * i] = total[i - begin].x;
            sums[4 * i + 1] = total[i - begin].y;
            sums[4 * i + 2] = total[i - begin].z;
            sums[4 * i + 3] = total[i - begin].w;
        }
    }
    return true;
}

DEVICE u32 round_pair(float low, float high) {
    u32 pair;
    if (OUTPUT == 1) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// x / (1 + e⁻ˣ). Numbers below 2⁻¹²⁶ make no difference here, so C++'s own functions, which handle them, are not
// needed.
DEVICE float silu(float x) {
    constexpr float LOG2_E = 1.4426950408889634f;
    return x * reciprocal_by_hardware(1.0f + power_by_hardware(-LOG2_E * x));
}

// Results of a warp group: this many rows of the output for each token.
constexpr u32 RESULT_ROWS = DUAL ? 32 : 64;

// What is added to the sums of a thread's rows: in the plain form it has two rows, in the dual form one of each of both
// weights.
struct Biases {
    float of[2];

    // Early, because they come from memory.
    DEVICE Biases(const Parameter& parameter, const Tile& tile) : of{0.0f, 0.0f} {
#if EPILOGUE
        Lane at;
        u32 n = SHAPE(tile.group, n),
            row = tile.row + at.warp_group * RESULT_ROWS + at.thread / 32 * (RESULT_ROWS / 4) + at.lane / 4;
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
            const void* biases = parameter.biases[DUAL ? i : 0];
            u32 own = row + (DUAL ? 0 : 8 * i);
            if (biases != nullptr && own < n)
                of[i] = load_bias(biases, (u64)tile.group * n + own, parameter.bias_format);
        }
#endif
    }

    DEVICE static float load_bias(const void* biases, u64 place, u32 format) {
        if (format == 2) return __ldg((const float*)biases + place);
        u16 half = __ldg((const u16*)biases + place);
        if (format == 1) return __uint_as_float((u32)half << 16);
        float bias;
        asm("cvt.f32.f16 %0, %1;" : "=f"(bias) : "h"(half));
        return bias;
    }
};

// At most `limit`; NaN stays NaN.
DEVICE float limited(float x, float limit) { return x > limit ? limit : x; }

// The results that a thread has of eight tokens, from block `i` of its sums: of tokens 2·(lane % 4) and the next, one
// row or, in the plain form, two that are eight apart. In the dual form the thread has sums of both products of its
// row.
template <u32 COLUMNS>
struct Results {
    const float (&sums)[COLUMNS / 2];
    const float (&scales)[2];
    const Biases& biases;
    const Parameter& parameter;

    DEVICE float one(u32 i, u32 token, u32 half) const {
#if EPILOGUE
        if (!DUAL) return sums[4 * i + 2 * half + token] * scales[0] + biases.of[half];
        constexpr float LOG2_E = 1.4426950408889634f;
        float limit = parameter.limit, first = limited(sums[4 * i + token] * scales[0] + biases.of[0], limit);
        float second = -limited(-limited(sums[4 * i + 2 + token] * scales[1] + biases.of[1], limit), limit);
        return first * reciprocal_by_hardware(1.0f + power_by_hardware(-LOG2_E * parameter.alpha * first)) *
               (second + parameter.beta);
#else
        if (!DUAL) return sums[4 * i + 2 * half + token] * scales[0];
        return silu(sums[4 * i + token] * scales[0]) * (sums[4 * i + 2 + token] * scales[1]);
#endif
    }

    // Rounded, of both tokens; zeros beyond the columns.
    DEVICE u32 pair(u32 i, u32 half) const {
        return i < COLUMNS / 8 ? round_pair(one(i, 0, half), one(i, 1, half)) : 0;
    }
};

// The bytes that a warp group stages in shared memory at a time, so that whole runs of a token's rows are stored.
// Directly from registers, runs would have 16 bytes, at a quarter of the rate.
constexpr u32 STAGED_BYTES = 2048, STAGED_ROW = RESULT_ROWS * 2, STAGED_TOKENS = STAGED_BYTES / STAGED_ROW;
static_assert(2 * 2 * STAGED_BYTES == WEIGHT_BYTES, "two places of two warp groups are not what a unit has of weights");

// Two places alternate. They lie where the warp group's own rows of the last multiplied weights were, which only this
// group has read: neither warp group waits for the other.
constexpr u32 STAGED_APART = DUAL ? WEIGHT_BYTES / 2 : STAGED_BYTES,
              STAGED_GROUPS_APART = DUAL ? STAGED_BYTES : WEIGHT_BYTES / 2;

// Where sixteen bytes of a token lie, so that eight consecutive lanes use all banks in either direction.
DEVICE u32 staged_place(u32 token, u32 piece) {
    return token * STAGED_ROW + (piece ^ (DUAL ? token / 2 % 4 : token % 8)) * 16;
}

template <u32 COLUMNS>
DEVICE void store_halves(u16* output, u32 n, u32 row, u32 width, u32 staging, const Lane& at,
                         const Results<COLUMNS>& results) {
    constexpr u32 PIECES = STAGED_ROW / 16, BLOCKS = STAGED_TOKENS / 8;  // of a token; of eight tokens in a place
    u32 warp = at.thread / 32, token = at.thread / PIECES, piece = at.thread % PIECES;
    u32 to = staging + (DUAL ? staged_place(at.lane, warp)
                             : staged_place(at.lane / 16 * 8 + at.lane % 8, 2 * warp + at.lane / 8 % 2));
    u32 from = staging + staged_place(token, piece);
    row += piece * 8;
    u16* place = output + (u64)token * n + row;
    at.group_sync();                                   // all its warps have read their weights
    bool whole = n % 8 == 0 && (u64)output % 16 == 0;  // results of groups lie one after another, at any element
#pragma unroll
    for (u32 i = 0; i * BLOCKS < COLUMNS / 8; i++) {
        u32 turn = i % 2 * STAGED_APART, block = i * BLOCKS;
        if (DUAL)
            store_matrices_turned(to + turn, results.pair(block, 0), results.pair(block + 1, 0),
                                  results.pair(block + 2, 0), results.pair(block + 3, 0));
        else
            store_matrices_turned(to + turn, results.pair(block, 0), results.pair(block, 1), results.pair(block + 1, 0),
                                  results.pair(block + 1, 1));
        at.group_sync();
        if (i * STAGED_TOKENS + token < width && row < n) {
            if (whole) *(uint4*)place = load_shared_16(from + turn);
            else
#pragma unroll 1
                for (u32 j = 0; j < 8 && row + j < n; j++) place[j] = load_shared_2(from + turn + 2 * j);
        }
        place += (u64)STAGED_TOKENS * n;
    }
}

template <u32 COLUMNS>
DEVICE void store_words(float* output, u32 n, u32 row, u32 width, const Lane& at, const Results<COLUMNS>& results) {
    row += at.thread / 32 * (RESULT_ROWS / 4) + at.lane / 4;
#pragma unroll
    for (u32 i = 0; i < COLUMNS / 8; i++)
#pragma unroll
        for (u32 which = 0; which < (DUAL ? 2 : 4); which++) {
            u32 token = 8 * i + at.lane % 4 * 2 + which % 2, at_row = row + which / 2 * 8;
            if (token < width && at_row < n) output[(u64)token * n + at_row] = results.one(i, which % 2, which / 2);
        }
}

template <u32 COLUMNS>
DEVICE void finish_tile(const Parameter& parameter, const Announced& announced, Control* control, u32 unit,
                        float (&sums)[COLUMNS / 2], const Biases& biases, Recorder& recorder, u32 number) {
    Lane at;
    const Tile& tile = announced.tile;
    if (tile.part_count() > 1) {
        bool last = reduce_parts<COLUMNS>(parameter, tile, control, at, sums);
        recorder.end(Activity::Reduce, number);
        if (!last) return;
    }
    float scales[2] = {announced.scales[0] * SUM_UNIT, announced.scales[1] * SUM_UNIT};
    Results<COLUMNS> results{sums, scales, biases, parameter};
    u32 n = SHAPE(tile.group, n), row = tile.row + at.warp_group * RESULT_ROWS;
    u64 place = SHAPE(tile.group, output) + (u64)tile.token * n;
    if (OUTPUT == 2) {
        store_words<COLUMNS>((float*)parameter.output + place, n, row, tile.width, at, results);
    } else {
        u32 staging = unit + token_bytes(COLUMNS) + at.warp_group * STAGED_GROUPS_APART;
        store_halves<COLUMNS>((u16*)parameter.output + place, n, row, tile.width, staging, at, results);
    }
    recorder.end(Activity::Store, number);
}
