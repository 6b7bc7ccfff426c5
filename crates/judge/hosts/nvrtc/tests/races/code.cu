// What compilers make of common code besides. Above each kernel stands its launch.

#define KERNEL(name) extern "C" __global__ void name(const float* x, float* y, int n)
#define ME (int)threadIdx.x

__constant__ float factors[4] = {1.0f, 2.0f, 3.0f, 4.0f};

// <<<1, 64>>> right
KERNEL(right_constants) { y[ME] = factors[ME % 4] * x[ME]; }

// <<<1, 64>>> right
KERNEL(right_local_array) {
    float counts[16];
    for (int at = 0; at < 16; at++) counts[at] = 0;
    for (int at = 0; at < n; at++) counts[(int)(x[at] * 16.0f) & 15] += x[at];
    y[ME] = counts[ME & 15];
}

__device__ __noinline__ float squared(float value) { return value * value; }
__device__ __noinline__ float squares(const float* from, int count) {
    float sum = 0;
    for (int at = 0; at < count; at++) {
        if (from[at] < 0.0f) return -1.0f;
        sum += squared(from[at]);
    }
    return sum;
}

// <<<1, 64>>> right
KERNEL(right_calls) { y[ME] = squares(x + ME, 3) + squared(x[0]); }

__device__ __noinline__ int ways(int steps) { return steps < 2 ? 1 : ways(steps - 1) + ways(steps - 2); }

// <<<1, 32>>> unsupported: recursion
KERNEL(unsupported_recursion) { y[ME] = (float)ways(n / 100 + (int)x[ME]); }

typedef float (*Function)(float);
__device__ float doubled(float value) { return 2.0f * value; }
__device__ Function functions[2] = {squared, doubled};

// <<<1, 32>>> unsupported: functions
KERNEL(unsupported_pointers) { y[ME] = functions[ME & 1](x[ME]); }

// <<<1, 32>>> right
KERNEL(right_clock) {
    long long begun = clock64();
    float value = x[ME];
    __nanosleep(10);
    y[ME] = value + (clock64() >= begun ? 0.0f : 1.0f);
}
