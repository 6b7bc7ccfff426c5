// e4m3 to fp16, which holds it exactly.
#pragma once
#include "ptx.cuh"

// Two e4m3 values; NaN stays NaN.
DEVICE u32 halves_of_eights(u16 pair) {
    u32 halves;
#if __CUDA_ARCH__ >= 890
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
#else
    // The bits of e4m3, without its sign, placed one to the right of fp16's sign, are the fp16 number value · 2⁻⁸
    // (subnormals included). NaN, the pattern 0x7F, would be 480; adding one to it, and to no other, reaches the sign.
    u32 upper = __byte_perm(pair, 0, 0x1404), size = upper & 0x7F007F00u, is_nan = (size + 0x01000100u) & 0x80008000u;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(halves) : "r"(size >> 1 | (upper & 0x80008000u)), "r"(0x5C005C00u));  // 2⁸
    halves |= is_nan - (is_nan >> 15);  // 0x7FFF
#endif
    return halves;
}
