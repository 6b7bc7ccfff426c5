//! Errors in times, samples and criteria.

use thiserror::Error;

/// Every message names the error, its place and the remedy.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Error {
    /// A time that no clock can have measured.
    #[error(
        "{arm} time {index} of a block of process {process} is {value} s; a time is a positive, finite \
         number of seconds: drop the block or look at the clock"
    )]
    ImpossibleTime {
        /// "baseline" or "candidate".
        arm: &'static str,
        /// Position in the block's list of times of this side.
        index: usize,
        /// The process the block was measured in.
        process: usize,
        /// The offending value, in seconds.
        value: f64,
    },
    /// A block without times on one side.
    #[error("a block of process {process} has no {arm} times; a block needs at least one time of each arm")]
    EmptyArm {
        /// "baseline" or "candidate".
        arm: &'static str,
        /// The process the block was measured in.
        process: usize,
    },
    /// Clocks that cannot be matched with times.
    #[error(
        "a block of process {process} has {times} {arm} times and {clocks} clocks; log the clock of every time \
         of the block, or of none"
    )]
    UnevenClocks {
        /// "baseline" or "candidate".
        arm: &'static str,
        /// The process the block was measured in.
        process: usize,
        /// The number of times of this side.
        times: usize,
        /// How many clocks.
        clocks: usize,
    },
    /// A clock that nothing can run at.
    #[error(
        "{arm} clock {index} of a block of process {process} is {value} MHz; a clock is positive and finite: \
         leave the block's clocks out, or look at where they are read"
    )]
    ImpossibleClock {
        /// "baseline" or "candidate".
        arm: &'static str,
        /// Position in the block's list of clocks of this side.
        index: usize,
        /// The process the block was measured in.
        process: usize,
        /// The offending value, in MHz.
        value: f64,
    },
    /// Too few processes to estimate a spread between them.
    #[error(
        "{found} process(es) measured; an interval needs at least 2, because the spread between processes \
         cannot be seen from within one: measure in more worker processes (4 to 6 are sensible)"
    )]
    TooFewProcesses {
        /// How many there were.
        found: usize,
    },
    /// The problems of a suite were not all measured by the same processes.
    #[error(
        "problem {problem} (counting from 0) was measured in processes {found:?}, the suite's first problem \
         in {expected:?}; every process must measure every problem: drop the processes that did not finish"
    )]
    UnevenProcesses {
        /// Position of the problem in the suite.
        problem: usize,
        /// Processes of the first problem.
        expected: Vec<usize>,
        /// Processes of this problem.
        found: Vec<usize>,
    },
    /// A suite without problems.
    #[error("the suite has no problems; compare on at least one")]
    EmptySuite,
    /// Too few random patterns of signs to have tails.
    #[error("{found} resamples are too few; use at least {least} (10000 is usual)")]
    TooFewResamples {
        /// How many were asked for.
        found: usize,
        /// The least accepted.
        least: usize,
    },
    /// A confidence level outside (0.5, 1).
    #[error("confidence = {value}: must lie between 0.5 and 1, both excluded (0.95 is usual)")]
    Confidence {
        /// The value given.
        value: f64,
    },
    /// A criterion that makes no sense, alone or together with the others.
    #[error("criteria: {name} = {value}: {rule}")]
    Criterion {
        /// The field's name in the file.
        name: &'static str,
        /// The value given.
        value: f64,
        /// What it must satisfy.
        rule: &'static str,
    },
    /// A look that the plan does not have.
    #[error(
        "look {look} of a plan of {looks}: looks count from 1, and only an open-ended plan has more than it names"
    )]
    UnplannedLook {
        /// The look asked for.
        look: usize,
        /// How many were planned.
        looks: usize,
    },
    /// Predicted times with a deviation that gives no interval.
    #[error("predicted interval: {name} = {value}: {rule}")]
    Predicted {
        /// Which figure.
        name: &'static str,
        /// The value given.
        value: f64,
        /// What it must satisfy.
        rule: &'static str,
    },
    /// Recorded times with a declared uncertainty that gives no bounds.
    #[error("declared bounds: {name} = {value}: {rule}")]
    Declared {
        /// Which of the three figures.
        name: &'static str,
        /// The value given.
        value: f64,
        /// What it must satisfy.
        rule: &'static str,
    },
}
