// PTX instructions without a C++ equivalent: each function is one instruction, or the loop that it needs.
//
// Kernels that are built for sm_80 and sm_89 too use copies by threads, 8×8 matrices (but not their stores) and
// products of a warp; barriers in shared memory, the copy engine, clusters and products of warp groups need sm_90a.
#pragma once
#include "problem.cuh"

#define DEVICE __device__ __forceinline__

DEVICE u32 shared_address(const void* pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// ---- Shared memory by its 32-bit address.

DEVICE u32 load_shared(u32 address) {
    u32 word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
    return word;
}

DEVICE uint2 load_shared_8(u32 address) {
    uint2 words;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(words.x), "=r"(words.y) : "r"(address) : "memory");
    return words;
}

DEVICE uint4 load_shared_16(u32 address) {
    uint4 words;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "r"(address)
                 : "memory");
    return words;
}

DEVICE u16 load_shared_2(u32 address) {
    u16 half;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(half) : "r"(address) : "memory");
    return half;
}

DEVICE void store_shared(u32 address, u32 word) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}

DEVICE void store_shared_2(u32 address, u16 half) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(address), "h"(half) : "memory");
}

DEVICE void store_shared_8(u32 address, u32 first, u32 second) {
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(first), "r"(second) : "memory");
}

DEVICE void store_shared_16(u32 address, u32 first, u32 second, u32 third, u32 fourth) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(first), "r"(second), "r"(third),
                 "r"(fourth)
                 : "memory");
}

// ---- Barriers in shared memory (mbarrier): a phase ends when all arrivals and all expected bytes are there.

DEVICE void barrier_init(u32 barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the copy engine.
DEVICE void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

DEVICE void barrier_arrive(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives and announces bytes that copies will bring.
DEVICE void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

DEVICE bool barrier_try_wait(u32 barrier, u32 parity) {
    u32 done;
    asm volatile(
        "{ .reg .pred done; mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2; selp.u32 %0, 1, 0, done; }"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
    return done;
}

// Whether the phase of this parity has ended; does not wait.
DEVICE u32 barrier_test(u32 barrier, u32 parity) {
    u32 ended;
    asm volatile(
        "{ .reg .pred ended; mbarrier.test_wait.parity.shared::cta.b64 ended, [%1], %2; selp.u32 %0, 1, 0, ended; }"
        : "=r"(ended)
        : "r"(barrier), "r"(parity)
        : "memory");
    return ended;
}

// Waits for the end of the phase of this parity, unless it is known to have ended.
DEVICE void barrier_wait_unless(u32 ended, u32 barrier, u32 parity) {
    asm volatile(
        "{\n.reg .pred done;\nsetp.ne.u32 done, %2, 0;\n@done bra ended;\n"
        "waiting:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra waiting;\nended:\n}" ::"r"(
            barrier),
        "r"(parity), "r"(ended)
        : "memory");
}

// Waits for the end of the phase of this parity.
DEVICE void barrier_wait(u32 barrier, u32 parity) {
    asm volatile(
        "{\n.reg .pred done;\nwaiting:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra "
        "waiting;\n}" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

// ---- The block's sixteen hardware barriers, by number; 0 is __syncthreads. Warps come whole.

DEVICE void named_barrier_sync(u32 number, u32 threads) {
    asm volatile("barrier.sync.aligned %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

DEVICE void named_barrier_arrive(u32 number, u32 threads) {
    asm volatile("barrier.arrive.aligned %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// ---- Copies by the copy engine. Addresses and sizes are multiples of 16 bytes.

// What the second-level cache does with copied lines. The values are those that createpolicy makes for fractions of
// 1.
constexpr u64 EVICT_FIRST = 0x12F0000000000000ull, EVICT_LAST = 0x14F0000000000000ull;

DEVICE void copy_bulk(u32 to, const void* from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

DEVICE void copy_bulk(u32 to, const void* from, u32 bytes, u32 barrier, u64 policy) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
            "r"(to),
        "l"(from), "r"(bytes), "r"(barrier), "l"(policy)
        : "memory");
}

// A box of a two-dimensional tensor map; parts outside of the tensor arrive as zeros and count as bytes.
DEVICE void copy_tensor(u32 to, const TensorMap* map, u32 column, u32 row, u32 barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(to),
        "l"(map), "r"(column), "r"(row), "r"(barrier)
        : "memory");
}

DEVICE void copy_tensor(u32 to, const TensorMap* map, u32 column, u32 row, u32 barrier, u64 policy) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, "
        "{%2, "
        "%3}], [%4], %5;" ::"r"(to),
        "l"(map), "r"(column), "r"(row), "r"(barrier), "l"(policy)
        : "memory");
}

// A box of a three-dimensional tensor map.
DEVICE void copy_tensor(u32 to, const TensorMap* map, u32 column, u32 row, u32 plane, u32 barrier) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
        "[%5];" ::"r"(to),
        "l"(map), "r"(column), "r"(row), "r"(plane), "r"(barrier)
        : "memory");
}

DEVICE void prefetch_tensor_map(const TensorMap* map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// ---- Changes of a tensor map in global memory (PTX ISA, tensormap.replace; sm_90a and sm_100a). The copy engine reads
// maps through a proxy of its own: it sees what one thread has changed after both fences, the second by the thread that
// asks for copies (section "fence.proxy.tensormap").

DEVICE void map_set_address(TensorMap* map, const void* first) {
    asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(map), "l"(first) : "memory");
}

// Elements along a dimension; the innermost is 0.
template <u32 DIMENSION>
DEVICE void map_set_size(TensorMap* map, u32 size) {
    asm volatile("tensormap.replace.tile.global_dim.global.b1024.b32 [%0], %2, %1;" ::"l"(map), "r"(size),
                 "n"(DIMENSION)
                 : "memory");
}

// Bytes from row to row of a matrix.
DEVICE void map_set_row_bytes(TensorMap* map, u64 bytes) {
    asm volatile("tensormap.replace.tile.global_stride.global.b1024.b64 [%0], 0, %1;" ::"l"(map), "l"(bytes)
                 : "memory");
}

DEVICE void map_release() { asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory"); }

DEVICE void map_acquire(const TensorMap* map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

DEVICE void store_bulk(void* to, u32 from, u32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
                 : "memory");
}

DEVICE void store_bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until all but `LEFT` of this thread's groups of bulk stores have read their shared memory.
template <u32 LEFT>
DEVICE void store_bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
}

// Waits until all but `LEFT` of this thread's groups of bulk stores are complete.
template <u32 LEFT>
DEVICE void store_bulk_wait() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(LEFT) : "memory");
}

// Orders this thread's ordinary accesses to shared memory before later ones of the copy engine and the matrix unit.
DEVICE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Orders writes to global memory that this thread has observed, by any thread, before later copies by the copy engine.
DEVICE void fence_async_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// ---- Copies by threads (cp.async).

// `bytes` is 16, or 0 for zeros; nothing is read then.
DEVICE void copy_16(u32 to, const void* from, u32 bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// Of data that is read once, so that the second-level cache need not keep it. (The values of policies were read from
// createpolicy's results on Hopper.)
DEVICE void copy_16_once(u32 to, const void* from) {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "l"(EVICT_FIRST)
                 : "memory");
#else
    copy_16(to, from, 16);
#endif
}

// Through the first-level cache, where a line's other bytes remain for the next copies. `bytes` is 8, or 0 for zeros.
DEVICE void copy_8(u32 to, const void* from, u32 bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

DEVICE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <u32 LEFT>
DEVICE void copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

// Arrives, as one of the arrivals that the barrier was initialised with, once this thread's copies have landed.
DEVICE void copy_arrive(u32 barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// ---- Approximations, exact except for the last bits of an fp32; numbers below 2⁻¹²⁶ are flushed to zero.

// Two to the power of `exponent`: 0 for −∞, ∞ beyond the range of fp32.
DEVICE float power_by_hardware(float exponent) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
    return power;
}

DEVICE float reciprocal_by_hardware(float number) {
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(number));
    return reciprocal;
}

// ---- Warps and grids.

// True in one lane of a converged warp. The compiler then knows that it is a single lane, which it does not with
// `threadIdx.x == 0`.
DEVICE bool elect() {
    u32 elected;
    asm volatile("{ .reg .pred one; elect.sync _|one, 0xFFFFFFFF; selp.u32 %0, 1, 0, one; }" : "=r"(elected));
    return elected;
}

// Brings a line of memory to the second-level cache.
DEVICE void prefetch_level_2(const void* line) { asm volatile("prefetch.global.L2 [%0];" ::"l"(line)); }

// Waits until the launches that this one was allowed to overtake are complete. Before sm_90 no launch overtakes
// another.
DEVICE void grid_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next launch begin, if it may overtake.
DEVICE void grid_launch_dependents() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// ---- Clusters: blocks that reach each other's shared memory.

// Arrives without ordering memory: later code only needs to see barriers, which `barrier_init_fence` makes visible.
// (With the default, release, an arrival takes a microsecond.)
DEVICE void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }

// Arrives after all that this thread did before.
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }

DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// The address of this block's shared address in the block of that rank.
DEVICE u32 address_in_block(u32 address, u32 rank) {
    u32 there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

// Arrives at a barrier of any block of the cluster, after all that this thread did before.
DEVICE void barrier_arrive_in_cluster(u32 barrier) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// As `barrier_wait`, for arrivals of any block of the cluster.
DEVICE void barrier_wait_in_cluster(u32 barrier, u32 parity) {
    asm volatile(
        "{\n.reg .pred done;\nwaiting:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], "
        "%1;\n@!done bra "
        "waiting;\n}" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

// Stores to another block's shared memory; the bytes count at that block's barrier, which makes them visible.
DEVICE void store_remote_16(u32 address, u32 first, u32 second, u32 third, u32 fourth, u32 barrier) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
            address),
        "r"(first), "r"(second), "r"(third), "r"(fourth), "r"(barrier)
        : "memory");
}

DEVICE void store_remote_8(u32 address, u32 first, u32 second, u32 barrier) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(address),
        "r"(first), "r"(second), "r"(barrier)
        : "memory");
}

template <u32 COUNT>
DEVICE void registers_increase() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <u32 COUNT>
DEVICE void registers_decrease() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

// ---- 8×8 matrices of 16-bit elements across a warp.

// Lane i gives the address of row i % 8 of matrix i / 8; it gets elements 2·(i % 4) and the next of row i / 4.
DEVICE uint4 load_matrices(u32 address) {
    uint4 matrices;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices.x), "=r"(matrices.y), "=r"(matrices.z), "=r"(matrices.w)
                 : "r"(address)
                 : "memory");
    return matrices;
}

// The same, transposed: a lane gets elements i / 4 of rows 2·(i % 4) and the next.
DEVICE uint4 load_matrices_turned(u32 address) {
    uint4 matrices;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices.x), "=r"(matrices.y), "=r"(matrices.z), "=r"(matrices.w)
                 : "r"(address)
                 : "memory");
    return matrices;
}

// Lane i gives the address of row i % 8 of matrix i / 8.
DEVICE void store_matrices(u32 address, u32 first, u32 second, u32 third, u32 fourth) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(first),
                 "r"(second), "r"(third), "r"(fourth)
                 : "memory");
}

// The same, transposed: a lane gives elements i / 4 of rows 2·(i % 4) and the next.
DEVICE void store_matrices_turned(u32 address, u32 first, u32 second, u32 third, u32 fourth) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(first),
                 "r"(second), "r"(third), "r"(fourth)
                 : "memory");
}

// ---- Products of a warp (mma.sync), 16 rows by 8 columns, 16 deep, of fp16 or, if BRAIN, bf16.
//
// Lane 4g + t has (PTX ISA, "Matrix Fragments for mma.m16n8k16"):
//   rows:     0: row g, depth 2t and 2t + 1;   1: row g + 8, the same;   2, 3: as 0, 1 with depth + 8
//   columns:  first: column g, depth 2t and 2t + 1;   second: the same with depth + 8
//   sums:     0, 1: row g, columns 2t and 2t + 1;   2, 3: row g + 8
template <bool BRAIN>
DEVICE void multiply_fragments(float (&sums)[4], const u32 (&rows)[4], u32 first, u32 second) {
#define MULTIPLY(FORMATS)                                                 \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." FORMATS                  \
        ".f32 "                                                           \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])      \
        : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(first), "r"(second))
    if constexpr (BRAIN) MULTIPLY("bf16.bf16");
    else MULTIPLY("f16.f16");
#undef MULTIPLY
}

// ---- The matrix unit (wgmma); the products themselves are in wgmma.cuh.

// Orders earlier accesses to the registers of products before products.
DEVICE void products_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

DEVICE void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most `LEFT` groups of products are in flight.
template <u32 LEFT>
DEVICE void products_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// A matrix of 16-bit elements in shared memory, depth first, 64 deep, in the 128-byte swizzle: row r has 128 bytes at
// 128·r, and its 16-byte piece u lies at place u ^ (r % 8). Begins at a multiple of 1024 bytes; 16 of depth further
// is 32 bytes further, 2 in the descriptor. (PTX ISA, wgmma: matrix descriptor.)
DEVICE constexpr u64 matrix_descriptor(u32 address) {
    constexpr u64 SWIZZLE_128 = 1ull << 62, EIGHT_ROWS = (u64)(1024 >> 4) << 32, UNUSED_LEADING = 1ull << 16;
    return SWIZZLE_128 | EIGHT_ROWS | UNUSED_LEADING | (u64)((address & 0x3FFFF) >> 4);
}
constexpr u64 DESCRIPTOR_16_DEEP = 2;
