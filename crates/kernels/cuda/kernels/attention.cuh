// Attention, O = softmax(Q·Kᵀ · scale) · V: the binary interface between host and kernels (the other half is
// src/plan/attention/abi.rs), and the code that all of its kernels share.
//
// Definitions: HEAD, the head size; RAGGED 1, lengths are read on the device (unified kernel alone); FORMAT of Q, K and
// V: 0 fp16, 1 bf16, 2 e4m3, 3 linear int8; SCALING of the last two: 0 a scale for each head, 1 one for each
// SCALE_BLOCK positions of it; OUTPUT: 0 fp16, 1 bf16, 2 fp32; CAUSAL 1, a query sees the keys up to its own place,
// aligned at the end; EXPONENTIAL: 0 by hardware, 1 every fourth element by a polynomial, 2 by a table.
#pragma once
#include "eights.cuh"

#define INFINITE __int_as_float(0x7F800000)
constexpr bool EIGHT_BITS = FORMAT >= 2, BY_BLOCK = EIGHT_BITS && SCALING == 1;
constexpr u32 ELEMENT_BYTES = EIGHT_BITS ? 1 : 2, ROW_BYTES = HEAD * ELEMENT_BYTES;
// Elements of a head as `mma.sync` takes them: of 8 bits, 32 at a time. Those behind HEAD are zeros.
constexpr u32 DEPTH = EIGHT_BITS ? (HEAD + 31) / 32 * 32 : HEAD;
constexpr u32 SCALE_BLOCK = 64;  // positions; tiles and runs of keys begin at multiples of it or end within one

// A batch element. Heads lie one after another, each with all of its positions: head h of Q and of the output begins
// h · queries rows after `query_row`, that of K and V h · keys rows after `key_row`.
struct Sequence {
    u32 query_row, key_row;
    u32 queries, keys;
};

// A unit of work: `queries` queries of a head, from `query` on. Of packed heads, rows of all queries of those heads
// that share a key head, whose number is in `head`.
struct Tile {
    u32 sequence, head;
    u32 query, queries;
};

#if RAGGED
// Bytes from one to the next.
struct Strides {
    u64 page, position, head;
};
#endif

struct Parameter {
    const u8* query;
    const u8* key;
    const u8* value;
    const float* query_scales;  // [sequence][head], and if BY_BLOCK [block of positions]; null if the host knows them
    const float* key_scales;    // [sequence][key head], likewise
    const float* value_scales;  // as key_scales
    u8* output;
    const Sequence* sequences;
    const Tile* tiles;      // in the order in which blocks take them
    const TensorMap* maps;  // three a sequence, of Q, K and V; of equal sequences see `own_maps`
    u32* counters;          // parts of tiles that have arrived (attention_parts.cuh); zero between calls
    float* workspace;       // what parts of tiles leave (attention_parts.cuh)
    u32 tile_count, heads, kv_heads;
    float scale;                // log₂ e / √(head size): exponentials are powers of two
    u32 queries, keys;          // of every sequence, if all have as many; else 0
    const uint2* first_scales;  // of each sequence's first head, of Q and of K; only if BY_BLOCK
    u32 parts;                  // of a tile's keys, at most
    u32 scale_step;             // from a head's scales to the next head's: 0 if all heads share one
    float value_scale;          // if `query_scales` is null; `scale` then has those of Q and K as factors
    u32 row_heads;  // query heads whose queries are the rows of one of `heads`; 1 unless the plan has packed them
#if UNIFORM && !defined(WITHOUT_MAPS)
    // Of Q, K and V of all sequences as one with all heads. They come with the launch, so operands at new addresses
    // need no other memory on the device.
    TensorMap own_maps[3];
#endif
#if RAGGED
    // Sequences of lengths that only the device knows, with the heads of a position side by side. `sequences` and
    // `tiles` are null.
    const u32* query_begins;  // of each sequence its first position in Q, and behind the last one the end of all
    const u32* key_begins;    // the same of K and V; null if they lie in pages
    const u32* key_counts;    // positions of K and V of each sequence; null if `key_begins` says it
    const u32* pages;         // [sequence][pages_a_sequence]: the pages of its positions, in their order
    Strides query_strides, key_strides, value_strides;
    u32 pages_a_sequence, page_shift;  // a page has 1 << page_shift positions
    u32 tiles_a_set;                   // of the heads of a sequence that share keys, at most
    u32 batch;                         // sequences
    // The launch is for sequences with more rows than the first and at most the second, a row being a query of one of
    // the heads that share keys.
    u32 rows_above, rows_to;
#endif
};

#ifndef WITHOUT_MAPS
// Those of a sequence's Q, K and V.
DEVICE const TensorMap* maps_of(const Parameter& parameter, u32 sequence) {
#if UNIFORM
    return parameter.own_maps;
#else
    return parameter.maps + 3 * sequence;
#endif
}
#endif

struct Scales {
    float score;  // of raw scores, so that weights are powers of two; its sign is in `flip`
    float value;
    u32 flip;  // nonzero if raw scores change their sign: largest and smallest change places
};

DEVICE Scales scales_of(float score, float value) {
    // Clamped away from 0 and ∞, which would turn −∞ and 0 into NaN.
    float size = fminf(fmaxf(fabsf(score), 1.17549435e-38f), 3.40282347e38f);
    return {size, value, __float_as_uint(score) & 0x80000000u};
}

// Of a whole query head. Where its blocks have their own scales, all factors are 1.
DEVICE Scales load_scales(const Parameter& parameter, u32 sequence, u32 head) {
    if (BY_BLOCK) return {1.0f, 1.0f, 0};
    if (!EIGHT_BITS) return {parameter.scale, 1.0f, 0};
    if (parameter.query_scales == nullptr) return scales_of(parameter.scale, parameter.value_scale);
    u32 heads = parameter.heads * parameter.row_heads;
    u32 query = parameter.scale_step * (sequence * heads + head);
    u32 kv = parameter.scale_step * (sequence * parameter.kv_heads + head / (heads / parameter.kv_heads));
    float score = parameter.scale * __ldg(parameter.query_scales + query) * __ldg(parameter.key_scales + kv);
    return scales_of(score, __ldg(parameter.value_scales + kv));
}

// If BY_BLOCK, the scales of the blocks of keys that a head's queries from `query` on see; those share a scale.
struct BlockScales {
    const Parameter& parameter;
    u32 first, keys;  // of the key head: its first among all scales of keys, and positions
    float query;      // the queries' own, and what all scores are multiplied by

    DEVICE BlockScales(const Parameter& parameter, u32 sequence, const Sequence& lengths, u32 head, u32 query)
        : parameter(parameter), first(0), keys(lengths.keys), query(0.0f) {
        if (!BY_BLOCK) return;
        uint2 begin = __ldg(parameter.first_scales + sequence);
        u32 of_head = (lengths.queries + SCALE_BLOCK - 1) / SCALE_BLOCK,
            block = min(query, lengths.queries - 1) / SCALE_BLOCK;
        this->query = parameter.scale * __ldg(parameter.query_scales + begin.x + head * of_head + block);
        first = begin.y + head / (parameter.heads / parameter.kv_heads) * ((keys + SCALE_BLOCK - 1) / SCALE_BLOCK);
    }

    // Of the block that contains key `key`; beyond the last key, the score factor is 1 and the value scale 0.
    DEVICE Scales at(u32 key) const {
        if (key >= keys) return {1.0f, 0.0f, 0};
        u32 place = first + key / SCALE_BLOCK;
        return scales_of(query * __ldg(parameter.key_scales + place), __ldg(parameter.value_scales + place));
    }

    // The factor that turns the block's raw scores into exponents of two.
    DEVICE float of_scores(u32 key) const {
        Scales scales = at(key);
        return __uint_as_float(__float_as_uint(scales.score) | scales.flip);
    }
};

#if RAGGED
// What a sequence's lengths say is believed only as far as they are no fewer than none. Launches before this one may
// have written them while it was starting, so they are not loaded through the cache for constants.
DEVICE Sequence ragged_sequence(const Parameter& parameter, u32 index) {
    u32 begin = parameter.query_begins[index], end = parameter.query_begins[index + 1], key_begin = 0, keys;
    if (parameter.key_begins) key_begin = parameter.key_begins[index];
    if (parameter.key_counts) keys = parameter.key_counts[index];
    else keys = parameter.key_begins[index + 1] - key_begin;
    return {begin, key_begin, (u32)max((int)(end - begin), 0), (u32)max((int)keys, 0)};
}

// The rows of a sequence, none if they are another launch's.
DEVICE u32 ragged_rows(const Parameter& parameter, const Sequence& sequence) {
    u32 rows = sequence.queries * (parameter.heads / parameter.kv_heads);
    return parameter.rows_above < rows && rows <= parameter.rows_to ? rows : 0;
}

// Things of which each sequence has as many as `count` says of its number, one sequence's after another's: how many
// there are in all, and the sequence that has the one with number `at`. By whole warps, which look at 32 sequences at a
// time.
template <typename Count>
DEVICE u32 count_of_sequences(const Parameter& parameter, Count count) {
    u32 total = 0;
    for (u32 first = 0; first < parameter.batch; first += 32) {
        u32 index = first + threadIdx.x % 32;
        if (index < parameter.batch) total += count(index);
    }
#pragma unroll
    for (u32 apart = 16; apart > 0; apart /= 2) total += __shfl_xor_sync(~0u, total, apart);
    return total;
}

struct Found {
    u32 sequence, before, count;  // those of the sequences before it, and its own: none if there is no such thing
};

template <typename Count>
DEVICE Found find_sequence(const Parameter& parameter, u32 at, Count count) {
    u32 lane = threadIdx.x % 32, before = 0;
    for (u32 first = 0; first < parameter.batch; first += 32) {
        u32 own = first + lane < parameter.batch ? count(first + lane) : 0, until = own;
#pragma unroll
        for (u32 apart = 1; apart < 32; apart *= 2) {
            u32 less = __shfl_up_sync(~0u, until, apart);
            if (lane >= apart) until += less;
        }
        u32 beyond = __ballot_sync(~0u, before + until > at);
        if (beyond != 0) {
            u32 found = 32 - __popc(beyond);  // they are the last lanes
            before += __shfl_sync(~0u, until - own, found);
            return {first + found, before, __shfl_sync(~0u, own, found)};
        }
        before += __shfl_sync(~0u, until, 31);
    }
    return {0, at, 0};
}
#endif

// How many keys, from the first, a query sees.
DEVICE u32 visible_keys(const Sequence& sequence, u32 query) {
    if (!CAUSAL) return sequence.keys;
    u32 visible = query + 1 + sequence.keys;
    return visible <= sequence.queries ? 0 : min(visible - sequence.queries, sequence.keys);
}

// ---- Powers of two, beside `power_by_hardware`: −∞ gives 0, and results beyond the range of fp32 become 2¹²⁷ ·
// 0.99992 or more.

// 1.5 · 2²³: added to a small number, leaves its integer in the low bits.
constexpr float NEAREST_INTEGER = 12582912.0f;

// A polynomial of degree 3 over [−½, ½], of least relative error (7.5e-5 by Remez' exchange): a third of the largest
// error of rounding weights to fp16. Below 2⁻¹²⁶ the result is 2⁻¹²⁶.
DEVICE float power_by_polynomial(float exponent) {
    exponent = fminf(fmaxf(exponent, -126.0f), 127.0f);
    float shifted = exponent + NEAREST_INTEGER, part = exponent - (shifted - NEAREST_INTEGER);
    float power = fmaf(fmaf(fmaf(0.05517167f, part, 0.24261112f), part, 0.69326099f), part, 0.99992807f);
    return __uint_as_float(__float_as_uint(power) + (__float_as_uint(shifted) << 23));
}

// 2^(lane / 32): the table, an entry a lane.
DEVICE float power_table() { return exp2f((float)(threadIdx.x % 32) / 32.0f); }

// 32 steps to a power of two, between them a straight line of least relative error (2.9e-5). All lanes take part.
DEVICE float power_by_table(float exponent, float table) {
    exponent = fminf(fmaxf(exponent, -126.0f), 127.0f);
    float shifted = fmaf(exponent, 32.0f, NEAREST_INTEGER),
          part = fmaf(shifted - NEAREST_INTEGER, -1.0f / 32.0f, exponent);
    u32 step = __float_as_uint(shifted);
    float power = __shfl_sync(~0u, table, step % 32) * fmaf(0.69314040f, part, 1.00002932f);
    return __uint_as_float(__float_as_uint(power) + ((step >> 5) << 23));
}

// `index` is the element's place among the thread's own, known when it is compiled.
DEVICE float power(float exponent, u32 index, float table) {
    if (EXPONENTIAL == 2) return power_by_table(exponent, table);
    if (EXPONENTIAL == 1 && index % 4 == 3) return power_by_polynomial(exponent);
    return power_by_hardware(exponent);
}

// ---- Rows of fragments: four neighbouring lanes have a row.

DEVICE float maximum_of_four(float value) {
    value = fmaxf(value, __shfl_xor_sync(~0u, value, 1));
    return fmaxf(value, __shfl_xor_sync(~0u, value, 2));
}

DEVICE float sum_of_four(float value) {
    value += __shfl_xor_sync(~0u, value, 1);
    return value + __shfl_xor_sync(~0u, value, 2);
}

// ---- Pairs of rounded values, the lower element in the lower bits.

DEVICE u32 pair_of_halves(float low, float high) {
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

DEVICE u32 pair_of_brains(float low, float high) {
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

DEVICE u32 four_eights(float first, float second, float third, float fourth) {
    u16 low, high;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(second), "f"(first));
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(fourth), "f"(third));
    return low | (u32)high << 16;
}

// Two neighbours in the format of 16-bit weights.
DEVICE u32 pair_of_weights(float low, float high) {
    return FORMAT == 1 ? pair_of_brains(low, high) : pair_of_halves(low, high);
}

// Adds up the rows of a fragment of rounded weights over all lanes, by a product with a matrix of ones: so V = 1 gives
// 1, and no instruction is spent on each weight. sums[0] is of the lane's first row, sums[2] of its second.
template <bool EIGHTS>
DEVICE void add_rows(float (&sums)[4], const u32 (&rounded)[4]) {
#define ADD_ROWS(INSTRUCTION, ONES)                                                                        \
    asm("mma.sync.aligned." INSTRUCTION " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %8}, {%0, %1, %2, %3};" \
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                                       \
        : "r"(rounded[0]), "r"(rounded[1]), "r"(rounded[2]), "r"(rounded[3]), "r"(ONES))
    if (EIGHTS) ADD_ROWS("m16n8k32.row.col.f32.e4m3.e4m3.f32", 0x38383838);
    else if (FORMAT == 1) ADD_ROWS("m16n8k16.row.col.f32.bf16.bf16.f32", 0x3F803F80);
    else ADD_ROWS("m16n8k16.row.col.f32.f16.f16.f32", 0x3C003C00);
#undef ADD_ROWS
}

// Two int8 values as fp16, which holds them exactly: 1024 + 128 + value has the value's bits, the sign's turned, in its
// lowest eight.
DEVICE u32 halves_of_integers(u16 pair) {
    u32 raised = __byte_perm(pair ^ 0x8080u, 0x64646464u, 0x4140), halves;
    asm("sub.f16x2 %0, %1, %2;" : "=r"(halves) : "r"(raised), "r"(0x64806480u));
    return halves;
}

// Of operands in 8 bits.
DEVICE u32 halves_of_bytes(u16 pair) { return FORMAT == 3 ? halves_of_integers(pair) : halves_of_eights(pair); }

// Two neighbours of a row of the result, from `element` on, which is even.
DEVICE void store_pair(const Parameter& parameter, u64 element, float low, float high) {
    if (OUTPUT == 2) ((float2*)parameter.output)[element / 2] = make_float2(low, high);
    else ((u32*)parameter.output)[element / 2] = OUTPUT == 1 ? pair_of_brains(low, high) : pair_of_halves(low, high);
}
