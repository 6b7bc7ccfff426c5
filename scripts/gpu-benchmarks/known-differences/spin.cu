// Kernels of which it is known by how much they differ: y = x after COUNT multiplications by one, which the compiler
// cannot leave out.

template <int COUNT>
__device__ void spin(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
#pragma unroll 100
    for (int k = 0; k < COUNT; k++) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(value) : "f"(1.0f), "f"(-0.0f));
    y[i] = value;
}

extern "C" __global__ void plain(const float* x, float* y, int n) { spin<20000>(x, y, n); }
extern "C" __global__ void twin(const float* x, float* y, int n) { spin<20000>(x, y, n); }
extern "C" __global__ void less1(const float* x, float* y, int n) { spin<19800>(x, y, n); }
extern "C" __global__ void less3(const float* x, float* y, int n) { spin<19400>(x, y, n); }
extern "C" __global__ void more3(const float* x, float* y, int n) { spin<20600>(x, y, n); }
