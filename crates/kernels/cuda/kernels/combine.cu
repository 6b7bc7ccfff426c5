// Adds up the results of each token's experts, multiplied by their weights: output[t] = Σ weight[t][i] · results[row of
// (t, i)]. A thread has four columns of a token; a block has a part of one token.
//
// Products and sums are rounded to fp32 one by one. There are four sums, of every fourth expert, which are added from
// the first to the last: this is the order of PyTorch's sum on a GPU (its vt0 of 4, in ATen/native/cuda/Reduce.cuh), so
// both ways of computing a layer add up alike. An expert that is elsewhere counts as a result of 0, as it does there;
// an id that stands for no expert as NaN, because no error can be reported from here.
//
// OUTPUT is the format of the results: see results.cuh.
#include "mixture.cuh"
#include "results.cuh"

constexpr u32 THREADS = 256, SUMS = 4;

DEVICE float load_weight(const CombineParameter& parameter, u64 slot) {
    if (parameter.weight_format == (u32)Output::F32) return ((const float*)parameter.weights)[slot];
    u16 half = ((const u16*)parameter.weights)[slot];
    if (parameter.weight_format == (u32)Output::Bf16) return __uint_as_float((u32)half << 16);
    float weight;
    asm("cvt.f32.f16 %0, %1;" : "=f"(weight) : "h"(half));
    return weight;
}

DEVICE void add(float4& sum, float weight, const float4& result) {
    // By intrinsics, which the compiler does not contract to a multiplication with an addition.
    sum.x = __fadd_rn(sum.x, __fmul_rn(result.x, weight));
    sum.y = __fadd_rn(sum.y, __fmul_rn(result.y, weight));
    sum.z = __fadd_rn(sum.z, __fmul_rn(result.z, weight));
    sum.w = __fadd_rn(sum.w, __fmul_rn(result.w, weight));
}

extern "C" __global__ void __launch_bounds__(THREADS) combine(const __grid_constant__ CombineParameter parameter) {
    grid_launch_dependents();
    grid_wait();
    u32 token = blockIdx.x / parameter.blocks_a_token, columns = parameter.columns;
    u32 column = (blockIdx.x % parameter.blocks_a_token * THREADS + threadIdx.x) * 4;
    if (column >= columns) return;
    const float nan = __uint_as_float(0x7FFFFFFF);
    u64 first = (u64)token * parameter.slots_a_token;
    float4 sums[SUMS]{};
    for (u32 slot = 0; slot < parameter.slots_a_token; slot += SUMS) {
        // All of them are loaded before the first is added.
        float weights[SUMS];
        float4 results[SUMS]{};
#pragma unroll
        for (u32 i = 0; i < SUMS; i++) {
            if (slot + i >= parameter.slots_a_token) continue;
            int row = parameter.rows[first + slot + i];
            weights[i] = load_weight(parameter, first + slot + i);
            if (row == ROW_OF_WRONG) results[i] = make_float4(nan, nan, nan, nan);
            if (row >= 0) results[i] = *(const float4*)(parameter.results + (u64)row * columns + column);
        }
#pragma unroll
        for (u32 i = 0; i < SUMS; i++)
            if (slot + i < parameter.slots_a_token) add(sums[i], weights[i], results[i]);
    }
    float4 sum = sums[0];
#pragma unroll
    for (u32 i = 1; i < SUMS; i++) {
        sum.x = __fadd_rn(sum.x, sums[i].x);
        sum.y = __fadd_rn(sum.y, sums[i].y);
        sum.z = __fadd_rn(sum.z, sums[i].z);
        sum.w = __fadd_rn(sum.w, sums[i].w);
    }
    u64 element = (u64)token * columns + column;
    if constexpr (output == Output::F32) *(float4*)(parameter.output + element * 4) = sum;
    else *(uint2*)(parameter.output + element * 2) = make_uint2(round_pair(sum.x, sum.y), round_pair(sum.z, sum.w));
}
