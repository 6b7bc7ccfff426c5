//! The processors on which the sides of a quick comparison run: one for both, if each computes on one at a time.
//!
//! The processors of a machine are not equally fast at every moment, which is no property of a kernel.

use std::time::Instant;

use rand::rng;
use rand::seq::IndexedRandom;

use super::{Pair, on_known};
use crate::comparison::results::Checker;
use crate::comparison::side::Side;
use crate::runner::ExaminationFailure;

/// Processor seconds per second up to which a side counts as one that computes on one processor.
const MAX_SINGLE: f64 = 1.1;

/// The share of a request that its calls take at least, if its use of processors is to tell something about them: two threads use
/// 1.2 processors then.
const LEAST_IN_CALLS: f64 = 0.6;

/// What a side had used of the processors when a request began.
pub(super) struct ProcessorUse {
    began: Instant,
    /// None where the system does not say.
    seconds: Option<f64>,
}

impl ProcessorUse {
    /// Before a request to the side.
    pub fn begin(side: &mut Side) -> Self {
        // Processes that it has started meanwhile compute for it.
        side.count();
        Self {
            began: Instant::now(),
            seconds: side.cpu_seconds(),
        }
    }

    /// After the request: whether the side computed on one processor in its calls, which took this many seconds together.
    pub fn was_of_one(&self, side: &mut Side, in_calls: f64) -> bool {
        let elapsed = self.began.elapsed().as_secs_f64();
        let used = self.seconds.zip(side.cpu_seconds());
        used.is_some_and(|(before, after)| is_of_one(after - before, elapsed, in_calls))
    }
}

fn is_of_one(used: f64, elapsed: f64, in_calls: f64) -> bool {
    used <= MAX_SINGLE * elapsed && in_calls >= LEAST_IN_CALLS * elapsed
}

impl Pair<'_> {
    /// Lets both sides use all processors again, if the case before was measured on one.
    pub(super) fn use_all_processors(&mut self) {
        if std::mem::replace(&mut self.shares_processor, false) {
            let all = processors();
            self.baseline.restrict(&all);
            self.candidate.restrict(&all);
        }
    }

    /// Draws a processor, and lets both sides run on it alone. Each pair draws one for each case.
    pub(super) fn share_one_processor(&mut self, checker: &mut Checker) -> Result<(), ExaminationFailure> {
        let processors = processors();
        let Some(processor) = processors.choose(&mut rng()) else {
            return Ok(());
        };
        self.shares_processor = true;
        for arm in self.in_turn(1).map(|side| side.arm) {
            self.side(arm).restrict(&[*processor]);
            // What it keeps in its caches moves there.
            self.turn(arm, &on_known(1, Vec::new()), &[0], checker)?;
        }
        Ok(())
    }
}

/// The processors on which this program may run; none where the system does not say.
#[cfg(target_os = "linux")]
fn processors() -> Vec<usize> {
    gauntlet_worker::Placement::processors()
}

/// Only Linux lets a program place others.
#[cfg(not(target_os = "linux"))]
fn processors() -> Vec<usize> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_with_two_threads_keeps_both_processors() {
        assert!(is_of_one(0.99, 1.0, 0.9) && is_of_one(1.05, 1.0, 0.9));
        assert!(!is_of_one(1.5, 1.0, 0.9) && !is_of_one(2.0, 1.0, 0.9));
    }

    #[test]
    fn a_request_with_little_time_in_calls_tells_nothing() {
        assert!(!is_of_one(0.9, 1.0, 0.3));
    }
}
