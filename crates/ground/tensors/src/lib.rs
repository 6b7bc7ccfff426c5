//! Named tensors of any element type, and the safetensors files that hold them.
//!
//! A kernel's operands and results are [`Tensor`]s: a [`TensorSpec`] (name, [`DataType`], shape) and the bytes of the elements, row-major
//! and little-endian. [`e2m1`] and [`e4m3`] are the codes of two element types of four and eight bits, which block formats such as NVFP4
//! are made of.
//!
//! ```
//! use gauntlet_tensors::{DataType, Tensor, TensorFile, TensorSpec, save_tensors};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("operands.safetensors");
//! let spec = TensorSpec {
//!     name: "x".to_owned(),
//!     data_type: DataType::F32,
//!     shape: vec![2, 3],
//! };
//! let x: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].into_iter().flat_map(f32::to_le_bytes).collect();
//! save_tensors([(&spec, x.as_slice())], &path)?;
//! let read: Tensor = TensorFile::open(&path)?.tensor(&spec)?;
//! assert_eq!(read.bytes, x);
//! # Ok(())
//! # }
//! ```

mod data_type;
pub mod e2m1;
pub mod e4m3;
mod rounding;
mod tensor_file;
mod tensors;

pub use data_type::DataType;
pub use rounding::to_odd;
pub use tensor_file::{TensorFile, TensorFileError, save_tensors, serialize_tensors};
pub use tensors::{Tensor, TensorSpec};
