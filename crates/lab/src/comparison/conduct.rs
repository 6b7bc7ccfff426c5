//! Can the times be believed? A worker takes its own times, so what it does around them is watched: by the
//! coordinator's clock, by the CPU time it uses, and by what it does with operands it has not seen before.

use gauntlet_stats::{
    Arm, Assessment, Block, Bootstrap, Criteria, Decision, Interval, Resampling, Sample, median,
};
use serde::{Deserialize, Serialize};

use super::contender::{CpuUse, Effort};
use super::pair::Slot;
use super::suspicion::Suspicion;
use crate::error::LabError;

/// A candidate's own reports may flatter it by this much log speed-up against the coordinator's clock, if the difference
/// is sure at all: as much as is practically nothing.
const CLOCK_SLACK: f64 = 0.01;

/// Its later calls on the same operands may surely be this much faster than its first, in log speed-up, when the
/// control's are not. First calls are lone calls on cold pages, hence the room; what remembers results gains more.
const MEMORY_SLACK: f64 = 0.05;

/// CPU time used while nothing was asked, as a share of that used when something was. Honest workers were at 0.0001;
/// threads that spin on for a while are over it, honest or not, and disturb the other side.
const IDLE_SHARE: f64 = 0.01;

/// Loading may take as much work as the control's and a quarter more, and this many of the control's calls besides; so
/// may handing out the result. A slow loader and one that computes look alike from outside: on problems so small that
/// loading outweighs a call, neither is believed.
const UNTIMED_CALLS: f64 = 0.35;
const UNTIMED_FACTOR: f64 = 1.25;

/// Messages around a slot take less than this, in seconds: a fixed part, and a part for each call's time in it.
const MESSAGE: f64 = 2e-3;
const MESSAGE_A_CALL: f64 = 4e-6;

/// Confidence that what is seen of clocks is no accident, shared by the suite and its cases.
const CONFIDENCE: f64 = 0.99;

/// The same of memory, whose slack leaves room for accidents besides.
const CONFIDENCE_OF_MEMORY: f64 = 0.95;

const RESAMPLING: Resampling = Resampling {
    resamples: 1000,
    seed: 0,
};

/// How the two sides behaved around their times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Conduct {
    /// The candidate's speed-up by the coordinator's clock alone, which sees the messages too.
    pub by_coordinator: Option<Interval>,
    /// The candidate's speed-up by its and the control's reports over that by the coordinator's clock, as a log
    /// speed-up: 0 when both tell the same.
    pub own_clock: Option<Interval>,
    /// The candidate's speed-up in later calls over that in the first call on operands not seen before.
    pub memory: Option<Interval>,
    /// CPU time that the control used while nothing was asked of it, as a share of that used when something was; the
    /// median over pairs of the worst case. None where the system does not tell.
    pub idle_control: Option<f64>,
    /// The same of the candidate.
    pub idle_candidate: Option<f64>,
    /// By how many of the control's calls the candidate's loading took more work than the control's and a quarter; the
    /// median over pairs of the worst case.
    pub loading: Option<f64>,
    /// The same of handing out the result.
    pub handing_out: Option<f64>,
    /// Why the times cannot be believed; none when they can.
    pub suspicion: Option<Suspicion>,
}

/// What was seen of one case in one pair of processes.
#[derive(Debug, Clone)]
pub struct CaseConduct {
    process: usize,
    /// Slots side by side: seconds a call by the coordinator's clock.
    seen: Vec<Block>,
    /// The same over seconds as reported.
    clock: Vec<Block>,
    /// First calls of both sides on operands not seen before.
    first: Vec<[f64; 2]>,
    /// The median later call of each side.
    later: Option<[f64; 2]>,
    /// One of the control's calls, in seconds of work or of time.
    call: f64,
    /// Work of both sides in loading, each time.
    loading: Vec<[f64; 2]>,
    /// The same in handing out the result.
    handing_out: Vec<[f64; 2]>,
    idle: Option<[f64; 2]>,
}

impl CaseConduct {
    /// Nothing seen yet.
    pub fn new(process: usize) -> Self {
        Self {
            process,
            seen: Vec::new(),
            clock: Vec::new(),
            first: Vec::new(),
            later: None,
            call: 0.0,
            loading: Vec::new(),
            handing_out: Vec::new(),
            idle: None,
        }
    }

    /// Notes the first call of each side on operands not seen before.
    pub fn note_first_calls(&mut self, calls: &[(Arm, Slot)]) {
        let messages = messages(&of(calls, Arm::Baseline));
        // By whichever clock says more: a call's own report is not believed before it is confirmed.
        let first = |slot: Slot| slot.median.max(slot.effort.exchange - messages);
        self.first.extend(both(calls).map(|sides| sides.map(first)));
    }

    /// Notes what loading took each side.
    pub fn note_loading(&mut self, efforts: &[(Arm, Effort)]) {
        self.loading
            .extend(both(efforts).map(|sides| sides.map(Effort::work)));
    }

    /// Notes what handing out the result took each side.
    pub fn note_handing_out(&mut self, control: Effort, candidate: Effort) {
        self.handing_out.push([control, candidate].map(Effort::work));
    }

    /// Notes the slots of both sides, in the order taken.
    pub fn note_slots(&mut self, slots: &[(Arm, Slot)]) {
        let [control, candidate] = [Arm::Baseline, Arm::Candidate].map(|arm| of(slots, arm));
        let median_of =
            |slots: &[Slot], figure: fn(&Slot) -> f64| median(&slots.iter().map(figure).collect::<Vec<_>>());
        self.later = Some([&control, &candidate].map(|slots| median_of(slots, |slot| slot.median)));
        // By whichever says more: a call that waits for a device takes next to no CPU time.
        self.call = median_of(&control, |slot| {
            slot.effort.work().max(slot.effort.exchange) / slot.calls as f64
        });
        let messages = messages(&control);
        let call = |slot: &Slot| (slot.effort.exchange - messages).max(slot.sum) / slot.calls as f64;
        let side_by_side = |baseline, candidate| Block::new(self.process, vec![baseline], vec![candidate]);
        let pairs = || control.iter().zip(&candidate);
        self.seen = pairs()
            .map(|(control, candidate)| side_by_side(call(control), call(candidate)))
            .collect();
        self.clock = pairs()
            .map(|(control, candidate)| {
                side_by_side(call(candidate) / candidate.median, call(control) / control.median)
            })
            .collect();
    }

    /// Work beyond what the control's allows, in the control's calls; none where no work was noted.
    fn untimed(&self, work: &[[f64; 2]]) -> f64 {
        if work.is_empty() {
            return 0.0;
        }
        let beyond: Vec<f64> = work
            .iter()
            .map(|[control, candidate]| (candidate - UNTIMED_FACTOR * control) / self.call)
            .collect();
        median(&beyond)
    }

    /// Notes the CPU time of both sides.
    pub fn note_cpu(&mut self, control: CpuUse, candidate: CpuUse) {
        let asked = [control.asked, candidate.asked];
        if asked.iter().all(|seconds| *seconds > 0.0) {
            self.idle = Some([control.idle / control.asked, candidate.idle / candidate.asked]);
        }
    }

    fn memory(&self) -> Option<Block> {
        let [control, candidate] = self.later.filter(|_| !self.first.is_empty())?;
        let over = |side: usize, later: f64| self.first.iter().map(|first| first[side] / later).collect();
        Some(Block::new(self.process, over(1, candidate), over(0, control)))
    }
}

fn of<T: Copy>(both: &[(Arm, T)], wanted: Arm) -> Vec<T> {
    let own = both.iter().filter(|(arm, _)| *arm == wanted);
    own.map(|(_, one)| *one).collect()
}

/// The first of the control's and of the candidate's.
fn both<T: Copy>(both: &[(Arm, T)]) -> Option<[T; 2]> {
    Some([
        *of(both, Arm::Baseline).first()?,
        *of(both, Arm::Candidate).first()?,
    ])
}

/// What messages take, by the control's slots: the exchange less the calls in it. Bounded, so that a control that
/// reports too little cannot hide it there.
fn messages(control: &[Slot]) -> f64 {
    let around: Vec<f64> = control
        .iter()
        .map(|slot| slot.effort.exchange - slot.sum)
        .collect();
    let most = control
        .first()
        .map_or(0.0, |slot| MESSAGE + MESSAGE_A_CALL * slot.calls as f64);
    median(&around).clamp(0.0, most)
}

impl Conduct {
    /// Judges what was seen, by case; each case was measured by the same pairs. What the reports come to, by their
    /// assessment, needs the coordinator's clock to say as much, if they speak for the candidate.
    pub fn judge(
        cases: &[Vec<CaseConduct>],
        assessment: &Assessment,
        criteria: &Criteria,
    ) -> Result<Self, LabError> {
        let seen = cases
            .iter()
            .map(|seen| seen.iter().flat_map(|one| one.seen.clone()).collect());
        let by_coordinator = by_coordinator(seen.collect(), criteria)?;
        let clock = cases
            .iter()
            .map(|seen| seen.iter().flat_map(|one| one.clock.clone()).collect());
        let memory = cases
            .iter()
            .map(|seen| seen.iter().filter_map(CaseConduct::memory).collect());
        let clock = excess(clock.collect(), CONFIDENCE)?;
        let memory = excess(memory.collect(), CONFIDENCE_OF_MEMORY)?;
        let [idle_control, idle_candidate] = [0, 1].map(|side| {
            let shares = cases.iter().filter_map(|seen| {
                let shares: Vec<f64> = seen.iter().filter_map(|one| Some(one.idle?[side])).collect();
                (!shares.is_empty()).then(|| median(&shares))
            });
            shares.reduce(f64::max)
        });
        let in_most_pairs = |calls: fn(&CaseConduct) -> f64| {
            let seen = cases.iter().filter(|seen| !seen.is_empty());
            let medians = seen.map(|seen| median(&seen.iter().map(calls).collect::<Vec<_>>()));
            medians.reduce(f64::max)
        };
        let mut conduct = Self {
            by_coordinator,
            own_clock: clock.as_ref().map(|excess| excess.suite.clone()),
            memory: memory.as_ref().map(|excess| excess.suite.clone()),
            idle_control,
            idle_candidate,
            loading: in_most_pairs(|one| one.untimed(&one.loading)),
            handing_out: in_most_pairs(|one| one.untimed(&one.handing_out)),
            suspicion: None,
        };
        conduct.suspicion = conduct
            .suspect(memory.map(|excess| excess.surely), clock)
            .or_else(|| conduct.unconfirmed(assessment, criteria));
        Ok(conduct)
    }

    /// Whether the coordinator's clock does not bear out what the reports say for the candidate: it must show as much on
    /// the whole, and surely more than nothing.
    fn unconfirmed(&self, assessment: &Assessment, criteria: &Criteria) -> Option<Suspicion> {
        let least = match assessment.decision {
            Decision::Adopt => criteria.log_target(),
            Decision::Marginal => 0.0,
            Decision::ValidNegative | Decision::Regression | Decision::Inconclusive => return None,
        };
        let (own, seen) = (assessment.suite.as_ref()?.estimate, self.by_coordinator.as_ref()?);
        (seen.estimate < least || seen.lower <= 0.0).then(|| Suspicion::Unconfirmed {
            own: own.exp(),
            seen: seen.estimate.exp(),
        })
    }

    fn suspect(&self, memory: Option<f64>, clock: Option<Excess>) -> Option<Suspicion> {
        let proven = clock.is_some();
        if let Some(clock) = clock.filter(|clock| clock.likely > CLOCK_SLACK) {
            return Some(Suspicion::OwnClock {
                factor: clock.likely.exp(),
            });
        }
        for (candidate, share) in [(true, self.idle_candidate), (false, self.idle_control)] {
            if let Some(share) = share.filter(|share| *share > IDLE_SHARE) {
                return Some(Suspicion::Idle { candidate, share });
            }
        }
        if let Some(surely) = memory.filter(|surely| *surely > MEMORY_SLACK) {
            return Some(Suspicion::Memory { factor: surely.exp() });
        }
        // A lone pair may be slow by chance.
        let untimed = [(false, self.loading), (true, self.handing_out)];
        untimed.into_iter().filter(|_| proven).find_map(|(after, calls)| {
            let calls = calls.filter(|calls| *calls > UNTIMED_CALLS)?;
            Some(Suspicion::Untimed { after, calls })
        })
    }
}

/// None with fewer than two pairs.
fn by_coordinator(cases: Vec<Vec<Block>>, criteria: &Criteria) -> Result<Option<Interval>, LabError> {
    let samples = samples(&cases)?;
    if samples.iter().any(|sample| sample.processes().len() < 2) {
        return Ok(None);
    }
    let bootstrap = Bootstrap::new(&samples, RESAMPLING)?;
    Ok(Some(bootstrap.suite.interval(criteria.confidence)?))
}

fn samples(cases: &[Vec<Block>]) -> Result<Vec<Sample>, LabError> {
    let samples = cases.iter().map(|blocks| Sample::from_blocks(blocks));
    Ok(samples.collect::<Result<_, _>>()?)
}

/// An excess of log speed-up.
struct Excess {
    suite: Interval,
    /// The greatest lower bound among the suite and its cases.
    surely: f64,
    /// The greatest estimate among those whose lower bound is over 0; less than 0 without one.
    likely: f64,
}

/// None with fewer than two pairs.
fn excess(cases: Vec<Vec<Block>>, confidence: f64) -> Result<Option<Excess>, LabError> {
    let samples = samples(&cases)?;
    if samples.iter().any(|sample| sample.processes().len() < 2) {
        return Ok(None);
    }
    let bootstrap = Bootstrap::new(&samples, RESAMPLING)?;
    let confidence = 1.0 - (1.0 - confidence) / (samples.len() + 1) as f64;
    let suite = bootstrap.suite.interval(confidence)?;
    let mut intervals = vec![suite.clone()];
    for problem in &bootstrap.problems {
        intervals.push(problem.interval(confidence)?);
    }
    let surely = intervals
        .iter()
        .map(|interval| interval.lower)
        .fold(f64::MIN, f64::max);
    let sure = intervals.iter().filter(|interval| interval.lower > 0.0);
    let likely = sure.map(|interval| interval.estimate).fold(f64::MIN, f64::max);
    Ok(Some(Excess {
        suite,
        surely,
        likely,
    }))
}

#[cfg(test)]
mod tests;
