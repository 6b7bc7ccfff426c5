//! A worker's side of calls, shared by the hosts of compiled kernels and the loop of Python kernels.
//!
//! [`Turns`] are the coordinator's and the worker's around a call that the coordinator clocks. [`back_to_back`] and
//! [`in_batches`] make the load before it; operands that are copied to a GPU before the load are [sealed](seal), and
//! [opened](opening) after it. A [hold] keeps a call on a GPU back until the host has launched it. A [`Tracer`] tells what
//! a GPU [did](activity) in a call.
//!
//! Only the standard library is used, because the loop of Python kernels is linked with nothing else.
//!
//! ```
//! let mut now = 0.0;
//! let mut load = || {
//!     now += 0.25; // seconds of a call
//!     Ok::<_, String>(())
//! };
//! // A load of no time makes one call.
//! let (calls, _) = gauntlet_calls::back_to_back(0.0, || 0.0, &mut load)?;
//! assert_eq!((calls, now), (1, 0.25));
//!
//! // Sealed operands are noise until they are opened with the same key.
//! let mut operand = *b"weights";
//! gauntlet_calls::seal::apply(7, 4096, 0, &mut operand);
//! assert_ne!(operand, *b"weights");
//! gauntlet_calls::seal::apply(7, 4096, 0, &mut operand);
//! assert_eq!(operand, *b"weights");
//! # Ok::<(), String>(())
//! ```

pub mod activity;
#[cfg(test)]
mod activity_tests;
mod burst;
mod cupti;
pub mod hold;
pub mod opening;
pub mod seal;
mod turns;

pub use burst::{Queue, back_to_back, in_batches};
pub use cupti::Tracer;
pub use turns::Turns;
