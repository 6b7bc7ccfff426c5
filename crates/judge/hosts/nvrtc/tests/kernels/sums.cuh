#pragma once

// The sum over a block of THREADS threads.
__device__ inline double block_sum(double value) {
    __shared__ double parts[32];
    for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_down_sync(0xFFFFFFFFu, value, lanes);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    double sum = 0;
    for (int warp = 0; warp < THREADS / 32; warp++) sum += parts[warp];
    return sum;
}
