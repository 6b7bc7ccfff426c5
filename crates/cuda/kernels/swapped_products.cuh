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
DEVICE void convert_weights(u32 (&fragments)[STEPS][4], const u32 (&first)[4], const u32 (&second)[4], u32 first_scales, u32 second_scales, u32 batch) {
#pragma unroll
    for (u32 i = 0; i < STEPS / 2; i++) {
        u32 word = batch * (STEPS / 2) + i;
        u32 scale = word < 2 ? both_halves<0>(first_scales) : both_halves<1>(first_scales);
        convert_8(first[word], scale, fragments[2 * i][0], fragments[2 * i][2], fragments[2 * i + 1][0], fragments[2 * i + 1][2]);
        scale = word < 2 ? both_halves<0>(second_scales) : both_halves<1>(second_scales);
        convert_8(second[word], scale, fragments[2 * i][1], fragments[2 * i][3], fragments[2 * i + 1][1], fragments[2 * i + 1][3]);
    }
}

// Units of tokens have 2048 bytes for eight tokens, twice what the descriptor of a matrix 64 deep counts on.
DEVICE u64 token_descriptor(u32 address) {
    return matrix_descriptor(address) + ((u64)(1024 >> 4) << 32);
}

// While one batch of steps is in the matrix unit, the next is converted; the next unit's packed weights are read before the
// last batch. Wider tiles have smaller batches, for with larger ones units were released too late (measured).
//
// Returns where the last unit lies, which is not released: results pass through it.
template <u32 COLUMNS>
DEVICE u32 multiply_tile(const Tile& tile, u32 ring_base, Control* control, Ring& ring, float (&sums)[COLUMNS / 2], Recorder& recorder, u32 number) {
    constexpr u32 STEPS = COLUMNS <= 128 ? 4 : 2, BATCHES = 8 / STEPS, UNIT = unit_bytes(COLUMNS);
    Lane at;
    u32 weights_at = token_bytes(COLUMNS) + at.row * 64 + at.lane % 4 * 16, scales_at = at.row * 16 + at.lane % 4 * 2;
    u32 full = shared_address(control->full), empty = shared_address(control->empty);
    u32 slot = SLOTS, previous = SLOTS, unit = 0;
    uint4 first, second;
    u32 scales[2];      // of the two rows, for an even chunk in the low halves and the odd one after it in the high ones
    auto next_unit = [&](bool with_scales) {
        slot = ring.slot();
        unit = ring_base + ring.begin(UNIT);
        barrier_wait(full + 8 * slot, ring.parity());
        first = load_shared_16(unit + weights_at);
        second = load_shared_16(unit + weights_at + 8 * 64);
        u32 from = ring_base + ring.scales() + scales_at;
        if (with_scales)
#pragma unroll
            for (u32 row = 0; row < 2; row++)
                scales[row] = __byte_perm(load_shared_2(from + row * 8 * 16), load_shared_2(from + row * 8 * 16 + 8), 0x5410);
        ring.advance(UNIT);
    };
#pragma unroll
    for (u32 i = 0; i < COLUMNS / 2; i++) sums[i] = 0.0f;
    next_unit(true);
    u32 chunks = tile.chunks;       // there since the wait
    recorder.end(Activity::Wait, number);
#pragma unroll 1
    for (u32 pair = 0; pair < chunks; pair += 2) {
#pragma unroll
        for (u32 odd = 0; odd < 2; odd++) {
            u32 first_scales = convert_scales((u16)(scales[0] >> 16 * odd)), second_scales = convert_scales((u16)(scales[1] >> 16 * odd));
            u32 first_words[4] = {first.x, first.y, first.z, first.w}, second_words[4] = {second.x, second.y, second.z, second.w};
            u32 current = slot;
            u64 tokens = token_descriptor(unit);
#pragma unroll
            for (u32 batch = 0; batch < BATCHES; batch++) {
                u32 fragments[STEPS][4];
                convert_weights<STEPS>(fragments, first_words, second_words, first_scales, second_scales, batch);
                products_fence();
#pragma unroll
                for (u32 i = 0; i < STEPS; i++) {
                    u32 step = batch * STEPS + i;
                    Wgmma<COLUMNS>::registers(sums, fragments[i], tokens + (step / 4 * 1024 + step % 4 * 32) / 16);
                }
                products_commit();
                if (batch == BATCHES - 2 && (odd == 0 || pair + 2 < chunks)) next_unit(odd == 1);
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
