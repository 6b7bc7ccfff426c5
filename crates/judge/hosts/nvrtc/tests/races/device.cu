// Blocks of a launch and global memory. Above each kernel stands its launch. `*` marks the lines that a fault has to
// name.

#define KERNEL(name) extern "C" __global__ void name(const float* x, float* y, int n)
#define ME (int)threadIdx.x
#define ALL (int)(blockIdx.x * blockDim.x + threadIdx.x)

// <<<4, 64>>> right
KERNEL(right_own_words) { y[ALL] = 2.0f * x[ALL]; }

// <<<4, 64>>> race
KERNEL(race_of_blocks) { y[ME] = x[ALL]; }  // *

// Each block reads what its neighbour writes.
// <<<4, 64>>> race
KERNEL(race_at_edges) {
    y[ALL] = x[ALL];                                      // *
    if (blockIdx.x > 0 && ME == 0) y[ALL] += y[ALL - 1];  // *
}

// <<<4, 64>>> right
KERNEL(right_sum) {
    __shared__ float sum;
    if (ME == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, x[ALL]);
    __syncthreads();
    if (ME == 0) y[blockIdx.x] = sum;
}

// <<<1, 64>>> race
KERNEL(race_of_sums) {
    if (ME == 0) y[0] = 0;
    __syncthreads();
    y[0] += x[ME];  // *
}

// <<<1, 64>>> right
KERNEL(right_histogram) {
    unsigned* counts = (unsigned*)y;
    if (ME < 16) counts[ME] = 0;
    __syncthreads();
    for (int at = ME; at < n; at += 64) atomicAdd(counts + at % 16, 1u);
}

// One block sets to zero what the others add to.
// <<<4, 64>>> race
KERNEL(race_with_zeros) {
    unsigned* counts = (unsigned*)y;
    if (blockIdx.x == 0 && ME < 16) counts[ME] = 0;  // *
    __syncthreads();
    atomicAdd(counts + ALL % 16, 1u);  // *
}

// Each block adds its own counts without an atomic.
// <<<4, 64>>> race
KERNEL(race_of_counts) {
    __shared__ int counts[16];
    int* all = (int*)y;
    if (ME < 16) counts[ME] = 0;
    __syncthreads();
    atomicAdd(counts + ALL % 16, 1);
    __syncthreads();
    if (ME < 16) {
        if (blockIdx.x == 0) all[ME] = counts[ME];  // *
        else all[ME] += counts[ME];                 // *
    }
}

// An atomic on one side only.
// <<<1, 64>>> race
KERNEL(race_with_an_atomic) {
    int* count = (int*)y;
    if (ME == 0) *count = 0;
    __syncthreads();
    atomicAdd(count, 1);                 // *
    if (ME == 63) y[1] = (float)*count;  // *
}

// Atomic only within its block.
// <<<2, 64>>> race
KERNEL(race_of_scopes) {
    atomicExch_block((int*)y, ME);  // *
}

__device__ unsigned tickets;
__device__ float parts[4];

// The last block to come adds the parts of all: fences and an atomic order them.
// <<<4, 64>>> right
KERNEL(right_last_block) {
    __shared__ bool is_last;
    __shared__ float sum;
    if (ME == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, x[ALL]);
    __syncthreads();
    if (ME == 0) {
        parts[blockIdx.x] = sum;
        __threadfence();
        is_last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && ME == 0) {
        float all = 0;
        for (int block = 0; block < gridDim.x; block++) all += parts[block];
        y[0] = all;
    }
}

// The same without the fence.
// <<<4, 64>>> race
KERNEL(race_of_the_last_block) {
    __shared__ bool is_last;
    if (ME == 0) {
        parts[blockIdx.x] = x[ALL];  // *
        is_last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && ME == 0) {
        float all = 0;
        for (int block = 0; block < gridDim.x; block++) all += parts[block];  // *
        y[0] = all;
    }
}

// All threads store and fence; one of them counts when all have met.
// <<<4, 64>>> right
KERNEL(right_last_block_of_all_threads) {
    __shared__ bool is_last;
    y[ALL] = x[ALL];
    __threadfence();
    __syncthreads();
    if (ME == 0) is_last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    float sum = 0;
    for (int block = 0; block < gridDim.x; block++) sum += y[block * 64 + ME];
    y[ME] = sum;
}

// The same with fences that are in no one order.
// <<<4, 64>>> race
KERNEL(race_of_the_last_block_of_all_threads) {
    __shared__ bool is_last;
    y[ALL] = x[ALL];  // *
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    __syncthreads();
    if (ME == 0) is_last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (!is_last) return;
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    float sum = 0;
    for (int block = 0; block < gridDim.x; block++) sum += y[block * 64 + ME];  // *
    y[ME] = sum;                                                                // *
}

__device__ unsigned ready;

// One block hands a value to another through a flag.
// <<<2, 32>>> right
KERNEL(right_flag) {
    if (ME != 0) return;
    if (blockIdx.x == 1) {
        parts[0] = x[0];
        asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(&ready) : "memory");
    } else {
        unsigned seen = 0;
        while (!seen) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(&ready) : "memory");
        y[0] = parts[0];
    }
}

// <<<2, 32>>> right
KERNEL(right_volatile_flag) {
    if (ME != 0) return;
    if (blockIdx.x == 1) {
        parts[0] = x[0];
        __threadfence();
        *(volatile unsigned*)&ready = 1;
    } else {
        while (*(volatile unsigned*)&ready == 0) {
        }
        __threadfence();
        y[0] = parts[0];
    }
}

// The flag is set without a fence before it.
// <<<2, 32>>> race
KERNEL(race_past_a_flag) {
    if (ME != 0) return;
    if (blockIdx.x == 1) {
        parts[0] = x[0];  // *
        *(volatile unsigned*)&ready = 1;
    } else {
        while (*(volatile unsigned*)&ready == 0) {
        }
        __threadfence();
        y[0] = parts[0];  // *
    }
}

__device__ int lock;

// <<<3, 32>>> right
KERNEL(right_lock) {
    if (ME != 0) return;
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence();
    parts[1] += x[blockIdx.x];
    __threadfence();
    atomicExch(&lock, 0);
    y[blockIdx.x] = 1.0f;
}

// <<<3, 32>>> race
KERNEL(race_in_a_lock) {
    if (ME != 0) return;
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    parts[1] += x[blockIdx.x];  // *
    atomicExch(&lock, 0);
    y[blockIdx.x] = 1.0f;
}

// <<<4, 64>>> unwritten
KERNEL(unwritten_sums) { atomicAdd(y + ALL, x[ALL]); }  // *

// <<<5, 64>>> outside
KERNEL(outside_of_the_tensor) { y[ALL] = x[ALL]; }  // *

// Waits for what nobody does.
// <<<1, 32>>> deadlock
KERNEL(deadlock_at_a_flag) {
    y[ME] = 0;
    while (*(volatile int*)(y + ME) == 0) {  // *
    }
}
