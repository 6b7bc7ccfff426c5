//! Tasks: computations, and the rules for correct results.
//!
//! A [`Task`] reads sizes from files ([`Suite`]) and records. [`Sizes`] are one set of them, and answer all questions
//! of the judge: the input and output tensors, operands drawn from a seed, the expected result in f64 ([`TaskSizes`]), and,
//! for a family that comes with kernels, what is known of their parameters ([`Schedules`]). A kernel's result is an [`Output`]; [`ErrorMeasures`] say how
//! far it is from the [`Expected`] one, and [`Rules`] whether it is correct. This crate names no task: each task has
//! its own crate, and a table lists them.
//!
//! ```
//! use gauntlet_task::{Expression, Scope};
//!
//! // Work, launches and arguments are written as expressions of a case's sizes.
//! let flops: Expression = "5 * rows * cols".parse()?;
//! let case = Scope::default().with("rows", 512).with("cols", 1024);
//! assert_eq!(flops.value(&case)?, 2_621_440);
//! # Ok::<(), gauntlet_task::ExpressionError>(())
//! ```

mod cached;
mod coverage;
mod differences;
pub mod dispatch;
mod distance;
mod expected;
mod expression;
mod generate;
mod measures;
pub mod number;
mod output;
mod own;
pub mod product;
mod rules;
mod schedules;
mod sizes;
mod suite;
mod task;
mod unwritten;
mod violation;
pub mod words;

pub use cached::Cached;
pub use coverage::{Coverage, FULL_AT_A_GLANCE, FULL_BELOW};
pub use dispatch::{
    DispatchEntry, DispatchError, DispatchEvidence, DispatchTable, Match, ModelChoice, SpeedupRange,
};
pub use distance::nrmse_between;
pub use expected::{Expected, ExpectedPart, Grid, pieces};
pub use expression::{Expression, ExpressionError, Scope};
pub use generate::{InputKind, normal, outliers, stream};
pub use measures::{ErrorMeasures, PartMeasures, Tolerance, Worst};
pub use output::Output;
pub use own::{OwnParameters, OwnTable, table_entry};
pub use rules::{Limits, Rightness, Rules};
pub use schedules::{DEEP, SMALLEST, Schedules};
pub use sizes::{FasterCall, InputTensors, Inputs, Remark, Sizes, TaskSizes};
pub use suite::{Case, Fault, SpeedOfLight, Suite, SuiteError, WrittenSizes, fault_of_name};
pub use task::Task;
pub use unwritten::{holds, unwritten_between};
pub use violation::{Remedy, Violation};
