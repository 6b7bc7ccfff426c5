//! The processors on which the sides of a comparison on a CPU run: one for both, if each computes on one at a time.
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

    /// After the request: whether the side computed on one processor.
    pub fn was_of_one(&self, side: &mut Side) -> bool {
        let elapsed = self.began.elapsed().as_secs_f64();
        let used = self.seconds.zip(side.cpu_seconds());
        used.is_some_and(|(before, after)| is_of_one(after - before, elapsed))
    }
}

fn is_of_one(used: f64, elapsed: f64) -> bool {
    used <= MAX_SINGLE * elapsed
}

impl Pair<'_> {
    /// Lets both sides use all processors again, since the case before may have been measured on one.
    pub(super) fn use_all_processors(&mut self) -> Result<(), ExaminationFailure> {
        let all = processors();
        self.baseline.restrict(&all)?;
        self.candidate.restrict(&all)
    }

    /// Puts both sides on one processor, drawn anew for each pair and case.
    pub(super) fn share_one_processor(&mut self, checker: &mut Checker) -> Result<(), ExaminationFailure> {
        let processors = processors();
        let Some(processor) = processors.choose(&mut rng()) else {
            return Ok(());
        };
        for arm in self.in_turn(1).map(|side| side.arm) {
            self.side(arm).restrict(&[*processor])?;
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
        assert!(is_of_one(0.99, 1.0) && is_of_one(1.05, 1.0));
        assert!(!is_of_one(1.5, 1.0) && !is_of_one(2.0, 1.0));
    }
}
