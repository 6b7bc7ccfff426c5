// Softmax of each row, twice: one warp a row, and one block a row. softmax.toml beside it says how they are launched.

#define FULL 0xFFFFFFFFu
#define LEAST __int_as_float(0xFF800000)  // minus infinity

__device__ float warp_max(float value) {
    for (int lanes = 16; lanes > 0; lanes /= 2) value = fmaxf(value, __shfl_xor_sync(FULL, value, lanes));
    return value;
}

__device__ float warp_sum(float value) {
    for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(FULL, value, lanes);
    return value;
}

// A warp a row, ROWS rows a block.
extern "C" __global__ void softmax_warp(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x * ROWS + threadIdx.y;
    if (row >= rows) return;
    const float* from = x + (long long)row * cols;
    float* to = y + (long long)row * cols;

    float most = LEAST;
    for (int col = threadIdx.x; col < cols; col += 32) most = fmaxf(most, from[col]);
    most = warp_max(most);

    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += 32) sum += expf(from[col] - most);
    const float scale = 1.0f / warp_sum(sum);

    for (int col = threadIdx.x; col < cols; col += 32) to[col] = expf(from[col] - most) * scale;
}

// A block of THREADS threads a row; warps combine their parts in shared memory. With KEEP the row stays in dynamic
// shared memory, so it is read from global memory once.
extern "C" __global__ void softmax_block(const float* __restrict__ x, float* __restrict__ y, int cols) {
    extern __shared__ float row[];
    __shared__ float parts[THREADS / 32];
    const float* from = x + (long long)blockIdx.x * cols;
    float* to = y + (long long)blockIdx.x * cols;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    float most = LEAST;
    for (int col = threadIdx.x; col < cols; col += THREADS) {
        const float value = from[col];
        if (KEEP) row[col] = value;
        most = fmaxf(most, value);
    }
    most = warp_max(most);
    if (lane == 0) parts[warp] = most;
    __syncthreads();
    most = warp_max(lane < THREADS / 32 ? parts[lane] : LEAST);
    __syncthreads();

    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += THREADS) {
        const float value = expf((KEEP ? row[col] : from[col]) - most);
        if (KEEP) row[col] = value;
        sum += value;
    }
    sum = warp_sum(sum);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    const float scale = 1.0f / warp_sum(lane < THREADS / 32 ? parts[lane] : 0.0f);

    for (int col = threadIdx.x; col < cols; col += THREADS) {
        to[col] = (KEEP ? row[col] : expf(from[col] - most)) * scale;
    }
}
