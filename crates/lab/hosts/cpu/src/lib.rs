//! Serves CPU kernels through the worker protocol.
//!
//! [`CpuHost`] is the program inside a CPU worker: it builds a kernel, loads copies of its operands, and owns the clock
//! and the loop of timed calls. A kernel only computes. The host knows a kernel through two traits and never names what
//! it computes:
//!
//! - a [`CpuFamily`] builds kernels of its tasks;
//! - a [`CpuKernel`] reads operands from a file, computes an output on the threads of an engine, and writes the output
//!   to a file.
//!
//! A kernel on plain tensors implements only [`TensorKernel`]; [`OnTensors`] does the rest.
//!
//! [`CpuFamilies`] lists the families of a worker. [`CpuFamilies::built_in`] holds those of `gauntlet-kernels-cpu`;
//! [`CpuFamilies::with`] adds one more.
//!
//! The host loops over a concrete kernel type, so a timed call has no dynamic dispatch around it.
//!
//! ```
//! use gauntlet_worker::serve;
//! use gauntlet_host_cpu::{CpuFamilies, CpuHost};
//! use gauntlet_kernels_cpu::EngineOptions;
//!
//! let options = EngineOptions { threads: Some(1), ..EngineOptions::default() };
//! let mut host = CpuHost::new(options, CpuFamilies::built_in())?;
//! let requests = br#"{"id":1,"call":"describe"}"#;
//! let mut replies = Vec::new();
//! serve(&mut host, requests.as_slice(), &mut replies)?;
//! assert!(String::from_utf8(replies)?.contains(r#""worker":"gauntlet cpu"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod built_in;
mod families;
mod host;
mod kernel;
mod session;
mod tensors;

pub use families::CpuFamilies;
pub use host::CpuHost;
pub use kernel::{CpuError, CpuFamily, CpuKernel};
pub use tensors::{OnTensors, TensorKernel};
