// Counts the slots of each expert in each block's part of the slots, before arrange.cu deals out rows to as many
// blocks.
#include "mixture.cuh"

constexpr u32 THREADS = 256;

extern "C" __global__ void __launch_bounds__(THREADS) count(const __grid_constant__ ArrangeParameter parameter) {
    __shared__ u32 counts[MAX_EXPERTS];
    for (u32 expert = threadIdx.x; expert < parameter.experts; expert += THREADS) counts[expert] = 0;
    grid_wait();  // an earlier launch writes the ids, and the previous call may still read what this one writes
    grid_launch_dependents();
    __syncthreads();
    u32 begin = blockIdx.x * parameter.block_slots, end = min(parameter.slots, begin + parameter.block_slots);
    for (u32 slot = begin + threadIdx.x; slot < end; slot += THREADS) {
        u32 expert = expert_of(parameter, slot);
        if (expert < parameter.experts) atomicAdd(counts + expert, 1);
    }
    __syncthreads();
    for (u32 expert = threadIdx.x; expert < parameter.experts; expert += THREADS)
        parameter.counts[(u64)blockIdx.x * parameter.experts + expert] = counts[expert];
}
