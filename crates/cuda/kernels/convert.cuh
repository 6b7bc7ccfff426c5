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

// Eight e2m1 as the upper bytes of fp16, four in a word. Weights that were repacked (src/packing.rs) take two instructions
// less: of a byte one value is as the upper byte of an fp16 has it, its sign in bit 7 and its code in bits 3 to 1, and the
// other has its code in bits 6 to 4 and its sign in bit 0.
template <bool FRAGMENTS>
struct Eight {
    u32 even, odd;      // with FRAGMENTS the odd ones are still together with the others

    DEVICE explicit Eight(u32 packed) {
        if (FRAGMENTS) {
            even = ((packed << 7) & 0x80808080u) | ((packed >> 3) & 0x0E0E0E0Eu);
            odd = packed;
        } else {
            even = ((packed << 4) & 0x80808080u) | ((packed << 1) & 0x0E0E0E0Eu);
            odd = (packed & 0x80808080u) | ((packed >> 3) & 0x0E0E0E0Eu);
        }
    }

    // Values `number` and `number` + 4 times the first or the second of two converted scales.
    DEVICE u32 pair(u32 number, u32 scales, bool second) const {
        u32 halves;
        if (FRAGMENTS) halves = number < 2 ? (number == 0 ? odd << 8 : odd) & 0x8E008E00u : alone(even, number == 3);
        else halves = alone(number % 2 == 0 ? even : odd, number >= 2);
        return multiply_by_half(halves, scales, second);
    }

private:
    // The upper or the lower bytes of both halves, as upper ones with nothing beneath.
    static DEVICE u32 alone(u32 bytes, bool of_upper) {
        return of_upper ? bytes & 0xFF00FF00u : __byte_perm(bytes, 0, 0x2404);
    }
};

// Eight e2m1 times the first or the second of two converted scales: pair i holds values i and i + 4.
template <bool FRAGMENTS = false>
DEVICE void convert_8(u32 packed, u32 scales, bool second, u32& pair_0, u32& pair_1, u32& pair_2, u32& pair_3) {
    Eight<FRAGMENTS> eight(packed);
    pair_0 = eight.pair(0, scales, second);
    pair_1 = eight.pair(1, scales, second);
    pair_2 = eight.pair(2, scales, second);
    pair_3 = eight.pair(3, scales, second);
}
