// Multiplies 128 rows by COLUMNS columns of NVFP4 operands on the tensor cores of sm_100a: codes two a byte, a ue4m3
// scale for each 16, results in fp32. One block of 128 threads, which lay out the operands in shared memory themselves.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

constexpr int ROWS = 128, COLUMNS = 72, DEPTH = 512, CHUNK = 256;
constexpr int TENSOR_COLUMNS = 128, SCALES = 80;  // allocated; where scales begin

struct Shared {
    u8 left[ROWS * CHUNK / 2], right[COLUMNS * CHUNK / 2];
    u8 left_scales[CHUNK / 64][512], right_scales[CHUNK / 64][512];
    u64 done;
    u32 tensor;
};

__device__ u32 address(const void* pointer) { return (u32)__cvta_generic_to_shared(pointer); }

__device__ u64 descriptor(const void* pointer, u32 stride, u64 swizzle) {
    return (u64)((address(pointer) & 0x3FFFF) >> 4) | (u64)(stride >> 4) << 32 | 1ull << 46 | swizzle << 61;
}

// Rows of 128 bytes whose pieces of 16 bytes are exchanged (128-byte swizzle); scales as tcgen05.cp takes them.
__device__ void lay_out(u8* to, u8 (*scales)[512], const u8* codes, const u8* codes_scales, int rows, int chunk) {
    for (int at = threadIdx.x; at < rows * CHUNK / 2; at += blockDim.x) {
        int row = at / (CHUNK / 2), byte = at % (CHUNK / 2);
        to[row * 128 + (byte ^ (row % 8) << 4)] = codes[row * DEPTH / 2 + chunk * CHUNK / 2 + byte];
    }
    for (int at = threadIdx.x; at < rows * CHUNK / 16; at += blockDim.x) {
        int row = at / (CHUNK / 16), one = at % (CHUNK / 16);
        scales[one / 4][row % 32 * 16 + row / 32 * 4 + one % 4] =
            codes_scales[row * DEPTH / 16 + chunk * CHUNK / 16 + one];
    }
}

__device__ void wait(const u64* barrier, u32 parity) {
    asm volatile(
        "{\n.reg .pred ended;\n"
        "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
        "@!ended bra AGAIN;\n}" ::"r"(address(barrier)),
        "r"(parity)
        : "memory");
}

extern "C" __global__ void multiply(const u8* left, const u8* left_scales, const u8* right, const u8* right_scales,
                                    float* results) {
    extern __shared__ __align__(1024) u8 memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&shared.done)) : "memory");
    }
    if (warp == 0) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(address(&shared.tensor)),
                     "r"(TENSOR_COLUMNS)
                     : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
    __syncthreads();
    u32 tensor = shared.tensor;
    constexpr u32 DESCRIPTION = 1u << 7 | 1u << 10 | (u32)(COLUMNS >> 3) << 17 | (u32)(ROWS >> 7) << 27;
    for (int chunk = 0; chunk < DEPTH / CHUNK; chunk++) {
        lay_out(shared.left, shared.left_scales, left, left_scales, ROWS, chunk);
        lay_out(shared.right, shared.right_scales, right, right_scales, COLUMNS, chunk);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int step = 0; step < CHUNK / 64; step++) {
                u32 of_left = tensor + SCALES + 8 * step, of_right = of_left + 4;
                asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(of_left),
                             "l"(descriptor(shared.left_scales[step], 128, 0))
                             : "memory");
                asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(of_right),
                             "l"(descriptor(shared.right_scales[step], 128, 0))
                             : "memory");
                asm volatile(
                    "{\n.reg .pred add;\nsetp.ne.u32 add, %6, 0;\n"
                    "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%4], [%5], "
                    "add;\n}" ::"r"(tensor),
                    "l"(descriptor(shared.left + 32 * step, 1024, 2)),
                    "l"(descriptor(shared.right + 32 * step, 1024, 2)), "r"(DESCRIPTION), "r"(of_left), "r"(of_right),
                    "r"(chunk + step)
                    : "memory");
            }
            asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                             address(&shared.done))
                         : "memory");
        }
        wait(&shared.done, chunk & 1);
    }
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    for (int first = 0; first < COLUMNS; first += 8) {
        u32 sums[8];
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                     : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3]), "=r"(sums[4]), "=r"(sums[5]),
                       "=r"(sums[6]), "=r"(sums[7])
                     : "r"(tensor + (u32)(warp << 21) + first));
        asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
        for (int one = 0; one < 8; one++) results[threadIdx.x * COLUMNS + first + one] = __uint_as_float(sums[one]);
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    if (warp == 0) {
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(tensor), "r"(TENSOR_COLUMNS));
    }
}
