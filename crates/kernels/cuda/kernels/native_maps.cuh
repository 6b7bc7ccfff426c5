// The tensor maps of a group: those that the host made for it, or, with BLOCK_MAPS, those that the block makes itself
// when it goes on to another group. The host then makes the maps of one group; a block copies them to memory of its own
// and changes address, sizes and stride.
#pragma once
#include "native_words.cuh"

// Tokens, weights, second weights.
constexpr u32 MAPS_A_GROUP = 3;

struct GroupMaps {
    u32 group = ~0u;  // of the block's own maps

    // The maps of a group, for the one thread that loads. `next` is the stage that is filled next.
    DEVICE const TensorMap* of(const Parameter& parameter, u32 wanted, u32 memory, StageCursor next) {
        if constexpr (!BLOCK_MAPS) return parameter.maps + MAPS_A_GROUP * wanted;
        TensorMap* own = own_maps(parameter);
        if (wanted != group) {
            wait_for_copies(memory, next);
            make(parameter, parameter.groups[wanted], own);
            group = wanted;
        }
        return own;
    }

private:
    // They lie behind the sums of a split depth.
    DEVICE static TensorMap* own_maps(const Parameter& parameter) {
        u64 sums = SPLIT_K > 1 ? (u64)parameter.tiles * SPLIT_K * ROWS * COLUMNS * MATRICES : 0;
        return (TensorMap*)(parameter.workspace + sums) + MAPS_A_GROUP * blockIdx.x;
    }

    // A map must not change under a copy: all stages that this thread has filled are full. Those before `next` were
    // filled in its turn, the others in the turn before, or never, which counts as full.
    DEVICE static void wait_for_copies(u32 memory, StageCursor next) {
#pragma unroll 1
        for (u32 stage = 0; stage < STAGES; ++stage)
            barrier_wait(memory + FULL + stage * 8, stage < next.slot ? next.turn : next.turn ^ 1);
    }

    DEVICE static void make(const Parameter& parameter, const Group& group, TensorMap* own) {
        u32 row_bytes = group.k / 2;
#pragma unroll
        for (u32 matrix = 0; matrix < 1 + MATRICES; ++matrix) {
            const ulonglong2* from = (const ulonglong2*)(parameter.maps + matrix);
#pragma unroll
            for (u32 part = 0; part < sizeof(TensorMap) / sizeof(ulonglong2); ++part)
                ((ulonglong2*)(own + matrix))[part] = __ldg(from + part);
            map_set_address(own + matrix, matrix == 0 ? parameter.tokens + group.tokens : group.weights[matrix - 1]);
            map_set_size<0>(own + matrix, row_bytes);
            map_set_size<1>(own + matrix, matrix == 0 ? group.m : group.n);
            map_set_row_bytes(own + matrix, row_bytes);
        }
        map_release();
#pragma unroll
        for (u32 matrix = 0; matrix < 1 + MATRICES; ++matrix) map_acquire(own + matrix);
    }
};
