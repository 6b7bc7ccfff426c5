// Attention for short sequences: all keys are in shared memory together. A cluster of SPLIT blocks computes 64 queries
// of a head. Each of the two warp groups of each block has KEYS keys of its own and goes from loads to a partial result
// without a loop; partial results are merged in the blocks' shared memory. On an H200 a call of 1×8×512×64 is bound by
// the latency of consecutive steps: launch, loads, Q·Kᵀ, exponentials, weights · V, merge.
//
// Definitions: those of attention.cuh and of attention_resident_layout.cuh.
#include "attention_resident_loads.cuh"
#include "attention_resident_merge.cuh"

extern "C" __global__ void __launch_bounds__(GROUPS * GROUP_THREADS, 1)
    attention_resident(const __grid_constant__ Parameter parameter) {
    extern __shared__ __align__(1024) u8 memory[];
    grid_launch_dependents();
    Place place = find_place(shared_address(memory));
    if (!UNIFORM) grid_wait();      // tables are read
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
