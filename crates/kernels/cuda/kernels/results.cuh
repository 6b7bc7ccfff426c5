// From sums to results: SwiGLU, rounding, stores of single elements.
#pragma once
#include "ptx.cuh"

enum class Output { F16, Bf16, F32 };
constexpr Output output = static_cast<Output>(OUTPUT);

DEVICE float silu(float value) { return value / (1.0f + expf(-value)); }

// Two results, rounded to 16 bits.
DEVICE u32 round_pair(float first, float second) {
    u32 pair;
    if constexpr (output == Output::Bf16) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

DEVICE void store_one(u8* first, u64 element, float value) {
    if constexpr (output == Output::F32) {
        ((float*)first)[element] = value;
    } else {
        u16 rounded;
        if constexpr (output == Output::Bf16) asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
        else asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
        ((u16*)first)[element] = rounded;
    }
}
