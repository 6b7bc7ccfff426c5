//! The binary interface between host and kernels; the other half is `kernels/problem.cuh`.

use bytemuck::{Pod, Zeroable};

/// Rows of operands lie in device memory padded with zero scales to a multiple of this many values: bulk copies need
/// rows of scales in multiples of 16 bytes (CUDA driver API, cuTensorMapEncodeTiled: globalStrides), one for 16 values.
pub const DEPTH_STEP: usize = 256;

/// Tensor maps of a group of the Hopper kernels: weights, their scales, and the same of the second weights.
pub const MAPS_A_GROUP: usize = 4;

/// An operand that a tensor map may describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Matrix {
    /// Packed tokens of a GEMM; the map's offset says where its group's begin.
    Tokens,
    /// Packed values of the first weights.
    Weights,
    /// Their scales.
    WeightScales,
    /// Packed values of the dual form's second weights.
    SecondWeights,
    /// Their scales.
    SecondWeightScales,
    /// Attention's Q.
    Query,
    /// Its K.
    Key,
    /// Its V.
    Value,
}

/// One product.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Group {
    /// Its packed tokens, in bytes from the first group's.
    pub tokens: u64,
    /// Their scales, in bytes from the first group's.
    pub token_scales: u64,
    /// Its result, in elements from the first group's.
    pub output: u64,
    /// Its converted tokens, in bytes from the workspace's start; used by kernels that keep them.
    pub workspace: u64,
    /// Addresses of packed weights.
    pub weights: [u64; 2],
    /// Addresses of their scales.
    pub weight_scales: [u64; 2],
    /// What the sums are multiplied by.
    pub scale: [f32; 2],
    /// Tokens.
    pub m: u32,
    /// Weight rows.
    pub n: u32,
    /// Depth in memory, a multiple of [`DEPTH_STEP`].
    pub k: u32,
    /// Values of a row of tokens as they lie in memory.
    pub columns: u32,
}
