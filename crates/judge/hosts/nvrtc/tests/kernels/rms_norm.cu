// RMS norms for the tests: right ones, and ones that are wrong in the ways that the judge has to notice.
#include "sums.cuh"

namespace norms {

// A block a row.
template <bool WITH_WEIGHT>
__global__ void rms_norm(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ y, int rows,
                         int columns, float epsilon) {
    const float* from = x + (long long)blockIdx.x * columns;
    float* to = y + (long long)blockIdx.x * columns;
    double squares = 0;
    for (int column = threadIdx.x; column < columns; column += THREADS) squares += (double)from[column] * from[column];
    const float scale = (float)(1 / sqrt(block_sum(squares) / columns + epsilon));
    for (int column = threadIdx.x; column < columns; column += THREADS) {
        const float value = from[column] * scale;
        to[column] = WITH_WEIGHT ? value * weight[column] : value;
    }
}

}  // namespace norms

// A thread a row, with a two-dimensional grid; sums in double.
extern "C" __global__ void by_threads(const float* x, const float* weight, float* y, unsigned rows, long long columns) {
    const unsigned row = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double squares = 0;
    for (long long column = 0; column < columns; column++)
        squares += (double)x[row * columns + column] * x[row * columns + column];
    const float scale = (float)(1 / sqrt(squares / columns + 1e-5));
    for (long long column = 0; column < columns; column++)
        y[row * columns + column] = x[row * columns + column] * scale * weight[column];
}

// Adds the squares of a row to a sum in shared memory, which begins at zero, and scales the row by it.
__device__ void scale_by_sum(float& squares, const float* x, const float* weight, float* y, int columns) {
    __syncthreads();
    const float* from = x + blockIdx.x * columns;
    for (int column = threadIdx.x; column < columns; column += blockDim.x)
        atomicAdd(&squares, from[column] * from[column]);
    __syncthreads();
    const float scale = 1.0f / sqrtf(squares / columns + 1e-5f);
    for (int column = threadIdx.x; column < columns; column += blockDim.x)
        y[blockIdx.x * columns + column] = from[column] * scale * weight[column];
}

// Adds the squares of a row with atomic operations in shared memory.
extern "C" __global__ void by_atomics(const float* x, const float* weight, float* y, int columns) {
    __shared__ float squares;
    if (threadIdx.x == 0) squares = 0.0f;
    scale_by_sum(squares, x, weight, y, columns);
}

// Reads one element beyond its row, in the last row beyond the tensor.
extern "C" __global__ void reads_beyond(const float* x, const float* weight, float* y, int columns) {
    y[blockIdx.x] = x[(blockIdx.x + 1) * columns];
}

// Leaves the last element of each row as it was.
extern "C" __global__ void forgets_the_last(const float* x, const float* weight, float* y, int columns) {
    for (int column = threadIdx.x; column < columns - 1; column += blockDim.x) y[blockIdx.x * columns + column] = 0.0f;
}

// Rounds a sum toward zero, an instruction that the interpreter does not know.
extern "C" __global__ void rounded_toward_zero(const float* x, const float* weight, float* y, int columns) {
    y[threadIdx.x] = __fadd_rz(x[threadIdx.x], 1.0f);
}

// `by_atomics` with a sum that both warps set to zero: nothing orders the two, though the result is right.
extern "C" __global__ void zeroed_twice(const float* x, const float* weight, float* y, int columns) {
    __shared__ float squares;
    if (threadIdx.x % 32 == 0) squares = 0.0f;
    scale_by_sum(squares, x, weight, y, columns);
}
