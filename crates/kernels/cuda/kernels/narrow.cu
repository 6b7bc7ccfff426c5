// NVFP4 grouped GEMM for few tokens: reading the weights determines the time, so they are requested early and converted
// on arrival.
//
// A block has 32 weight rows (16 of each of the two in the dual form) against at most sixteen tokens, over the whole
// depth. A step is TILE_K deep, and each warp takes a chunk of 128 of it; warps share nothing until the sums are added.
// A warp's lanes copy packed weights and tokens to the warp's own slots, STAGES ahead, convert them, and multiply by
// mma.sync. Two stages are the best on an H200 (M = 16, N = 4096, K = 7168: 9.5 µs, with three 10.9): reads of the
// slots use the load unit too, behind all copies that were requested before.
//
// Lane 4g + q has row g of each eight, and of a chunk the values 32q … 32q + 31 of weights and tokens alike: products
// are summed in an order of their own, and nothing is exchanged between lanes.
#include "format.cuh"
#include "results.cuh"
#include "trace.cuh"

constexpr u32 ROWS = 32, CHUNK = 128, WARPS = TILE_K / CHUNK, THREADS = 32 * WARPS;
// Rows are taken by eights, 16 bytes a lane.
constexpr u32 WEIGHT_EIGHTS = ROWS / 8, TOKEN_EIGHTS = TOKENS / 8, EIGHT_BYTES = 32 * 16;
constexpr u32 MATRICES = DUAL ? 2 : 1, MATRIX_ROWS = ROWS / MATRICES;
// Bytes of a chunk of a row.
constexpr u32 PACKED_BYTES = CHUNK / 2, SCALE_BYTES = CHUNK / 16;

// ---- Shared memory: each warp's slots; in the end its sums lie there.

constexpr u32 TOKEN_PART = WEIGHT_EIGHTS * EIGHT_BYTES;
// A lane has 32 values of a token: one copy of 16 bytes of NVFP4, four of 16-bit floats, each copy's of a warp
// together.
constexpr u32 TOKEN_COPIES = HALF ? 4 : 1, TOKEN_EIGHT_BYTES = TOKEN_COPIES * EIGHT_BYTES;
constexpr u32 WEIGHT_SCALE_PART = TOKEN_PART + TOKEN_EIGHTS * TOKEN_EIGHT_BYTES;
constexpr u32 TOKEN_SCALE_PART = WEIGHT_SCALE_PART + ROWS * SCALE_BYTES;
constexpr u32 SLOT_BYTES = TOKEN_SCALE_PART + (HALF ? 0 : TOKENS * SCALE_BYTES);
constexpr u32 WARP_BYTES = STAGES * SLOT_BYTES;
static_assert(WARPS * WARP_BYTES == SHARED_BYTES, "the host counts shared memory as the device does");
// A token's sums of all rows, and so far apart that a warp's stores are in different banks.
constexpr u32 SUM_STRIDE = (ROWS + 4) * 4;
static_assert(TOKENS * SUM_STRIDE <= WARP_BYTES, "a warp's sums lie in its slots");

// ---- The work of a block.

struct Block {
    u32 group, row, token, width;
};

constexpr u32 FEW = 16;

struct Parameter {
    const u8* tokens;
    const u8* token_scales;
    u8* output;
    const Group* groups;
    // One for each block; null where there are few groups, whose first blocks are then here.
    const Block* blocks;
    u32 first_blocks[FEW];
};

// The blocks of a group go through its weight rows for the first tokens, then for the next.
DEVICE Block block_of_few(const Parameter& parameter) {
    Block block = {0, 0, 0, 0};
    u32 first = 0;
#pragma unroll
    for (u32 index = 1; index < FEW; ++index)
        if (parameter.first_blocks[index] <= blockIdx.x) {
            block.group = index;
            first = parameter.first_blocks[index];
        }
    const Group& group = parameter.groups[block.group];
    u32 row_blocks = (group.n + MATRIX_ROWS - 1) / MATRIX_ROWS;
    u32 number = blockIdx.x - first, token_blocks = number / row_blocks;
    block.row = (number - token_blocks * row_blocks) * MATRIX_ROWS;
    block.token = token_blocks * TOKENS;
    block.width = min(group.m - block.token, TOKENS);
    return block;
}

// ---- Copies to a warp's slots. Weights are read once, so the second-level cache need not keep them.

// Bytes from a row of weights to the next, from a chunk to the next, and rows in memory. Repacked chunks lie one after
// another, padded to a multiple of 16 rows.
struct Strides {
    u64 row, chunk;
    u32 rows;

    DEVICE Strides(const Group& group, u32 row_bytes)
        : row(group.k / CHUNK * row_bytes), chunk(row_bytes), rows(group.n) {
        if (REPACKED) {
            rows = (group.n + 15) / 16 * 16;
            row = row_bytes;
            chunk = rows * row;
        }
    }
};

// One lane's part of the weights; rows after the last repeat the last, and their results are not stored.
struct Weights {
    const u8* packed[WEIGHT_EIGHTS];
    const u8* scales;
    u64 step, scale_step;  // bytes to the warp's next chunk

    DEVICE Weights(const Group& group, const Block& block, u32 warp, u32 lane) {
        Strides strides(group, PACKED_BYTES), scale_strides(group, SCALE_BYTES);
        step = WARPS * strides.chunk;
        scale_step = WARPS * scale_strides.chunk;
        auto row_of = [&](u32 row) { return (u64)min(block.row + row % MATRIX_ROWS, strides.rows - 1); };
#pragma unroll
        for (u32 eight = 0; eight < WEIGHT_EIGHTS; ++eight)
            packed[eight] = group.weights[eight * 8 / MATRIX_ROWS] + row_of(eight * 8 + lane / 4) * strides.row +
                            warp * strides.chunk + lane % 4 * 16;
        const u8* matrix = lane < MATRIX_ROWS ? group.weight_scales[0] : group.weight_scales[1];
        scales = matrix + row_of(lane) * scale_strides.row + warp * scale_strides.chunk;
    }

    DEVICE void load(u32 slot, u32 lane) {
#pragma unroll
        for (u32 eight = 0; eight < WEIGHT_EIGHTS; ++eight) {
            copy_16_once(slot + eight * EIGHT_BYTES + lane * 16, packed[eight]);
            packed[eight] += step;
        }
        copy_8(slot + WEIGHT_SCALE_PART + lane * SCALE_BYTES, scales, SCALE_BYTES);
        scales += scale_step;
    }
};

// Likewise of the tokens; those after the last are zeros, and so are 16-bit values after a row's last.
struct Tokens {
    const u8* packed[TOKEN_EIGHTS];
    const u8* scales;
    u32 width;
    const u8* parameter_tokens;
    u32 column, columns;  // of 16-bit tokens: the lane's first value in the next chunk; values of a row

    DEVICE Tokens(const Parameter& parameter, const Group& group, const Block& block, u32 warp, u32 lane)
        : width(block.width),
          parameter_tokens(parameter.tokens),
          column(warp * CHUNK + lane % 4 * 32),
          columns(group.columns) {
        auto token_of = [&](u32 token) { return (u64)(block.token + min(token, width - 1)); };
#pragma unroll
        for (u32 eight = 0; eight < TOKEN_EIGHTS; ++eight)
            packed[eight] = parameter.tokens + group.tokens +
                            (token_of(eight * 8 + lane / 4) * columns + column) * (HALF ? 4 : 1) / 2;
        scales = parameter.token_scales + group.token_scales + token_of(lane) * (group.k / 16) + warp * SCALE_BYTES;
    }

    DEVICE void load(u32 slot, u32 lane) {
#pragma unroll
        for (u32 eight = 0; eight < TOKEN_EIGHTS; ++eight) {
#pragma unroll
            for (u32 copy = 0; copy < TOKEN_COPIES; ++copy) {
                bool is_there = eight * 8 + lane / 4 < width && (!HALF || column + copy * 8 < columns);
                // An address after the last token is not read, but must be of the tokens.
                copy_16(slot + TOKEN_PART + eight * TOKEN_EIGHT_BYTES + copy * EIGHT_BYTES + lane * 16,
                        is_there ? packed[eight] + copy * 16 : parameter_tokens, is_there ? 16 : 0);
            }
            packed[eight] += WARPS * CHUNK * (HALF ? 4 : 1) / 2;
        }
        column += WARPS * CHUNK;
        if (!HALF && lane < TOKENS)
            copy_8(slot + TOKEN_SCALE_PART + lane * SCALE_BYTES, scales, lane < width ? SCALE_BYTES : 0);
        scales += WARPS * SCALE_BYTES;
    }
};

// ---- Products.

// Rows g and g + 8 of two sixteens against columns 2q and 2q + 1 of each eight tokens.
using Sums = float[ROWS / 16][TOKEN_EIGHTS][4];

// The scales of a lane's part of a row, of eight rows that lie one after another.
DEVICE u16 load_scales(u32 rows, u32 lane) { return load_shared_2(rows + lane / 4 * SCALE_BYTES + lane % 4 * 2); }

// What a lane has of a row's chunk, packed.
struct Piece {
    u32 words[4];
    u32 scales;

    DEVICE Piece(u32 packed, u32 scales, u32 lane) : scales(scales) {
        uint4 all = load_shared_16(packed + lane * 16);
        words[0] = all.x, words[1] = all.y, words[2] = all.z, words[3] = all.w;
    }

    // Of weights.
    template <u32 WORD>
    DEVICE void convert(u32 (&pairs)[4]) const {
        PackedWeights eight(words[WORD]);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) pairs[i] = eight.pair(i, scales, WORD >= 2);
    }
};

struct Converted {
    u32 words[4][4];

    DEVICE Converted() {}

    // Of an eight of tokens in a slot.
    DEVICE Converted(u32 tokens, u32 scales, u32 lane) {
        if (HALF) {
#pragma unroll
            for (u32 word = 0; word < 4; ++word)
                pair_8(load_shared_16(tokens + word * EIGHT_BYTES + lane * 16), words[word][0], words[word][1],
                       words[word][2], words[word][3]);
            return;
        }
        u32 converted = convert_scales(load_scales(scales, lane));
        Piece piece(tokens, converted, lane);
#pragma unroll
        for (u32 word = 0; word < 4; ++word)
            convert_8(piece.words[word], converted, word >= 2, words[word][0], words[word][1], words[word][2],
                      words[word][3]);
    }
};

template <u32 WORD>
DEVICE void multiply_word(float (&sums)[TOKEN_EIGHTS][4], const Piece& upper, const Piece& lower,
                          const Converted (&tokens)[TOKEN_EIGHTS]) {
    u32 a[4], b[4];
    upper.convert<WORD>(a);
    lower.convert<WORD>(b);
#pragma unroll
    for (u32 half = 0; half < 4; half += 2)
#pragma unroll
        for (u32 eight = 0; eight < TOKEN_EIGHTS; ++eight)
            multiply_fragments<BRAIN>(sums[eight], {a[half], b[half], a[half + 1], b[half + 1]},
                                      tokens[eight].words[WORD][half], tokens[eight].words[WORD][half + 1]);
}

DEVICE void convert_tokens(Converted (&tokens)[TOKEN_EIGHTS], u32 slot, u32 lane) {
#pragma unroll
    for (u32 eight = 0; eight < TOKEN_EIGHTS; ++eight)
        tokens[eight] = Converted(slot + TOKEN_PART + eight * TOKEN_EIGHT_BYTES,
                                  slot + TOKEN_SCALE_PART + eight * 8 * SCALE_BYTES, lane);
}

DEVICE void multiply_weights(Sums& sums, const Converted (&tokens)[TOKEN_EIGHTS], u32 slot, u32 lane) {
#pragma unroll
    for (u32 sixteen = 0; sixteen < ROWS / 16; ++sixteen) {
        u32 packed = slot + sixteen * 2 * EIGHT_BYTES;
        u32 scales = slot + WEIGHT_SCALE_PART + sixteen * 16 * SCALE_BYTES;
        u32 both = REPACKED ? load_shared(scales + lane * 4) : 0;  // two of the upper row, two of the lower
        u16 of_upper = REPACKED ? (u16)both : load_scales(scales, lane);
        u16 of_lower = REPACKED ? (u16)(both >> 16) : load_scales(scales + 8 * SCALE_BYTES, lane);
        Piece upper(packed, convert_weight_scales(of_upper), lane);
        Piece lower(packed + EIGHT_BYTES, convert_weight_scales(of_lower), lane);
        multiply_word<0>(sums[sixteen], upper, lower, tokens);
        multiply_word<1>(sums[sixteen], upper, lower, tokens);
        multiply_word<2>(sums[sixteen], upper, lower, tokens);
        multiply_word<3>(sums[sixteen], upper, lower, tokens);
    }
}

// ---- Results: a thread for each adds the warps' sums in their order.

DEVICE void leave_sums(const Sums& sums, u32 memory, u32 lane) {
#pragma unroll
    for (u32 sixteen = 0; sixteen < ROWS / 16; ++sixteen)
#pragma unroll
        for (u32 eight = 0; eight < TOKEN_EIGHTS; ++eight)
#pragma unroll
            for (u32 index = 0; index < 4; ++index) {
                u32 row = sixteen * 16 + index / 2 * 8 + lane / 4, token = eight * 8 + lane % 4 * 2 + index % 2;
                store_shared(memory + token * SUM_STRIDE + row * 4, __float_as_uint(sums[sixteen][eight][index]));
            }
}

DEVICE float add_sums(u32 memory, u32 token, u32 row) {
    float sum = 0.0f;
#pragma unroll
    for (u32 warp = 0; warp < WARPS; ++warp)
        sum += __uint_as_float(load_shared(memory + warp * WARP_BYTES + token * SUM_STRIDE + row * 4));
    return sum;
}

DEVICE void store_results(const Parameter& parameter, const Group& group, const Block& block, u32 memory) {
    for (u32 index = threadIdx.x; index < MATRIX_ROWS * block.width; index += THREADS) {
        u32 token = index / MATRIX_ROWS, row = index % MATRIX_ROWS;
        if (block.row + row >= group.n) continue;
        float result = add_sums(memory, token, row) * (group.scale[0] * SUM_UNIT);
        if constexpr (DUAL)
            result = silu(result) * (add_sums(memory, token, MATRIX_ROWS + row) * (group.scale[1] * SUM_UNIT));
        store_one(parameter.output, group.output + (u64)(block.token + token) * group.n + block.row + row, result);
    }
}

// ---- The kernel.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) narrow(const __grid_constant__ Parameter parameter) {
    extern __shared__ __align__(1024) u8 dynamic[];
    Recorder recorder;
    u32 memory = shared_address(dynamic), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 slots = memory + warp * WARP_BYTES;
    Block block = parameter.blocks ? parameter.blocks[blockIdx.x] : block_of_few(parameter);
    const Group& group = parameter.groups[block.group];
    u32 chunks = group.k / CHUNK, turns = warp < chunks ? (chunks - warp - 1) / WARPS + 1 : 0;
    Weights weights(group, block, warp, lane);
    if (turns > 0) weights.load(slots, lane);

    // Weights and tables are never results of a launch; tokens may be those of the previous one.
    grid_launch_dependents();
    grid_wait();
    // All warps do the same; the first records for all.
    recorder.begin(Role::Everyone, 0, threadIdx.x == 0);
    Tokens tokens(parameter, group, block, warp, lane);
    if (turns > 0) tokens.load(slots, lane);
    copy_commit();
    auto load = [&](u32 turn, u32 slot) {
        if (turn < turns) {
            weights.load(slots + slot * SLOT_BYTES, lane);
            tokens.load(slots + slot * SLOT_BYTES, lane);
        }
        // A group of copies for each turn, empty ones after the last, so that the wait counts turns.
        copy_commit();
    };
#pragma unroll
    for (u32 slot = 1; slot < STAGES; ++slot) load(slot, slot);
    recorder.end(Activity::Load, blockIdx.x);

    Sums sums = {};
    u32 slot = 0;
#pragma unroll 1
    for (u32 turn = 0; turn < turns; ++turn) {
        copy_wait<STAGES - 1>();
        // Scales have been copied for each other.
        __syncwarp();
        if (turn == 0) recorder.end(Activity::Wait, blockIdx.x);
        u32 at = slots + slot * SLOT_BYTES;
        Converted converted[TOKEN_EIGHTS];
        convert_tokens(converted, at, lane);
        multiply_weights(sums, converted, at, lane);
        __syncwarp();
        load(turn + STAGES, slot);
        if (++slot == STAGES) slot = 0;
    }
    recorder.end(Activity::Multiply, blockIdx.x);
    leave_sums(sums, slots, lane);
    __syncthreads();
    recorder.end(Activity::Reduce, blockIdx.x);
    store_results(parameter, group, block, memory);
    recorder.end(Activity::Store, blockIdx.x);
}
