// Asynchronous copies and barriers in shared memory. Above each kernel stands its launch. `*` marks the lines that a
// fault has to name.

#define KERNEL(name) extern "C" __global__ void name(const float* x, float* y, int n)
#define ME (int)threadIdx.x

__device__ __forceinline__ unsigned at(const void* place) { return (unsigned)__cvta_generic_to_shared(place); }
#define COPY(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at(to)), "l"(from) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(left) asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory")

typedef unsigned long long Barrier;
#define INIT(barrier, count) \
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(barrier)), "r"(count) : "memory")
#define ARRIVE(barrier) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(barrier)) : "memory")
#define EXPECT(barrier, bytes) \
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(barrier)), "r"(bytes) : "memory")
#define BULK(to, from, bytes, barrier)                                                                           \
    asm volatile(                                                                                                \
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at(to)), \
        "l"(from), "r"(bytes), "r"(at(barrier))                                                                  \
        : "memory")
__device__ __forceinline__ void wait(Barrier* barrier, int parity) {
    asm volatile(
        "{ .reg .pred ended; again: mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1; @!ended bra again; }" ::
            "r"(at(barrier)),
        "r"(parity)
        : "memory");
}

// <<<1, 64>>> right
KERNEL(right_copy) {
    __shared__ float row[64];
    COPY(row + ME, x + ME);
    COMMIT();
    WAIT(0);
    __syncthreads();
    y[ME] = row[63 - ME];
}

// <<<1, 64>>> right
KERNEL(right_own_copy) {
    __shared__ float row[64];
    COPY(row + ME, x + ME);
    COMMIT();
    WAIT(0);
    y[ME] = row[ME];
}

// <<<1, 64>>> race
KERNEL(race_without_a_wait) {
    __shared__ float row[64];
    COPY(row + ME, x + ME);  // *
    COMMIT();
    __syncthreads();
    y[ME] = row[63 - ME];  // *
}

// Each thread waits for its own copy, and reads another's.
// <<<1, 64>>> race
KERNEL(race_without_a_barrier) {
    __shared__ float row[64];
    COPY(row + ME, x + ME);  // *
    COMMIT();
    WAIT(0);               // *
    y[ME] = row[63 - ME];  // *
}

// Three buffers; an empty group keeps the count of the last steps.
// <<<1, 64>>> right
KERNEL(right_stages) {
    __shared__ float rows[3][64];
    float sum = 0;
    for (int step = 0; step < 2; step++) {
        COPY(&rows[step][ME], x + step * 64 + ME);
        COMMIT();
    }
    for (int step = 0; step < 4; step++) {
        WAIT(1);
        __syncthreads();
        if (step + 2 < 4) COPY(&rows[(step + 2) % 3][ME], x + (step + 2) * 64 + ME);
        COMMIT();
        sum += rows[step % 3][63 - ME];
    }
    y[ME] = sum;
}

// Nothing is committed in the last steps, so the wait does not reach the last copy.
// <<<1, 64>>> race
KERNEL(race_of_stages) {
    __shared__ float rows[3][64];
    float sum = 0;
    for (int step = 0; step < 2; step++) {
        COPY(&rows[step][ME], x + step * 64 + ME);  // *
        COMMIT();
    }
    for (int step = 0; step < 4; step++) {
        WAIT(1);
        __syncthreads();
        if (step + 2 < 4) {
            COPY(&rows[(step + 2) % 3][ME], x + (step + 2) * 64 + ME);  // *
            COMMIT();
        }
        sum += rows[step % 3][63 - ME];  // *
    }
    y[ME] = sum;
}

// Two buffers for a loop that needs three: the copy overwrites what others still read.
// <<<1, 64>>> race
KERNEL(race_of_too_few_stages) {
    __shared__ float rows[2][64];
    float sum = 0;
    COPY(&rows[0][ME], x + ME);
    COMMIT();
    for (int step = 0; step < 4; step++) {
        if (step + 1 < 4) COPY(&rows[(step + 1) % 2][ME], x + (step + 1) * 64 + ME);  // *
        COMMIT();
        WAIT(1);
        __syncthreads();
        sum += rows[step % 2][63 - ME];  // *
    }
    y[ME] = sum;
}

// A bulk copy into one of two buffers, which consumers give back.
template <bool GIVES_BACK, int STALE, int BYTES>
__device__ __forceinline__ void pipeline(const float* x, float* y) {
    __shared__ alignas(128) float rows[2][64];
    __shared__ Barrier full[2], empty[2];
    if (ME == 0)
        for (int slot = 0; slot < 2; slot++) {
            INIT(full + slot, 1);
            INIT(empty + slot, 64);
        }
    __syncthreads();
    if (ME >= 64) {
        if (ME == 64)
            for (int step = 0; step < 4; step++) {
                int slot = step % 2;
                if (GIVES_BACK) wait(empty + slot, (step / 2 & 1) ^ 1);
                EXPECT(full + slot, BYTES);                           // *
                BULK(rows[slot], x + step * 64, BYTES, full + slot);  // *
            }
    } else {
        for (int step = 0; step < 4; step++) {
            int slot = step % 2;
            wait(full + slot, (step / 2 & 1) ^ STALE);
            y[step * 64 + ME] = rows[slot][63 - ME];  // *
            ARRIVE(empty + slot);
        }
    }
}

// <<<1, 96>>> right
KERNEL(right_pipeline) { pipeline<true, 0, 256>(x, y); }

// <<<1, 96>>> race or overrun of pipeline
KERNEL(race_without_giving_back) { pipeline<false, 0, 256>(x, y); }

// Waits for the phase before, which has ended when the kernel begins.
// <<<1, 96>>> race or unwritten of pipeline
KERNEL(race_of_phases) { pipeline<true, 1, 256>(x, y); }

// Half of the row comes.
// <<<1, 96>>> unwritten of pipeline
KERNEL(unwritten_half_of_a_copy) { pipeline<true, 0, 128>(x, y); }

// The block ends while a copy is on its way.
// <<<1, 32>>> leftover
KERNEL(leftover_copy) {
    __shared__ alignas(128) float row[64];
    __shared__ Barrier full;
    if (ME == 0) {
        INIT(&full, 1);
        EXPECT(&full, 256);
        BULK(row, x, 256, &full);
    }
    y[ME] = x[ME];
}  // *

// The barrier is used before others can know that it was initialised.
// <<<1, 64>>> early
KERNEL(early_barrier) {
    __shared__ Barrier full;
    if (ME == 0) INIT(&full, 64);
    ARRIVE(&full);  // *
    wait(&full, 0);
    y[ME] = x[ME];
}

// <<<1, 64>>> right
KERNEL(right_barrier) {
    __shared__ Barrier full;
    __shared__ float row[64];
    if (ME == 0) INIT(&full, 64);
    __syncthreads();
    row[ME] = x[ME];
    ARRIVE(&full);
    wait(&full, 0);
    y[ME] = row[63 - ME];
}

// Arrives before it has stored.
// <<<1, 64>>> race
KERNEL(race_of_an_early_arrival) {
    __shared__ Barrier full;
    __shared__ float row[64];
    if (ME == 0) INIT(&full, 64);
    __syncthreads();
    ARRIVE(&full);
    row[ME] = x[ME];  // *
    wait(&full, 0);
    y[ME] = row[63 - ME];  // *
}

#define STORE(to, from) \
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(to), "r"(at(from)) : "memory")

// A bulk store reads the row, which is filled again before it has.
// <<<1, 64>>> race
KERNEL(race_with_a_bulk_store) {
    __shared__ alignas(128) float row[64];
    for (int step = 0; step < 2; step++) {
        row[ME] = x[step * 64 + ME];  // *
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (ME == 0) {
            STORE(y + step * 64, row);  // *
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            if (step == 1) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  // *
        }
        __syncthreads();
    }
}

// <<<1, 64>>> right
KERNEL(right_bulk_store) {
    __shared__ alignas(128) float row[64];
    for (int step = 0; step < 2; step++) {
        row[ME] = x[step * 64 + ME];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (ME == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(y + step * 64),
                         "r"(at(row))
                         : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        }
        __syncthreads();
    }
}
