//! Is the candidate faster than the baseline, and how sure are we? Pure functions, no I/O, the same answer
//! for the same seed.
//!
//! The data flow: [`Block`]s of paired times become a [`Sample`] of log speed-ups by process; [`Effects`] makes of
//! the samples of a suite an [`Interval`] of the typical pair of processes; [`compare`] judges the interval by
//! [`Criteria`] and checks the floor on each problem. The verdict comes with a second opinion ([`SignFlip`]), the same
//! comparison in cycles ([`ClockCheck`]), the number of processes that it would have needed ([`needed_processes`],
//! [`Aim`]), and whether the machine was settled ([`Stability`]).
//!
//! Internally, an effect is always `ln(baseline time / candidate time)`: positive is faster, swapping the sides negates
//! it, and means over problems are geometric means of speed-ups. In criteria, claims and printed figures it is a
//! fraction of speed-up: 0.02 is 2 % faster, ln 1.02 internally.
//!
//! ```
//! use gauntlet_stats::{Block, Criteria, Decision, Sample, compare};
//!
//! // Six pairs of processes: microseconds of calls of the baseline, and of the candidate.
//! let blocks: Vec<Block> = (0..6)
//!     .map(|process| {
//!         let noise = 0.1 * f64::from(process % 3);
//!         Block::new(process as usize, vec![70.0 + noise, 70.4], vec![60.1, 60.0 + noise])
//!     })
//!     .collect();
//! let problems = [("case-1".to_owned(), Sample::from_blocks(&blocks)?)];
//! let (look, seed) = (1, 1);
//! let assessment = compare(&problems, &Criteria::default(), look, seed)?;
//! assert_eq!(assessment.decision, Decision::Adopt);
//! let interval = assessment.suite.unwrap();
//! assert!(interval.lower_fraction() > 0.15 && interval.upper_fraction() < 0.18);
//! # Ok::<(), gauntlet_stats::Error>(())
//! ```

mod assessment;
mod belief;
mod block;
mod clock;
mod comparison;
mod criteria;
mod dependence;
mod design;
mod effects;
mod error;
mod floor;
mod holm;
mod interval;
mod looks;
mod percent;
mod planning;
mod predicted;
mod prediction;
mod ranks;
mod rivals;
mod scores;
mod sign_flip;
mod signed_rank;
mod slow_pairs;
mod stability;
mod student;
mod summary;
mod trend;
mod verdict;
mod warm_up;

pub use assessment::{Assessment, Ground, ProblemFinding};
pub use belief::{Belief, Gain};
pub use block::{Block, Sample};
pub use clock::{ClockCheck, ClockFinding};
pub use comparison::{Calls, compare, compare_calls, compare_declared, compare_predicted, without_interval};
pub use criteria::Criteria;
pub use dependence::Dependence;
pub use design::{Arm, BlockOrder, block_orders};
pub use effects::{Effect, Effects};
pub use error::Error;
pub use floor::FloorFinding;
pub use holm::holm_adjusted;
pub use interval::{DeclaredPair, Interval, Origin, declared_interval, declared_suite};
pub use looks::{LookNumber, LookPlan, look_after};
pub use percent::{percent, percent_interval, percent_span, sign};
pub use planning::{Aim, Spread, needed_processes, power, required_blocks, required_processes};
pub use predicted::{PredictedPair, predicted_interval, predicted_suite};
pub use prediction::{Fit, Predicted, rank_correlation, regret};
pub use rivals::{mann_whitney_p_value, welch_p_value};
pub use scores::{
    BrierParts, LogQuantiles, brier_parts, brier_score, logarithmic_score, pinball_loss, shrunk_mean, skill,
};
pub use sign_flip::{Resampling, SignFlip};
pub use slow_pairs::SlowPairs;
pub use stability::{Instability, STABILITY_LEVEL, Stability};
pub use student::least_mean;
pub use summary::{median, quantile, typical_call};
pub use trend::Trend;
pub use verdict::{Decision, claim_refuted, decide, smallest_visible_effect};
pub use warm_up::WarmUp;

/// A fraction of speed-up (0.02 = 2 % faster) as a log speed-up, `ln(1 + fraction)`.
pub fn log_speedup(fraction: f64) -> f64 {
    fraction.ln_1p()
}

/// A log speed-up as a fraction of speed-up, `exp(log) − 1`.
pub fn speedup_fraction(log: f64) -> f64 {
    log.exp_m1()
}
