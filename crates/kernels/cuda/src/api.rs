//! The interface for serving engines: weights are registered once, each list of token counts is planned once, and a
//! call is only one or two launches.
//!
//! ```no_run
//! use gauntlet_kernels_cuda::api::{Buffers, Choice, Layer, LayerShape, Library, ProductShape, Queue, Weights};
//! use gauntlet_problems::{Form, OutputFormat, TokenFormat};
//!
//! # fn serve(weights: Vec<Weights>, buffers: Buffers) -> Result<(), gauntlet_kernels_cuda::api::ServeError> {
//! let library = Library::new(0)?;
//! let shape = LayerShape {
//!     products: vec![ProductShape { n: 4096, k: 7168 }; 8],
//!     form: Form::Plain,
//!     output: OutputFormat::Bf16,
//!     tokens: TokenFormat::Nvfp4,
//! };
//! let layer = Layer::new(&library, shape, weights, Choice::Automatic)?;
//! let queue = Queue::new(&library)?;
//!
//! let plan = layer.plan(&[80, 176, 128, 72, 64, 248, 96, 160])?;
//! queue.reserve(&plan)?;
//! // SAFETY: the buffers are of the plan's sizes and live until the stream's work is done.
//! unsafe { queue.enqueue(&plan, &buffers) }?;
//! # Ok(())
//! # }
//! ```
//!
//! Attention needs no registration: [`Library::plan_attention`] plans it by its sizes, and
//! [`Queue::enqueue_attention`] puts a call on a stream. Sequences of several lengths, and keys and values in pages, are those of
//! [`Library::plan_ragged_attention`].
//!
//! The routing of a mixture of experts may stay on the device: [`Queue::arrange`] sorts tokens by their experts before a
//! [routed](Queue::enqueue_routed) product, and [`Queue::combine`] adds up the results of each token's experts.
//!
//! **Threads.** A CUDA context is current for a thread, so [`Library`] and everything made from it stay in the thread
//! that made them: they are neither `Send` nor `Sync`. Another thread that serves the same or another GPU makes its
//! own. [`Planner`] and [`ShapePlan`] hold no device state and are both `Send` and `Sync`, so a scheduler thread can
//! plan the next step while the current one runs.
//!
//! **Memory.** Operands stay where their owner put them. Rows of packed values and of scales are contiguous, padded
//! with zero scales to a multiple of [`DEPTH_STEP`](crate::plan::DEPTH_STEP) values; groups of tokens and of results
//! are contiguous without padding. Every buffer begins at a multiple of [`ALIGNMENT`] bytes.

mod attention;
pub mod beforehand;
mod choice;
mod error;
mod layer;
mod library;
mod mixture;
mod planner;
mod queue;
mod ragged;
mod ready;
mod repacking;

pub use crate::plan::attention::ragged::{KeyPlaces, RaggedPlaces, RaggedShape, Strides};
pub use crate::plan::mixture::{ArrangeBuffers, CombineBuffers, ExpertMap, IndexWidth, MixtureShape};
pub use crate::plan::repacking::{RepackBuffers, RepackShape};
pub use crate::plan::swapped::Epilogue;
pub use crate::plan::{Target, Weights};
pub use attention::{AttentionBuffers, AttentionPlan, AttentionScales, AttentionShape};
pub use choice::Choice;
pub use error::ServeError;
pub use layer::{ALIGNMENT, CallPlan, Layer};
pub use library::Library;
pub use mixture::Mixture;
pub use planner::{LayerShape, Planner, ProductShape, Routing, ShapePlan};
pub use queue::{Buffers, Ends, Queue};
pub use ragged::RaggedAttentionPlan;
