//! Number formats of low-precision kernels: e2m1, e4m3, the NVFP4 tensors made of them, and linear int8; also named
//! tensors of any type, and the files that hold them.
//!
//! An NVFP4 tensor has e2m1 values, two a byte, low nibble first; one e4m3 scale for each [`BLOCK`] values along K; and
//! one optional `f32` scale. e2m1 × e4m3 has at most six significant bits, so a dequantised element without the tensor
//! scale is exact in `f16`, `bf16` and `f32`; with it, in `f64`.
//!
//! [`checkpoint`] reads such tensors from the safetensors files of common quantisers.

pub mod checkpoint;
mod data_type;
mod dequantise;
pub mod e2m1;
pub mod e4m3;
pub mod int8;
pub mod nvfp4;
mod quantise;
mod rounding;
pub mod swizzle;
mod tensor_file;
mod tensors;

pub use data_type::DataType;
pub use dequantise::Element;
pub use nvfp4::{FormatError, Nvfp4Tensor};
pub use rounding::to_odd;
pub use tensor_file::{TensorFile, TensorFileError, save_tensors, serialize_tensors};
pub use tensors::{Tensor, TensorSpec};

/// Values that share one block scale along K.
pub const BLOCK: usize = 16;
