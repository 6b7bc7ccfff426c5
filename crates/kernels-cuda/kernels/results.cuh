// From sums to results, for kernels whose threads store one element at a time.
#pragma once
#include "ptx.cuh"

enum class Output { F16, Bf16, F32 };
constexpr Output output = static_cast<Output>(OUTPUT);

DEVICE float silu(float value) {
    return value / (1.0f + expf(-value));
}

DEVICE void store_one(u8* first, u64 element, float value) {
    if constexpr (output == Output::F32) {
        ((float*)first)[element] = value;
    } else {
        u16 rounded;
        if constexpr (output == Output::Bf16)
            asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
        else
            asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
        ((u16*)first)[element] = rounded;
    }
}
