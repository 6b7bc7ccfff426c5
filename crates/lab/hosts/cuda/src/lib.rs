//! Serves the CUDA kernels through the worker protocol.
//!
//! The kernels are a library ([`gauntlet_kernels_cuda`]) that is independent of the protocol and of the model.
//! [`CudaService`] answers a coordinator's requests with them, and [`timeline()`] converts the trace of a call into the
//! model's form, so that a measured timeline can be compared with a simulated one.
//!
//! ```no_run
//! use gauntlet_worker::Service;
//! use gauntlet_host_cuda::CudaService;
//!
//! # fn main() -> Result<(), gauntlet_cuda::driver::DriverError> {
//! let service = CudaService::new(0)?;
//! println!("{}", service.describe().device);
//! # Ok(())
//! # }
//! ```

mod service;
mod timeline;

pub use service::CudaService;
pub use timeline::timeline;
