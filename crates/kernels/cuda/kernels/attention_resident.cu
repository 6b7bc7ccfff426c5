// Attention for short sequences: all keys are in shared memory together. A cluster of SPLIT blocks computes 64 queries
// of a head. Each of the two warp groups of each block has KEYS keys of its own and goes from loads to a partial result
// without a loop; partial results are merged in the blocks' shared memory. On an H200 a call of 1×8×512×64 is bound by
// the latency of consecutive steps: launch, loads, Q·Kᵀ, exponentials, weights · V, merge.
//
// Definitions, beside those of attention.cuh: KEYS of a warp group; SPLIT, the blocks of a cluster, each with keys of
// its own; PARTIALS, in which blocks exchange results: 0 fp32, 1 fp16; UNIFORM 1, all sequences are equal, and the host
// describes them as one with the heads of all, of TILES tiles each: then neither a table nor a division stands before
// the loads; RUNS, into how many the weights are divided: V is multiplied by one while the next is computed.
#include "attention_operands.cuh"

constexpr u32 QUERIES = 64, GROUPS = 2, WARPS = 8, GROUP_WARPS = 4, GROUP_THREADS = 128;

// ---- Matrices.

typedef Matrix<QUERIES, ROW_BYTES> QueryMatrix;
typedef Matrix<KEYS, ROW_BYTES> KeyMatrix;                        // V too
typedef Matrix<KEYS, EIGHTS ? HEAD : 2 * HEAD> MultipliedMatrix;  // K and V as the matrix unit takes them
typedef Matrix<HEAD, KEYS> TransposedMatrix;                      // V of e4m3, which is multiplied depth first only

// ---- Partial results: each of the 2·SPLIT parts of the keys has one of each of the tile's four slots of 16 rows, in
// the order of the accumulators: pieces of 16 bytes a lane. A block owns slots: it merges and stores them.

constexpr u32 PARTS = GROUPS * SPLIT, SLOTS = QUERIES / 16, OWNED = SLOTS / SPLIT;
constexpr u32 PIECES = PARTIALS == 1 ? HEAD / 16 : HEAD / 8, PIECE_BYTES = 32 * 16;
constexpr u32 STATISTICS_BYTES = 8 * 16;  // of a slot: maxima and sums of rows r and r + 8 together
constexpr u32 REMOTE_BYTES = GROUPS * (SPLIT - 1) * OWNED * (PIECES * PIECE_BYTES + STATISTICS_BYTES);
static_assert(SPLIT == 1 || SPLIT == 2 || SPLIT == 4, "a block owns whole slots");

// ---- Shared memory, in bytes from its begin.

constexpr u32 QUERY_AT = 0;
constexpr u32 KEY_AT = QUERY_AT + QueryMatrix::SIZE;
constexpr u32 VALUE_AT = KEY_AT + GROUPS * KeyMatrix::SIZE;
constexpr u32 CONVERTED_KEY_AT = VALUE_AT + GROUPS * KeyMatrix::SIZE;
constexpr u32 CONVERTED_VALUE_AT = CONVERTED_KEY_AT + (CONVERTED ? GROUPS * MultipliedMatrix::SIZE : 0);
constexpr u32 PARTIALS_AT = CONVERTED_VALUE_AT + (EIGHT_BITS ? GROUPS * MultipliedMatrix::SIZE : 0);
constexpr u32 STATISTICS_AT = PARTIALS_AT + PARTS * OWNED * PIECES * PIECE_BYTES;
constexpr u32 BARRIERS_AT = STATISTICS_AT + PARTS * OWNED * STATISTICS_BYTES;
constexpr u32 MULTIPLIED_VALUE_AT = EIGHT_BITS ? CONVERTED_VALUE_AT : VALUE_AT;

// Barriers, each used for one phase: that of parity 0.
constexpr u32 QUERY_FULL = BARRIERS_AT, MERGE_FULL = QUERY_FULL + 8;
constexpr u32 KEY_FULL = MERGE_FULL + 8, VALUE_FULL = KEY_FULL + 8 * GROUPS, VALUE_CONVERTED = VALUE_FULL + 8 * GROUPS;

// ---- Work.

struct Work {
    u32 sequence, head, query;  // 64 queries of a head, from `query` on
    Sequence lengths;
};

// What a cluster computes.
DEVICE Work find_work(const Parameter& parameter) {
    u32 number = blockIdx.x / SPLIT;
    if (UNIFORM) {
        return {0, number / TILES, number % TILES * QUERIES, {0, 0, parameter.queries, parameter.keys}};
    }
    uint4 tile = __ldg((const uint4*)parameter.tiles + number);
    uint4 lengths = __ldg((const uint4*)parameter.sequences + tile.x);
    return {tile.x, tile.y, tile.z, {lengths.x, lengths.y, lengths.z, lengths.w}};
}

// The position of a thread.
struct Place {
    u32 memory;  // where shared memory begins
    u32 rank;    // of the block in its cluster
    u32 warp, lane, group;

    DEVICE u32 part() const { return rank * GROUPS + group; }
    DEVICE u32 first_key() const { return part() * KEYS; }
    DEVICE u32 slot() const { return warp % GROUP_WARPS; }
    // The first of the two rows of the tile that a thread has of its warp's results; the second is 8 further.
    DEVICE u32 row() const { return slot() * 16 + lane / 4; }
};

DEVICE Place find_place(u32 memory) {
    // Broadcast, so that the compiler knows that a warp takes one branch.
    u32 warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    return {memory, blockIdx.x % SPLIT, warp, threadIdx.x % 32, warp / GROUP_WARPS};
}

// ---- Start: a block initialises its barriers and starts all of its loads.

// A box of a whole matrix, a panel a copy.
template <class MATRIX>
DEVICE void load_matrix(u32 to, const TensorMap* map, u32 row, u32 head, u32 barrier) {
    barrier_expect(barrier, MATRIX::SIZE);
#pragma unroll
    for (u32 panel = 0; panel < MATRIX::PANELS; ++panel)
        copy_tensor(to + panel * MATRIX::PANEL_SIZE, map, panel * (MATRIX::PANEL / ELEMENT_BYTES), row, head, barrier);
}

// One thread of each warp group loads that group's keys and values; that of the first group also loads the queries.
// Keys beyond the end arrive as zeros, even where a group has no keys: old contents of shared memory might be NaN,
// zeros are not.
DEVICE void start_loads(const Parameter& parameter, const Place& place, const Work& work) {
    const TensorMap* maps = maps_of(parameter, work.sequence);
    u32 memory = place.memory, group = place.group, kv_head = work.head;
    // Divisions take a hundredth of a short call.
    if (parameter.heads != parameter.kv_heads) kv_head /= parameter.heads / parameter.kv_heads;
    if (group == 0) load_matrix<QueryMatrix>(memory + QUERY_AT, maps, work.query, work.head, memory + QUERY_FULL);
    load_matrix<KeyMatrix>(memory + KEY_AT + group * KeyMatrix::SIZE, maps + 1, place.first_key(), kv_head,
                           memory + KEY_FULL + 8 * group);
    load_matrix<KeyMatrix>(memory + VALUE_AT + group * KeyMatrix::SIZE, maps + 2, place.first_key(), kv_head,
                           memory + VALUE_FULL + 8 * group);
}

// The host writes the maps, so prefetching them need not wait for the previous launch.
DEVICE void prefetch_maps(const Parameter& parameter, const Place& place, const Work& work) {
    const TensorMap* maps = maps_of(parameter, work.sequence);
    if (place.group == 0) prefetch_tensor_map(maps);
    prefetch_tensor_map(maps + 1);
    prefetch_tensor_map(maps + 2);
}

DEVICE void prepare_barriers(const Place& place) {
    u32 memory = place.memory, group = place.group;
    barrier_init(memory + KEY_FULL + 8 * group, 1);
    barrier_init(memory + VALUE_FULL + 8 * group, 1);
    if (EIGHT_BITS) barrier_init(memory + VALUE_CONVERTED + 8 * group, GROUP_THREADS);
    if (group == 0) {
        barrier_init(memory + QUERY_FULL, 1);
        // One arrival for each lane of the block's own warps whose slots the block owns, and one for the announcement
        // of the bytes from other blocks.
        if (SPLIT > 1) barrier_init(memory + MERGE_FULL, GROUPS * OWNED * 32 + 1);
    }
    barrier_init_fence();
    if (SPLIT > 1 && group == 0) barrier_expect(memory + MERGE_FULL, REMOTE_BYTES);
}

// After this, all barriers of the cluster are initialised, and loads are in flight.
DEVICE void start(const Parameter& parameter, const Place& place, const Work& work) {
    if (place.warp % GROUP_WARPS == 0 && elect()) {
        prefetch_maps(parameter, place, work);
        prepare_barriers(place);
        grid_wait();
        start_loads(parameter, place, work);
    }
    __syncwarp();
    if (SPLIT > 1) {
        cluster_arrive_relaxed();
        cluster_wait();  // hidden behind the loads
    } else {
        __syncthreads();
    }
}

// ---- 8-bit operands, once copied, are converted by the warp group that multiplies them: to fp16, or, for V, to
// columns first.

// Keys or values to fp16.
DEVICE void convert_matrix(u32 from, u32 to) {
    constexpr u32 PIECES = KEYS * (HEAD / 16);
#pragma unroll
    for (u32 turn = 0; turn < PIECES / GROUP_THREADS; ++turn)
        convert_piece<KeyMatrix, MultipliedMatrix>(from, to, turn * GROUP_THREADS + threadIdx.x % GROUP_THREADS);
}

DEVICE void transpose_values(u32 from, u32 to, u32 warp, u32 lane) {
    constexpr u32 BLOCKS = KEYS / 32 * (HEAD / 16);
    static_assert(BLOCKS % GROUP_WARPS == 0, "warps transpose equally many blocks");
#pragma unroll
    for (u32 turn = 0; turn < BLOCKS / GROUP_WARPS; ++turn)
        transpose_block<KeyMatrix, TransposedMatrix>(from, to, turn * GROUP_WARPS + warp, lane);
}

// ---- Q·Kᵀ of a warp group's keys, in accumulators: a thread has columns 8j + 2·(lane % 4) and the next of two rows,
// 8 apart.

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

DEVICE void compute_scores(Scores& scores, const Work& work, const Place& place, const Scales& scales,
                           const BlockScales& blocks) {
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

// ---- Softmax of a warp group's keys: scores become weights, powers of two that are 1 at a row's largest score (2⁸ in
// e4m3, so that small ones are not lost), rounded to the format of the second product.

constexpr u32 WEIGHT_STEPS = KEYS / (EIGHTS ? 32 : 16);  // instructions of the second product
constexpr float WEIGHT_EXPONENT = EIGHTS ? 8.0f : 0.0f;

// Of a thread's two rows: the largest score, as an exponent of two, −∞ if nothing is visible; and the sum of the
// weights.
struct Statistics {
    float maximum[2], sum[2];
};

// Scores remain unchanged until their step is processed.
struct Softmax {
    Statistics statistics;
    float scale, bias[2], table, sums[4] = {};

    DEVICE Softmax(const Scores& scores, float scale) : scale(scale), table(EXPONENTIAL == 2 ? power_table() : 0.0f) {
#pragma unroll
        for (u32 row = 0; row < 2; ++row) {
            float maximum = scores[2 * row];
#pragma unroll
            for (u32 index = 0; index < KEYS / 8; ++index)
                maximum = fmaxf(maximum, fmaxf(scores[4 * index + 2 * row], scores[4 * index + 2 * row + 1]));
            maximum = maximum_of_four(maximum);
            bool visible = maximum != -INFINITE;  // else −∞ would be taken from −∞
            statistics.maximum[row] = visible ? maximum * scale : -INFINITE;
            bias[row] = WEIGHT_EXPONENT - (visible ? maximum * scale : 0.0f);
        }
    }

    DEVICE void compute_step(u32 (&rounded)[4], Scores& scores, u32 step) {
        constexpr u32 COUNT = KEYS / 2 / WEIGHT_STEPS;
        float* weights = scores + step * COUNT;
#pragma unroll
        for (u32 index = 0; index < COUNT; ++index)
            weights[index] = power(fmaf(weights[index], scale, bias[index / 2 % 2]), index, table);
        round_weights<EIGHTS>(rounded, weights);
        add_rows<EIGHTS>(sums, rounded);
    }

    // Once all steps are computed.
    DEVICE Statistics finish() {
        statistics.sum[0] = sums[0];
        statistics.sum[1] = sums[2];
        return statistics;
    }
};

// ---- Weights of a warp group's keys times V.

constexpr u32 RUN_STEPS = WEIGHT_STEPS / RUNS;
static_assert(WEIGHT_STEPS % RUNS == 0, "runs are equally long");

typedef float Sums[HEAD / 2];

// Adds a step to sums; the first step overwrites them.
template <class FORMAT_TAG>
DEVICE void multiply_step(Sums& sums, const u32 (&weights)[4], u32 values, u32 step, bool first) {
    if constexpr (EIGHTS)
        Product<FORMAT_TAG, HEAD>::registers(
            sums, weights, TransposedMatrix::descriptor(values) + TransposedMatrix::deeper(step), !first);
    else
        Product<FORMAT_TAG, HEAD>::registers_turned(
            sums, weights, MultipliedMatrix::turned_descriptor(values) + MultipliedMatrix::further(step), !first);
}

DEVICE Statistics multiply_values(Sums& sums, Scores& scores, const Place& place, float score_scale) {
    u32 values = place.memory + MULTIPLIED_VALUE_AT + place.group * MultipliedMatrix::SIZE;
    Softmax softmax(scores, score_scale);
    u32 weights[RUNS][RUN_STEPS][4];  // products read them while the next are computed
#pragma unroll
    for (u32 run = 0; run < RUNS; ++run) {
#pragma unroll
        for (u32 step = 0; step < RUN_STEPS; ++step)
            softmax.compute_step(weights[run][step], scores, run * RUN_STEPS + step);
        pin(weights[run]);
        if (run == 0) barrier_wait(place.memory + (EIGHT_BITS ? VALUE_CONVERTED : VALUE_FULL) + 8 * place.group, 0);
        products_fence();
#pragma unroll
        for (u32 step = 0; step < RUN_STEPS; ++step)
            multiply_step<Format>(sums, weights[run][step], values, run * RUN_STEPS + step, run + step == 0);
        products_commit();
    }
    products_wait<0>();
    pin(sums);
    return softmax.finish();
}

// The same where each block of values has a scale of its own: blocks, or their runs, are multiplied apart, and their
// sums added as fp32. Scores are exponents of two.
DEVICE Statistics multiply_values_by_block(Sums& sums, Scores& scores, const Place& place, const BlockScales& blocks) {
    constexpr u32 TURNS = RUNS * SCALE_BLOCK > KEYS ? RUNS : KEYS / SCALE_BLOCK, STEPS = WEIGHT_STEPS / TURNS;
    u32 values = place.memory + MULTIPLIED_VALUE_AT + place.group * MultipliedMatrix::SIZE;
    Softmax softmax(scores, 1.0f);
    u32 weights[TURNS][STEPS][4];  // as above
    Sums part;
    auto collect = [&](u32 turn) {
        float scale = blocks.at(place.first_key() + turn * (KEYS / TURNS)).value;
        products_wait<0>();
        pin(part);
#pragma unroll
        for (u32 index = 0; index < HEAD / 2; ++index)
            sums[index] = turn == 0 ? scale * part[index] : fmaf(scale, part[index], sums[index]);
    };
#pragma unroll
    for (u32 turn = 0; turn < TURNS; ++turn) {
#pragma unroll
        for (u32 step = 0; step < STEPS; ++step) softmax.compute_step(weights[turn][step], scores, turn * STEPS + step);
        pin(weights[turn]);
        if (turn == 0) barrier_wait(place.memory + VALUE_CONVERTED + 8 * place.group, 0);
        else collect(turn - 1);
        products_fence();
#pragma unroll
        for (u32 step = 0; step < STEPS; ++step)
            multiply_step<Format>(part, weights[turn][step], values, turn * STEPS + step, step == 0);
        products_commit();
    }
    collect(TURNS - 1);
    return softmax.finish();
}

// ---- Merging: each warp sends the partial results of its slot of 16 rows to the block that owns the slot, and the
// owner merges all parts.

// A scale as a number from 1 up to 2 and a power of two. Multiplied by the number before they are rounded to fp16,
// partial results that make up a whole row are not rounded again at its end, because the power changes no digit.
// Multiplied by the scale itself they could exceed fp16 even if the result does not.
struct ScaleParts {
    float digits, power;

    DEVICE explicit ScaleParts(float scale)
        : digits(__uint_as_float((__float_as_uint(scale) & 0x807FFFFFu) | 0x3F800000u)),
          power(__uint_as_float(__float_as_uint(scale) & 0x7F800000u)) {}
};

// A warp's partial results in fp16 are divided by their sums of weights, so their magnitude is about that of the
// values.
DEVICE u32 partial_word(const Sums& sums, u32 word, const float (&factors)[2]) {
    if (PARTIALS == 0) return __float_as_uint(sums[word]);
    return pair_of_halves(sums[2 * word] * factors[word % 2], sums[2 * word + 1] * factors[word % 2]);
}

template <class Store>
DEVICE void write_partial(const Sums& sums, const Statistics& statistics, float digits, u32 partial, u32 row, u32 lane,
                          Store store) {
    float factors[2];
#pragma unroll
    for (u32 index = 0; index < 2; ++index)
        factors[index] = statistics.sum[index] > 0.0f ? __fdividef(digits, statistics.sum[index]) : 0.0f;
    if (lane % 4 == 0)
        store(row, __float_as_uint(statistics.maximum[0]), __float_as_uint(statistics.sum[0]),
              __float_as_uint(statistics.maximum[1]), __float_as_uint(statistics.sum[1]));
#pragma unroll
    for (u32 piece = 0; piece < PIECES; ++piece)
        store(partial + piece * PIECE_BYTES, partial_word(sums, 4 * piece, factors),
              partial_word(sums, 4 * piece + 1, factors), partial_word(sums, 4 * piece + 2, factors),
              partial_word(sums, 4 * piece + 3, factors));
}

// To the owner of the warp's slot, by stores that count at its barrier if it is another block.
//
// A block may exit as soon as it has merged: it has waited for all bytes that others send it, and the data it sends is
// in registers until it arrives in blocks that wait for it. So no final cluster barrier is needed.
DEVICE void send_partial(const Sums& sums, const Statistics& statistics, float digits, const Place& place) {
    u32 owner = place.slot() / OWNED, number = place.part() * OWNED + place.slot() % OWNED;
    u32 partial = place.memory + PARTIALS_AT + number * PIECES * PIECE_BYTES + place.lane * 16;
    u32 row = place.memory + STATISTICS_AT + number * STATISTICS_BYTES + place.lane / 4 * 16;
    if (SPLIT > 1 && owner != place.rank) {
        u32 barrier = address_in_block(place.memory + MERGE_FULL, owner);
        write_partial(sums, statistics, digits, address_in_block(partial, owner), address_in_block(row, owner),
                      place.lane,
                      [&](u32 to, u32 a, u32 b, u32 c, u32 d) { store_remote_16(to, a, b, c, d, barrier); });
    } else {
        write_partial(sums, statistics, digits, partial, row, place.lane,
                      [](u32 to, u32 a, u32 b, u32 c, u32 d) { store_shared_16(to, a, b, c, d); });
        if (SPLIT > 1) barrier_arrive(place.memory + MERGE_FULL);
    }
    // Acquired at the block's scope: bytes from other blocks are in this one's shared memory when they count. (At the
    // cluster's scope the wait would empty the first-level cache.)
    if (SPLIT > 1) barrier_wait(place.memory + MERGE_FULL, 0);
    else __syncthreads();
}

// The weight of each part's row in the result; without visible keys the result is 0.
struct Shares {
    float share[PARTS][2];

    DEVICE Shares(u32 statistics, float value_scale) {
        float maximum[2] = {-INFINITE, -INFINITE}, total[2] = {}, of_part[PARTS][4];
#pragma unroll
        for (u32 part = 0; part < PARTS; ++part) {
            uint4 words = load_shared_16(statistics + part * OWNED * STATISTICS_BYTES);
            of_part[part][0] = __uint_as_float(words.x), of_part[part][1] = __uint_as_float(words.y);
            of_part[part][2] = __uint_as_float(words.z), of_part[part][3] = __uint_as_float(words.w);
#pragma unroll
            for (u32 row = 0; row < 2; ++row) maximum[row] = fmaxf(maximum[row], of_part[part][2 * row]);
        }
#pragma unroll
        for (u32 row = 0; row < 2; ++row) {
            float base = maximum[row] == -INFINITE ? 0.0f : maximum[row];
#pragma unroll
            for (u32 part = 0; part < PARTS; ++part) {
                float power = power_by_hardware(of_part[part][2 * row] - base);
                float weight = power * of_part[part][2 * row + 1];
                share[part][row] = PARTIALS == 1 ? weight : power;
                total[row] += weight;
            }
            float scale = total[row] > 0.0f ? __fdividef(value_scale, total[row]) : 0.0f;
#pragma unroll
            for (u32 part = 0; part < PARTS; ++part) share[part][row] *= scale;
        }
    }
};

DEVICE float2 floats_of_halves(u32 pair) {
    float2 values;
    asm("{ .reg .f16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
        : "=f"(values.x), "=f"(values.y)
        : "r"(pair));
    return values;
}

// Adds a part's piece: pairs of neighbours, alternately of the first row and of the second.
DEVICE void add_piece(float2 (&sums)[PARTIALS == 1 ? 4 : 2], uint4 piece, const float (&share)[2]) {
    auto add = [&](u32 index, float2 pair) {
        sums[index].x = fmaf(share[index % 2], pair.x, sums[index].x);
        sums[index].y = fmaf(share[index % 2], pair.y, sums[index].y);
    };
    if constexpr (PARTIALS == 1) {
        add(0, floats_of_halves(piece.x)), add(1, floats_of_halves(piece.y));
        add(2, floats_of_halves(piece.z)), add(3, floats_of_halves(piece.w));
    } else {
        add(0, make_float2(__uint_as_float(piece.x), __uint_as_float(piece.y)));
        add(1, make_float2(__uint_as_float(piece.z), __uint_as_float(piece.w)));
    }
}

// A warp takes every eighth of the pieces of the slots that the block owns.
DEVICE void merge(const Parameter& parameter, const Work& work, const Place& place, float value_scale) {
    constexpr u32 PAIRS = PARTIALS == 1 ? 4 : 2, TASKS = OWNED * PIECES;
    u64 first_row = work.lengths.query_row + (u64)work.head * work.lengths.queries;
#pragma unroll
    for (u32 turn = 0; turn < (TASKS + WARPS - 1) / WARPS; ++turn) {
        u32 task = turn * WARPS + place.warp, slot = task / PIECES, piece = task % PIECES;
        if (TASKS % WARPS != 0 && task >= TASKS) return;
        u32 partial = place.memory + PARTIALS_AT + task * PIECE_BYTES + place.lane * 16;
        Shares shares(place.memory + STATISTICS_AT + slot * STATISTICS_BYTES + place.lane / 4 * 16, value_scale);
        float2 sums[PAIRS] = {};
#pragma unroll
        for (u32 part = 0; part < PARTS; ++part)
            add_piece(sums, load_shared_16(partial + part * TASKS * PIECE_BYTES), shares.share[part]);
        u32 query = work.query + (place.rank * OWNED + slot) * 16 + place.lane / 4;
        u32 column = piece * (PAIRS * 4) + place.lane % 4 * 2;
#pragma unroll
        for (u32 index = 0; index < PAIRS; ++index) {
            u32 of = query + index % 2 * 8;
            if (of < work.lengths.queries)
                store_pair(parameter, (first_row + of) * HEAD + column + index / 2 * 8, sums[index].x, sums[index].y);
        }
    }
}

// ---- The kernel.

extern "C" __global__ void __launch_bounds__(GROUPS* GROUP_THREADS, 1)
    attention_resident(const __grid_constant__ Parameter parameter) {
    extern __shared__ __align__(1024) u8 memory[];
    grid_launch_dependents();
    Place place = find_place(shared_address(memory));
    if (!UNIFORM) grid_wait();  // tables are read
    Work work = find_work(parameter);
    start(parameter, place, work);
    grid_wait();
    Scales scales = load_scales(parameter, work.sequence, work.head);
    BlockScales blocks(parameter, work.sequence, work.lengths, work.head, work.query);
    Scores scores;
    compute_scores(scores, work, place, scales, blocks);
    Sums sums;
    Statistics statistics = BY_BLOCK ? multiply_values_by_block(sums, scores, place, blocks)
                                     : multiply_values(sums, scores, place, scales.score);
    ScaleParts scale(scales.value);
    send_partial(sums, statistics, scale.digits, place);
    merge(parameter, work, place, PARTIALS == 1 ? scale.power : scales.value);
}
