//! Serves the CUDA kernels through the worker protocol.
//!
//! The kernels are a library ([`gauntlet_kernels_cuda`]) that knows neither the protocol nor the model. [`CudaService`] answers a
//! coordinator's requests with them, and [`timeline()`] turns what a traced call recorded into the model's form, so that a
//! measured timeline can be laid beside a simulated one.
//!
//! ```no_run
//! use gauntlet_worker::Service;
//! use gauntlet_host_cuda::CudaService;
//!
//! # fn main() -> Result<(), gauntlet_kernels_cuda::driver::DriverError> {
//! let service = CudaService::new(0)?;
//! println!("{}", service.describe().device);
//! # Ok(())
//! # }
//! ```

mod service;
mod timeline;

pub use service::CudaService;
pub use timeline::timeline;
