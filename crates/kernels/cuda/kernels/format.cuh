// The number format of the tokens (FORMAT 0 NVFP4, 1 fp16, 2 bf16), and with it that of the converted weights: bf16
// with bf16 tokens, else fp16.
#pragma once
#include "convert.cuh"

constexpr bool HALF = FORMAT != 0, BRAIN = FORMAT == 2;

// The factor for sums: both operands are converted, or only the weights.
constexpr float SUM_UNIT = HALF ? 128.0f : CONVERTED_UNIT;

template <bool>
struct WeightFormat {
    using Packed = Eight;
};
template <>
struct WeightFormat<true> {
    using Packed = EightBrains;
};
using PackedWeights = WeightFormat<BRAIN>::Packed;

DEVICE u32 convert_weight_scales(u16 scales) {
    return BRAIN ? convert_scales_to_brain(scales) : convert_scales(scales);
}

// Eight 16-bit floats in the order of `convert_8`: pair i holds values i and i + 4.
DEVICE void pair_8(const uint4& values, u32& pair_0, u32& pair_1, u32& pair_2, u32& pair_3) {
    pair_0 = __byte_perm(values.x, values.z, 0x5410);
    pair_1 = __byte_perm(values.x, values.z, 0x7632);
    pair_2 = __byte_perm(values.y, values.w, 0x5410);
    pair_3 = __byte_perm(values.y, values.w, 0x7632);
}
