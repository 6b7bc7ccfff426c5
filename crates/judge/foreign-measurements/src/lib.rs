//! Reads measurements that other benchmark programs exported, and judges them by the judge's own statistics and rules.
//!
//! Data flow: files → [`read`], which finds the format by the content → [`Measurements`] of one side → [`compare`] →
//! [`Compared`]. A format is one module of `formats`.
//!
//! What a verdict can say depends on how the times were measured:
//!
//! - **Several processes a side.** The i-th process of one side is compared with the i-th of the other, and the usual rules
//!   apply. Nothing was alternated, so a change of the machine between the two measurements looks like a difference of the
//!   kernels; the report says so. Processes whose times drift show such a change, and then nothing is decided.
//! - **Both sides in one row**, as in a CSV file with the columns `baseline` and `candidate`: pairs, as in our own trials.
//! - **One process a side.** There is no variance between processes, so the interval covers only calls of these two
//!   processes and the verdict is inconclusive, unless the user declares a bound for the difference between processes.
//!
//! Runs that failed and measurements that are named twice are refused. Times that do not vary, that come in steps of a clock, or that
//! resemble their neighbours decide nothing (`evidence.rs`).
//!
//! ```
//! use std::path::Path;
//!
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("runs.csv");
//! std::fs::write(&file, "baseline,candidate\n1.10,1.00\n1.11,1.01\n1.12,1.02\n1.10,1.01\n")?;
//! let [baseline, candidate] = gauntlet_foreign_measurements::read_both(&file)?;
//! let compared = gauntlet_foreign_measurements::compare(&baseline, &candidate, &Default::default(), None)?;
//! assert!(compared.comparison.assessment.suite.unwrap().lower > 0.05);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compare;
mod error;
mod evidence;
mod formats;
mod measurements;

pub use compare::{Compared, compare};
pub use error::SamplesError;
pub use formats::{read, read_both};
pub use measurements::{Benchmark, Measurements, Order};
