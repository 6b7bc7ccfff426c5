// Lanes of a warp. Above each kernel stands its launch. `*` marks the lines that a fault has to name.

#define KERNEL(name) extern "C" __global__ void name(const float* x, float* y, int n)
#define ME (int)threadIdx.x
#define FULL 0xFFFFFFFFu

// <<<1, 64>>> right
KERNEL(right_warps) {
    __shared__ float row[64];
    row[ME] = x[ME];
    __syncwarp();
    y[ME] = row[ME ^ 1];
}

// <<<1, 64>>> race
KERNEL(race_of_lanes) {
    __shared__ float row[64];
    row[ME] = x[ME];      // *
    y[ME] = row[ME ^ 1];  // *
}

// Waits for its own warp, and reads what another one wrote.
// <<<1, 64>>> race
KERNEL(race_across_warps) {
    __shared__ float row[64];
    row[ME] = x[ME];  // *
    __syncwarp();
    y[ME] = row[ME ^ 32];  // *
}

// The last steps of a sum as they were written for GPUs whose lanes run in step.
// <<<1, 64>>> race
KERNEL(race_in_step) {
    __shared__ volatile float sums[64];
    sums[ME] = x[ME];
    __syncthreads();
    if (ME < 32) {
        sums[ME] += sums[ME + 32];  // *
        sums[ME] += sums[ME + 16];  // *
        sums[ME] += sums[ME + 8];   // *
    }
    __syncthreads();
    if (ME == 0) y[0] = sums[0];
}

// <<<1, 64>>> right
KERNEL(right_in_step) {
    __shared__ float sums[64];
    sums[ME] = x[ME];
    __syncthreads();
    if (ME < 32) {
        float sum = sums[ME] + sums[ME + 32];
        for (int by = 16; by > 0; by /= 2) {
            __syncwarp();
            sums[ME] = sum;
            __syncwarp();
            sum += sums[ME ^ by];
        }
        if (ME == 0) y[0] = sum;
    }
}

// <<<1, 64>>> right
KERNEL(right_shuffles) {
    __shared__ float sums[2];
    float sum = x[ME];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(FULL, sum, by);
    if (ME % 32 == 0) sums[ME / 32] = sum;
    __syncthreads();
    if (ME == 0) y[0] = sums[0] + sums[1];
}

// All lanes have read when the shuffle ends, so one of them may write.
// <<<1, 32>>> right
KERNEL(right_write_behind_a_shuffle) {
    __shared__ float row[32];
    row[ME] = x[ME];
    __syncwarp();
    float value = row[ME ^ 1];
    value += __shfl_xor_sync(FULL, value, 2);
    row[ME] = value;
    __syncwarp();
    y[ME] = row[31 - ME];
}

// A shuffle does not make a store visible.
// <<<1, 32>>> race
KERNEL(race_behind_a_shuffle) {
    __shared__ float row[32];
    row[ME] = x[ME];  // *
    float value = __shfl_xor_sync(FULL, x[ME], 1);
    y[ME] = value + row[ME ^ 2];  // *
}

__device__ unsigned arrivals;
__device__ float halves[2];

// One lane counts, the warp votes on what it saw, and each lane reads behind a fence of its own.
// <<<2, 32>>> right
KERNEL(right_vote_on_a_count) {
    __shared__ float row[32];
    if (ME == 0) halves[blockIdx.x] = x[blockIdx.x];
    __threadfence();
    __syncwarp();
    unsigned before = 0;
    if (ME == 0) before = atomicInc(&arrivals, 1u);
    if (!__any_sync(FULL, before == 1)) return;
    __threadfence();
    row[ME] = halves[0] + halves[1];
    y[ME] = row[ME];
}

// The same without the second fence.
// <<<2, 32>>> race
KERNEL(race_behind_a_vote) {
    if (ME == 0) halves[blockIdx.x] = x[blockIdx.x];  // *
    __threadfence();
    __syncwarp();
    unsigned before = 0;
    if (ME == 0) before = atomicInc(&arrivals, 1u);
    if (!__any_sync(FULL, before == 1)) return;
    y[ME] = halves[0] + halves[1];  // *
}

// Waits for half of the lanes, and reads what the other half wrote.
// <<<1, 32>>> race
KERNEL(race_of_half_a_warp) {
    __shared__ float row[32];
    row[ME] = x[ME];  // *
    __syncwarp(ME < 16 ? 0x0000FFFFu : 0xFFFF0000u);
    y[ME] = row[ME ^ 16];  // *
}

// <<<1, 32>>> right
KERNEL(right_half_a_warp) {
    __shared__ float row[32];
    row[ME] = x[ME];
    __syncwarp(ME < 16 ? 0x0000FFFFu : 0xFFFF0000u);
    y[ME] = row[ME ^ 8];
}

// <<<1, 64>>> right
KERNEL(right_votes) {
    unsigned odd = __ballot_sync(FULL, ME & 1);
    unsigned fours = __match_any_sync(FULL, ME / 4);
    int all;
    unsigned same = __match_all_sync(FULL, n, &all);
    unsigned most = __reduce_max_sync(FULL, (unsigned)ME);
    y[ME] = (float)(__popc(odd) + __popc(fours) + __popc(same) + all) + 0.0f * most;
}
