// The binary interface between host and kernels; the other half is src/plan/abi.rs.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// One product: C = scale · A·Bᵀ, or silu(scale₀ · A·B₁ᵀ) ∘ (scale₁ · A·B₂ᵀ). Rows of NVFP4 are padded with zero scales
// to a multiple of 256 values, so kernels never see their end. Rows of 16-bit tokens are not padded.
struct Group {
    u64 tokens;        // bytes from the call's tokens: NVFP4 packed [m, k/2], or 16-bit floats [m, columns]
    u64 token_scales;  // bytes from the call's token scales, [m, k/16]
    u64 output;        // elements from the call's output, [m, n]
    u64 workspace;     // bytes from the workspace's begin, where a kernel keeps converted tokens
    const u8* weights[2];
    const u8* weight_scales[2];
    float scale[2];
    u32 m, n, k;
    u32 columns;  // values of a row of tokens, padded or not
};

// The 128 bytes that cuTensorMapEncodeTiled fills in; four a group: weights, their scales, second weights, theirs.
struct alignas(64) TensorMap {
    u64 opaque[16];
};
