// Blackwell's matrix unit and its tensor memory (PTX ISA, "TensorCore 5th Generation Family Instructions"), sm_100a.
//
// Tensor memory has 128 lanes of 512 columns of 32 bits. An address is a column, plus a lane in the upper half. One
// thread issues copies and products. They are asynchronous, and only some pairs of them run in the order in which they
// were issued (section "Pipelined tcgen05 Instructions"): products of the same sums, and a copy before a product.
// Everything else is ordered by a commit to a barrier and a wait for it.
//
// With PAIRED, the two blocks of a cluster are a pair (section "CTA pair"): the first of them issues, and what it
// issues reads shared memory and changes tensor memory of both, each at the same addresses. A kernel uses one kind or
// the other.
#pragma once
#include "ptx.cuh"

#if PAIRED
#define CTA_GROUP "cta_group::2"
#else
#define CTA_GROUP "cta_group::1"
#endif

// ---- Descriptors.

// The swizzle of a matrix in shared memory, by its bytes; the values are the descriptor's.
enum class Swizzle : u32 { None = 0, Bytes128 = 2, Bytes64 = 4 };

// A matrix in shared memory whose rows run along the depth, eight rows together, `eight_rows` bytes from one eight to
// the next (section "Shared memory descriptor"; the layouts are those of cute/arch/mma_sm100_desc.hpp, SmemDescriptor).
//   bits 0–13: address / 16;   16–29: leading dimension offset / 16, unused by swizzled layouts and by a single piece
//   of 16 bytes, where 1 stands;   32–45: bytes from eight rows to the next / 16;   46–48: the constant 1;   49–51:
//   base offset, 0 as matrices begin where the pattern of the swizzle does;   61–63: the swizzle
DEVICE constexpr u64 matrix_bits(u32 eight_rows, Swizzle swizzle) {
    return 1ull << 16 | (u64)(eight_rows / 16) << 32 | 1ull << 46 | (u64)swizzle << 61;
}

DEVICE u64 matrix_at(u64 bits, u32 address) { return bits | (address & 0x3FFFF) / 16; }

// The product's shape and formats (section "Instruction descriptor", table of .kind::mxf4nvf4; in
// cute/arch/mma_sm100_desc.hpp, InstrDescriptorBlockScaled).
//   bits 4–5 and 29–30: scale factor data IDs, 0 with scale_vec::4X;   7–9 and 10–11: formats of A and B, e2m1 is 1;
//   17–22: N / 8;   23: format of scales, ue4m3 is 0;   27–28: M / 128;   31: depth 64 is 0
DEVICE constexpr u32 product_bits(u32 rows, u32 columns) {
    return 1u << 7 | 1u << 10 | columns / 8 << 17 | rows / 128 << 27;
}

// ---- Tensor memory is taken and given back by a whole warp (section "tcgen05.alloc"): a power of two of columns, at
// least 32. Its address is written to shared memory. Of a pair, a warp of each block takes part.

template <u32 COLUMNS>
DEVICE void tensor_memory_take(u32 to) {
    static_assert(COLUMNS >= 32 && COLUMNS <= 512 && (COLUMNS & (COLUMNS - 1)) == 0, "what tcgen05.alloc accepts");
    asm volatile("tcgen05.alloc." CTA_GROUP ".sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(to), "n"(COLUMNS)
                 : "memory");
    // No more will be taken, so that a block that waits for columns need not wait for the end of this one.
    asm volatile("tcgen05.relinquish_alloc_permit." CTA_GROUP ".sync.aligned;" ::: "memory");
}

template <u32 COLUMNS>
DEVICE void tensor_memory_return(u32 address) {
    asm volatile("tcgen05.dealloc." CTA_GROUP ".sync.aligned.b32 %0, %1;" ::"r"(address), "n"(COLUMNS) : "memory");
}

// ---- Copies and products, by one thread.

// 32 rows of 16 bytes of shared memory into lanes 0 to 31 of four columns, and the same into each of the other three
// groups of 32 lanes: how the matrix unit reads scales (sections "tcgen05.cp" and "Block Scaling").
DEVICE void tensor_copy_scales(u32 to, u64 from) {
    asm volatile("tcgen05.cp." CTA_GROUP ".32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(from) : "memory");
}

// Sums = rows · columnsᵀ, 64 deep, to which the old sums are added if `add`; both operands are NVFP4 in shared memory,
// with four scales of e4m3 a row in tensor memory (section "tcgen05.mma").
DEVICE void tensor_multiply(u32 sums, u64 rows, u64 columns, u32 bits, u32 row_scales, u32 column_scales, bool add) {
    asm volatile(
        "{ .reg .pred add; setp.ne.u32 add, %6, 0;\n"
        "tcgen05.mma." CTA_GROUP
        ".kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%4], [%5], add; }" ::"r"(sums),
        "l"(rows), "l"(columns), "r"(bits), "r"(row_scales), "r"(column_scales), "r"((u32)add)
        : "memory");
}

// The barrier gets an arrival when all copies and products that this thread has issued are complete (section
// "tcgen05.commit"); of a pair, the same barrier of each block.
DEVICE void tensor_commit(u32 barrier) {
#if PAIRED
    asm volatile(
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
            barrier),
        "h"((u16)0b11)
        : "memory");
#else
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier)
                 : "memory");
#endif
}

// ---- Order between threads (section "tcgen05.fence"): before a thread signals another, and after it was signalled.

DEVICE void tensor_fence_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }

DEVICE void tensor_fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

// ---- Sums to registers (section "tcgen05.ld"): lane i of a warp gets columns of lane 32 · (warp % 4) + i, which the
// address names. They are there after `tensor_load_wait`, to which they are operands so that no use is moved before it.

#define SUM(index) "=f"(sums[index])
#define SUMS_8(first)                                                                                           \
    SUM(first), SUM(first + 1), SUM(first + 2), SUM(first + 3), SUM(first + 4), SUM(first + 5), SUM(first + 6), \
        SUM(first + 7)

DEVICE void tensor_load(float (&sums)[8], u32 address) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : SUMS_8(0)
                 : "r"(address)
                 : "memory");
}

DEVICE void tensor_load(float (&sums)[32], u32 address) {
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
        : SUMS_8(0), SUMS_8(8), SUMS_8(16), SUMS_8(24)
        : "r"(address)
        : "memory");
}

#undef SUM
#define SUM(index) "+f"(sums[index])

DEVICE void tensor_load_wait(float (&sums)[8]) { asm volatile("tcgen05.wait::ld.sync.aligned;" : SUMS_8(0)::"memory"); }

DEVICE void tensor_load_wait(float (&sums)[32]) {
    asm volatile("tcgen05.wait::ld.sync.aligned;" : SUMS_8(0), SUMS_8(8), SUMS_8(16), SUMS_8(24)::"memory");
}

#undef SUM
#undef SUMS_8
