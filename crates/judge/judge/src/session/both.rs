//! Both kernels of a comparison before one gate that times nothing.

use std::thread;

use super::examine;
use crate::evidence::{Finding, JudgeError, Setting};
use crate::gates::{Examination, Gate};
use crate::observer::Observer;
use crate::runner::side_by_side;

/// Most bytes of a case's inputs with which two kernels are examined at once: both take memory for several sets.
const MAX_AT_ONCE: u64 = 256 << 20;

/// Examines two kernels by a gate that times nothing, side by side where the machine has a processor and memory for each;
/// most of the time goes into starting their processes. The second one is not examined if the first is known to have failed.
///
/// # Errors
/// If the judge itself fails.
pub fn examine_both(
    gate: &dyn Gate,
    [mut one, mut other]: [Examination; 2],
) -> Result<[Option<Finding>; 2], JudgeError> {
    if !fit_at_once(one.setting) {
        let first = examine(gate, &one)?;
        let second = match first.stops() {
            Some(_) => None,
            None => Some(examine(gate, &other)?),
        };
        return Ok([Some(first), second]);
    }
    let observer = one.observer;
    observer.gate_begins("both kernels", gate.name());
    let both = Both(observer);
    (one.observer, other.observer) = (&both, &both);
    let (first, second) = side_by_side(|| examine(gate, &one), || examine(gate, &other));
    Ok([Some(first?), Some(second?)])
}

fn fit_at_once(setting: &Setting) -> bool {
    let cases = setting.correctness_cases.iter().chain(&setting.benchmark_cases);
    let most = cases.map(|case| case.sizes.input_bytes()).max();
    most.is_none_or(|bytes| bytes <= MAX_AT_ONCE)
        && thread::available_parallelism().is_ok_and(|count| count.get() > 1)
}

/// Shows progress of both; the beginnings and ends of either would contradict each other.
struct Both<'a>(&'a dyn Observer);

impl Observer for Both<'_> {
    fn progress(&self, message: &str) {
        self.0.progress(message);
    }

    fn notice(&self, message: &str) {
        self.0.notice(message);
    }
}
