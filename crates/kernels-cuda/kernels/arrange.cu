// Sorts the slots of a mixture of experts by their experts: a row for each slot whose expert is here, those of one expert in
// the order of the slots. One block.
//
// Each warp takes a contiguous part of the slots, 32 at a time, so that the order of warps, steps and lanes is that of the
// slots. It first counts how many of its slots each expert has. From all counts follows where each warp's rows of each expert
// begin, and a second pass over the slots deals out the rows. There are no atomics: only one warp changes its counts, by one
// lane for each expert.
//
// The id -1, which pads, and that of an expert elsewhere get no row. Other ids that stand for no expert get none either, but are
// told apart, so that their tokens become NaN. Whatever the ids are, nothing is written outside of the results.
#include "mixture.cuh"

constexpr u32 THREADS = 1024, WARPS = THREADS / 32, ALL = ~0u;
constexpr u32 ELSEWHERE = 0xFFFF, WRONG = 0xFFFE;     // in place of an expert
// MOST_SLOTS and MOST_EXPERTS are defined by src/plan/mixture.rs.
static_assert(MOST_SLOTS <= WRONG && MOST_EXPERTS <= THREADS, "rows have 16 bits, and each expert a thread");

DEVICE long long load_index(const void* from, u32 index, u32 bytes) {
    return bytes == 8 ? ((const long long*)from)[index] : ((const int*)from)[index];
}

// The place of a slot's expert among those here, or ELSEWHERE, also for padding, or WRONG.
DEVICE u32 expert_of(const ArrangeParameter& parameter, u32 slot) {
    long long id = load_index(parameter.ids, slot, parameter.id_bytes);
    if (parameter.map_bytes != 0 && id != -1) {
        if (id < 0 || id >= parameter.map_size) return WRONG;
        id = load_index(parameter.expert_map, (u32)id, parameter.map_bytes);
    }
    if (id == -1) return ELSEWHERE;
    return id < 0 || id >= parameter.experts ? WRONG : (u32)id;
}

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

extern "C" __global__ void __launch_bounds__(THREADS, 1) arrange(const __grid_constant__ ArrangeParameter parameter) {
    extern __shared__ __align__(16) u8 memory[];
    __shared__ u32 of_warps[WARPS];
    u16* slot_experts = (u16*)memory;               // [MOST_SLOTS]
    u16* counts = slot_experts + MOST_SLOTS;        // [warps][experts]; then the next row of each warp and expert
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, slots = parameter.slots, experts = parameter.experts;
    // As few warps as have a step each, because the counts of each take time.
    u32 steps_in_all = (slots + 31) / 32, steps = (steps_in_all + WARPS - 1) / WARPS;
    u32 warps = steps == 0 ? 0 : (steps_in_all + steps - 1) / steps;
    u32 begin = warp * steps * 32, end = min(slots, begin + steps * 32);
    u32 none = experts, bits = 32 - __clz(none);    // lanes compare as few bits as tell all experts and `none` apart
    u32 before_me = (1u << lane) - 1;               // the lanes
    u16* own = counts + warp * experts;
    for (u32 index = threadIdx.x; index < warps * experts; index += THREADS) counts[index] = 0;
    grid_launch_dependents();
    grid_wait();        // an earlier launch writes the ids, and the previous call may still read what this one writes
    __syncthreads();

    // A warp takes each of its steps with all lanes; lanes beyond the slots have no expert.
    for (u32 first = begin; first < end; first += 32) {
        u32 slot = first + lane, expert = slot < end ? expert_of(parameter, slot) : ELSEWHERE;
        if (slot < end) slot_experts[slot] = (u16)expert;
        u32 lanes = lanes_with(min(expert, none), bits);
        if (expert < experts && (lanes & before_me) == 0) own[expert] += (u16)__popc(lanes);
        __syncwarp();
    }
    __syncthreads();

    u32 count = 0, total;
    if (threadIdx.x < experts)
        for (u32 other = 0; other < warps; other++) count += counts[other * experts + threadIdx.x];
    u32 row = sum_before(count, of_warps, total);
    if (threadIdx.x < experts) {
        parameter.ends[threadIdx.x] = (int)(row + count);
        for (u32 other = 0; other < warps; other++) {
            u16& place = counts[other * experts + threadIdx.x];
            u32 counted = place;
            place = (u16)row;
            row += counted;
        }
    }
    __syncthreads();

    for (u32 first = begin; first < end; first += 32) {
        u32 slot = first + lane, expert = slot < end ? slot_experts[slot] : ELSEWHERE;
        u32 lanes = lanes_with(min(expert, none), bits);
        u32 before = expert < experts ? own[expert] : 0;
        __syncwarp();
        if (expert < experts) {
            u32 place = before + __popc(lanes & before_me);
            parameter.rows[slot] = (int)place;
            parameter.tokens[place] = (int)(slot / parameter.slots_a_token);
            parameter.row_experts[place] = (int)expert;
            if ((lanes & before_me) == 0) own[expert] = (u16)(before + __popc(lanes));
        } else if (slot < end) {
            parameter.rows[slot] = expert == WRONG ? ROW_OF_WRONG : ROW_OF_NONE;
        }
        __syncwarp();
    }
    for (u32 unused = total + threadIdx.x; unused < slots; unused += THREADS) {
        parameter.tokens[unused] = -1;
        parameter.row_experts[unused] = 0;
    }
}
