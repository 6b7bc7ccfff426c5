// Kernels that look as if they raced and do not, and some that look right and race. Above each kernel stands its
// launch. `*` marks the lines that a fault has to name.

#define KERNEL(name) extern "C" __global__ void name(const float* x, float* y, int n)
#define ME (int)threadIdx.x
#define ALL (int)(blockIdx.x * blockDim.x + threadIdx.x)
#define LANE (ME % 32)
#define WARP (ME / 32)

// Each takes a place of its own.
// <<<1, 64>>> right
KERNEL(right_places) {
    __shared__ int taken;
    __shared__ float row[64];
    if (ME == 0) taken = 0;
    __syncthreads();
    row[atomicAdd(&taken, 1)] = x[ME];
    __syncthreads();
    y[ME] = row[ME];
}

// <<<1, 64>>> race
KERNEL(race_of_places) {
    __shared__ int taken;
    __shared__ float row[64];
    if (ME == 0) taken = 0;
    __syncthreads();
    row[taken++ % 64] = x[ME];  // *
    __syncthreads();
    y[ME] = x[ME];
}

// Lanes find their places by a vote.
// <<<1, 32>>> right
KERNEL(right_compaction) {
    bool keeps = x[ME] > 0.5f;
    unsigned kept = __ballot_sync(~0u, keeps);
    y[ME] = 0;
    __syncwarp();
    if (keeps) y[__popc(kept & ((1u << ME) - 1))] = x[ME];
}

// The zeros may come last.
// <<<1, 32>>> race
KERNEL(race_of_a_compaction) {
    bool keeps = x[ME] > 0.5f;
    unsigned kept = __ballot_sync(~0u, keeps);
    y[ME] = 0;                                              // *
    if (keeps) y[__popc(kept & ((1u << ME) - 1))] = x[ME];  // *
}

// One lane of those with the same bin counts for all.
// <<<1, 32>>> right
KERNEL(right_leaders) {
    __shared__ int counts[8];
    if (ME < 8) counts[ME] = 0;
    __syncwarp();
    int bin = (int)(x[ME] * 8);
    unsigned same = __match_any_sync(~0u, bin);
    if (__ffs(same) - 1 == ME) counts[bin] += __popc(same);
    __syncwarp();
    if (ME < 8) y[ME] = (float)counts[ME];
}

// Two warps have leaders of their own.
// <<<1, 64>>> race
KERNEL(race_of_leaders) {
    __shared__ int counts[8];
    if (ME < 8) counts[ME] = 0;
    __syncthreads();
    int bin = (int)(x[ME] * 8);
    unsigned same = __match_any_sync(~0u, bin);
    if (__ffs(same) - 1 == LANE) counts[bin] += __popc(same);  // *
    __syncthreads();
    if (ME < 8) y[ME] = (float)counts[ME];
}

// One active lane takes places for all lanes that are active with it.
// <<<1, 64>>> right
KERNEL(right_places_of_the_active) {
    __shared__ int taken;
    __shared__ float row[64];
    if (ME == 0) taken = 0;
    row[ME] = 0;
    __syncthreads();
    if (x[ME] > 0.25f) {
        unsigned active = __activemask();
        int leader = __ffs(active) - 1, first = 0;
        if (LANE == leader) first = atomicAdd(&taken, __popc(active));
        first = __shfl_sync(active, first, leader);
        row[first + __popc(active & ((1u << LANE) - 1))] = x[ME];
    }
    __syncthreads();
    y[ME] = row[ME];
}

// A warp hands a row to another through a flag.
// <<<1, 64>>> right
KERNEL(right_flag_within_a_block) {
    __shared__ int flag;
    __shared__ float row[32];
    if (ME == 0) flag = 0;
    __syncthreads();
    if (WARP == 0) {
        row[LANE] = x[LANE];
        __threadfence_block();
        atomicAdd(&flag, 1);
    } else {
        while (atomicAdd(&flag, 0) < 32) {
        }
        __threadfence_block();
        y[LANE] = row[31 - LANE];
    }
}

// <<<1, 64>>> race
KERNEL(race_past_a_flag_within_a_block) {
    __shared__ int flag;
    __shared__ float row[32];
    if (ME == 0) flag = 0;
    __syncthreads();
    if (WARP == 0) {
        row[LANE] = x[LANE];  // *
        atomicAdd(&flag, 1);
    } else {
        while (atomicAdd(&flag, 0) < 32) {
        }
        y[LANE] = row[31 - LANE];  // *
    }
}

// Halves of words are of different threads.
// <<<1, 64>>> right
KERNEL(right_halves) {
    __shared__ unsigned short halves[64];
    halves[ME] = (unsigned short)(x[ME] * 100);
    __syncthreads();
    y[ME] = (float)halves[63 - ME];
}

// Whole words are set to zero beside halves of others.
// <<<1, 64>>> race
KERNEL(race_of_halves) {
    __shared__ unsigned short halves[66];
    if (ME % 2 == 0) *(unsigned*)(halves + ME) = 0;  // *
    halves[ME] = (unsigned short)(x[ME] * 100);      // *
    __syncthreads();
    y[ME] = (float)halves[63 - ME];
}

// Four words at once, and one by one.
// <<<1, 64>>> right
KERNEL(right_fours) {
    __shared__ float4 fours[64];
    fours[ME] = make_float4(x[ME], x[ME + 64], x[ME + 128], x[ME + 192]);
    __syncthreads();
    for (int step = 0; step < 4; step++) y[step * 64 + ME] = ((float*)fours)[step * 64 + ME];
}

// Two words of each thread, of which the second is the neighbour's first.
// <<<1, 64>>> race
KERNEL(race_of_pairs) {
    __shared__ float row[65];
    row[ME] = x[ME];          // *
    row[ME + 1] = x[ME + 1];  // *
    __syncthreads();
    y[ME] = row[ME];
}

// The same memory as numbers of another kind, once all are done with the first.
// <<<1, 64>>> right
KERNEL(right_reuse) {
    __shared__ float row[64];
    row[ME] = x[ME];
    __syncthreads();
    float mine = row[63 - ME];
    __syncthreads();
    int* numbers = (int*)row;
    numbers[ME] = (int)(mine * 10);
    __syncthreads();
    y[ME] = (float)numbers[63 - ME];
}

// <<<1, 64>>> race
KERNEL(race_of_reuse) {
    __shared__ float row[64];
    row[ME] = x[ME];
    __syncthreads();
    float mine = row[63 - ME];  // *
    int* numbers = (int*)row;
    numbers[ME] = (int)(mine * 10);  // *
    __syncthreads();
    y[ME] = (float)numbers[63 - ME];
}

__device__ unsigned arrived;

// All blocks meet: the launch counts on all of them to run at once.
// <<<4, 64>>> right
KERNEL(right_meeting_of_blocks) {
    y[ALL] = x[ALL];
    __syncthreads();
    if (ME == 0) {
        __threadfence();
        unsigned round = atomicAdd(&arrived, 1) / gridDim.x;
        while (atomicAdd(&arrived, 0) / gridDim.x == round) {
        }
        __threadfence();
    }
    __syncthreads();
    float other = y[(ALL + 64) % 256];
    if (other < 0.0f) y[ALL] = 0;
}

// It goes on when one is still missing.
// <<<4, 64>>> race
KERNEL(race_of_a_meeting_of_blocks) {
    y[ALL] = x[ALL];  // *
    __syncthreads();
    if (ME == 0) {
        __threadfence();
        atomicAdd(&arrived, 1);
        while (atomicAdd(&arrived, 0) % gridDim.x < gridDim.x - 1 && atomicAdd(&arrived, 0) % gridDim.x != 0) {
        }
        __threadfence();
    }
    __syncthreads();
    float other = y[(ALL + 64) % 256];  // *
    if (other < 0.0f) y[ALL] = 0;       // *
}

// Barriers that also count and vote.
// <<<1, 64>>> right
KERNEL(right_counting_barriers) {
    __shared__ float row[64];
    row[ME] = x[ME];
    int large = __syncthreads_count(x[ME] > 0.5f);
    float other = row[63 - ME];
    bool any = __syncthreads_or(other > 2.0f);
    row[ME] = other;
    bool all = __syncthreads_and(row[ME] >= 0.0f);
    y[ME] = row[63 - ME] + large + any + all;
}

// One warp works while the other waits, by turns.
// <<<1, 64>>> right
KERNEL(right_turns) {
    __shared__ float value;
    if (ME == 0) value = x[0];
    for (int turn = 0; turn < 4; turn++) {
        __syncthreads();
        if (WARP == turn % 2 && LANE == 0) value = value * 0.5f + x[turn];
    }
    __syncthreads();
    y[ME] = value;
}

// Both warps take the third turn.
// <<<1, 64>>> race
KERNEL(race_of_turns) {
    __shared__ float value;
    if (ME == 0) value = x[0];
    for (int turn = 0; turn < 4; turn++) {
        __syncthreads();
        if ((WARP == turn % 2 || turn == 2) && LANE == 0) value = value * 0.5f + x[turn];  // *
    }
    __syncthreads();
    y[ME] = value;
}

// Through generic addresses, each its own words.
// <<<1, 64>>> right
KERNEL(right_own_words_by_pointers) {
    __shared__ float row[64];
    float* mine = n > 100 ? row + ME : y + ME;
    *mine = x[ME];
    *mine += 1.0f;
    y[ME] = *mine;
}

// Lanes of one branch read what lanes of the other have written.
// <<<1, 32>>> race
KERNEL(race_of_branches) {
    __shared__ float row[32];
    row[ME] = 0;
    __syncwarp();
    if (ME < 16) row[ME] = x[ME];  // *
    else y[ME] = row[31 - ME];     // *
    y[ME % 16] = 1.0f;             // *
}

// A lock within a block, taken by one lane of each warp.
// <<<1, 96>>> right
KERNEL(right_lock_of_warps) {
    __shared__ int lock;
    __shared__ float sum;
    if (ME == 0) lock = 0, sum = 0;
    __syncthreads();
    if (LANE == 0) {
        while (atomicCAS(&lock, 0, 1) != 0) {
        }
        __threadfence_block();
        sum += x[ME];
        __threadfence_block();
        atomicExch(&lock, 0);
    }
    __syncthreads();
    y[ME] = sum;
}

// It is given back before the sum is written.
// <<<1, 96>>> race
KERNEL(race_of_an_early_release) {
    __shared__ int lock;
    __shared__ float sum;
    if (ME == 0) lock = 0, sum = 0;
    __syncthreads();
    if (LANE == 0) {
        while (atomicCAS(&lock, 0, 1) != 0) {
        }
        __threadfence_block();
        float before = sum;  // *
        __threadfence_block();
        atomicExch(&lock, 0);
        sum = before + x[ME];  // *
    }
    __syncthreads();
    y[ME] = sum;  // *
}

// Waits for more threads than the block has.
// <<<1, 64>>> deadlock
KERNEL(deadlock_of_too_many) {
    asm volatile("bar.sync 1, 96;" ::: "memory");  // *
    y[ME] = x[ME];
}

// <<<1, 64>>> divergent
KERNEL(divergent_by_data) {
    __shared__ float row[64];
    row[ME] = x[ME];
    if (x[ME] > 0.5f) __syncthreads();  // *
    y[ME] = row[ME];                    // *
}  // *

// The first element has no neighbour.
// <<<1, 64>>> outside
KERNEL(outside_before_the_first) {
    __shared__ float row[64];
    row[ME] = x[ME];
    __syncthreads();
    y[ME] = row[ME] + row[ME - 1];  // *
}
