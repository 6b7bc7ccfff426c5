//! Observations of one case in one pair of processes, and the costs that are the same for both sides.
//!
//! A slot takes the time of its calls and three further costs. Messages, and anything else between calls, take both
//! sides equally long, since both make the same number of calls. The first call after a pause is slower than the
//! following ones by its own amount: threads and the device wake up, and caches hold the other side's data. Calls
//! scatter, mostly upward, by a share of their time. All three are measured on the baseline, in the same slots.
//! Otherwise a candidate whose calls are a twentieth as long would be called dishonest because of time that is not part
//! of any call.

use gauntlet_stats::{Arm, Block, median};

use crate::comparison::pair::Slot;
use crate::comparison::side::{CpuUse, Effort};
use crate::evidence::Around;

/// Upper bound on the message time around a slot, in seconds: a fixed part, and a part for each reported call time.
const MESSAGE: f64 = 2e-3;
const MESSAGE_A_CALL: f64 = 4e-6;

/// The candidate may spend this factor of the baseline's work on loading, and on handing out the result.
const UNTIMED_FACTOR: f64 = 1.25;

/// The extra cost of a lone call may be this factor of the baseline's: kernels differ in what they find cold after a
/// pause. On an H200 the extra cost is 0.16 to 0.23 ms, and an honest kernel of 19 µs exceeded its baseline's by 4 µs.
const LONE_FACTOR: f64 = 1.1;

/// When the constant costs are as large as the calls, the difference carries no information and may be negative. It is
/// therefore clamped to at least this share of the calls.
const LEAST: f64 = 0.1;

/// Which clock measured a call.
#[derive(Debug, Clone, Copy)]
pub enum Witness {
    /// The worker's own report.
    Reports,
    /// The coordinator, by the duration of the exchange.
    Coordinator,
}

/// Observations of one case in one pair of processes.
#[derive(Debug, Clone)]
pub struct CaseConduct {
    pub(super) process: usize,
    /// Per slot, both sides: seconds per call by the coordinator's clock.
    seen: Vec<Block>,
    /// Per slot, both sides: the ratio of the expected time, from the reports, to the coordinator's time.
    pub(super) clock: Vec<Block>,
    /// Per slot: seconds of the exchange that no report accounts for, candidate minus baseline, as a share of the
    /// candidate's reported time.
    pub(super) unaccounted: Vec<f64>,
    /// First calls of both sides on operands not seen before.
    pub(super) first: Vec<[Slot; 2]>,
    /// The median later call of each side.
    later: Option<[f64; 2]>,
    /// Costs of a slot in addition to its calls.
    around: Option<Around>,
    /// Duration of one baseline call, in seconds: the larger of work and elapsed time.
    call: f64,
    /// Work of both sides for each load.
    pub(super) loading: Vec<[f64; 2]>,
    /// Work of both sides for each handing out of the result.
    pub(super) handing_out: Vec<[f64; 2]>,
    idle: Option<[f64; 2]>,
}

impl CaseConduct {
    /// An empty observation.
    pub fn new(process: usize) -> Self {
        Self {
            process,
            seen: Vec::new(),
            clock: Vec::new(),
            unaccounted: Vec::new(),
            first: Vec::new(),
            later: None,
            around: None,
            call: 0.0,
            loading: Vec::new(),
            handing_out: Vec::new(),
            idle: None,
        }
    }

    /// Notes the first call of each side on operands not seen before.
    pub fn note_first_calls(&mut self, calls: &[(Arm, Slot)]) {
        self.first.extend(both(calls));
    }

    /// Notes the work of both sides for a load.
    pub fn note_loading(&mut self, efforts: &[(Arm, Effort)]) {
        self.loading
            .extend(both(efforts).map(|sides| sides.map(Effort::work)));
    }

    /// Notes the work of both sides for handing out the result.
    pub fn note_handing_out(&mut self, baseline: Effort, candidate: Effort) {
        self.handing_out.push([baseline, candidate].map(Effort::work));
    }

    /// Notes the slots of both sides, in the order taken.
    pub fn note_slots(&mut self, slots: &[(Arm, Slot)]) {
        let [baseline, candidate] = [Arm::Baseline, Arm::Candidate].map(|arm| of(slots, arm));
        let later = [&baseline, &candidate].map(|slots| median_of(slots, |slot| slot.median));
        self.later = Some(later);
        // Take the larger figure: a call that waits for a device uses almost no CPU time.
        self.call = median_of(&baseline, |slot| {
            slot.effort.work().max(slot.effort.exchange) / slot.calls as f64
        });
        // What both report for the same operands and results, so neither gains by what it reports.
        let between =
            median_of(&baseline, |slot| slot.between).min(median_of(&candidate, |slot| slot.between));
        let around = Around::of(&baseline, between);
        let side_by_side = |figure: &dyn Fn(&Slot) -> f64| {
            let pairs = baseline.iter().zip(&candidate);
            pairs
                .map(|(baseline, candidate)| {
                    Block::new(self.process, vec![figure(baseline)], vec![figure(candidate)])
                })
                .collect()
        };
        self.seen =
            side_by_side(&|slot| (slot.effort.exchange - around.messages).max(slot.sum) / slot.calls as f64);
        // Inverted: the longer the candidate's slots are relative to its reports, the more the reports flatter it.
        self.clock = side_by_side(&|slot| 1.0 / around.excess(slot, later[0]));
        self.around = Some(around);
        // Both sides make the same number of calls, so message times are comparable.
        let left_out = |slot: &Slot| slot.effort.exchange - slot.sum;
        self.unaccounted = baseline
            .iter()
            .zip(&candidate)
            .map(|(baseline, candidate)| (left_out(candidate) - left_out(baseline)) / candidate.sum)
            .collect();
    }

    /// Notes the CPU time of both sides.
    pub fn note_cpu(&mut self, baseline: CpuUse, candidate: CpuUse) {
        let asked = [baseline.asked, candidate.asked];
        if asked.iter().all(|seconds| *seconds > 0.0) {
            self.idle = Some([baseline.idle / baseline.asked, candidate.idle / candidate.asked]);
        }
    }

    /// Per slot, both sides: seconds per call by the coordinator's clock.
    pub fn seen(&self) -> &[Block] {
        &self.seen
    }

    /// Per slot, both sides: the ratio of the expected time, from the reports, to the coordinator's time.
    pub fn clock(&self) -> &[Block] {
        &self.clock
    }

    /// Per slot: the time that the candidate's reports omit beyond the baseline's, as a share of the candidate's
    /// reports.
    pub fn unaccounted(&self) -> &[f64] {
        &self.unaccounted
    }

    /// Costs of a slot in addition to its calls, measured on the baseline.
    pub fn around(&self) -> Option<Around> {
        self.around
    }

    /// CPU time of both sides between requests, as a share of the CPU time during requests.
    pub fn idle(&self) -> Option<[f64; 2]> {
        self.idle
    }

    /// Loading work beyond the allowance derived from the baseline, in baseline calls; 0 if no work was noted.
    pub fn loading(&self) -> f64 {
        self.untimed(&self.loading)
    }

    /// The same for handing out the result.
    pub fn handing_out(&self) -> f64 {
        self.untimed(&self.handing_out)
    }

    fn untimed(&self, work: &[[f64; 2]]) -> f64 {
        if work.is_empty() {
            return 0.0;
        }
        let beyond: Vec<f64> = work
            .iter()
            .map(|[baseline, candidate]| (candidate - UNTIMED_FACTOR * baseline) / self.call)
            .collect();
        median(&beyond)
    }

    /// The candidate's first call on unseen operands relative to its later calls. The baseline's extra cost for a lone
    /// call is subtracted first, as a time plus a margin or as a share, whichever is larger: that cost is no sign of
    /// memory.
    pub fn memory(&self, witness: Witness) -> Option<Block> {
        let [baseline, candidate] = self.later.filter(|_| !self.first.is_empty())?;
        let of_first =
            |figure: &dyn Fn(&[Slot; 2]) -> f64| median(&self.first.iter().map(figure).collect::<Vec<_>>());
        let baseline_first = of_first(&|[baseline, _]| baseline.median);
        let candidate_first = match witness {
            Witness::Reports => of_first(&|[_, candidate]| candidate.median),
            Witness::Coordinator => {
                let messages = of_first(&|[baseline, _]| baseline.effort.exchange - baseline.sum);
                of_first(&|[_, candidate]| candidate.effort.exchange) - bounded(messages, 1)
            }
        };
        // Negative where the baseline's later calls were slower than its first.
        let alone = baseline_first - baseline;
        let less_time = (candidate_first - alone.max(LONE_FACTOR * alone)) / candidate;
        let less_share = candidate_first / candidate * (baseline / baseline_first);
        let over = less_time.min(less_share).max(LEAST);
        Some(Block::new(self.process, vec![over], vec![1.0]))
    }
}

impl Around {
    /// The median of each figure over several pairs; none for an empty slice.
    pub fn over(pairs: &[Self]) -> Option<Self> {
        let of = |figure: fn(&Self) -> f64| median(&pairs.iter().map(figure).collect::<Vec<_>>());
        (!pairs.is_empty()).then(|| Self {
            messages: of(|one| one.messages),
            begin: of(|one| one.begin),
            scatter: of(|one| one.scatter),
        })
    }

    /// `between` is time for operands and results that is in the slots of both sides.
    fn of(baseline: &[Slot], between: f64) -> Self {
        let others = |slot: &Slot| (slot.sum - slot.first) / ((slot.calls - 1) as f64 * slot.median);
        Self {
            messages: between
                + bounded(
                    median_of(baseline, |slot| slot.effort.exchange - slot.sum) - between,
                    baseline.first().map_or(0, |slot| slot.calls),
                ),
            begin: median_of(baseline, |slot| slot.first - slot.median).max(0.0),
            scatter: median_of(baseline, |slot| if slot.calls > 1 { others(slot) } else { 1.0 }),
        }
    }

    /// The coordinator's time for a slot over the time expected from its median call. Anything that lengthens the
    /// baseline's first call may lengthen a slower side's first call in proportion, for example a clock that has
    /// dropped.
    fn excess(&self, slot: &Slot, baseline: f64) -> f64 {
        let begin = self.begin * (slot.median / baseline).max(1.0);
        let expected = (self.scatter * slot.calls as f64 * slot.median + begin).max(LEAST * slot.sum);
        (slot.effort.exchange - self.messages).max(LEAST * slot.sum) / expected
    }
}

/// Message time that the baseline's slots show for this many calls. Bounded, so that a baseline that under-reports its
/// calls cannot hide the difference as message time.
fn bounded(messages: f64, calls: usize) -> f64 {
    messages.clamp(0.0, MESSAGE + MESSAGE_A_CALL * calls as f64)
}

fn median_of(slots: &[Slot], figure: impl Fn(&Slot) -> f64) -> f64 {
    median(&slots.iter().map(figure).collect::<Vec<_>>())
}

fn of<T: Copy>(both: &[(Arm, T)], wanted: Arm) -> Vec<T> {
    let own = both.iter().filter(|(arm, _)| *arm == wanted);
    own.map(|(_, one)| *one).collect()
}

/// The first of the baseline's and of the candidate's.
fn both<T: Copy>(both: &[(Arm, T)]) -> Option<[T; 2]> {
    Some([
        *of(both, Arm::Baseline).first()?,
        *of(both, Arm::Candidate).first()?,
    ])
}
