// Sorts the slots of a mixture of experts by their experts, a row for each slot whose expert is here, those of one
// expert in the order of the slots, and copies each slot's token into its row, for the first product.
//
// Of few slots every block sorts all, and copies every so manieth one: no block waits for another, and there is one
// launch. Of more, each block has a part of the slots, and count.cu has counted how many of them each expert has. The
// parts of all blocks before, and the experts before, tell where a block's rows begin.
//
// Each warp takes a contiguous part of a block's slots, 32 at a time, so that the order of warps, steps and lanes is
// that of the slots. It first counts how many of its slots each expert has. From all counts follows where each warp's
// rows of each expert begin, and a second pass over the slots deals out the rows. There are no atomics: only one warp
// changes its counts, by one lane for each expert.
//
// The id -1, which pads, and that of an expert elsewhere get no row and no copy. Other ids that stand for no expert get
// none either, but are told apart, so that their tokens become NaN. Whatever the ids are, nothing is written outside of
// the results.
#include "mixture.cuh"

constexpr u32 THREADS = 1024, WARPS = THREADS / 32, ALL = ~0u;
// MAX_BLOCK_SLOTS and MAX_EXPERTS are defined by src/plan/mixture.rs.
static_assert(MAX_BLOCK_SLOTS <= WRONG && MAX_EXPERTS <= THREADS, "counts have 16 bits, and each expert a thread");

// The lanes with the same value as this one, of `bits` bits.
DEVICE u32 lanes_with(u32 value, u32 bits) {
    u32 lanes = ALL;
    for (u32 bit = 0; bit < bits; bit++) {
        bool is_set = value >> bit & 1;
        u32 set = __ballot_sync(ALL, is_set);
        lanes &= is_set ? set : ~set;
    }
    return lanes;
}

// The sum over the threads before this one; `total` is that over all. For the whole block.
DEVICE u32 sum_before(u32 value, u32* of_warps, u32& total) {
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = value;
#pragma unroll
    for (u32 distance = 1; distance < 32; distance *= 2) {
        u32 before = __shfl_up_sync(ALL, sum, distance);
        if (lane >= distance) sum += before;
    }
    if (lane == 31) of_warps[warp] = sum;
    __syncthreads();
    u32 before = 0;
    total = 0;
#pragma unroll
    for (u32 other = 0; other < WARPS; other++) {
        u32 own = of_warps[other];
        if (other < warp) before += own;
        total += own;
    }
    return before + sum - value;
}

// What count.cu counted of one expert: `before`, in the blocks before this one, and in all. Several threads share the
// blocks.
DEVICE void load_counts(const ArrangeParameter& parameter, u32* before, u32* all) {
    u32 experts = parameter.experts, sharing = THREADS / experts, expert = threadIdx.x % experts,
        share = threadIdx.x / experts;
    for (u32 index = threadIdx.x; index < experts; index += THREADS) before[index] = all[index] = 0;
    __syncthreads();
    if (share < sharing) {
        u32 own_before = 0, own = 0;
#pragma unroll 4
        for (u32 block = share; block < gridDim.x; block += sharing) {
            u32 count = __ldcg(parameter.counts + (u64)block * experts + expert);
            own += count;
            if (block < blockIdx.x) own_before += count;
        }
        atomicAdd(before + expert, own_before);
        atomicAdd(all + expert, own);
    }
    __syncthreads();
}

// Copies the tokens of this block's slots, a warp for each.
DEVICE void copy_tokens(const ArrangeParameter& parameter, const u32* places, u32 begin, u32 end) {
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 first = parameter.counted ? warp : blockIdx.x * WARPS + warp,
        step = parameter.counted ? WARPS : gridDim.x * WARPS;
    for (u32 slot = begin + first; slot < end; slot += step) {
        int place = (int)places[slot - begin];
        if (place < 0) continue;
        const uint4* from = parameter.from + (u64)(slot / parameter.slots_a_token) * parameter.pieces;
        uint4* to = parameter.to + (u64)place * parameter.pieces;
#pragma unroll 4
        for (u32 piece = lane; piece < parameter.pieces; piece += 32) to[piece] = from[piece];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) arrange(const __grid_constant__ ArrangeParameter parameter) {
    extern __shared__ __align__(16) u8 memory[];
    __shared__ u32 of_warps[WARPS];
    u32* places = (u32*)memory;                    // [MAX_BLOCK_SLOTS]: the expert of each slot, then its row
    u32* firsts = places + MAX_BLOCK_SLOTS;        // [experts]: the block's first row of each
    u32* all_counts = firsts + parameter.experts;  // [experts]
    // [warps][experts]; then the next row of each warp and expert.
    u16* counts = (u16*)(all_counts + parameter.experts);
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, experts = parameter.experts;
    u32 block_begin = parameter.counted ? blockIdx.x * parameter.block_slots : 0;
    u32 block_end = parameter.counted ? min(parameter.slots, block_begin + parameter.block_slots) : parameter.slots;
    // As few warps as have a step each, because the counts of each take time.
    u32 steps_in_all = (block_end - block_begin + 31) / 32, steps = (steps_in_all + WARPS - 1) / WARPS;
    u32 warps = steps == 0 ? 0 : (steps_in_all + steps - 1) / steps;
    u32 begin = block_begin + warp * steps * 32, end = min(block_end, begin + steps * 32);
    u32 none = experts, bits = 32 - __clz(none);  // lanes compare as few bits as tell all experts and `none` apart
    u32 before_me = (1u << lane) - 1;             // the lanes
    u16* own = counts + warp * experts;
    for (u32 index = threadIdx.x; index < warps * experts; index += THREADS) counts[index] = 0;
    grid_wait();  // an earlier launch writes the ids, and the previous call may still read what this one writes
    grid_launch_dependents();
    __syncthreads();

    // A warp takes each of its steps with all lanes; lanes beyond the slots have no expert.
    for (u32 first = begin; first < end; first += 32) {
        u32 slot = first + lane, expert = slot < end ? expert_of(parameter, slot) : ELSEWHERE;
        if (slot < end) places[slot - block_begin] = expert;
        u32 lanes = lanes_with(min(expert, none), bits);
        if (expert < experts && (lanes & before_me) == 0) own[expert] += (u16)__popc(lanes);
        __syncwarp();
    }
    if (parameter.counted && experts > 0) load_counts(parameter, firsts, all_counts);
    __syncthreads();

    u32 count = 0, own_count = 0, total;
    if (threadIdx.x < experts) {
        for (u32 other = 0; other < warps; other++) own_count += counts[other * experts + threadIdx.x];
        count = parameter.counted ? all_counts[threadIdx.x] : own_count;
    }
    u32 row = sum_before(count, of_warps, total);
    if (threadIdx.x < experts) {
        if (blockIdx.x == 0) parameter.ends[threadIdx.x] = (int)(row + count);
        firsts[threadIdx.x] = row + (parameter.counted ? firsts[threadIdx.x] : 0);
        u32 next = 0;
        for (u32 other = 0; other < warps; other++) {
            u16& place = counts[other * experts + threadIdx.x];
            u32 counted = place;
            place = (u16)next;
            next += counted;
        }
    }
    __syncthreads();

    bool writes = parameter.counted || blockIdx.x == 0;
    for (u32 first = begin; first < end; first += 32) {
        u32 slot = first + lane, expert = slot < end ? places[slot - block_begin] : ELSEWHERE;
        u32 lanes = lanes_with(min(expert, none), bits);
        u32 before = expert < experts ? own[expert] : 0;
        int place = expert == WRONG ? ROW_OF_WRONG : ROW_OF_NONE;
        __syncwarp();
        if (expert < experts) {
            place = (int)(firsts[expert] + before + __popc(lanes & before_me));
            if (writes) parameter.row_experts[place] = (int)expert;
            if ((lanes & before_me) == 0) own[expert] = (u16)(before + __popc(lanes));
        }
        if (slot < end) {
            if (writes) parameter.rows[slot] = place;
            places[slot - block_begin] = (u32)place;
        }
        __syncwarp();
    }
    for (u32 unused = total + blockIdx.x * THREADS + threadIdx.x; unused < parameter.slots;
         unused += gridDim.x * THREADS)
        parameter.row_experts[unused] = 0;
    __syncthreads();
    copy_tokens(parameter, places, block_begin, block_end);
}
