//! Can the times be believed? A worker takes its own times, so what it does around them is watched: by the
//! coordinator's clock, by the CPU time it uses, and by what it does with operands it has not seen before.

use gauntlet_stats::{Arm, Block, Bootstrap, Interval, Resampling, Sample, median};
use serde::{Deserialize, Serialize};

use super::contender::CpuUse;
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

/// Loading may take twice as long as the control's, and this many of the control's calls more; so may handing out the
/// result.
const UNTIMED_CALLS: f64 = 0.35;

/// Messages around a slot take less than this, in seconds: a fixed part, and a part for each call's time in it.
const MESSAGE: f64 = 2e-3;
const MESSAGE_A_CALL: f64 = 4e-6;

/// Confidence that a slack is exceeded, shared by the suite's cases.
const CONFIDENCE: f64 = 0.99;

const RESAMPLING: Resampling = Resampling {
    resamples: 1000,
    seed: 0,
};

/// How the two sides behaved around their times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Conduct {
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
    /// By how many of the control's calls the candidate's loading took longer than twice the control's; the median over
    /// pairs of the worst case.
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
    /// Seconds a call by the coordinator's clock over seconds as reported; a block a pair of slots.
    clock: Vec<Block>,
    /// The first call of each side.
    first: Option<[f64; 2]>,
    /// The median later call of each side.
    later: Option<[f64; 2]>,
    loading: f64,
    handing_out: f64,
    idle: Option<[f64; 2]>,
}

impl CaseConduct {
    /// Nothing seen yet.
    pub fn new(process: usize) -> Self {
        Self {
            process,
            clock: Vec::new(),
            first: None,
            later: None,
            loading: 0.0,
            handing_out: 0.0,
            idle: None,
        }
    }

    /// Notes the first call of each side on operands not seen before.
    pub fn note_first_calls(&mut self, control: &Slot, candidate: &Slot) {
        let messages = messages(&[control]);
        // By whichever clock says more: a call's own report is not believed before it is confirmed.
        self.first = Some([control, candidate].map(|slot| slot.median.max(slot.exchange - messages)));
    }

    /// Notes how long loading took each side, beside the control's first call.
    pub fn note_loading(&mut self, control: f64, candidate: f64, call: f64) {
        self.loading = (candidate - 2.0 * control) / call;
    }

    /// Notes how long handing out the result took each side.
    pub fn note_handing_out(&mut self, control: f64, candidate: f64) {
        if let Some([call, _]) = self.later {
            self.handing_out = (candidate - 2.0 * control) / call;
        }
    }

    /// Notes the slots of both sides, in the order taken.
    pub fn note_slots(&mut self, slots: &[(Arm, Slot)]) {
        let of = |wanted: Arm| -> Vec<&Slot> {
            let own = slots.iter().filter(move |(arm, _)| *arm == wanted);
            own.map(|(_, slot)| slot).collect()
        };
        let (control, candidate) = (of(Arm::Baseline), of(Arm::Candidate));
        let medians = |slots: &[&Slot]| median(&slots.iter().map(|slot| slot.median).collect::<Vec<_>>());
        self.later = Some([medians(&control), medians(&candidate)]);
        let messages = messages(&control);
        let flattery = |slot: &Slot| {
            let call = (slot.exchange - messages).max(slot.sum) / slot.calls as f64;
            call / slot.median
        };
        self.clock = control
            .iter()
            .zip(&candidate)
            .map(|(control, candidate)| {
                Block::new(self.process, vec![flattery(candidate)], vec![flattery(control)])
            })
            .collect();
    }

    /// Notes the CPU time of both sides.
    pub fn note_cpu(&mut self, control: CpuUse, candidate: CpuUse) {
        let asked = [control.asked, candidate.asked];
        if asked.iter().all(|seconds| *seconds > 0.0) {
            self.idle = Some([control.idle / control.asked, candidate.idle / candidate.asked]);
        }
    }

    fn memory(&self) -> Option<Block> {
        let ([first_control, first_candidate], [control, candidate]) = (self.first?, self.later?);
        let flattery = |first: f64, later: f64| vec![first / later];
        Some(Block::new(
            self.process,
            flattery(first_candidate, candidate),
            flattery(first_control, control),
        ))
    }
}

/// What messages take, by the control's slots: the exchange less the calls in it. Bounded, so that a control that
/// reports too little cannot hide it there.
fn messages(control: &[&Slot]) -> f64 {
    let around: Vec<f64> = control.iter().map(|slot| slot.exchange - slot.sum).collect();
    let most = control
        .first()
        .map_or(0.0, |slot| MESSAGE + MESSAGE_A_CALL * slot.calls as f64);
    median(&around).clamp(0.0, most)
}

impl Conduct {
    /// Judges what was seen, by case; each case was measured by the same pairs.
    pub fn judge(cases: &[Vec<CaseConduct>]) -> Result<Self, LabError> {
        let clock = cases
            .iter()
            .map(|seen| seen.iter().flat_map(|one| one.clock.clone()).collect());
        let memory = cases
            .iter()
            .map(|seen| seen.iter().filter_map(CaseConduct::memory).collect());
        let clock = excess(clock.collect())?;
        let memory = excess(memory.collect())?;
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
            own_clock: clock.as_ref().map(|excess| excess.suite.clone()),
            memory: memory.as_ref().map(|excess| excess.suite.clone()),
            idle_control,
            idle_candidate,
            loading: in_most_pairs(|one| one.loading),
            handing_out: in_most_pairs(|one| one.handing_out),
            suspicion: None,
        };
        conduct.suspicion = conduct.suspect(memory.map(|excess| excess.surely), clock);
        Ok(conduct)
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

/// An excess of log speed-up.
struct Excess {
    suite: Interval,
    /// The greatest lower bound among the suite and its cases.
    surely: f64,
    /// The greatest estimate among those whose lower bound is over 0; less than 0 without one.
    likely: f64,
}

/// None with fewer than two pairs.
fn excess(cases: Vec<Vec<Block>>) -> Result<Option<Excess>, LabError> {
    let samples: Vec<Sample> = cases
        .iter()
        .map(|blocks| Sample::from_blocks(blocks))
        .collect::<Result<_, _>>()?;
    if samples.iter().any(|sample| sample.processes().len() < 2) {
        return Ok(None);
    }
    let bootstrap = Bootstrap::new(&samples, RESAMPLING)?;
    let confidence = 1.0 - (1.0 - CONFIDENCE) / (samples.len() + 1) as f64;
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
mod tests {
    use super::*;

    const CALL: f64 = 1e-3;

    /// A slot of twenty calls with a bit of noise, `reported` being what the worker says of each.
    fn slot(call: f64, reported: f64, jitter: usize) -> Slot {
        let noise = 1.0 + 0.01 * ((jitter * 7 % 5) as f64 - 2.0);
        Slot {
            calls: 20,
            median: reported * noise,
            sum: 20.0 * reported * noise,
            exchange: 20.0 * call * noise + 150e-6,
            clock: None,
        }
    }

    /// Six pairs; what a candidate did otherwise than honestly is up to `tamper`.
    fn judge(tamper: impl Fn(&mut CaseConduct)) -> Option<Suspicion> {
        let seen: Vec<CaseConduct> = (0..6)
            .map(|process| {
                let mut conduct = CaseConduct::new(process);
                let one = slot(CALL, CALL, process);
                conduct.note_first_calls(&one, &one);
                conduct.note_loading(1e-3, 1e-3, CALL);
                let slots: Vec<(Arm, Slot)> = (0..12)
                    .map(|turn| {
                        let arm = if turn % 2 == 0 {
                            Arm::Baseline
                        } else {
                            Arm::Candidate
                        };
                        (arm, slot(CALL, CALL, process + turn))
                    })
                    .collect();
                conduct.note_slots(&slots);
                let used = CpuUse {
                    asked: 1.0,
                    idle: 0.001,
                };
                conduct.note_cpu(used, used);
                tamper(&mut conduct);
                conduct
            })
            .collect();
        Conduct::judge(&[seen]).unwrap().suspicion
    }

    fn slots_of_candidate(conduct: &mut CaseConduct, candidate: impl Fn(usize) -> Slot) {
        let process = conduct.process;
        let slots: Vec<(Arm, Slot)> = (0..12)
            .map(|turn| match turn % 2 {
                0 => (Arm::Baseline, slot(CALL, CALL, process + turn)),
                _ => (Arm::Candidate, candidate(process + turn)),
            })
            .collect();
        conduct.note_slots(&slots);
    }

    #[test]
    fn honest_workers_are_not_suspected() {
        assert_eq!(judge(|_| ()), None);
    }

    #[test]
    fn a_true_speedup_is_not_suspected() {
        let faster = |conduct: &mut CaseConduct| {
            slots_of_candidate(conduct, |jitter| slot(CALL / 3.0, CALL / 3.0, jitter));
            conduct.first = Some([CALL, CALL / 3.0]);
        };
        assert_eq!(judge(faster), None);
    }

    #[test]
    fn a_clock_that_runs_slow_is_told() {
        let slow = |conduct: &mut CaseConduct| {
            slots_of_candidate(conduct, |jitter| slot(CALL, 0.9 * CALL, jitter));
            conduct.first = Some([CALL, CALL]);
        };
        assert!(
            matches!(judge(slow), Some(Suspicion::OwnClock { factor }) if (1.05..1.12).contains(&factor))
        );
    }

    #[test]
    fn a_few_percent_shaved_off_are_told() {
        let shaving = |conduct: &mut CaseConduct| {
            slots_of_candidate(conduct, |jitter| slot(CALL, 0.97 * CALL, jitter));
            conduct.first = Some([CALL, CALL]);
        };
        assert!(matches!(judge(shaving), Some(Suspicion::OwnClock { .. })));
    }

    #[test]
    fn a_sum_that_is_right_does_not_hide_a_median_that_is_not() {
        let skewed = |conduct: &mut CaseConduct| {
            slots_of_candidate(conduct, |jitter| Slot {
                median: 0.5 * CALL,
                ..slot(CALL, CALL, jitter)
            });
        };
        assert!(matches!(judge(skewed), Some(Suspicion::OwnClock { .. })));
    }

    #[test]
    fn results_that_are_remembered_are_told() {
        let remembering = |conduct: &mut CaseConduct| {
            slots_of_candidate(conduct, |jitter| slot(CALL / 2.0, CALL / 2.0, jitter));
        };
        assert!(matches!(judge(remembering), Some(Suspicion::Memory { factor }) if factor > 1.5));
    }

    #[test]
    fn work_between_requests_is_told_of_either_side() {
        let working = CpuUse {
            asked: 1.0,
            idle: 0.2,
        };
        let idle = CpuUse {
            asked: 1.0,
            idle: 0.0,
        };
        assert_eq!(
            judge(|conduct| conduct.note_cpu(idle, working)),
            Some(Suspicion::Idle {
                candidate: true,
                share: 0.2
            })
        );
        assert_eq!(
            judge(|conduct| conduct.note_cpu(working, idle)),
            Some(Suspicion::Idle {
                candidate: false,
                share: 0.2
            })
        );
    }

    #[test]
    fn computing_outside_the_call_is_told_when_it_happens_in_most_pairs() {
        assert!(matches!(
            judge(|conduct| conduct.note_loading(1e-3, 3e-3, CALL)),
            Some(Suspicion::Untimed { after: false, .. })
        ));
        assert!(matches!(
            judge(|conduct| conduct.note_handing_out(1e-3, 3e-3)),
            Some(Suspicion::Untimed { after: true, .. })
        ));
        let once = |conduct: &mut CaseConduct| {
            if conduct.process == 2 {
                conduct.note_loading(1e-3, 9e-3, CALL);
            }
        };
        assert_eq!(judge(once), None);
    }

    #[test]
    fn one_pair_proves_nothing() {
        let mut conduct = CaseConduct::new(0);
        slots_of_candidate(&mut conduct, |jitter| slot(CALL, 0.5 * CALL, jitter));
        conduct.note_first_calls(&slot(CALL, CALL, 0), &slot(CALL, CALL, 0));
        assert_eq!(Conduct::judge(&[vec![conduct]]).unwrap().suspicion, None);
    }
}
