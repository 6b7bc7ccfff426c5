// Kernels of NAME. kernels.toml beside it says how they are launched.

__device__ float product(float gate, float up) { return gate / (1.0f + expf(-gate)) * up; }

// An element a thread.
extern "C" __global__ void plain(const float* __restrict__ gate, const float* __restrict__ up, float* __restrict__ y,
                                 int count) {
    const int index = blockIdx.x * THREADS + threadIdx.x;
    if (index < count) y[index] = product(gate[index], up[index]);
}

// EACH elements a thread, THREADS apart.
extern "C" __global__ void several(const float* __restrict__ gate, const float* __restrict__ up, float* __restrict__ y,
                                   int count) {
    const int first = blockIdx.x * THREADS * EACH + threadIdx.x;
    for (int each = 0; each < EACH; each++) {
        const int index = first + each * THREADS;
        if (index < count) y[index] = product(gate[index], up[index]);
    }
}
