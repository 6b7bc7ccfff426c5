// Weights for tokens as they lie in memory (REPACKED 2; src/packing/steps.rs says where each bit goes).
//
// The matrix unit takes tokens in steps of 16 values of K, one block of the weights' scales. Of a step lane q of a quad
// gives columns 2q, 2q + 1, 2q + 8 and 2q + 9, so it has the pairs of 16-byte piece after 16-byte piece of a token, and
// needs all eight scales of a row's chunk.
#pragma once
#include "format.cuh"

// Sixteen e2m1 of four steps: pair i has columns 2q + 8i and the next, from the first step's first.
#if FORMAT == 2

// Bits of a pair lie as bf16 has them, 2i bits higher: those of pairs 0, 2 and 5 in the first word, of 1, 4 and 7 in
// the second, and of 3 and 6 where both words have bits left. So a pair takes two instructions, or one, and its
// product.
struct FourSteps {
    u32 first, second, both;

    DEVICE FourSteps(u32 first, u32 second)
        : first(first), second(second), both(select_bits(first, second, 0x60306030u)) {}

    // Times the lower or the upper of two converted scales.
    DEVICE u32 pair(u32 number, u32 scales, bool upper) const {
        u32 word = number == 3 || number == 6 ? both : number == 0 || number == 2 || number == 5 ? first : second;
        return multiply_brains_by_half(__funnelshift_r(word, word, 2 * number) & 0x81C081C0u, scales, upper);
    }
};

#else

struct FourSteps {
    Eight eights[2];

    DEVICE FourSteps(u32 first, u32 second) : eights{Eight(first), Eight(second)} {}

    DEVICE u32 pair(u32 number, u32 scales, bool upper) const {
        return eights[number / 4].pair(number % 4, scales, upper);
    }
};

#endif

// Two scales, of steps 2 · `pair` and the next, from the word that has those of four. A scale has five bits of exponent
// and three of significand, positive and normal: where the tokens' format has its own, so it takes a mask, and in bf16
// the three upper bits of the exponent, which are the same for all.
DEVICE u32 step_scales(u32 word, u32 pair) {
    u32 moved = __funnelshift_r(word, word, pair % 2 * 8);
    if (!BRAIN) return moved & 0x7F807F80u;
    u32 scales;  // & and | in one instruction; the compiler takes two
    asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(scales) : "r"(moved), "r"(0x0FF00FF0u), "r"(0x70007000u));
    return scales;
}
