//! Whether a gain of device time shows in whole calls.
//!
//! A call on a GPU is clocked on the device, behind a hold that gives the host time to launch everything. What a host computes in that
//! time, from operands that lie there already, is in no time of the device, and the coordinator's clock sees the hold and not the host. So
//! some calls of each pair of processes are made without a hold and clocked as a whole, by the coordinator: from the call of the function
//! until its results are there. What a call takes less on the device, a whole call takes less too.
//!
//! Hosts differ, and each process's by some microseconds, so the two savings are compared over pairs. Both are shares of the baseline's
//! time on the device: a saving that is lost in the scatter of hosts has no logarithm. Kernels without code in the process that clocks them
//! can compute nothing there, so candidates of that kind are not asked.

use gauntlet_stats::{Arm, Decision, least_mean, median, typical_call};

use super::CaseConduct;
use crate::comparison::slot::Slot;
use crate::evidence::Suspicion;

/// Confidence of each bound.
const CONFIDENCE: f64 = 0.99;

/// Whole calls may not surely show less than this share of the gain. The rest may be owed to hosts: one launches more slowly than the other.
const SHOWN: f64 = 0.5;

impl CaseConduct {
    /// Notes a request of whole calls to each side.
    pub fn note_whole_calls(&mut self, slots: &[(Arm, Slot); 2]) {
        let of = |wanted: Arm| {
            slots
                .iter()
                .find(|(arm, _)| *arm == wanted)
                .map(|(_, slot)| whole(slot))
        };
        self.whole_calls
            .extend(of(Arm::Baseline).zip(of(Arm::Candidate)).map(<[f64; 2]>::from));
    }

    /// What a call takes less on the device, and what a whole call takes less; both as shares of the baseline's time on the device. None
    /// without whole calls.
    fn savings(&self) -> Option<[f64; 2]> {
        let [baseline, candidate] = self.work.shares.typical;
        let less: Vec<f64> = self.whole_calls.iter().map(|[one, other]| one - other).collect();
        (!less.is_empty()).then(|| [1.0 - candidate / baseline, median(&less) / baseline])
    }
}

/// Seconds of a whole call by the coordinator's clock, with messages, which both sides have.
fn whole(slot: &Slot) -> f64 {
    if slot.is_stepped() {
        typical_call(&slot.seen)
    } else {
        slot.elapsed() / slot.calls() as f64
    }
}

/// The doubt about a gain that whole calls contradict: by their whole interval they do not show even half of it. A gain that they are too
/// scattered to tell stays what it is. None without a gain, with fewer than two pairs, or without whole calls in each of them.
pub fn contradicted(cases: &[Vec<CaseConduct>], decision: Decision) -> Option<Suspicion> {
    if !matches!(decision, Decision::Adopt | Decision::Marginal) {
        return None;
    }
    let pairs = cases.iter().map(Vec::len).min()?;
    let of_pair = |pair: usize| -> Option<[f64; 2]> {
        let each: Vec<[f64; 2]> = cases
            .iter()
            .map(|seen| seen[pair].savings())
            .collect::<Option<_>>()?;
        Some([0, 1].map(|which: usize| mean(each.iter().map(|both| both[which]))))
    };
    let savings: Vec<[f64; 2]> = (0..pairs).map(of_pair).collect::<Option<_>>()?;
    let own = mean(savings.iter().map(|both| both[0]));
    let seen: Vec<f64> = savings.iter().map(|both| both[1]).collect();
    let lower = least_mean(&seen, CONFIDENCE)?;
    let upper = 2.0 * mean(seen.iter().copied()) - lower;
    (upper < SHOWN * own).then_some(Suspicion::NotInCalls { own, lower, upper })
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len();
    values.sum::<f64>() / count as f64
}
