//! A comparison in progress. It is measured pair by pair, so that several candidates can share the time and spend it
//! where it changes a verdict.

mod activity;
mod ahead;
mod blocks;
mod builds;
mod looks;
mod more;
mod pace;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use gauntlet_device::Arch;
use gauntlet_stats::{Assessment, Block, Decision, Sample, block_orders, median, without_interval};
use gauntlet_task::Case;
use gauntlet_worker::protocol::Scope;
use jiff::Timestamp;
use rayon::prelude::*;

use super::conduct::{CaseConduct, charged, charges, heated};
use super::dealing::{KNOWN, fits_memory, seed_of_set, sets};
use super::pair::{Dealt, Measured, Pair, clocked};
use super::results::{Checker, OperandSet};
use crate::evidence::{
    Busy, Candidate, CaseTimes, Comparison, Conduct, Heating, JudgeError, Look, Setting, Spent, Suspicion,
    Trust,
};
use crate::observer::{Narrowing, Observer};
use crate::runner::{ExaminationFailure, Operands, Readers, Workshop, cache_to_leave, copies, side_by_side};

use blocks::blocks_after;
pub use more::{Batch, Observations};

/// Sets of operands larger than this are generated one at a time: each occupies memory meanwhile, and the tensors of
/// one set already use several threads.
const MAX_AT_ONCE: u64 = 256 << 20;

/// Sets of operands that a pair gets at least, unless a cache asks for fewer: with fewer, few calls are the first on new values.
const FEW_SETS: usize = 8;

/// A candidate against its baseline, with the measurements so far.
pub struct PairedComparison<'a> {
    workshop: &'a Workshop,
    setting: &'a Setting,
    baseline: Candidate,
    candidate: Candidate,
    cases: Vec<CaseSoFar<'a>>,
    /// Of the operands and orders of the pairs that are measured now.
    seed: u64,
    test_seed: u64,
    /// What was measured before it ended and went on.
    earlier: Vec<Batch>,
    began: Timestamp,
    /// Pairs measured, earlier ones too.
    pairs: usize,
    /// The time spent on pairs since it began or went on.
    spent: Duration,
    /// Where the time went.
    spent_on: Spent,
    /// From where to where the calls of the last pair were clocked.
    scope: Option<Scope>,
    /// Whether each side's host can say what the device did in a call; none on a CPU.
    tells_activity: Option<[bool; 2]>,
    looks: Vec<Look>,
    assessment: Assessment,
    suspicion: Option<Suspicion>,
    /// Whether it was told to end before its time: it takes no look for that, and goes on later as if it had never ended.
    interrupted: bool,
    /// Pairs whose processes have started already, in order.
    started: VecDeque<Pair<'a>>,
    /// Whether a worker's death has been forgiven once since it began or went on: a single death may be an accident of the
    /// machine.
    forgiven: bool,
}

/// What a pair measured in each case, how its time was spent, from where to where its calls were clocked, and whether its hosts
/// can say what the device did.
type PairMeasured = (Vec<Measured>, Spent, Option<Scope>, Option<[bool; 2]>);

struct CaseSoFar<'a> {
    case: &'a Case,
    warm_up: OperandSet,
    /// Bytes of a set of operands.
    set_bytes: u64,
    /// How many sets of fresh operands a pair gets, and the total number of copies of all sets.
    sets: usize,
    copies: usize,
    blocks: Vec<Block>,
    conduct: Vec<CaseConduct>,
}

impl<'a> PairedComparison<'a> {
    /// A comparison without measurements.
    pub fn new(
        workshop: &'a Workshop,
        setting: &'a Setting,
        baseline: Candidate,
        candidate: Candidate,
        seed: u64,
    ) -> Result<Self, ExaminationFailure> {
        let cache = cache_to_leave(setting);
        // On a CPU hosts of this program are held, unless the system forbids it.
        let are_held = setting.device.arch == Arch::Cpu && baseline.hosted && candidate.hosted;
        let mut cases = Vec::new();
        for (index, case) in setting.benchmark_cases.iter().enumerate() {
            let (inputs, operands) =
                Operands::write(workshop, case, case.inputs, seed_of_set(seed, KNOWN, index))?;
            let bytes = case.sizes.input_bytes();
            let sets = match setting.measurement.trust {
                // The coordinator writes all operands before each call, so that sets need not be so many that they fill a cache.
                Trust::Watched if are_held && case.sizes.constant_inputs().is_empty() => {
                    sets(bytes, 0).max(FEW_SETS.min(sets(bytes, cache)))
                }
                Trust::Watched => sets(bytes, cache),
                // Two show whether a kernel answers every call with the result of its first; the others are their copies.
                Trust::Quick if setting.measurement.warm => 1,
                Trust::Quick => 2,
            };
            cases.push(CaseSoFar {
                case,
                warm_up: OperandSet {
                    operands,
                    inputs: fits_memory(bytes).then_some(inputs),
                },
                set_bytes: bytes,
                sets,
                copies: copies(bytes, cache),
                blocks: Vec::new(),
                conduct: Vec::new(),
            });
        }
        let names: Vec<String> = cases.iter().map(|one| one.case.name.clone()).collect();
        Ok(Self {
            workshop,
            setting,
            baseline,
            candidate,
            cases,
            seed,
            test_seed: seed,
            earlier: Vec::new(),
            began: Timestamp::now(),
            pairs: 0,
            spent: Duration::ZERO,
            spent_on: Spent::default(),
            scope: None,
            tells_activity: None,
            looks: Vec::new(),
            assessment: without_interval(&names, &setting.criteria),
            suspicion: None,
            interrupted: false,
            started: VecDeque::new(),
            forgiven: false,
        })
    }

    /// The time spent on measurements so far.
    pub fn spent(&self) -> Duration {
        self.spent
    }

    /// Pairs of processes measured.
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// The log speed-up so far, as the mean over the blocks of all cases; none before the first pair.
    pub fn estimate(&self) -> Option<f64> {
        let of_case = |one: &CaseSoFar| {
            let sample = Sample::from_blocks(&one.blocks).ok()?;
            let effects = sample.process_effects();
            (!effects.is_empty()).then(|| effects.iter().sum::<f64>() / effects.len() as f64)
        };
        let effects: Vec<f64> = self.cases.iter().map(of_case).collect::<Option<_>>()?;
        (!effects.is_empty()).then(|| effects.iter().sum::<f64>() / effects.len() as f64)
    }

    /// The estimated number of pairs to a decision if estimate and spread stay as they are; none without an estimate.
    pub fn needed(&self) -> Option<usize> {
        self.assessment.needed_processes
    }

    /// Whether the comparison is decided, cannot be believed, or has no look left. An open-ended one always has.
    pub fn is_over(&self) -> bool {
        let decided = !self.looks.is_empty() && self.assessment.decision != Decision::Inconclusive;
        match self.suspicion {
            Some(suspicion) => !suspicion.may_pass() || self.setting.measurement.ends_at(self.pairs),
            None => decided || self.setting.measurement.ends_at(self.pairs),
        }
    }

    /// Measures up to the next look and evaluates it. Returns false if a further pair would take longer than
    /// the rest of the allowed time, or if it is interrupted. The first pair is always measured.
    pub fn advance(
        &mut self,
        allowed: Duration,
        observer: &dyn Observer,
    ) -> Result<bool, ExaminationFailure> {
        observer.compares(&self.candidate.name);
        let before = self.spent;
        let target = self.setting.measurement.next_look(self.pairs);
        while self.pairs < target {
            let is_too_long = self.pairs > 0 && self.spent - before + self.pace() > allowed;
            if self.is_interrupted_by(observer) || is_too_long {
                return Ok(false);
            }
            match self.measure_pair(observer) {
                // Its workers were ended with the pair, which says nothing of the kernels.
                Err(_) if self.is_interrupted_by(observer) => return Ok(false),
                measured => measured?,
            }
            if self.pairs == 1 {
                self.forecast(target, allowed, observer);
            }
            self.tell(target, observer)?;
        }
        self.look(false)?;
        Ok(true)
    }

    /// Whether it is to end now. Without a pair there is nothing that it could keep.
    fn is_interrupted_by(&mut self, observer: &dyn Observer) -> bool {
        self.interrupted |= self.pairs > 0 && observer.is_interrupted();
        self.interrupted
    }

    /// Ends the comparison and returns its result.
    pub fn finish(self) -> Result<Comparison, ExaminationFailure> {
        Ok(self.finish_observed()?.0)
    }

    /// The same, with what is kept for further pairs.
    pub fn finish_observed(mut self) -> Result<(Comparison, Observations), ExaminationFailure> {
        // When the time is up, a last look is taken, with its own share of the error. Before the first planned look there are
        // too few pairs to tell how either side behaves.
        if !self.interrupted && self.looks.last().is_some_and(|look| self.deserves_closing(look)) {
            self.look(self.setting.measurement.open_ended)?;
        }
        let conduct = self.conduct()?;
        let conduct = match conduct {
            Some(conduct) if !self.interrupted => Some(Conduct {
                device_activity: self.traced()?,
                ..conduct
            }),
            conduct => conduct,
        };
        let assessment = self.assessment.clone();
        let comparison = Comparison {
            cases: self.cases.iter().map(CaseSoFar::times).collect(),
            ended_early: self.ended_early(),
            spent: Some(self.spent_on),
            assessment: match &conduct {
                Some(conduct) => conduct.widened(assessment),
                None => assessment,
            },
            regime: Some(self.setting.measurement.regime),
            scope: self.scope,
            looks: self.looks.clone(),
            seed: self.test_seed,
            trust: self.setting.measurement.trust,
            conduct,
            declared: None,
            design: None,
            predicted: None,
        };
        Ok((comparison, self.observations()))
    }

    /// How both sides behaved; none of a quick comparison, which does not look at it.
    fn conduct(&self) -> Result<Option<Conduct>, JudgeError> {
        if !self.setting.measurement.trust.is_watched() {
            return Ok(None);
        }
        let seen: Vec<Vec<CaseConduct>> = self.cases.iter().map(|one| one.conduct.clone()).collect();
        let conduct = Conduct::judge(&seen, &self.assessment, &self.setting.criteria)?;
        let charges = self
            .cases
            .iter()
            .filter_map(|one| charges(&one.case.name, &one.conduct));
        let busy = conduct.busy.map(|busy| Busy {
            measured_again: usize::from(self.forgiven)
                + self.earlier.iter().filter(|batch| batch.measured_again).count(),
            ..busy
        });
        let load = self.setting.measurement.load();
        let heated = self
            .cases
            .iter()
            .filter_map(|one| heated(&one.case.name, &one.conduct));
        let heating = load.map(|seconds| Heating {
            seconds,
            cases: heated.collect(),
        });
        Ok(Some(Conduct {
            busy,
            charges: charges.collect(),
            heating: heating.filter(|heating| !heating.cases.is_empty()),
            ..conduct
        }))
    }

    /// Reports progress to the observer. This display decides nothing, so it costs nothing of the error.
    fn tell(&self, next_look: usize, observer: &dyn Observer) -> Result<(), JudgeError> {
        if self.pairs < 2 {
            return Ok(());
        }
        if let Some(interval) = self.assess(false)?.suite {
            observer.narrows(&Narrowing {
                candidate: &self.candidate.name,
                pairs: self.pairs,
                next_look,
                interval,
                criteria: &self.setting.criteria,
            });
        }
        Ok(())
    }

    fn measure_pair(&mut self, observer: &dyn Observer) -> Result<(), ExaminationFailure> {
        let start = Instant::now();
        let started = self.start_ahead().map(|()| self.started.pop_front());
        let measured = match started.and_then(|started| self.try_pair(started, observer)) {
            Err(failure) if !self.forgiven && !observer.is_interrupted() => self.once_more(failure, observer),
            other => other,
        };
        self.spent += start.elapsed();
        // Kept apart until all cases are done: a pair that dies half-way counts for none of them.
        let (measured, spent_on, scope, tells_activity) = measured?;
        for (one, measured) in self.cases.iter_mut().zip(measured) {
            one.blocks.extend(measured.blocks);
            one.conduct.push(measured.conduct);
        }
        self.spent_on += spent_on;
        self.scope = scope;
        self.tells_activity = tells_activity;
        self.pairs += 1;
        Ok(())
    }

    fn try_pair(
        &self,
        started: Option<Pair<'a>>,
        observer: &dyn Observer,
    ) -> Result<PairMeasured, ExaminationFailure> {
        self.build_once()?;
        let measurement = &self.setting.measurement;
        let stream = |index| self.pairs * self.cases.len() + index;
        let was_started = started.is_some();
        let start = || started.map_or_else(|| self.start_pair(self.pairs), Ok);
        let mut operands = 0.0;
        // The workers' readers are known only when they have started, so the first case's operands are closed to them at first.
        let (pair, first) = clocked(&mut operands, || {
            side_by_side(start, || {
                let first = self.cases.first();
                first.map(|one| self.deal(one, stream(0), Readers::Coordinator))
            })
        });
        let mut pair = pair?;
        if !was_started {
            operands -= pair.starting();
        }
        let mut first = first.transpose()?;
        let readers = pair.readers();
        let mut measured = Vec::new();
        for (index, one) in self.cases.iter().enumerate() {
            observer.progress(&format!("pair {}, {}", self.pairs + 1, one.case.name));
            let blocks = match measurement.trust {
                Trust::Watched => measurement.blocks,
                Trust::Quick => blocks_after(&one.blocks, measurement.blocks),
            };
            let orders = block_orders(self.seed, stream(index), blocks);
            let fresh = clocked(&mut operands, || match first.take() {
                Some(dealt) => self.opened(dealt, readers),
                None => self.deal(one, stream(index), readers),
            })?;
            let dealt = Dealt {
                case: one.case,
                warm_up: &one.warm_up,
                fresh: &fresh,
                copies: one.copies,
                schedules: [&self.baseline, &self.candidate]
                    .map(|side| side.schedule_for(&one.case.sizes, &self.setting.device)),
            };
            measured.push(pair.measure(&dealt, &orders)?);
        }
        let (scope, tells_activity) = (pair.scope(), pair.tells_activity());
        let spent = Spent {
            pairs: 1,
            operands,
            ..pair.end()
        };
        Ok((measured, spent, scope, tells_activity))
    }

    /// These sets, where their readers can read them.
    fn opened(&self, mut sets: Vec<OperandSet>, readers: Readers) -> Result<Vec<OperandSet>, JudgeError> {
        for set in &mut sets {
            set.operands.open_to(self.workshop, readers)?;
        }
        Ok(sets)
    }

    /// Makes fresh operands of a case, which share the values of its constant inputs, all sets in parallel unless they
    /// are large.
    fn deal(&self, one: &CaseSoFar, stream: usize, readers: Readers) -> Result<Vec<OperandSet>, JudgeError> {
        let deal = |set: usize| -> Result<OperandSet, JudgeError> {
            let seed = seed_of_set(self.seed, stream as u64, set);
            let (like, drawn) = (&one.warm_up.operands, (one.case.inputs, seed));
            let (inputs, operands) = Operands::write_like(self.workshop, one.case, drawn, like, readers)?;
            Ok(OperandSet {
                operands,
                inputs: fits_memory(one.set_bytes).then_some(inputs),
            })
        };
        if one.set_bytes > MAX_AT_ONCE {
            (0..one.sets).map(deal).collect()
        } else {
            (0..one.sets).into_par_iter().map(deal).collect()
        }
    }
}

impl CaseSoFar<'_> {
    fn times(&self) -> CaseTimes {
        let all = |arm: fn(&Block) -> &Vec<f64>| -> Vec<f64> {
            self.blocks.iter().flat_map(arm).copied().collect()
        };
        CaseTimes {
            case: self.case.name.clone(),
            baseline: median(&all(|block| &block.baseline)),
            candidate: median(&all(|block| &block.candidate)),
            blocks: self.blocks.clone(),
        }
    }
}
