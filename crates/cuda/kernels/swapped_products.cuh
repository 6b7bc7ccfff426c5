// The product of one tile by two warp groups: each takes 64 weight rows through registers, tokens come from the ring.
//
// In a chunk, lane quad q owns K = 32q … 32q + 31: 16 packed bytes and 2 scales, one load. Word w of them makes steps 2w
// and 2w + 1 of `wgmma`, whose columns 2q, 2q + 1, 2q + 8 and 2q + 9 the lane gives; tokens are converted into the same order.
#pragma once
#include "convert.cuh"
#include "swapped_ring.cuh"
#include "wgmma.cuh"

struct Lane {
    u32 thread, warp_group, lane, row;      // the thread in its warp group; the first of its two rows in the tile, eight apart

    DEVICE Lane() {
        u32 index;
        asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));     // volatile: keeps each width's addresses inside it
        thread = index % 128;
        warp_group = index / 128;
        lane = index % 32;
        row = warp_group * 64 + thread / 32 * 16 + lane / 4;
    }
};

// `STEPS` steps' fragments of weights: words of the lane's two rows times their scales.
template <u32 STEPS>
DEVICE void convert_weights(u32 (&fragments)[STEPS][4], const u32 (&words)[2][4], const u32 (&scales)[2], u32 batch) {
#pragma unroll
    for (u32 i = 0; i < STEPS; i += 2)
#pragma unroll
        for (u32 row = 0; row < 2; row++) {
            u32 word = (batch * STEPS + i) / 2, packed = words[row][word];
            u32(&low)[4] = fragments[i], (&high)[4] = fragments[i + 1];
            if (REPACKED) convert_repacked_8(packed, scales[row], word >= 2, low[row], low[2 + row], high[row], high[2 + row]);
            else convert_8(packed, scales[row], word >= 2, low[row], low[2 + row], high[row], high[2 + row]);
        }
}

// Units of tokens have 2048 bytes for eight tokens, twice what the descriptor of a matrix 64 deep counts on.
DEVICE u64 token_descriptor(u32 address) {
    return matrix_descriptor(address) + ((u64)(1024 >> 4) << 32);
}

// The scales of the lane's two rows, two of a row for a chunk. What was loaded is not touched before it is converted: to put
// it together at once had each round wait for it (measured: 1 to 2 % of a call).
struct RowScales {
    u32 words[2][CHUNKS_OF_SCALES];     // of each row and chunk; repacked, the first has both rows'

    DEVICE void load(const Lane& at, u32 from) {
        if (REPACKED) {
            words[0][0] = load_shared(from + at.warp_group * SCALE_BYTES / 2 + at.thread * 4);
            return;
        }
        from += at.row * 16 + at.lane % 4 * 2;
#pragma unroll
        for (u32 row = 0; row < 2; row++)
#pragma unroll
            for (u32 chunk = 0; chunk < CHUNKS_OF_SCALES; chunk++) words[row][chunk] = load_shared_2(from + row * 8 * 16 + chunk * 8);
    }

    // Of the chunk of this number among those that were loaded.
    DEVICE u32 converted(u32 row, u32 chunk) const {
        return convert_scales((u16)(REPACKED ? words[0][0] >> 16 * row : words[row][chunk]));
    }
};

// While one batch of steps is in the matrix unit, the next is converted; the next unit's packed weights are read before the
// last batch. Wider tiles have smaller batches, for with larger ones units were released too late (measured). A round of the
// loop is as many chunks as have their scales in a slot.
//
// Returns where the last unit lies, which is not released: results pass through it.
template <u32 COLUMNS>
DEVICE u32 multiply_tile(const Tile& tile, u32 ring_base, Control* control, Ring& ring, float (&sums)[COLUMNS / 2], Recorder& recorder, u32 number) {
    constexpr u32 STEPS = COLUMNS <= 128 ? 4 : 2, BATCHES = 8 / STEPS, UNIT = unit_bytes(COLUMNS);
    Lane at;
    u32 weights_at = token_bytes(COLUMNS) + at.row * 64 + at.lane % 4 * 16;
    u32 full = shared_address(control->full), empty = shared_address(control->empty);
    u32 slot = SLOTS, previous = SLOTS, unit = 0, there = 0;
    uint4 rows[2];
    RowScales row_scales;
    auto next_unit = [&](bool with_scales) {
        slot = ring.slot();
        unit = ring_base + ring.begin(UNIT);
        barrier_wait_unless(there, full + 8 * slot, ring.parity());
        rows[0] = load_shared_16(unit + weights_at);
        rows[1] = load_shared_16(unit + weights_at + 8 * 64);
        if (with_scales) row_scales.load(at, ring_base + ring.scales());
        ring.advance(UNIT);
    };
#pragma unroll
    for (u32 i = 0; i < COLUMNS / 2; i++) sums[i] = 0.0f;
    next_unit(true);
    u32 chunks = tile.chunks;       // there since the wait
    recorder.end(Activity::Wait, number);
#pragma unroll 1
    for (u32 begin = 0; begin < chunks; begin += CHUNKS_OF_SCALES) {
#pragma unroll
        for (u32 chunk = 0; chunk < CHUNKS_OF_SCALES; chunk++) {
            u32 scales[2] = {row_scales.converted(0, chunk), row_scales.converted(1, chunk)};
            u32 words[2][4] = {{rows[0].x, rows[0].y, rows[0].z, rows[0].w}, {rows[1].x, rows[1].y, rows[1].z, rows[1].w}};
            u32 current = slot;
            u64 tokens = token_descriptor(unit);
            there = barrier_test(full + 8 * ring.slot(), ring.parity());     // early: the answer takes its time
            bool last = chunk == CHUNKS_OF_SCALES - 1;
#pragma unroll
            for (u32 batch = 0; batch < BATCHES; batch++) {
                u32 fragments[STEPS][4];
                convert_weights<STEPS>(fragments, words, scales, batch);
                products_fence();
#pragma unroll
                for (u32 i = 0; i < STEPS; i++) {
                    u32 step = batch * STEPS + i;
                    Wgmma<COLUMNS>::registers(sums, fragments[i], tokens + (step / 4 * 1024 + step % 4 * 32) / 16);
                }
                products_commit();
                if (batch == BATCHES - 2 && (!last || begin + CHUNKS_OF_SCALES < chunks)) next_unit(last);
                products_wait<1>();
                if (batch == 0 && previous < SLOTS) barrier_arrive(empty + 8 * previous);
            }
            previous = current;
        }
    }
    products_wait<0>();
#pragma unroll
    for (u32 i = 0; i < COLUMNS / 2; i++) asm volatile("" : "+f"(sums[i]));      // none is read before the wait
    recorder.end(Activity::Multiply, number);
    return unit;
}
