//! What was seen of one case in one pair of processes, and what of it is the same for both sides.
//!
//! A slot takes its calls and three things more. Messages, and whatever else lies between calls, take both sides as long,
//! since both make as many calls. The first call after a pause is slower than those that follow by a time of its own:
//! threads and device wake up, caches hold what the other side left there. Calls scatter, most of them upward, by a share
//! of their time. All three are measured on the baseline, in the same slots; a candidate whose calls are a twentieth as
//! long would otherwise be held for a liar by what no call has a part in.

use gauntlet_stats::{Arm, Block, median};

use crate::comparison::pair::Slot;
use crate::comparison::side::{CpuUse, Effort};
use crate::evidence::Around;

/// Messages around a slot take less than this, in seconds: a fixed part, and a part for each call's time in it.
const MESSAGE: f64 = 2e-3;
const MESSAGE_A_CALL: f64 = 4e-6;

/// What loading and handing out take the baseline may take the candidate and a quarter more.
const UNTIMED_FACTOR: f64 = 1.25;

/// What a lone call costs the baseline it may cost the candidate and a tenth more: kernels differ in what they find cold after a
/// pause. On an H200 it is 0.16 to 0.23 ms, and an honest kernel of 19 µs was 4 µs beyond its baseline's.
const LONE_FACTOR: f64 = 1.1;

/// Where what is constant comes to as much as the calls, the difference says nothing of them, and may be less than
/// nothing: it counts for this part of them at least.
const LEAST: f64 = 0.1;

/// Who says how long a call took.
#[derive(Debug, Clone, Copy)]
pub enum Witness {
    /// The sides themselves.
    Reports,
    /// The coordinator, by the time of the exchange.
    Coordinator,
}

/// What was seen of one case in one pair of processes.
#[derive(Debug, Clone)]
pub struct CaseConduct {
    pub(super) process: usize,
    /// Slots side by side: seconds a call by the coordinator's clock.
    seen: Vec<Block>,
    /// The same over what the reports make expected.
    pub(super) clock: Vec<Block>,
    /// Slots side by side: seconds of the exchange that no report accounts for, the candidate's less the baseline's, as a
    /// share of what the candidate reports.
    pub(super) unaccounted: Vec<f64>,
    /// First calls of both sides on operands not seen before.
    pub(super) first: Vec<[Slot; 2]>,
    /// The median later call of each side.
    later: Option<[f64; 2]>,
    /// What slots take beside calls.
    around: Option<Around>,
    /// One of the baseline's calls, in seconds of work or of time.
    call: f64,
    /// Work of both sides in loading, each time.
    pub(super) loading: Vec<[f64; 2]>,
    /// The same in handing out the result.
    pub(super) handing_out: Vec<[f64; 2]>,
    idle: Option<[f64; 2]>,
}

impl CaseConduct {
    /// Nothing seen yet.
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

    /// Notes what loading took each side.
    pub fn note_loading(&mut self, efforts: &[(Arm, Effort)]) {
        self.loading
            .extend(both(efforts).map(|sides| sides.map(Effort::work)));
    }

    /// Notes what handing out the result took each side.
    pub fn note_handing_out(&mut self, baseline: Effort, candidate: Effort) {
        self.handing_out.push([baseline, candidate].map(Effort::work));
    }

    /// Notes the slots of both sides, in the order taken.
    pub fn note_slots(&mut self, slots: &[(Arm, Slot)]) {
        let [baseline, candidate] = [Arm::Baseline, Arm::Candidate].map(|arm| of(slots, arm));
        let later = [&baseline, &candidate].map(|slots| median_of(slots, |slot| slot.median));
        self.later = Some(later);
        // By whichever says more: a call that waits for a device takes next to no CPU time.
        self.call = median_of(&baseline, |slot| {
            slot.effort.work().max(slot.effort.exchange) / slot.calls as f64
        });
        let around = Around::of(&baseline);
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
        // The other way setting: the longer the candidate's slots against its reports, the more these flatter it.
        self.clock = side_by_side(&|slot| 1.0 / around.excess(slot, later[0]));
        self.around = Some(around);
        // Both make as many calls, so that messages weigh the same.
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

    /// Slots side by side: seconds a call by the coordinator's clock.
    pub fn seen(&self) -> &[Block] {
        &self.seen
    }

    /// Slots side by side: what the reports make of a slot over what the coordinator's clock does.
    pub fn clock(&self) -> &[Block] {
        &self.clock
    }

    /// Slots side by side: what the candidate leaves out of its reports beyond what the baseline does, as a share of them.
    pub fn unaccounted(&self) -> &[f64] {
        &self.unaccounted
    }

    /// What slots take beside calls, by the baseline's.
    pub fn around(&self) -> Option<Around> {
        self.around
    }

    /// CPU time of both sides while nothing was asked of them, as a share of that when something was.
    pub fn idle(&self) -> Option<[f64; 2]> {
        self.idle
    }

    /// Work in loading beyond what the baseline's allows, in the baseline's calls; none where no work was noted.
    pub fn loading(&self) -> f64 {
        self.untimed(&self.loading)
    }

    /// The same of handing out the result.
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

    /// The candidate's first call on operands not seen before against its later ones; what a lone call costs the baseline,
    /// as a time and a little more or as a share, whichever is more, is no sign of memory.
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
        // Less than nothing where the baseline was slower afterwards.
        let alone = baseline_first - baseline;
        let less_time = (candidate_first - alone.max(LONE_FACTOR * alone)) / candidate;
        let less_share = candidate_first / candidate * (baseline / baseline_first);
        let over = less_time.min(less_share).max(LEAST);
        Some(Block::new(self.process, vec![over], vec![1.0]))
    }
}

impl Around {
    /// Of several pairs, each figure's median; none of none.
    pub fn over(pairs: &[Self]) -> Option<Self> {
        let of = |figure: fn(&Self) -> f64| median(&pairs.iter().map(figure).collect::<Vec<_>>());
        (!pairs.is_empty()).then(|| Self {
            messages: of(|one| one.messages),
            begin: of(|one| one.begin),
            scatter: of(|one| one.scatter),
        })
    }

    fn of(baseline: &[Slot]) -> Self {
        let others = |slot: &Slot| (slot.sum - slot.first) / ((slot.calls - 1) as f64 * slot.median);
        Self {
            messages: bounded(
                median_of(baseline, |slot| slot.effort.exchange - slot.sum),
                baseline.first().map_or(0, |slot| slot.calls),
            ),
            begin: median_of(baseline, |slot| slot.first - slot.median).max(0.0),
            scatter: median_of(baseline, |slot| if slot.calls > 1 { others(slot) } else { 1.0 }),
        }
    }

    /// What the coordinator's clock saw of a slot over what its median call makes expected. Whatever makes the baseline's
    /// first call longer may make that of a slower side longer in proportion: clocks that have fallen do.
    fn excess(&self, slot: &Slot, baseline: f64) -> f64 {
        let begin = self.begin * (slot.median / baseline).max(1.0);
        let expected = (self.scatter * slot.calls as f64 * slot.median + begin).max(LEAST * slot.sum);
        (slot.effort.exchange - self.messages).max(LEAST * slot.sum) / expected
    }
}

/// Messages that the baseline's slots of so many calls tell of. Bounded, so that a baseline that reports too little cannot
/// hide it there.
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
