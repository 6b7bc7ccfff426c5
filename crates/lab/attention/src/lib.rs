//! Attention on quantised operands as a task: `softmax(Q·Kᵀ / √d)·V`.
//!
//! [`ATTENTION`] is the task. A suite file writes its sizes so:
//!
//! ```toml
//! [[benchmark]]
//! name = "causal"
//! attention = { batch = 1, heads = 8, length = 512, head-size = 64, format = "e4m3", causal = true }
//! ```
//!
//! `sequences = [{ queries = 1, keys = 300 }, …]` takes the place of `batch` and `length` where lengths differ. `format` is
//! `e4m3`, `int8`, `f16` or `bf16`; `kv-heads` defaults to `heads`; `scaling` is `per-tensor`, `per-head` (the default) or
//! `per-block`: which values of a format with scales share one. `output` is `f16` (the default), `bf16` or `f32`.

mod constraints;
mod costs;
mod family;
mod generate;
mod oracle;
mod program;
mod written;

pub use costs::problem;
pub use family::{ATTENTION, AttentionFamily};
pub use generate::generate;
pub use oracle::grids;
