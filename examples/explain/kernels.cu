// Six kernels, each slow for one planted reason, for `gauntlet explain`. README.md names the reasons.

constexpr float LOWEST = -3.402823466e38f;

// Reads each row once and writes it once, with its values in registers between: device memory is the limit.
__global__ void softmax_once(const float* x, float* y, int cols) {
    const int lanes = 256, kept = 16;
    const float4* from = reinterpret_cast<const float4*>(x + size_t(blockIdx.x) * cols);
    float4* to = reinterpret_cast<float4*>(y + size_t(blockIdx.x) * cols);
    __shared__ float shared[8];
    const int quads = cols / 4;
    float4 values[kept / 4];
    float most = LOWEST;
    for (int i = 0; i < kept / 4; ++i) {
        const int at = threadIdx.x + i * lanes;
        values[i] = at < quads ? from[at] : make_float4(LOWEST, LOWEST, LOWEST, LOWEST);
        most = fmaxf(most, fmaxf(fmaxf(values[i].x, values[i].y), fmaxf(values[i].z, values[i].w)));
    }
    for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = most;
    __syncthreads();
    for (int i = 0; i < 8; ++i) most = fmaxf(most, shared[i]);
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < kept / 4; ++i) {
        float4& v = values[i];
        v = make_float4(__expf(v.x - most), __expf(v.y - most), __expf(v.z - most), __expf(v.w - most));
        sum += v.x + v.y + v.z + v.w;
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < 8; ++i) sum += shared[i];
    const float scale = 1 / sum;
    for (int i = 0; i < kept / 4; ++i) {
        const int at = threadIdx.x + i * lanes;
        const float4 v = values[i];
        if (at < quads) to[at] = make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
    }
}

// A thread keeps 16 × 16 sums and may have 64 registers, so sums spill to local memory.
__global__ void __launch_bounds__(64, 16) product_spilled(const float* a, const float* b, float* c, int n) {
    const int tile = 16;
    const int row = (blockIdx.y * 8 + threadIdx.y) * tile, column = (blockIdx.x * 8 + threadIdx.x) * tile;
    float sums[tile][tile] = {};
    for (int k = 0; k < n; ++k) {
        float left[tile], right[tile];
#pragma unroll
        for (int i = 0; i < tile; ++i) {
            left[i] = a[size_t(k) * n + row + i];
            right[i] = b[size_t(k) * n + column + i];
        }
#pragma unroll
        for (int i = 0; i < tile; ++i)
#pragma unroll
            for (int j = 0; j < tile; ++j) sums[i][j] += left[i] * right[j];
    }
    for (int i = 0; i < tile; ++i)
        for (int j = 0; j < tile; ++j) c[size_t(row + i) * n + column + j] = sums[i][j];
}

// Four rows of 256 numbers: four blocks, and a chain of dependent steps.
__global__ void row_sums(const float* x, float* y, int cols) {
    __shared__ float shared[256];
    float sum = 0;
    for (int at = threadIdx.x; at < cols; at += 256) sum += x[size_t(blockIdx.x) * cols + at];
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = shared[0];
}

// A tile of 32 × 32 without padding: the lanes of a warp read one bank, 32 times. It is turned back and forth eight
// times, so that the conflicts and not device memory are the limit.
__global__ void transpose_conflicts(const float* x, float* y, int n) {
    __shared__ float tile[32][32];
    const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    float value = x[size_t(row) * n + column];
    for (int turn = 0; turn < 9; ++turn) {
        __syncthreads();
        tile[threadIdx.y][threadIdx.x] = value;
        __syncthreads();
        value = tile[threadIdx.x][threadIdx.y];
    }
    y[size_t(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = value;
}

// Takes 200 KiB of shared memory for 64 threads, of which it needs none: one block, two warps on a multiprocessor.
__global__ void sums_of_few_warps(const float* x, float* y, int cols) {
    extern __shared__ float shared[];
    float sum = 0;
    for (int at = threadIdx.x; at < cols; at += 64) sum += x[size_t(blockIdx.x) * cols + at];
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 64; ++i) sum += shared[i];
        y[blockIdx.x] = sum;
    }
}

// The lanes of a warp read addresses a row apart, so that a request takes 32 sectors where four would do.
__global__ void sums_by_row_per_thread(const float* x, float* y, int rows, int cols) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    float sum = 0;
    if (row < rows) {
        for (int at = 0; at < cols; ++at) sum += x[size_t(row) * cols + at];
        y[row] = sum;
    }
}
