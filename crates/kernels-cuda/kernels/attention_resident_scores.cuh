// Q·Kᵀ of a warp group's keys, in accumulators: a thread has columns 8j + 2·(lane % 4) and the next of two rows, 8
// apart.
#pragma once
#include "attention_resident_convert.cuh"

typedef float Scores[KEYS / 2];

// Begins the products with the queries as they were copied.
DEVICE void multiply_copied(Scores& scores, const Place& place) {
    u64 queries = QueryMatrix::descriptor(place.memory + QUERY_AT);
    u64 keys = KeyMatrix::descriptor(place.memory + KEY_AT + place.group * KeyMatrix::SIZE);
    products_fence();
#pragma unroll
    for (u32 step = 0; step < ROW_BYTES / 32; ++step)
        Product<Format, KEYS>::shared(scores, queries + QueryMatrix::deeper(step), keys + KeyMatrix::deeper(step),
                                      step > 0);
    products_commit();
}

// Begins the products with queries and keys converted, the queries in registers.
DEVICE void multiply_converted(Scores& scores, const Place& place) {
    u32 converted = place.memory + CONVERTED_KEY_AT + place.group * MultipliedMatrix::SIZE;
    convert_matrix(place.memory + KEY_AT + place.group * KeyMatrix::SIZE, converted);
    u32 queries[HEAD / 16][4];
    load_queries<QueryMatrix>(queries, place.memory + QUERY_AT, place.row(), place.lane);
    fence_async();
    named_barrier_sync(1 + place.group, GROUP_THREADS);
    u64 keys = MultipliedMatrix::descriptor(converted);
    products_fence();
#pragma unroll
    for (u32 step = 0; step < HEAD / 16; ++step)
        Product<Format, KEYS>::registers(scores, queries[step], keys + MultipliedMatrix::deeper(step), step > 0);
    products_commit();
}

// Prepares V for the matrix unit while products run.
DEVICE void convert_values(const Place& place) {
    barrier_wait(place.memory + VALUE_FULL + 8 * place.group, 0);
    u32 from = place.memory + VALUE_AT + place.group * KeyMatrix::SIZE;
    u32 to = place.memory + CONVERTED_VALUE_AT + place.group * MultipliedMatrix::SIZE;
    if constexpr (EIGHTS) transpose_values(from, to, place.slot(), place.lane);
    else convert_matrix(from, to);
    fence_async();
    barrier_arrive(place.memory + VALUE_CONVERTED + 8 * place.group);
}

// Sets raw scores of invisible keys to −∞.
DEVICE void mask(Scores& scores, const Work& work, const Place& place) {
    // The tile's first query sees the fewest keys.
    if (visible_keys(work.lengths, work.query) >= place.first_key() + KEYS) return;
    u32 query = work.query + place.row(), first_key = place.first_key() + place.lane % 4 * 2;
    int visible[2] = {(int)(visible_keys(work.lengths, query) - first_key),
                      (int)(visible_keys(work.lengths, query + 8) - first_key)};
#pragma unroll
    for (u32 index = 0; index < KEYS / 2; ++index)
        if ((int)(index / 4 * 8 + index % 2) >= visible[index / 2 % 2]) scores[index] = -INFINITE;
}

// Turns raw scores into exponents of two, where each block of keys has a scale of its own.
DEVICE void scale_by_block(Scores& scores, const Place& place, const BlockScales& blocks) {
#pragma unroll
    for (u32 block = 0; block < KEYS / SCALE_BLOCK; ++block) {
        float factor = blocks.of_scores(place.first_key() + block * SCALE_BLOCK);
#pragma unroll
        for (u32 index = 0; index < SCALE_BLOCK / 2; ++index) scores[block * (SCALE_BLOCK / 2) + index] *= factor;
    }
}

DEVICE void compute_scores(Scores& scores, const Work& work, const Place& place, const Scales& scales, const BlockScales& blocks) {
    barrier_wait(place.memory + QUERY_FULL, 0);
    barrier_wait(place.memory + KEY_FULL + 8 * place.group, 0);
    if constexpr (CONVERTED) multiply_converted(scores, place);
    else multiply_copied(scores, place);
    if constexpr (EIGHT_BITS) convert_values(place);
    products_wait<0>();
    pin(scores);
    if constexpr (BY_BLOCK) scale_by_block(scores, place, blocks);
    if (EIGHT_BITS && scales.flip) {
#pragma unroll
        for (u32 index = 0; index < KEYS / 2; ++index) scores[index] = -scores[index];
    }
    mask(scores, work, place);
}
