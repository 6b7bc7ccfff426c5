//! Grouped GEMM on NVFP4 operands as a task: `C = A·Bᵀ` per group, or `C = silu(A·B1ᵀ) ∘ (A·B2ᵀ)`.
//!
//! [`GEMM`] is the task. A suite file writes its sizes so:
//!
//! ```toml
//! [[benchmark]]
//! name = "two groups"
//! grouped-gemm = { groups = { m = [80, 176], n = 4096, k = 7168 }, form = "swiglu", output = "bf16" }
//! ```
//!
//! A number stands for every group; groups may also be listed one by one, as `[{ m = 80, n = 384, k = 256 }, …]`. `form` is
//! `plain` (the default) or `swiglu`; `output` is `f16` (the default), `bf16` or `f32`.

mod constraints;
mod costs;
mod family;
mod generate;
mod oracle;
mod program;
mod written;

pub use costs::problem;
pub use family::{GEMM, GemmFamily};
pub use generate::generate;
pub use oracle::{grid, grids};
