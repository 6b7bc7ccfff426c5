//! NVFP4 grouped GEMM and attention on NVIDIA GPUs, from A100 to Hopper, as a library: it depends only on number formats, devices and
//! plain types, and is independent of the worker protocol, models and the judge.
//!
//! A problem and a schedule are [planned](plan) into one variant of a kernel with its tables. The variant's
//! [source](mod@source) is [compiled](mod@compiler) for the device once and cached on disk. The plan's launches run on a
//! stream. Serving engines need only [`api`]; [`Engine`] loads operands and times calls, for measurements.
//!
//! Planning needs no GPU:
//!
//! ```
//! use gauntlet_kernels_cuda::plan::{Target, plan};
//! use gauntlet_kernels_cuda::shipped;
//! use gauntlet_problems::{Form, GroupedGemm, Operation};
//!
//! let h200 = Target::hopper(132);
//! let schedule = &shipped(h200.arch)[0].schedule;
//! let problem = Operation::GroupedGemm(GroupedGemm::new(Form::Plain, [[80, 4096, 7168]]));
//! let planned = plan(&problem, schedule, h200)?;
//! assert!(planned.variant().threads >= 128);
//!
//! let odd = Operation::GroupedGemm(GroupedGemm::new(Form::Plain, [[80, 4096, 7]]));
//! assert!(plan(&odd, schedule, h200).is_err());
//! # Ok::<(), gauntlet_kernels_cuda::plan::PlanError>(())
//! ```

pub mod api;
pub mod compiler;
mod engine;
mod error;
pub mod packing;
pub mod plan;
mod shipped;
pub mod source;
pub mod trace;

pub use api::{
    ArrangeBuffers, AttentionBuffers, AttentionPlan, AttentionScales, AttentionShape, Buffers, CallPlan,
    Choice, CombineBuffers, Ends, Epilogue, ExpertMap, IndexWidth, KeyPlaces, Layer, LayerShape, Library,
    Mixture, MixtureShape, Planner, ProductShape, Queue, RaggedAttentionPlan, RaggedPlaces, RaggedShape,
    RepackBuffers, RepackShape, Routing, ServeError, ShapePlan, Strides, Target, Weights,
};
pub use engine::{CallTimes, Engine, Kernel, Operands, Resources};
pub use error::{BuildError, RunError, TracingError};
pub use shipped::{CheckError, CheckedVariant, Shipped, ShippedKernel, shipped, shipped_kernels};
