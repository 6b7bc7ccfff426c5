// NVFP4 to fp16, exactly.
//
// The four bits of an e2m1, placed at fp16's sign, the end of its exponent and the first bit of its mantissa, are the
// fp16 number value · 2⁻¹⁴ (subnormals included). With scales as scale · 2⁷, at most 57344, products are value · scale
// · 2⁻⁷: at most six significant bits, between 2⁻¹⁷ and 21, so exact. A product of two such numbers is 2⁻¹⁴ times the
// true one.
#pragma once
#include "eights.cuh"

// The factor for sums of products of converted operands.
constexpr float CONVERTED_UNIT = 16384.0f;

DEVICE u32 multiply_halves(u32 left, u32 right) {
    u32 product;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(left), "r"(right));
    return product;
}

// Two e4m3 scales as fp16, times 2⁷; NaN stays NaN.
DEVICE u32 convert_scales(u16 scales) { return multiply_halves(halves_of_eights(scales), 0x58005800u); }

// Two fp16, both times the first or the second of two: one instruction, which can use one half of a register twice.
// `second` is a compile-time constant.
DEVICE u32 multiply_by_half(u32 left, u32 right, bool second) {
    u32 product;
    if (second)
        asm("{ .reg .b16 low, high; .reg .b32 both; mov.b32 {low, high}, %2; mov.b32 both, {high, high}; mul.rn.f16x2 "
            "%0, %1, both; }"
            : "=r"(product)
            : "r"(left), "r"(right));
    else
        asm("{ .reg .b16 low, high; .reg .b32 both; mov.b32 {low, high}, %2; mov.b32 both, {low, low}; mul.rn.f16x2 "
            "%0, %1, both; }"
            : "=r"(product)
            : "r"(left), "r"(right));
    return product;
}

// The bits of `left` where `mask` has ones, those of `right` elsewhere: one instruction. Written with & and |, and with
// `right` masked before, the compiler takes two.
DEVICE u32 select_bits(u32 left, u32 right, u32 mask) {
    u32 bits;
    asm("lop3.b32 %0, %1, %2, %3, 0xE4;" : "=r"(bits) : "r"(left), "r"(right), "r"(mask));
    return bits;
}

// Eight e2m1 as the upper bytes of fp16, four in a word: the sign in bit 7, the code in bits 3 to 1.
//
// Shifted right by three bits, the codes of odd values lie like this in their own bytes, and those of even ones four
// bits lower, across the byte boundary. So one word selects the odd values' codes and signs, another the even ones',
// four bits too low, which is shifted left: five instructions, and one for each of the four pairs.
struct Eight {
    u32 even, odd;

    DEVICE explicit Eight(u32 packed) {
        u32 signs = packed & 0x88888888u, down = __funnelshift_r(packed, packed, 3);
        odd = select_bits(down, signs, 0x0E0E0E0Eu);
        u32 below = select_bits(down, signs, 0xE0E0E0E0u);
        even = __funnelshift_l(below, below, 4);
    }

    // Values `number` and `number` + 4 times the first or the second of two converted scales.
    DEVICE u32 pair(u32 number, u32 scales, bool second) const {
        u32 bytes = number % 2 == 0 ? even : odd;
        // The upper or the lower bytes of both halves, as upper ones with nothing beneath.
        return multiply_by_half(number >= 2 ? bytes & 0xFF00FF00u : __byte_perm(bytes, 0, 0x2404), scales, second);
    }
};

// Eight e2m1 times the first or the second of two converted scales: pair i holds values i and i + 4.
DEVICE void convert_8(u32 packed, u32 scales, bool second, u32& pair_0, u32& pair_1, u32& pair_2, u32& pair_3) {
    Eight eight(packed);
    pair_0 = eight.pair(0, scales, second);
    pair_1 = eight.pair(1, scales, second);
    pair_2 = eight.pair(2, scales, second);
    pair_3 = eight.pair(3, scales, second);
}

// ---- NVFP4 to bf16, exactly, for products with bf16 tokens.
//
// The four bits of an e2m1, placed at bf16's sign, the end of its exponent and the first bit of its mantissa, are value
// · 2⁻¹²⁶ (subnormals included). With scales as scale · 2¹¹⁹, products are value · scale · 2⁻⁷, as above.

DEVICE u32 multiply_brains_by_half(u32 left, u32 right, bool second) {
// Before sm_90 products of bf16 are multiply-adds; −0 changes none, not even its sign.
#if __CUDA_ARCH__ >= 900
#define MULTIPLY "mul.rn.bf16x2 %0, %1, both; }"
#else
#define MULTIPLY ".reg .b32 zeros; mov.b32 zeros, 0x80008000; fma.rn.bf16x2 %0, %1, both, zeros; }"
#endif
    u32 product;
    if (second)
        asm("{ .reg .b16 low, high; .reg .b32 both; mov.b32 {low, high}, %2; mov.b32 both, {high, high}; " MULTIPLY
            : "=r"(product)
            : "r"(left), "r"(right));
    else
        asm("{ .reg .b16 low, high; .reg .b32 both; mov.b32 {low, high}, %2; mov.b32 both, {low, low}; " MULTIPLY
            : "=r"(product)
            : "r"(left), "r"(right));
#undef MULTIPLY
    return product;
}

// Two e4m3 scales as bf16, times 2¹¹⁹; NaN stays NaN.
DEVICE u32 convert_scales_to_brain(u16 scales) {
    constexpr float UNIT = 6.646139978924579e35f;  // 2¹¹⁹
    float low, high;
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
        : "=f"(low), "=f"(high)
        : "r"(halves_of_eights(scales)));
    u32 brains;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(brains) : "f"(high * UNIT), "f"(low * UNIT));
    return brains;
}

// Eight e2m1; value i and value i + 4 are 16 bits apart, as halves of a pair are.
struct EightBrains {
    u32 packed;

    DEVICE explicit EightBrains(u32 packed) : packed(packed) {}

    // Values `number` and `number` + 4 times the first or the second of two converted scales.
    DEVICE u32 pair(u32 number, u32 scales, bool second) const {
        u32 codes = number < 2 ? packed << (6 - 4 * number) : packed >> (4 * number - 6);
        u32 signs = (packed << (12 - 4 * number)) & 0x80008000u;
        return multiply_brains_by_half((codes & 0x01C001C0u) | signs, scales, second);
    }
};
