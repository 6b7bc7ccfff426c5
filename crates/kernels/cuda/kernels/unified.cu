// NVFP4 grouped GEMM for every GPU from sm_80 on: weights are the rows of a tile, tokens its columns (swap-AB), and all
// four warps of a block do the same work. They copy packed weights and tokens by cp.async to a ring in shared memory,
// STAGES − 1 chunks ahead, convert weights in registers, and multiply by mma.sync.
//
// A previous launch brings tokens to 16 bits and to the order in which lanes have weights (tokens.cu), so a tile copies
// them as they lie. In a chunk, lane 4g + q has K = 32q … 32q + 31 of a row of weights, 16 packed bytes and 2 scales;
// word w of those makes two steps of mma.sync, and four 16-byte pieces of a token are both steps' columns: one
// ldmatrix.
//
// A warp has two sixteens of weight rows: neighbours, or in the dual form the same rows of both weights, so that a
// thread has both products of its results.
//
// Definitions: FORMAT, that of the tokens (format.cuh); WIDTH, the most tokens of a tile; STAGES; DUAL 1,
// silu(A·B₁ᵀ) ∘ (A·B₂ᵀ); OUTPUT 0 fp16, 1 bf16, 2 fp32; REPACKED 1, weights lie as src/packing.rs packs them, or 0, row
// by row; BLOCKS that should fit a multiprocessor; SHARED_BYTES of a block.
#include "format.cuh"
#include "results.cuh"
#include "swapped_problem.cuh"

constexpr u32 WARPS = 4, THREADS = 32 * WARPS, SIXTEENS = 2, EIGHTS = WIDTH / 8;
static_assert(WARPS * SIXTEENS * 16 == WEIGHT_ROWS, "warps share out the rows of a tile");

// ---- A stage: packed weights (64 bytes a row), their scales (8 bytes a row), tokens as tokens.cu left them.

constexpr u32 PACKED_ROW = CHUNK / 2, SCALE_ROW = CHUNK / 16;
constexpr u32 SCALES_AT = WEIGHT_ROWS * PACKED_ROW, TOKENS_AT = SCALES_AT + WEIGHT_ROWS * SCALE_ROW;
constexpr u32 STAGE_BYTES = TOKENS_AT + EIGHTS * ITEM_BYTES;
static_assert(STAGES >= 2 && STAGES * STAGE_BYTES == SHARED_BYTES, "the host counts shared memory as the device does");

// Copies a tile's chunks in turn; each thread has its own part of every chunk.
struct Loader {
    static constexpr u32 COPIES = WEIGHT_ROWS * PACKED_ROW / 16 / THREADS;

    const u8* packed[COPIES];
    const u8* scales;
    const u8* tokens;
    u64 packed_step, scale_step, token_step;
    u32 token_pieces;

    // Where row `row` of a stage lies in its matrix: a sixteen of either weights, or all rows of the only one.
    DEVICE static u32 matrix_of(u32 row) { return DUAL ? row / 16 % 2 : 0; }
    DEVICE static u32 row_in_matrix(u32 row) { return DUAL ? row / 32 * 16 + row % 16 : row; }

    DEVICE Loader(const Parameter& parameter, const Tile& tile) {
        const Group& group = parameter.group_table[tile.group];
        u32 chunks = group.k / CHUNK, rows = REPACKED ? (group.n + 15) / 16 * 16 : group.n;
        // Bytes from a row to the next, and from a chunk to the next. Repacked chunks lie one after another.
        u64 row_step = REPACKED ? 1 : chunks, chunk_step = REPACKED ? rows : 1;
        // Rows after the last repeat the last; their results are not stored.
        auto place = [&](u32 row) {
            return min(tile.row + row_in_matrix(row), rows - 1) * row_step + tile.first_chunk * chunk_step;
        };
#pragma unroll
        for (u32 copy = 0; copy < COPIES; copy++) {
            u32 row = copy * (THREADS / 4) + threadIdx.x / 4;
            packed[copy] = group.weights[matrix_of(row)] + place(row) * PACKED_ROW + threadIdx.x % 4 * 16;
        }
        scales = group.weight_scales[matrix_of(threadIdx.x)] + place(threadIdx.x) * SCALE_ROW;
        packed_step = chunk_step * PACKED_ROW;
        scale_step = chunk_step * SCALE_ROW;
        // Items of the workspace: [chunk][eight tokens].
        u32 eights = (group.m + 7) / 8;
        tokens = parameter.workspace + group.workspace +
                 ((u64)tile.first_chunk * eights + tile.token / 8) * ITEM_BYTES + threadIdx.x * 16;
        token_step = (u64)eights * ITEM_BYTES;
        token_pieces = (tile.width + 7) / 8 * (ITEM_BYTES / 16);
    }

    DEVICE void load_weights(u32 stage) {
#pragma unroll
        for (u32 copy = 0; copy < COPIES; copy++) {
            copy_16(stage + (copy * THREADS + threadIdx.x) * 16, packed[copy], 16);
            packed[copy] += packed_step;
        }
        copy_8(stage + SCALES_AT + threadIdx.x * SCALE_ROW, scales, SCALE_ROW);
        scales += scale_step;
    }

    DEVICE void load_tokens(u32 stage) {
#pragma unroll
        for (u32 copy = 0; copy < EIGHTS; copy++)
            if (copy * THREADS < token_pieces)
                copy_16(stage + TOKENS_AT + (copy * THREADS + threadIdx.x) * 16, tokens + copy * THREADS * 16, 16);
        tokens += token_step;
    }
};
static_assert(ITEM_BYTES == THREADS * 16, "all threads together copy eight tokens");

// ---- Products: of each sixteen rows and eight tokens, the sums of a fragment.

using Sums = float[SIXTEENS][EIGHTS][4];

// A lane's part of two rows, eight apart, of a chunk.
struct TwoRows {
    uint4 packed[2];
    u32 scales[2];  // converted

    DEVICE void load(u32 stage, u32 sixteen, u32 lane) {
        u32 values = stage + sixteen * 16 * PACKED_ROW + lane * 16,
            of_scales = stage + SCALES_AT + sixteen * 16 * SCALE_ROW;
#pragma unroll
        for (u32 half = 0; half < 2; half++) packed[half] = load_shared_16(values + half * 8 * PACKED_ROW);
        if (REPACKED) {
            u32 both = load_shared(of_scales + lane * 4);
            scales[0] = convert_weight_scales((u16)both);
            scales[1] = convert_weight_scales((u16)(both >> 16));
        } else {
#pragma unroll
            for (u32 half = 0; half < 2; half++)
                scales[half] =
                    convert_weight_scales(load_shared_2(of_scales + (half * 8 + lane / 4) * SCALE_ROW + lane % 4 * 2));
        }
    }

    DEVICE u32 word(u32 half, u32 number) const {
        const uint4& all = packed[half];
        return number == 0 ? all.x : number == 1 ? all.y : number == 2 ? all.z : all.w;
    }

    // The rows of both steps of a word.
    DEVICE void convert(u32 (&steps)[2][4], u32 number) const {
        const PackedWeights upper(word(0, number)), lower(word(1, number));
#pragma unroll
        for (u32 pair = 0; pair < 4; pair++) {
            steps[pair / 2][pair % 2 * 2] = upper.pair(pair, scales[0], number >= 2);
            steps[pair / 2][pair % 2 * 2 + 1] = lower.pair(pair, scales[1], number >= 2);
        }
    }
};

DEVICE void multiply_chunk(Sums& sums, u32 stage, u32 eights, u32 warp, u32 lane) {
    TwoRows rows[SIXTEENS];
#pragma unroll
    for (u32 sixteen = 0; sixteen < SIXTEENS; sixteen++) rows[sixteen].load(stage, warp * SIXTEENS + sixteen, lane);
    // The token whose piece a lane gives ldmatrix, and that piece: tokens.cu exchanges the pieces of a token's 128
    // bytes.
    u32 token = lane % 8, piece = lane / 8, tokens = stage + TOKENS_AT + token * 128;
#pragma unroll
    for (u32 word = 0; word < 4; word++) {
        u32 steps[SIXTEENS][2][4];
#pragma unroll
        for (u32 sixteen = 0; sixteen < SIXTEENS; sixteen++) rows[sixteen].convert(steps[sixteen], word);
        u32 from = tokens + word / 2 * (ITEM_BYTES / 2) + ((word % 2 * 4 + piece) ^ token) * 16;
#pragma unroll
        for (u32 eight = 0; eight < EIGHTS; eight++) {
            if (eight >= eights) break;
            uint4 columns = load_matrices(from + eight * ITEM_BYTES);
#pragma unroll
            for (u32 sixteen = 0; sixteen < SIXTEENS; sixteen++) {
                multiply_fragments<BRAIN>(sums[sixteen][eight], steps[sixteen][0], columns.x, columns.y);
                multiply_fragments<BRAIN>(sums[sixteen][eight], steps[sixteen][1], columns.z, columns.w);
            }
        }
    }
}

// The sums of a tile, or of one part of its depth. No thread reads or awaits a stage when this returns.
DEVICE void multiply_tile(const Parameter& parameter, const Tile& tile, u32 memory, Sums& sums, Recorder& recorder,
                          u32 number) {
    u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, eights = (tile.width + 7) / 8;
    Loader loader(parameter, tile);
#pragma unroll
    for (u32 stage = 0; stage < STAGES - 1; stage++)
        if (stage < tile.chunks) loader.load_weights(memory + stage * STAGE_BYTES);
    // Weights and tables are never results of a launch; the previous launch converts the tokens.
    grid_wait();
#pragma unroll
    for (u32 stage = 0; stage < STAGES - 1; stage++) {
        if (stage < tile.chunks) loader.load_tokens(memory + stage * STAGE_BYTES);
        copy_commit();  // the first group holds the weights of all these stages
    }
    recorder.end(Activity::Load, number);
#pragma unroll
    for (u32 sixteen = 0; sixteen < SIXTEENS; sixteen++)
#pragma unroll
        for (u32 eight = 0; eight < EIGHTS; eight++)
#pragma unroll
            for (u32 index = 0; index < 4; index++) sums[sixteen][eight][index] = 0.0f;
    u32 stage = 0, next = STAGES - 1;
#pragma unroll 1
    for (u32 chunk = 0; chunk < tile.chunks; chunk++) {
        copy_wait<STAGES - 2>();
        // The chunk has landed for all threads, and all are done with the previous one, whose stage is loaded next.
        __syncthreads();
        if (chunk == 0) recorder.end(Activity::Wait, number);
        if (chunk + STAGES - 1 < tile.chunks) {
            loader.load_weights(memory + next * STAGE_BYTES);
            loader.load_tokens(memory + next * STAGE_BYTES);
        }
        copy_commit();  // an empty group after the last chunk, so that the wait counts chunks
        multiply_chunk(sums, memory + stage * STAGE_BYTES, eights, warp, lane);
        if (++stage == STAGES) stage = 0;
        if (++next == STAGES) next = 0;
    }
    __syncthreads();
    recorder.end(Activity::Multiply, number);
}

// ---- Results.

// Of a tile whose depth is split, the part that arrives last adds all parts in their order: the result has the same
// bits in every call. Returns whether this is that part. `flag` is a word of shared memory.
DEVICE bool reduce_parts(const Parameter& parameter, const Tile& tile, u32 flag, Sums& sums) {
    constexpr u32 BUFFER = WEIGHT_ROWS * WIDTH / 4;
    u32 part = tile.part(), parts = tile.part_count(), eights = (tile.width + 7) / 8;
    float4* all = (float4*)parameter.partials + (u64)tile.slot * BUFFER + threadIdx.x;
    auto place = [&](u32 of, u32 sixteen, u32 eight) {
        return all + (u64)of * BUFFER + (sixteen * EIGHTS + eight) * THREADS;
    };
#pragma unroll
    for (u32 sixteen = 0; sixteen < SIXTEENS; sixteen++)
#pragma unroll
        for (u32 eight = 0; eight < EIGHTS; eight++) {
            const float (&four)[4] = sums[sixteen][eight];
            if (eight < eights) __stcg(place(part, sixteen, eight), make_float4(four[0], four[1], four[2], four[3]));
        }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        u32* counter = parameter.counters + tile.slot * 2;  // the plan has two for each part
        u32 before = atomicAdd(counter, 1);
        if (before == parts - 1) *counter = 0;
        __threadfence();
        store_shared(flag, before);
    }
    __syncthreads();
    bool last = load_shared(flag) == parts - 1;
    __syncthreads();  // before results take the word's place
    if (!last) return false;
#pragma unroll
    for (u32 sixteen = 0; sixteen < SIXTEENS; sixteen++)
#pragma unroll
        for (u32 eight = 0; eight < EIGHTS; eight++) {
            if (eight >= eights) break;
            float4 total = __ldcg(place(0, sixteen, eight));
#pragma unroll 1
            for (u32 other = 1; other < parts; other++) {
                float4 more = __ldcg(place(other, sixteen, eight));
                total = make_float4(total.x + more.x, total.y + more.y, total.z + more.z, total.w + more.w);
            }
            float (&four)[4] = sums[sixteen][eight];
            four[0] = total.x, four[1] = total.y, four[2] = total.z, four[3] = total.w;
        }
    return true;
}

// Rows of the output that a warp has of each token, and from a token to the next where the warp stages them: so far
// apart that a warp's stores are in different banks.
constexpr u32 RESULT_ROWS = DUAL ? 16 : 32, STAGED_ROW = (RESULT_ROWS + 4) * 4;
static_assert(WARPS * 8 * STAGED_ROW <= SHARED_BYTES, "results lie in the stages");

// A warp stages eight tokens at a time, so that its lanes store whole runs of a token's rows.
DEVICE void store_results(const Parameter& parameter, const Tile& tile, u32 memory, const Sums& sums) {
    const Group& group = parameter.group_table[tile.group];
    u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, n = group.n, row = tile.row + warp * RESULT_ROWS;
    float scales[2] = {group.scale[0] * SUM_UNIT, group.scale[1] * SUM_UNIT};
    u8* first = parameter.output + group.output * (OUTPUT == 2 ? 4 : 2);
    u32 staged = memory + warp * 8 * STAGED_ROW, to = staged + lane % 4 * 2 * STAGED_ROW + lane / 4 * 4;
#pragma unroll
    for (u32 eight = 0; eight < EIGHTS; eight++) {
        if (eight * 8 >= tile.width) break;
#pragma unroll
        for (u32 index = 0; index < 4; index++) {
            u32 place = to + index % 2 * STAGED_ROW + index / 2 * 32;
            if constexpr (DUAL) {
                float result = silu(sums[0][eight][index] * scales[0]) * (sums[1][eight][index] * scales[1]);
                store_shared(place, __float_as_uint(result));
            } else {
#pragma unroll
                for (u32 sixteen = 0; sixteen < SIXTEENS; sixteen++)
                    store_shared(place + sixteen * 64, __float_as_uint(sums[sixteen][eight][index] * scales[0]));
            }
        }
        __syncwarp();
#pragma unroll
        for (u32 turn = 0; turn < 8 * RESULT_ROWS / 32; turn++) {
            u32 number = turn * 32 + lane, token = number / RESULT_ROWS, of = number % RESULT_ROWS;
            float result = __uint_as_float(load_shared(staged + token * STAGED_ROW + of * 4));
            token += eight * 8;
            if (token < tile.width && row + of < n) store_one(first, (u64)(tile.token + token) * n + row + of, result);
        }
        __syncwarp();
    }
}

// ---- The kernel.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) unified(const __grid_constant__ Parameter parameter) {
    extern __shared__ __align__(1024) u8 dynamic[];
    u32 memory = shared_address(dynamic);
    Recorder recorder;
    grid_launch_dependents();
    recorder.begin(Role::Everyone, 0, threadIdx.x == 0);
    const Tile* from = first_tile(parameter);
    Tile tile = load_tile(from);
    if (tile.chunks == 0) {
        grid_wait();  // or the next call could begin before this one's tokens are converted
        return;
    }
#pragma unroll 1
    for (u32 count = 0;; count++) {
        u32 number = blockIdx.x * parameter.tiles_a_worker + count;
        Sums sums;
        multiply_tile(parameter, tile, memory, sums, recorder, number);
        bool whole = true;
        if (tile.part_count() > 1) {
            whole = reduce_parts(parameter, tile, memory, sums);
            recorder.end(Activity::Reduce, number);
        }
        if (whole) {
            store_results(parameter, tile, memory, sums);
            recorder.end(Activity::Store, number);
        }
        if (tile.is_last()) return;
        tile = load_tile(++from);
        __syncthreads();  // all results have left the stages that the next tile fills
    }
}
