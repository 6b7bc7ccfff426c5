//! Speed-ups as percentages, written as the command writes them.

use gauntlet_stats::{Interval, Origin, percent_interval, percent_span, speedup_fraction};
use pyo3::prelude::*;

fn interval([estimate, lower, upper]: [f64; 3]) -> Interval {
    // Where the bounds come from is not shown.
    let origin = Origin::Declared;
    Interval {
        estimate,
        lower,
        upper,
        origin,
    }
}

/// A log speed-up: `+3.1 %`.
#[pyfunction]
pub fn percent(log: f64) -> String {
    gauntlet_stats::percent(speedup_fraction(log))
}

/// Estimate, lower and upper bound of a log speed-up: `+3.1 % [+2.2 … +4.0]`.
#[pyfunction]
#[pyo3(name = "percent_interval")]
pub fn signed(logs: [f64; 3]) -> String {
    percent_interval(&interval(logs))
}

/// The same without signs, for an effect whose direction is known: `3.1 % [2.2 … 4.0]`.
#[pyfunction]
#[pyo3(name = "percent_span")]
pub fn span(logs: [f64; 3]) -> String {
    percent_span(&interval(logs))
}
