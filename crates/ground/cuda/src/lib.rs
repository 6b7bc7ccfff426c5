//! CUDA from Rust, for kernels of any origin: NVIDIA's [driver], its [compiler] NVRTC, and [NVML](nvml). All three are
//! found and loaded at run time, so that a program that uses this crate also starts on machines without a GPU.
//!
//! ```
//! use gauntlet_cuda::driver::{Device, DriverError};
//!
//! match Device::all() {
//!     Ok(gpus) => gpus.iter().for_each(|gpu| println!("{}: {} bytes", gpu.name, gpu.memory_bytes)),
//!     Err(DriverError::NoDriver) => println!("there is no driver"),
//!     Err(error) => println!("{error}"),
//! }
//! ```

pub mod compiler;
pub mod driver;
mod error;
pub mod nvml;

pub use error::CompileError;
