// Reductions, scans, histograms and transpositions as they are commonly written, and with the hazards that they
// commonly have. Above each kernel stands its launch. `*` marks the lines that a fault has to name.

#define KERNEL(name) extern "C" __global__ void name(const float* x, float* y, int n)
#define ME (int)threadIdx.x
#define ALL (int)(blockIdx.x * blockDim.x + threadIdx.x)
#define LANE (ME % 32)
#define WARP (ME / 32)

// Warps add up with shuffles, and the first adds what the warps have.
// <<<2, 128>>> right
KERNEL(right_reduction_of_warps) {
    __shared__ float sums[4];
    float sum = x[ALL];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
    if (LANE == 0) sums[WARP] = sum;
    __syncthreads();
    if (WARP > 0) return;
    sum = LANE < 4 ? sums[LANE] : 0.0f;
    for (int by = 2; by > 0; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
    if (LANE == 0) y[blockIdx.x] = sum;
}

// <<<2, 128>>> race
KERNEL(race_of_sums_of_warps) {
    __shared__ float sums[4];
    float sum = x[ALL];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
    if (LANE == 0) sums[WARP] = sum;  // *
    __syncwarp();
    if (WARP > 0) return;
    sum = LANE < 4 ? sums[LANE] : 0.0f;  // *
    for (int by = 2; by > 0; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
    if (LANE == 0) y[blockIdx.x] = sum;
}

// A tree of barriers down to a warp, which goes on alone with reads and writes apart.
// <<<1, 128>>> right
KERNEL(right_last_warp) {
    __shared__ float sums[128];
    sums[ME] = x[ME];
    __syncthreads();
    if (ME < 64) sums[ME] += sums[ME + 64];
    __syncthreads();
    if (ME >= 32) return;
    float sum = sums[ME] + sums[ME + 32];
    for (int by = 16; by > 0; by /= 2) {
        __syncwarp();
        sums[ME] = sum;
        __syncwarp();
        sum += sums[(ME + by) % 32];
    }
    y[ME] = sum;
}

// As before there were independent lanes: they are taken to go in step.
// <<<1, 64>>> race
KERNEL(race_of_a_volatile_warp) {
    __shared__ float sums[64];
    sums[ME] = x[ME];
    __syncthreads();
    if (ME >= 32) return;
    volatile float* mine = sums + ME;
    mine[0] = mine[0] + mine[32];  // *
    mine[0] = mine[0] + mine[16];  // *
    mine[0] = mine[0] + mine[8];   // *
    if (ME == 0) y[0] = sums[0];
}

// Up the tree and down again.
// <<<1, 64>>> right
KERNEL(right_scan_in_a_tree) {
    __shared__ float sums[128];
    sums[ME] = x[ME];
    sums[ME + 64] = x[ME + 64];
    int apart = 1;
    for (int threads = 64; threads > 0; threads /= 2, apart *= 2) {
        __syncthreads();
        if (ME < threads) sums[apart * (2 * ME + 2) - 1] += sums[apart * (2 * ME + 1) - 1];
    }
    if (ME == 0) sums[127] = 0;
    for (int threads = 1; threads < 128; threads *= 2) {
        apart /= 2;
        __syncthreads();
        if (ME < threads) {
            int left = apart * (2 * ME + 1) - 1, right = apart * (2 * ME + 2) - 1;
            float before = sums[left];
            sums[left] = sums[right];
            sums[right] += before;
        }
    }
    __syncthreads();
    y[ME] = sums[ME];
    y[ME + 64] = sums[ME + 64];
}

// The barrier of the way down is missing.
// <<<1, 64>>> race
KERNEL(race_down_the_tree) {
    __shared__ float sums[128];
    sums[ME] = x[ME];
    sums[ME + 64] = x[ME + 64];
    int apart = 1;
    for (int threads = 64; threads > 0; threads /= 2, apart *= 2) {
        __syncthreads();
        if (ME < threads) sums[apart * (2 * ME + 2) - 1] += sums[apart * (2 * ME + 1) - 1];
    }
    if (ME == 0) sums[127] = 0;
    for (int threads = 1; threads < 128; threads *= 2) {
        apart /= 2;
        if (ME < threads) {
            int left = apart * (2 * ME + 1) - 1, right = apart * (2 * ME + 2) - 1;
            float before = sums[left];  // *
            sums[left] = sums[right];   // *
            sums[right] += before;      // *
        }
    }
    __syncthreads();
    y[ME] = sums[ME];
}

// From one buffer to the other and back: one barrier a step is enough.
// <<<1, 64>>> right
KERNEL(right_scan_of_two_buffers) {
    __shared__ float sums[2][64];
    int from = 0;
    sums[0][ME] = x[ME];
    __syncthreads();
    for (int by = 1; by < 64; by *= 2, from ^= 1) {
        sums[from ^ 1][ME] = sums[from][ME] + (ME >= by ? sums[from][ME - by] : 0.0f);
        __syncthreads();
    }
    y[ME] = sums[from][ME];
}

// Blocks take the sum before them from the block before, in the order of tickets.
__device__ unsigned next_ticket, done[4];
__device__ float before[5];

// <<<4, 64>>> right
KERNEL(right_chained_scan) {
    __shared__ unsigned ticket;
    __shared__ float start;
    if (ME == 0) ticket = atomicInc(&next_ticket, gridDim.x - 1);
    __syncthreads();
    if (ME == 0) {
        while (ticket > 0 && atomicAdd(&done[ticket - 1], 0) == 0) {
        }
        __threadfence();
        start = ticket > 0 ? before[ticket] : 0.0f;
        before[ticket + 1] = start + x[ticket];
        __threadfence();
        atomicExch(&done[ticket], 1);
    }
    __syncthreads();
    y[ticket * 64 + ME] = start;
}

// The sum is handed on without a fence.
// <<<4, 64>>> race
KERNEL(race_of_a_chained_scan) {
    __shared__ unsigned ticket;
    __shared__ float start;
    if (ME == 0) ticket = atomicInc(&next_ticket, gridDim.x - 1);
    __syncthreads();
    if (ME == 0) {
        while (ticket > 0 && atomicAdd(&done[ticket - 1], 0) == 0) {
        }
        __threadfence();
        start = ticket > 0 ? before[ticket] : 0.0f;  // *
        before[ticket + 1] = start + x[ticket];      // *
        atomicExch(&done[ticket], 1);
    }
    __syncthreads();
    y[ticket * 64 + ME] = start;
}

// Counts of each warp, which are added up at the end.
// <<<2, 64>>> right
KERNEL(right_histogram_of_warps) {
    __shared__ unsigned counts[2][16];
    unsigned* all = (unsigned*)y;
    if (LANE < 16) counts[WARP][LANE] = 0;
    __syncwarp();
    atomicAdd(&counts[WARP][(int)(x[ALL] * 16)], 1u);
    __syncthreads();
    if (ME < 16) atomicExch(all + 16 * blockIdx.x + ME, counts[0][ME] + counts[1][ME]);
}

// Lanes of one warp count without atomics.
// <<<2, 64>>> race
KERNEL(race_of_counts_of_a_warp) {
    __shared__ unsigned counts[2][16];
    unsigned* all = (unsigned*)y;
    if (LANE < 16) counts[WARP][LANE] = 0;
    __syncwarp();
    counts[WARP][(int)(x[ALL] * 16)] += 1;  // *
    __syncthreads();
    if (ME < 16) all[16 * blockIdx.x + ME] = counts[0][ME] + counts[1][ME];
}

// Counts before the zeros of others are there.
// <<<1, 64>>> race
KERNEL(race_with_zeros_of_counts) {
    __shared__ unsigned counts[16];
    if (ME < 16) counts[ME] = 0;                // *
    atomicAdd(&counts[(int)(x[ME] * 16)], 1u);  // *
    __syncthreads();
    if (ME < 16) y[ME] = (float)counts[ME];
}

// <<<1, 256>>> right
KERNEL(right_transposition) {
    __shared__ float tile[16][17];
    tile[ME / 16][ME % 16] = x[ME];
    __syncthreads();
    y[ME] = tile[ME % 16][ME / 16];
}

// <<<1, 256>>> race
KERNEL(race_of_a_transposition) {
    __shared__ float tile[16][17];
    tile[ME / 16][ME % 16] = x[ME];  // *
    __syncwarp();
    y[ME] = tile[ME % 16][ME / 16];  // *
}

// In place: all have read before any writes.
// <<<1, 256>>> right
KERNEL(right_transposition_in_place) {
    y[ME] = x[ME];
    __syncthreads();
    float mine = y[ME % 16 * 16 + ME / 16];
    __syncthreads();
    y[ME] = mine;
}

// <<<1, 256>>> race
KERNEL(race_of_a_transposition_in_place) {
    y[ME] = x[ME];
    __syncthreads();
    y[ME] = y[ME % 16 * 16 + ME / 16];  // *
}

// The threads fill four rows of the tile, and read all sixteen.
// <<<1, 64>>> unwritten
KERNEL(unwritten_rows_of_a_tile) {
    __shared__ float tile[16][17];
    tile[ME / 16][ME % 16] = x[ME];
    __syncthreads();
    y[ME] = tile[ME % 16][ME / 16];  // *
}
