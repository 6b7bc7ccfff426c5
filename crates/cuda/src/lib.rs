//! NVFP4 grouped GEMM on NVIDIA GPUs.
//!
//! The way of a call: a problem and a schedule are [planned](plan) into one variant of a kernel with its tables; the
//! variant's [source](mod@source) is [compiled](compiler) for the device, once, and cached on disk; the plan's launches
//! run on a stream. What a serving engine calls is in [`api`].

pub mod api;
pub mod compiler;
pub mod driver;
mod engine;
mod error;
pub mod nvml;
pub mod packing;
pub mod plan;
mod service;
mod shipped;
pub mod source;
pub mod trace;

pub use api::{
    Buffers, CallPlan, Choice, Layer, LayerShape, Library, Planner, ProductShape, Queue, ServeError,
    ShapePlan, Weights,
};
pub use engine::{CallTimes, Engine, Kernel, Operands, Resources};
pub use error::{BuildError, CompileError, EngineError, RunError, TracingError};
pub use service::CudaService;
pub use shipped::{CheckError, CheckedVariant, Shipped, shipped};
