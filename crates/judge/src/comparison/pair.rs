//! One pair of fresh processes. Both sides build, load and are timed in turns, case after case; afterwards the results
//! of the timed calls are checked.

use std::path::Path;
use std::time::Instant;

use gauntlet_parameters::Parameters;
use gauntlet_stats::{Arm, Block, BlockOrder, median};
use gauntlet_task::{Case, ErrorMeasures, Expected, Inputs, Output, Rules, Sizes};
use gauntlet_worker::most_calls;
use gauntlet_worker::protocol::Sample as Timing;
use rayon::prelude::*;

use super::conduct::CaseConduct;
use super::side::{Effort, Side};
use crate::evidence::{Candidate, JudgeError, Spent};
use crate::runner::{ExaminationFailure, Operands, Workshop, fetch};

/// Target duration of a slot, filled with calls. On a shared two-core machine lone calls of 4…25 ms varied by 10 %
/// within a block, and slot medians by a third of that. A slot this long also hides the clock's resolution and the
/// message exchange.
const SLOT: f64 = 20e-3;

/// Target duration of a slot on a GPU. Slots of 20 ms were measured on an H200: three in four medians lay within 0.6 %
/// of their process's median. Slots of 8 ms were not measured; their scatter is assumed to grow by at most the square
/// root of the ratio, 1.6, to 1 %. A process has several slots for each case, and the interval narrows with the number
/// of pairs of processes, which can be larger when each pair is shorter.
const SLOT_ON_GPU: f64 = 8e-3;

/// Most calls in one slot; their times travel as text, a microsecond or two each.
const MOST_SAMPLES: usize = 4096;

/// The faster side fills a slot unless the slower side would then take this many slot durations. Both sides make the
/// same number of calls, so that message times are comparable. With only a few calls of a much faster side between
/// messages, its times could not be checked.
const MOST_SLOTS: f64 = 8.0;

/// Two correct results may differ by twice the error limit of one.
const TWO_ERRORS: f64 = 2.0;

/// A case with the operands that a pair is given.
pub struct Dealt<'c> {
    /// The case.
    pub case: &'c Case,
    /// Operands to warm up on.
    pub warm_up: &'c Operands,
    /// Sets of operands that no worker has seen before, at least two, copied in turn.
    pub fresh: &'c [Operands],
    /// The last set.
    pub inputs: &'c dyn Inputs,
    /// How many copies to rotate over, the same number of each set.
    pub copies: usize,
    /// The schedules or programs with which the baseline and the candidate compute it.
    pub schedules: [&'c Parameters; 2],
}

/// The measurements of a case.
pub struct Measured {
    /// The blocks.
    pub blocks: Vec<Block>,
    /// How both sides behaved.
    pub conduct: CaseConduct,
}

/// A pair in progress.
pub struct Pair<'a> {
    workshop: &'a Workshop,
    rules: &'a Rules,
    process: usize,
    baseline: Side,
    candidate: Side,
    spent: Spent,
}

impl<'a> Pair<'a> {
    /// Starts both processes in parallel, because driver start-up takes time. Runs on rayon's global pool, whose
    /// threads never end: a worker is killed when the thread that started it ends, so a scoped thread would kill it
    /// here.
    pub fn start(
        workshop: &'a Workshop,
        rules: &'a Rules,
        process: usize,
        baseline: &Candidate,
        candidate: &Candidate,
    ) -> Result<Self, ExaminationFailure> {
        let mut spent = Spent::default();
        let (baseline, candidate) = clocked(&mut spent.workers, || {
            rayon::join(
                || Side::start(workshop, Arm::Baseline, baseline),
                || Side::start(workshop, Arm::Candidate, candidate),
            )
        });
        Ok(Self {
            workshop,
            rules,
            process,
            baseline: baseline?,
            candidate: candidate?,
            spent,
        })
    }

    /// Ends both processes in parallel and returns how the time was spent.
    pub fn end(self) -> Spent {
        let Self {
            baseline,
            candidate,
            mut spent,
            ..
        } = self;
        clocked(&mut spent.workers, || {
            rayon::join(|| drop(baseline), || drop(candidate));
        });
        spent
    }

    /// Measures a case in blocks of the given orders.
    pub fn measure(&mut self, dealt: &Dealt, orders: &[BlockOrder]) -> Result<Measured, ExaminationFailure> {
        let mut conduct = CaseConduct::new(self.process);
        let begun = Instant::now();
        self.prepare(dealt, &mut conduct)?;
        self.spent.preparing += begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let samples = self.samples(dealt)?;
        let mut slots: Vec<(Arm, Slot)> = Vec::new();
        let mut blocks = Vec::new();
        for order in orders {
            let before = slots.len();
            for arm in order.arms() {
                let taken = slots.iter().filter(|(other, _)| *other == arm).count();
                let first = first_copy(taken, 2 * orders.len(), samples, dealt.copies);
                let slot = self.side(arm).time(samples, first)?;
                slots.push((arm, slot));
            }
            blocks.push(block(self.process, &slots[before..]));
        }
        conduct.note_slots(&slots);
        conduct.note_cpu(self.baseline.end_case(), self.candidate.end_case());
        self.spent.measuring += begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        self.look_at_results(dealt, &mut conduct)?;
        self.spent.results += begun.elapsed().as_secs_f64();
        Ok(Measured { blocks, conduct })
    }

    /// Builds, warms up on operands that are not timed, and takes the first call on the timed operands, where nothing
    /// that a side kept from earlier operands helps it.
    fn prepare(&mut self, dealt: &Dealt, conduct: &mut CaseConduct) -> Result<(), ExaminationFailure> {
        // One after the other, since a worker may benchmark alternatives here.
        for (side, schedule) in [&mut self.baseline, &mut self.candidate]
            .into_iter()
            .zip(dealt.schedules)
        {
            side.ask(|worker| worker.build(&dealt.case.sizes, schedule))?;
        }
        self.load_both(&[dealt.warm_up.path()], 1)?;
        for side in [&mut self.baseline, &mut self.candidate] {
            side.time(1, 0)?;
            side.time(1, 0)?;
        }
        self.baseline.begin_case();
        self.candidate.begin_case();
        let fresh: Vec<&Path> = dealt.fresh.iter().map(Operands::path).collect();
        if on_gpu(self.workshop) {
            self.load_both(&fresh, dealt.copies)?;
            for place in 0..fresh.len() {
                self.first_calls(place, place, conduct)?;
            }
            return Ok(());
        }
        for (place, operands) in fresh.iter().enumerate() {
            let mut efforts = Vec::new();
            for side in self.in_turn(place) {
                efforts.push((side.arm, side.ask(|worker| worker.load(&[operands], 1))?.1));
            }
            conduct.note_loading(&efforts);
            self.first_calls(place, 0, conduct)?;
        }
        self.load_both(&fresh, dealt.copies)
    }

    /// Lets both sides load in parallel; nothing is timed meanwhile.
    fn load_both(&mut self, operands: &[&Path], copies: usize) -> Result<(), ExaminationFailure> {
        let load = |side: &mut Side| side.ask(|worker| worker.load(operands, copies));
        let (baseline, candidate) = rayon::join(|| load(&mut self.baseline), || load(&mut self.candidate));
        baseline.and(candidate).map(drop)
    }

    /// Takes each side's first call on the set of operands at `place`, which lies in `copy`.
    fn first_calls(
        &mut self,
        place: usize,
        copy: usize,
        conduct: &mut CaseConduct,
    ) -> Result<(), ExaminationFailure> {
        let mut calls = Vec::new();
        for side in self.in_turn(place) {
            calls.push((side.arm, side.time(1, copy)?));
        }
        conduct.note_first_calls(&calls);
        Ok(())
    }

    /// Both sides in alternating order: the side that goes first may meet other caches or another clock than the side
    /// that follows.
    fn in_turn(&mut self, place: usize) -> [&mut Side; 2] {
        let mut sides = [&mut self.baseline, &mut self.candidate];
        sides.rotate_left((self.process + place) % 2);
        sides
    }

    /// How many calls fill a slot.
    fn samples(&mut self, dealt: &Dealt) -> Result<usize, ExaminationFailure> {
        let few = dealt.copies.min(3).min(most_calls(&dealt.case.sizes));
        let baseline = self.baseline.time(few, 0)?.median;
        let candidate = self.candidate.time(few, 0)?.median;
        let slot = if on_gpu(self.workshop) { SLOT_ON_GPU } else { SLOT };
        Ok(samples_for([baseline, candidate], slot).min(most_calls(&dealt.case.sizes)))
    }

    fn side(&mut self, arm: Arm) -> &mut Side {
        match arm {
            Arm::Baseline => &mut self.baseline,
            Arm::Candidate => &mut self.candidate,
        }
    }

    /// Checks the results of the last timed calls: a few elements against the oracle, and all elements against the
    /// other side's result, so that a candidate gains nothing by guessing which elements are checked.
    fn look_at_results(
        &mut self,
        dealt: &Dealt,
        conduct: &mut CaseConduct,
    ) -> Result<(), ExaminationFailure> {
        let problem = &dealt.case.sizes;
        let files: Vec<&Operands> = dealt.fresh.iter().chain([dealt.warm_up]).collect();
        let (untouched, expected) = rayon::join(
            || files.into_par_iter().all(Operands::are_untouched),
            || problem.expected(dealt.inputs, problem.spot(rand::random())),
        );
        if !untouched {
            let fault = "the file of operands is not as it was written";
            return Err(wrong(Arm::Candidate, dealt.case, fault));
        }
        let expected = expected.map_err(JudgeError::Inputs)?;
        let (workshop, rules) = (self.workshop, problem.rules(self.rules));
        let look = |side: &mut Side| -> Result<(Output, Effort), ExaminationFailure> {
            let (output, took) = side.fetch(workshop, problem)?;
            let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
            let kind = dealt.case.data.is_none().then_some(dealt.case.inputs);
            let fault = rules.fault(&errors, problem.rightness(kind));
            match fault.or_else(|| problem.check(dealt.inputs, &output, &errors)) {
                None => Ok((output, took)),
                Some(fault) => Err(wrong(side.arm, dealt.case, &fault)),
            }
        };
        let (baseline, took_baseline) = look(&mut self.baseline)?;
        let (candidate, took_candidate) = look(&mut self.candidate)?;
        if !on_gpu(self.workshop) {
            conduct.note_handing_out(took_baseline, took_candidate);
        }
        let errors = ErrorMeasures::between(&candidate, &Expected::of(&baseline), rules.tolerance);
        let limit = TWO_ERRORS * rules.nrmse;
        if errors.nrmse > limit {
            let fault = format!(
                "it is not the baseline's result: NRMSE {:.2e} is over {limit:.2e}; {errors}",
                errors.nrmse
            );
            return Err(wrong(Arm::Candidate, dealt.case, &fault));
        }
        Ok(())
    }
}

/// Whether calls are computed on a GPU. A worker's CPU time then does not show how much it computes, and copying
/// operands takes the processor longer than many calls do, by a varying amount. Loading and handing out the result are
/// therefore not checked.
fn on_gpu(workshop: &Workshop) -> bool {
    workshop.instruments().is_some()
}

/// The copy that a slot begins with. Each slot continues where the one before ended, on both sides alike, and the very
/// last call uses the last copy, which holds the last set of operands.
fn first_copy(slot: usize, slots: usize, samples: usize, copies: usize) -> usize {
    ((slots * samples).next_multiple_of(copies) - (slots - slot) * samples) % copies
}

fn block(process: usize, slots: &[(Arm, Slot)]) -> Block {
    let of = |wanted: Arm, figure: fn(&Slot) -> Option<f64>| -> Vec<f64> {
        let own = slots.iter().filter(|(arm, _)| *arm == wanted);
        own.filter_map(|(_, slot)| figure(slot)).collect()
    };
    let times = |arm| of(arm, |slot| Some(slot.median));
    let clocks = |arm| {
        let logged = of(arm, |slot| slot.clock);
        // A clock that was logged for only some of the times says nothing.
        if logged.len() == times(arm).len() {
            logged
        } else {
            Vec::new()
        }
    };
    Block {
        baseline_clocks: clocks(Arm::Baseline),
        candidate_clocks: clocks(Arm::Candidate),
        ..Block::new(process, times(Arm::Baseline), times(Arm::Candidate))
    }
}

fn wrong(arm: Arm, case: &Case, fault: &str) -> ExaminationFailure {
    let reason = format!("{}, in calls that were timed: {fault}", case.name);
    match arm {
        Arm::Baseline => ExaminationFailure::Void(format!("the baseline is wrong: {reason}")),
        Arm::Candidate => ExaminationFailure::Wrong(reason),
    }
}

/// One slot of one side.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// How many calls.
    pub calls: usize,
    /// The median call, as reported, in seconds.
    pub median: f64,
    /// All calls together, as reported.
    pub sum: f64,
    /// The first of them.
    pub first: f64,
    /// The duration and CPU time of the exchange.
    pub effort: Effort,
    /// The median clock in MHz, where every call has one.
    pub clock: Option<f64>,
    /// Time that the worker reports to have spent on its calls before and after them: on operands and results.
    pub between: f64,
}

/// The phase that is not part of a call, but of what a host does before and after it.
const BETWEEN: &str = "between";

impl Side {
    /// Times calls. Rejects reports that add up to more than the coordinator's own clock saw.
    fn time(&mut self, samples: usize, first_copy: usize) -> Result<Slot, ExaminationFailure> {
        let copies: Vec<usize> = (first_copy..first_copy + samples).collect();
        let ((timed, _), effort) = self.ask(|worker| worker.time(&copies, false))?;
        self.calls = samples;
        slot(&timed, effort)
    }

    fn fetch(
        &mut self,
        workshop: &Workshop,
        problem: &Sizes,
    ) -> Result<(Output, Effort), ExaminationFailure> {
        let last = self.calls - 1;
        self.ask(|worker| fetch(workshop, worker, problem, last))
    }
}

fn slot(timed: &[Timing], effort: Effort) -> Result<Slot, ExaminationFailure> {
    let calls: Vec<f64> = timed.iter().map(|timing| timing.call).collect();
    let sum: f64 = calls.iter().sum();
    let clocks: Option<Vec<f64>> = timed.iter().map(|timing| timing.clock).collect();
    let exchange = effort.exchange;
    if sum > exchange {
        return Err(ExaminationFailure::Void(format!(
            "a worker reports calls of {sum:.6} s together in an exchange that took {exchange:.6} s"
        )));
    }
    Ok(Slot {
        calls: calls.len(),
        median: median(&calls),
        sum,
        first: calls.first().copied().unwrap_or_default(),
        effort,
        clock: clocks.map(|clocks| median(&clocks)),
        between: timed.iter().filter_map(|timing| timing.phases.get(BETWEEN)).sum(),
    })
}

fn samples_for([one, other]: [f64; 2], slot: f64) -> usize {
    let call = one.min(other).max(one.max(other) / MOST_SLOTS);
    ((slot / call.max(1e-9)).ceil() as usize).clamp(1, MOST_SAMPLES)
}

/// Runs a function and adds the elapsed seconds.
pub fn clocked<T>(seconds: &mut f64, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = work();
    *seconds += begun.elapsed().as_secs_f64();
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(call: f64) -> Timing {
        Timing {
            call,
            kernel: None,
            clock: None,
            phases: Default::default(),
        }
    }

    const EFFORT: Effort = Effort {
        exchange: 6.5,
        cpu: None,
    };

    #[test]
    fn calls_longer_than_the_exchange_are_refused() {
        assert_eq!(
            slot(&[timing(1.0), timing(3.0), timing(2.0)], EFFORT)
                .unwrap()
                .median,
            2.0
        );
        assert!(matches!(
            slot(&[timing(4.0), timing(3.0)], EFFORT),
            Err(ExaminationFailure::Void(_))
        ));
    }

    #[test]
    fn slots_go_on_where_they_ended_and_end_on_the_last_copy() {
        for (samples, copies) in [(1, 2), (3, 2), (20, 6), (4096, 2), (1, 5000)] {
            let slots = 6;
            for slot in 1..slots {
                let before = first_copy(slot - 1, slots, samples, copies);
                assert_eq!(
                    first_copy(slot, slots, samples, copies),
                    (before + samples) % copies
                );
            }
            let last = (first_copy(slots - 1, slots, samples, copies) + samples - 1) % copies;
            assert_eq!(last, copies - 1, "{samples} of {copies}");
        }
    }

    #[test]
    fn a_slot_holds_as_many_calls_as_fill_it() {
        assert_eq!(samples_for([1.0; 2], SLOT), 1);
        assert_eq!(samples_for([1e-3; 2], SLOT), 20);
        assert_eq!(samples_for([0.0; 2], SLOT), MOST_SAMPLES);
        assert_eq!(samples_for([1e-3, 5e-4], SLOT), 40);
        assert_eq!(samples_for([1e-4, 1e-3], SLOT), 160, "no more than eight slots");
    }

    #[test]
    fn what_is_clocked_is_added() {
        let mut seconds = 1.0;
        assert_eq!(clocked(&mut seconds, || 7), 7);
        assert!(seconds > 1.0);
    }
}
