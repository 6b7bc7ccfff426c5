// Threads of one block and their shared memory. Above each kernel stands its launch. `*` marks the lines that a fault
// has to name.

#define KERNEL(name) extern "C" __global__ void name(const float* x, float* y, int n)
#define ME (int)threadIdx.x

// <<<2, 64>>> right
KERNEL(right_neighbours) {
    __shared__ float row[64];
    row[ME] = x[blockIdx.x * 64 + ME];
    __syncthreads();
    y[blockIdx.x * 64 + ME] = row[63 - ME];
}

// <<<2, 64>>> race
KERNEL(race_neighbours) {
    __shared__ float row[64];
    row[ME] = x[blockIdx.x * 64 + ME];       // *
    y[blockIdx.x * 64 + ME] = row[63 - ME];  // *
}

// <<<1, 128>>> right
KERNEL(right_tree) {
    __shared__ float sums[128];
    sums[ME] = x[ME] + x[ME + 128];
    for (int half = 64; half > 0; half /= 2) {
        __syncthreads();
        if (ME < half) sums[ME] += sums[ME + half];
    }
    if (ME == 0) y[0] = sums[0];
}

// <<<1, 128>>> race
KERNEL(race_tree) {
    __shared__ float sums[128];
    sums[ME] = x[ME] + x[ME + 128];
    __syncthreads();
    for (int half = 64; half > 0; half /= 2)
        if (ME < half) sums[ME] += sums[ME + half];  // *
    if (ME == 0) y[0] = sums[0];
}

// <<<1, 64>>> right
KERNEL(right_refilled) {
    __shared__ float piece[64];
    float sum = 0;
    for (int begin = 0; begin < n; begin += 64) {
        piece[ME] = x[begin + ME];
        __syncthreads();
        sum += piece[ME ^ 32];
        __syncthreads();
    }
    y[ME] = sum;
}

// <<<1, 64>>> race
KERNEL(race_refilled) {
    __shared__ float piece[64];
    float sum = 0;
    for (int begin = 0; begin < n; begin += 64) {
        piece[ME] = x[begin + ME];  // *
        __syncthreads();
        sum += piece[ME ^ 32];  // *
    }
    y[ME] = sum;
}

// <<<1, 64>>> right
KERNEL(right_two_buffers) {
    __shared__ float piece[2][64];
    float sum = 0;
    for (int begin = 0, turn = 0; begin < n; begin += 64, turn ^= 1) {
        piece[turn][ME] = x[begin + ME];
        __syncthreads();
        sum += piece[turn][63 - ME];
    }
    y[ME] = sum;
}

// The value is the same whoever writes it, and the result right.
// <<<1, 64>>> race
KERNEL(race_same_value) {
    __shared__ float first;
    first = x[0];  // *
    __syncthreads();
    y[ME] = first;
}

// <<<1, 64>>> right
KERNEL(right_one_writes) {
    __shared__ float first;
    if (ME == 0) first = x[0];
    __syncthreads();
    y[ME] = first;
}

// What races hardly counts: no tolerance would show it.
// <<<1, 64>>> race
KERNEL(race_that_hardly_counts) {
    __shared__ float extra;
    if (ME == 63) extra = x[0] * 1e-9f;        // *
    y[ME] = x[ME] + (ME == 1 ? extra : 0.0f);  // *
}

// Only the last of many steps races.
// <<<1, 64>>> race
KERNEL(race_of_the_last_step) {
    __shared__ float piece[64];
    float sum = 0;
    for (int step = 0; step < 8; step++) {
        piece[ME] = x[step * 8 + ME / 8];  // *
        __syncthreads();
        sum += piece[(ME + step) % 64];  // *
        if (step < 6) __syncthreads();
    }
    y[ME] = sum;
}

// <<<1, 64>>> right
KERNEL(right_bytes) {
    __shared__ unsigned char codes[64];
    codes[ME] = (unsigned char)(x[ME] * 100.0f);
    __syncthreads();
    y[ME] = codes[ME ^ 1];
}

// <<<1, 64>>> race
KERNEL(race_of_bytes) {
    __shared__ unsigned char codes[66];
    codes[ME + 1] = (unsigned char)(x[ME] * 100.0f);  // *
    codes[ME + 2] = 7;                                // *
    __syncthreads();
    y[ME] = codes[ME + 1];
}

// <<<1, 64>>> unwritten
KERNEL(unwritten_half) {
    __shared__ float row[64];
    if (ME < 32) row[ME] = x[ME];
    __syncthreads();
    y[ME] = row[ME];  // *
}

// <<<1, 64>>> outside
KERNEL(outside_by_one) {
    __shared__ float row[64];
    row[ME] = x[ME];
    __syncthreads();
    float* next = row + n / 4;
    y[ME] = next[ME];  // *
}

// Half of each warp goes around the barrier.
// <<<1, 64>>> divergent
KERNEL(divergent_half_warps) {
    __shared__ float row[64];
    float value = x[ME];
    if (ME % 32 < 16) {
        row[ME] = value;
        __syncthreads();  // *
        value += row[ME];
    }
    y[ME] = value * 2.0f;
}  // *

// A tree whose barrier only those who add reach.
// <<<1, 128>>> divergent
KERNEL(divergent_tree) {
    __shared__ float sums[128];
    sums[ME] = x[ME];
    __syncthreads();
    for (int half = 64; half > 0; half /= 2)
        if (ME < half) {
            sums[ME] += sums[ME + half];
            __syncthreads();  // *
        }
    y[ME] = ME == 0 ? sums[0] : x[ME];
}

// Threads beyond the end leave before the barrier, as many kernels do.
// <<<1, 96>>> right
KERNEL(right_early_leave) {
    __shared__ float row[64];
    if (ME >= 64) return;
    row[ME] = x[ME];
    __syncthreads();
    y[ME] = row[63 - ME];
}

// Half of the warps write, the others read: each half counts on the other at barriers of its own.
// <<<1, 128>>> right
KERNEL(right_named_barriers) {
    __shared__ float row[64];
    for (int step = 0; step < 4; step++) {
        if (ME < 64) {
            if (step > 0) asm volatile("bar.sync 2, 128;" ::: "memory");
            row[ME] = x[step * 64 + ME];
            asm volatile("bar.arrive 1, 128;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            y[step * 64 + ME - 64] = row[127 - ME];
            if (step < 3) asm volatile("bar.arrive 2, 128;" ::: "memory");
        }
    }
}

// The writers do not wait until the row has been read.
// <<<1, 128>>> race
KERNEL(race_past_named_barriers) {
    __shared__ float row[64];
    for (int step = 0; step < 4; step++) {
        if (ME < 64) {
            row[ME] = x[step * 64 + ME];  // *
            asm volatile("bar.arrive 1, 128;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            y[step * 64 + ME - 64] = row[127 - ME];  // *
        }
    }
}

// A scan by doubling steps, in place: with a barrier on either side of the store.
// <<<1, 64>>> right
KERNEL(right_scan) {
    __shared__ float sums[64];
    sums[ME] = x[ME];
    __syncthreads();
    for (int by = 1; by < 64; by *= 2) {
        float before = ME >= by ? sums[ME - by] : 0.0f;
        __syncthreads();
        sums[ME] += before;
        __syncthreads();
    }
    y[ME] = sums[ME];
}

// <<<1, 64>>> race
KERNEL(race_in_a_scan) {
    __shared__ float sums[64];
    sums[ME] = x[ME];
    __syncthreads();
    for (int by = 1; by < 64; by *= 2) {
        float before = ME >= by ? sums[ME - by] : 0.0f;  // *
        sums[ME] += before;                              // *
        __syncthreads();
    }
    y[ME] = sums[ME];
}
