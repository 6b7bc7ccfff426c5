// One thread for each element of the result, in plain f32.

__device__ inline float scaled(const float* x, const float* gain, long row, long k, long width) {
    return x[row * width + k] * gain[row];
}

__device__ inline float element(const float* x, const float* gain, const float* w, long row, long column, long width,
                                long columns) {
    float sum = 0.0f, squares = 0.0f;
    for (long k = 0; k < width; ++k) {
        float value = scaled(x, gain, row, k, width);
        squares += value * value;
        sum += value * w[k * columns + column];
    }
    return sum / sqrtf(squares / width);
}

// Honest.
__global__ void plain(const float* x, const float* gain, const float* w, float* y, int rows, int width, int columns) {
    long column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column < columns) y[row * columns + column] = element(x, gain, w, row, column, width, columns);
}

// Leaves out the last eighth of each sum.
__global__ void shorter_sums(const float* x, const float* gain, const float* w, float* y, int rows, int width,
                             int columns) {
    long column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column < columns) {
        float sum = 0.0f, squares = 0.0f;
        for (long k = 0; k < width; ++k) squares += scaled(x, gain, row, k, width) * scaled(x, gain, row, k, width);
        for (long k = 0; k < width - width / 8; ++k) sum += scaled(x, gain, row, k, width) * w[k * columns + column];
        y[row * columns + column] = sum / sqrtf(squares / width);
    }
}

// Leaves the last row of blocks as it is.
__global__ void all_but_a_row(const float* x, const float* gain, const float* w, float* y, int rows, int width,
                              int columns) {
    long column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column < columns && row + 1 < rows)
        y[row * columns + column] = element(x, gain, w, row, column, width, columns);
}

// Takes denormal numbers for zero, as `-ftz=true` does.
__global__ void flushes(const float* x, const float* gain, const float* w, float* y, int rows, int width, int columns) {
    long column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column < columns) {
        float sum = 0.0f, squares = 0.0f;
        for (long k = 0; k < width; ++k) {
            float value = x[row * width + k], own = gain[row];
            value = fabsf(value) < 1.17549435e-38f ? 0.0f : value * own;
            squares += value * value;
            sum += value * w[k * columns + column];
        }
        y[row * columns + column] = sum / sqrtf(squares / width + 1e-30f);
    }
}
