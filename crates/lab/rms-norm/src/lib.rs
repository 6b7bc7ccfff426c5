//! Row-wise RMSNorm as a task: `y = x / √(mean(x²) + ε) · weight`, in f32 or bf16.
//!
//! [`RMS_NORM`] is the task: sizes, operands, reference and rules (`sizes`). [`RmsNormKernels`] are its kernels on
//! the CPU. A suite file writes its sizes as `rms-norm = { rows = 2048, columns = 4096, format = "bf16" }`; `format` is
//! the type of `x`, `weight` and `y`: `f32` (the default) or `bf16`.
//!
//! ```
//! use gauntlet_rms_norm::RmsNorm;
//! use gauntlet_tensors::DataType;
//!
//! let sizes = RmsNorm { rows: 2048, columns: 4096, format: DataType::F32 };
//! assert_eq!(sizes.checked()?.task().name(), "rms-norm");
//! assert!(RmsNorm { rows: 0, ..sizes }.checked().is_err());
//! # Ok::<(), String>(())
//! ```

mod kernel;
mod sizes;
mod task;

pub use kernel::{RmsNormKernel, RmsNormKernels};
pub use sizes::{EPSILON, RmsNorm};
pub use task::RMS_NORM;
