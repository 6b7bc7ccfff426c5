// NVFP4 to fp16, exactly.
//
// The four bits of an e2m1, put where fp16 has its sign, the end of its exponent and the first bit of its mantissa,
// are the fp16 of value · 2⁻¹⁴ (subnormals included). With scales as scale · 2⁷, at most 57344, products are value ·
// scale · 2⁻⁷: six significant bits at most, between 2⁻¹⁷ and 21, exact. A product of two such is 2⁻¹⁴ times the true
// one.
#pragma once
#include "ptx.cuh"

// What sums of products of converted operands are multiplied by.
constexpr float CONVERTED_UNIT = 16384.0f;

DEVICE u32 multiply_halves(u32 left, u32 right) {
    u32 product;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(left), "r"(right));
    return product;
}

// Two e4m3 scales as fp16, times 2⁷; NaN stays NaN.
DEVICE u32 convert_scales(u16 scales) {
    u32 halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(scales));
    return multiply_halves(halves, 0x58005800u);
}

// Two fp16, both times the first or the second of two: one instruction, which takes a half of a register twice. `second` is
// known when it is compiled.
DEVICE u32 multiply_by_half(u32 left, u32 right, bool second) {
    u32 product;
    if (second)
        asm("{ .reg .b16 low, high; .reg .b32 both; mov.b32 {low, high}, %2; mov.b32 both, {high, high}; mul.rn.f16x2 %0, %1, both; }"
            : "=r"(product)
            : "r"(left), "r"(right));
    else
        asm("{ .reg .b16 low, high; .reg .b32 both; mov.b32 {low, high}, %2; mov.b32 both, {low, low}; mul.rn.f16x2 %0, %1, both; }"
            : "=r"(product)
            : "r"(left), "r"(right));
    return product;
}

// Eight e2m1 times the first or the second of two converted scales: pair i holds values i and i + 4.
DEVICE void convert_8(u32 packed, u32 scales, bool second, u32& pair_0, u32& pair_1, u32& pair_2, u32& pair_3) {
    // The upper byte of each fp16: sign, three bits of zero, and the code.
    u32 odd = (packed & 0x80808080u) | ((packed >> 3) & 0x0E0E0E0Eu);
    u32 even = ((packed << 4) & 0x80808080u) | ((packed << 1) & 0x0E0E0E0Eu);
    pair_0 = multiply_by_half(__byte_perm(even, 0, 0x2404), scales, second);
    pair_1 = multiply_by_half(__byte_perm(odd, 0, 0x2404), scales, second);
    pair_2 = multiply_by_half(even & 0xFF00FF00u, scales, second);
    pair_3 = multiply_by_half(odd & 0xFF00FF00u, scales, second);
}

// The same of weights that were repacked (src/packing.rs), in two instructions less. One value of a byte is as the upper byte
// of an fp16 has it, its sign in bit 7 and its code in bits 3 to 1; the other has its code in bits 6 to 4 and its sign in
// bit 0.
DEVICE void convert_repacked_8(u32 packed, u32 scales, bool second, u32& pair_0, u32& pair_1, u32& pair_2, u32& pair_3) {
    u32 others = ((packed << 7) & 0x80808080u) | ((packed >> 3) & 0x0E0E0E0Eu);
    pair_0 = multiply_by_half((packed << 8) & 0x8E008E00u, scales, second);
    pair_1 = multiply_by_half(packed & 0x8E008E00u, scales, second);
    pair_2 = multiply_by_half(__byte_perm(others, 0, 0x2404), scales, second);
    pair_3 = multiply_by_half(others & 0xFF00FF00u, scales, second);
}
