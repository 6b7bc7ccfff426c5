// The start of a block: it initialises its barriers and starts all of its loads.
#pragma once
#include "attention_resident_layout.cuh"

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
    const TensorMap* maps = parameter.maps + 3 * work.sequence;
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
    const TensorMap* maps = parameter.maps + 3 * work.sequence;
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
        cluster_wait();         // hidden behind the loads
    } else {
        __syncthreads();
    }
}
