//! NVFP4 tensors, linear int8, and the checkpoints that hold them.
//!
//! An NVFP4 tensor has e2m1 values, two a byte, low nibble first; one e4m3 scale for each [`BLOCK`] values along K; and
//! one optional `f32` scale. e2m1 × e4m3 has at most six significant bits, so a dequantised element without the tensor
//! scale is exact in `f16`, `bf16` and `f32`; with it, in `f64`.
//!
//! ```
//! use gauntlet_nvfp4::Nvfp4Tensor;
//!
//! let values: Vec<f32> = (0..32).map(|at| at as f32 / 8.0).collect();
//! let tensor = Nvfp4Tensor::quantise(2, 16, &values)?;
//! let back = tensor.dequantise_scaled();
//! // Sixteen values share a scale, and the largest becomes 6 times it.
//! let largest = f64::from(values[31]);
//! assert!((back[31] - largest).abs() <= largest / 16.0);
//! # Ok::<(), gauntlet_nvfp4::FormatError>(())
//! ```
//!
//! [`checkpoint`] reads such tensors from the safetensors files of common quantisers.

pub mod checkpoint;
mod dequantise;
pub mod int8;
pub mod nvfp4;
mod quantise;
pub mod swizzle;

pub use dequantise::Element;
pub use nvfp4::{FormatError, Nvfp4Tensor};

/// Values that share one block scale along K.
pub const BLOCK: usize = 16;
