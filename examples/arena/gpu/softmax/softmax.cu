// Softmax of each row: a block a row. e is raised to every element twice, and the row is read three times.

#define FULL 0xFFFFFFFFu

__device__ float block_max(float value) {
    __shared__ float parts[THREADS / 32];
    for (int lanes = 16; lanes > 0; lanes /= 2) value = fmaxf(value, __shfl_xor_sync(FULL, value, lanes));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    for (int warp = 0; warp < THREADS / 32; warp++) value = fmaxf(value, parts[warp]);
    return value;
}

__device__ float block_sum(float value) {
    __shared__ float parts[THREADS / 32];
    for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(FULL, value, lanes);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0.0f;
    for (int warp = 0; warp < THREADS / 32; warp++) value += parts[warp];
    return value;
}

extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int cols) {
    const float* from = x + (long long)blockIdx.x * cols;
    float* to = y + (long long)blockIdx.x * cols;
    const float lowest = __int_as_float(0xFF800000);  // minus infinity

    float most = lowest;
    for (int col = threadIdx.x; col < cols; col += THREADS) most = fmaxf(most, from[col]);
    most = block_max(most);

    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += THREADS) sum += powf(2.71828183f, from[col] - most);
    sum = block_sum(sum);

    for (int col = threadIdx.x; col < cols; col += THREADS) to[col] = powf(2.71828183f, from[col] - most) / sum;
}
