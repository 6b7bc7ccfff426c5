// The product of one tile by two warp groups: each takes 64 weight rows through registers, tokens come from the ring.
//
// Of `wgmma`'s sixty-four rows a lane has two that are eight apart. In the dual form the second is the same row of the
// second weights, so that a thread has both products of its results and needs nothing from other threads.
//
// In a chunk, lane q of a quad owns K = 32q … 32q + 31: 16 packed bytes and 2 scales, one load. Word w of them makes
// steps 2w and 2w + 1 of `wgmma`, whose columns 2q, 2q + 1, 2q + 8 and 2q + 9 the lane gives; tokens are converted into
// the same order. With REPACKED 2 it is the other way around: weights are in the order of the tokens
// (swapped_steps.cuh).
#pragma once
#include "format.cuh"
#include "swapped_ring.cuh"
#include "swapped_steps.cuh"
#include "wgmma.cuh"

struct Lane {
    // The thread in its warp group; where the first of its two rows lies among a unit's.
    u32 thread, warp_group, lane, row;

    DEVICE Lane() {
        u32 index;
        asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));  // volatile: keeps each width's addresses inside it
        thread = index % 128;
        warp_group = index / 128;
        lane = index % 32;
        row = (warp_group * 64 + thread / 32 * 16) / (DUAL ? 2 : 1) + lane / 4;
    }

    // All threads of the warp group meet.
    DEVICE void group_sync() const { named_barrier_sync(1 + warp_group, 128); }
};

// From a lane's first row to its second.
constexpr u32 ROWS_APART = DUAL ? WEIGHT_ROWS / 2 : 8;

// Converted tokens have 2048 bytes for eight tokens, twice what the descriptor of a matrix 64 deep counts on; tokens as
// they lie in memory come as two such matrices. Of the descriptor's two halves only one depends on the address, which
// is below 2¹⁸ and needs no mask: the assembler does not find out by itself.
DEVICE u64 token_descriptor(u32 address) {
    constexpr u64 CONSTANT = matrix_descriptor(0) + (STEPS ? 0 : (u64)(1024 >> 4) << 32);
    u64 descriptor;
    asm("mov.b64 %0, {%1, %2};" : "=l"(descriptor) : "r"((address >> 4) + (u32)CONSTANT), "r"((u32)(CONSTANT >> 32)));
    return descriptor;
}

#if REPACKED == 2

// What a warp converts at a time, and with it the scales of the lane's two rows: all eight of each for a chunk.
constexpr u32 STEPS_AT_ONCE = 4;
using WeightsAtOnce = FourSteps;

struct RowScales {
    u32 words[2][2][2];  // of each row and chunk

    DEVICE void load(const Lane& at, u32 from, u32 chunk) {
        from += at.row / 16 * 128 + at.row % 8 * 16;
        if (DUAL) {  // sixteen bytes have those of rows eight apart of one of the weights
            from += at.row / 8 % 2 * 8;
#pragma unroll
            for (u32 row = 0; row < 2; row++) {
                uint2 own = load_shared_8(from + row * CHUNK_SCALE_BYTES / 2);
                words[row][chunk][0] = own.x, words[row][chunk][1] = own.y;
            }
        } else {
            uint4 both = load_shared_16(from);
            words[0][chunk][0] = both.x, words[0][chunk][1] = both.y;
            words[1][chunk][0] = both.z, words[1][chunk][1] = both.w;
        }
    }
};

// The scales of a chunk; they are converted where they are needed.
struct ChunkScales {
    const RowScales& scales;
    u32 chunk;

    DEVICE ChunkScales(const RowScales& scales, u32 chunk) : scales(scales), chunk(chunk) {}
    DEVICE u32 of(u32 row, u32 step) const { return step_scales(scales.words[row][chunk][step / 4], step / 2); }
    DEVICE static bool is_upper(u32 step) { return step % 2 == 1; }
};

DEVICE WeightsAtOnce weights_at_once(const uint4& row, u32 part) {
    return part == 0 ? FourSteps(row.x, row.y) : FourSteps(row.z, row.w);
}

#else

// A word has two steps of a row.
constexpr u32 STEPS_AT_ONCE = 2;
using WeightsAtOnce = PackedWeights;

// The scales of the lane's two rows, two of a row for a chunk. Loaded words are not used before conversion: combining
// them right after the load stalls every iteration (measured: 1 to 2 % of a call).
struct RowScales {
    u32 words[2][2];  // of each row and chunk; repacked and plain, of each chunk those of both rows

    DEVICE void load(const Lane& at, u32 from, u32 chunk) {
        if (REPACKED && DUAL) {  // a word has those of rows eight apart of one of the weights
            from += at.row / 16 * 128 + at.lane * 4 + at.row / 8 % 2 * 2;
#pragma unroll
            for (u32 row = 0; row < 2; row++) words[row][chunk] = load_shared_2(from + row * CHUNK_SCALE_BYTES / 2);
            return;
        }
        if (REPACKED) {
            words[0][chunk] = load_shared(from + at.warp_group * CHUNK_SCALE_BYTES / 2 + at.thread * 4);
            return;
        }
        if (chunk == 1) return;  // came with those of the even chunk
        from += at.row * SCALE_ROW + at.lane % 4 * 2;
#pragma unroll
        for (u32 row = 0; row < 2; row++)
#pragma unroll
            for (u32 of = 0; of < 2; of++) words[row][of] = load_shared_2(from + row * ROWS_APART * SCALE_ROW + of * 8);
    }

    DEVICE u32 converted(u32 row, u32 chunk) const {
        u16 scales = (u16)(REPACKED && !DUAL ? words[0][chunk] >> 16 * row : words[row][chunk]);
        return convert_weight_scales(scales);
    }
};

// Converted at once: both scales of a row serve four steps each.
struct ChunkScales {
    u32 converted[2];

    DEVICE ChunkScales(const RowScales& scales, u32 chunk)
        : converted{scales.converted(0, chunk), scales.converted(1, chunk)} {}
    DEVICE u32 of(u32 row, u32) const { return converted[row]; }
    DEVICE static bool is_upper(u32 step) { return step >= 4; }
};

DEVICE WeightsAtOnce weights_at_once(const uint4& row, u32 part) {
    return PackedWeights(part == 0 ? row.x : part == 1 ? row.y : part == 2 ? row.z : row.w);
}

#endif

// While the matrix unit computes one step, the next one's weights are converted. A chunk is released when the first
// step of the next is in flight, and the next one's packed weights are read before the last step: two units in the ring
// are enough. An iteration of the loop is a pair of chunks.
//
// If weights are not repacked, the scales of the previous pair are `scale_pair` bytes behind the first place; a tile
// begins with the other place. Returns the position of the last unit, which is not released: results pass through it.
template <u32 COLUMNS>
DEVICE u32 multiply_tile(const Tile& tile, u32 ring_base, Ring& ring, u32& scale_pair, float (&sums)[COLUMNS / 2],
                         Recorder& recorder, u32 number) {
    // From one half of K to the other.
    constexpr u32 UNIT = unit_bytes(COLUMNS), HALF_CHUNK = STEPS ? COLUMNS * 128 : 1024;
    Lane at;
    u32 rows_at = ring_base + token_bytes(COLUMNS) + at.row * 64 + at.lane % 4 * 16;
    u32 unit = 0, there = 0;
    uint4 rows[2][2];  // packed: of each chunk of the pair, the lane's two
    RowScales row_scales;
    scale_pair = ~scale_pair & SCALE_COPY_BYTES;  // a power of two
    auto next_unit = [&](u32 chunk) {
        unit = ring.begin(UNIT);
        barrier_wait_unless(there, ring_base + ring.full(chunk), ring.parity);
        rows[chunk][0] = load_shared_16(rows_at + unit);
        rows[chunk][1] = load_shared_16(rows_at + unit + ROWS_APART * 64);
        row_scales.load(at, ring_base + SCALES_AT + (REPACKED ? ring.packed_scales(chunk) : scale_pair), chunk);
        ring.advance(UNIT);
    };
#pragma unroll
    for (u32 i = 0; i < COLUMNS / 2; i++) sums[i] = 0.0f;
    next_unit(0);
    u32 chunks = tile.chunks;  // there since the wait
    recorder.end(Activity::Wait, number);
#pragma unroll 1
    for (u32 begin = 0; begin < chunks; begin += 2) {
#pragma unroll
        for (u32 chunk = 0; chunk < 2; chunk++) {
            const ChunkScales scales(row_scales, chunk);
            const uint4 packed[2] = {rows[chunk][0], rows[chunk][1]};
            u64 tokens = token_descriptor(ring_base + unit);
            if (chunk == 1) ring.next_pair();
            there = barrier_test(ring_base + ring.full(1 - chunk), ring.parity);  // early: the answer takes its time
#pragma unroll
            for (u32 part = 0; part < 8 / STEPS_AT_ONCE; part++) {
                const WeightsAtOnce weights[2] = {weights_at_once(packed[0], part), weights_at_once(packed[1], part)};
#pragma unroll
                for (u32 of_part = 0; of_part < STEPS_AT_ONCE; of_part++) {
                    u32 step = part * STEPS_AT_ONCE + of_part, fragment[4];
#pragma unroll
                    for (u32 i = 0; i < 4; i++)
                        fragment[i] = weights[i % 2].pair(2 * of_part + i / 2, scales.of(i % 2, step),
                                                          ChunkScales::is_upper(step));
                    products_fence();
                    Wgmma<COLUMNS, BRAIN>::registers(sums, fragment,
                                                     tokens + (step / 4 * HALF_CHUNK + step % 4 * 32) / 16);
                    products_commit();
                    if (step == 6 && (chunk == 0 || begin + 2 < chunks)) {
                        // The other half of a row; after the second half the other place too.
                        if (chunk == 1) scale_pair ^= SCALE_ROW / 2 | (begin & 2) * (SCALE_COPY_BYTES / 2);
                        next_unit(1 - chunk);
                    }
                    products_wait<1>();
                    if (step == 0 && (chunk == 1 || begin > 0))
                        barrier_arrive(ring_base + ring.empty_before(1 - chunk));
                }
            }
        }
    }
    products_wait<0>();
#pragma unroll
    for (u32 i = 0; i < COLUMNS / 2; i++) asm volatile("" : "+f"(sums[i]));  // none is read before the wait
    recorder.end(Activity::Multiply, number);
    return ring_base + unit;
}
