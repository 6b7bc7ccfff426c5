//! One pair of fresh processes: both sides build, load and are timed in turns, case after case, and what they computed
//! while they were timed is looked at.

use gauntlet_executor::protocol::Sample as Timing;
use gauntlet_problem::{Case, Coverage, ErrorMeasures, Expected, Inputs, Oracle, Output};
use gauntlet_stats::{Arm, Block, BlockOrder, median};

use super::conduct::CaseConduct;
use super::contender::Contender;
use crate::candidate::Candidate;
use crate::gates::Trouble;
use crate::gates::right::{fault, fetch};
use crate::operands::Operands;
use crate::round::Correctness;
use crate::workshop::Workshop;

/// Calls are gathered until they fill this long: on a shared two-core machine lone calls of 4…25 ms strayed by 10 % in a
/// block, and medians of a slot by a third of that. Nor do the clock's grain and the exchange of messages show.
const SLOT: f64 = 20e-3;

/// Most calls gathered in one slot; their times travel as text, a microsecond or two each.
const MOST_SAMPLES: usize = 4096;

/// Two right results differ by up to what each may be off.
const TWO_ERRORS: f64 = 2.0;

/// A case with the operands that a pair is given.
pub struct Dealt<'c> {
    /// The case.
    pub case: &'c Case,
    /// Operands to warm up on.
    pub warm_up: &'c Operands,
    /// Operands that no worker has seen before.
    pub fresh: &'c Operands,
    /// The same.
    pub inputs: &'c Inputs,
    /// How many copies of them to rotate over.
    pub copies: usize,
}

/// What came of a case.
pub struct Measured {
    /// The blocks.
    pub blocks: Vec<Block>,
    /// How both sides behaved.
    pub conduct: CaseConduct,
}

/// A pair at work.
pub struct Pair<'a> {
    workshop: &'a Workshop,
    rules: &'a Correctness,
    process: usize,
    control: Contender<'a>,
    candidate: Contender<'a>,
}

impl<'a> Pair<'a> {
    /// Starts both processes.
    pub fn start(
        workshop: &'a Workshop,
        rules: &'a Correctness,
        process: usize,
        control: &'a Candidate,
        candidate: &'a Candidate,
    ) -> Result<Self, Trouble> {
        Ok(Self {
            workshop,
            rules,
            process,
            control: Contender::start(workshop, Arm::Baseline, control)?,
            candidate: Contender::start(workshop, Arm::Candidate, candidate)?,
        })
    }

    /// Measures a case in blocks of the given orders.
    pub fn measure(&mut self, dealt: &Dealt, orders: &[BlockOrder]) -> Result<Measured, Trouble> {
        let mut conduct = CaseConduct::new(self.process);
        self.prepare(dealt, &mut conduct)?;
        let samples = self.samples(dealt)?;
        let mut slots = Vec::new();
        let mut blocks = Vec::new();
        let mut next_copy = 0;
        for order in orders {
            let mut block = Block::new(self.process, Vec::new(), Vec::new());
            for arm in order.arms() {
                let slot = self.side(arm).time(samples, next_copy)?;
                let (times, clocks) = match arm {
                    Arm::Baseline => (&mut block.baseline, &mut block.baseline_clocks),
                    Arm::Candidate => (&mut block.candidate, &mut block.candidate_clocks),
                };
                times.push(slot.median);
                clocks.extend(slot.clock);
                slots.push((arm, slot));
                next_copy = (next_copy + samples) % dealt.copies;
            }
            // Some clocks alone would not say to which times they belong.
            if block.baseline_clocks.len() < block.baseline.len() {
                block.baseline_clocks.clear();
            }
            if block.candidate_clocks.len() < block.candidate.len() {
                block.candidate_clocks.clear();
            }
            blocks.push(block);
        }
        conduct.note_slots(&slots);
        conduct.note_cpu(self.control.end_case(), self.candidate.end_case());
        self.look_at_results(dealt)?;
        Ok(Measured { blocks, conduct })
    }

    /// Builds, warms up on operands that do not count, and takes the first call on those that do: what a side has kept
    /// from earlier operands does not help it there.
    fn prepare(&mut self, dealt: &Dealt, conduct: &mut CaseConduct) -> Result<(), Trouble> {
        for side in [&mut self.control, &mut self.candidate] {
            let schedule = &side.candidate.schedule;
            side.ask(|worker| worker.build(&dealt.case.problem, schedule))?;
            side.ask(|worker| worker.load(dealt.warm_up.path(), 1))?;
            side.time(1, 0)?;
            side.time(1, 0)?;
        }
        self.control.begin_case();
        self.candidate.begin_case();
        let (_, candidate) = self.candidate.ask(|worker| worker.load(dealt.fresh.path(), 1))?;
        let (_, control) = self.control.ask(|worker| worker.load(dealt.fresh.path(), 1))?;
        let first_of_control = self.control.time(1, 0)?;
        let first_of_candidate = self.candidate.time(1, 0)?;
        conduct.note_first_calls(&first_of_control, &first_of_candidate);
        conduct.note_loading(control, candidate, first_of_control.median);
        if dealt.copies > 1 {
            for side in [&mut self.control, &mut self.candidate] {
                side.ask(|worker| worker.load(dealt.fresh.path(), dealt.copies))?;
            }
        }
        Ok(())
    }

    /// How many calls fill a slot, by the control; the same for both sides, so that messages weigh the same.
    fn samples(&mut self, dealt: &Dealt) -> Result<usize, Trouble> {
        let few = self.control.time(dealt.copies.min(3), 0)?;
        self.candidate.time(dealt.copies.min(3), 0)?;
        Ok(samples_for(few.median))
    }

    fn side(&mut self, arm: Arm) -> &mut Contender<'a> {
        match arm {
            Arm::Baseline => &mut self.control,
            Arm::Candidate => &mut self.candidate,
        }
    }

    /// What the last timed calls left behind must be results: a few elements by the oracle, and all of them by the
    /// other side's, which no choice of elements can be guessed for.
    fn look_at_results(&mut self, dealt: &Dealt) -> Result<(), Trouble> {
        if !dealt.fresh.are_untouched() || !dealt.warm_up.are_untouched() {
            let fault = "the file of operands is not as it was written";
            return Err(wrong(Arm::Candidate, dealt.case, fault));
        }
        let problem = &dealt.case.problem;
        let expected = Oracle::compute(problem, dealt.inputs, Coverage::spot(problem))?;
        let (workshop, rules) = (self.workshop, self.rules);
        let look = |side: &mut Contender| -> Result<Output, Trouble> {
            let (output, _) = side.fetch(workshop, problem)?;
            let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
            match fault(dealt.case, dealt.case.inputs, &errors, rules) {
                None => Ok(output),
                Some(fault) => Err(wrong(side.arm, dealt.case, &fault)),
            }
        };
        let control = look(&mut self.control)?;
        let candidate = look(&mut self.candidate)?;
        let errors = ErrorMeasures::between(&candidate, &Expected::of(&control), rules.tolerance);
        let limit = TWO_ERRORS * rules.nrmse;
        if errors.nrmse > limit {
            let fault = format!(
                "it is not the control's result: NRMSE {:.2e} is over {limit:.2e}; {errors}",
                errors.nrmse
            );
            return Err(wrong(Arm::Candidate, dealt.case, &fault));
        }
        Ok(())
    }
}

fn wrong(arm: Arm, case: &Case, fault: &str) -> Trouble {
    let reason = format!("{}, in calls that were timed: {fault}", case.name);
    match arm {
        Arm::Baseline => Trouble::Void(format!("the control is wrong: {reason}")),
        Arm::Candidate => Trouble::Wrong(reason),
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
    /// The exchange by the coordinator's clock.
    pub exchange: f64,
    /// The median clock in MHz, if there is one for every call.
    pub clock: Option<f64>,
}

impl Contender<'_> {
    /// Times calls. Calls that add up to more than the coordinator's own clock saw are not times.
    fn time(&mut self, samples: usize, first_copy: usize) -> Result<Slot, Trouble> {
        let ((timed, _), exchange) = self.ask(|worker| worker.time(samples, first_copy, false))?;
        slot(&timed, exchange)
    }

    fn fetch(
        &mut self,
        workshop: &Workshop,
        problem: &gauntlet_problem::Problem,
    ) -> Result<(Output, f64), Trouble> {
        self.ask(|worker| fetch(workshop, worker, problem))
    }
}

fn slot(timed: &[Timing], exchange: f64) -> Result<Slot, Trouble> {
    let calls: Vec<f64> = timed.iter().map(|timing| timing.call).collect();
    let sum: f64 = calls.iter().sum();
    if sum > exchange {
        return Err(Trouble::Void(format!(
            "a worker reports calls of {sum:.6} s together in an exchange that took {exchange:.6} s"
        )));
    }
    let possible = |clock: &f64| clock.is_finite() && *clock > 0.0;
    let clocks: Option<Vec<f64>> = timed.iter().map(|timing| timing.clock.filter(possible)).collect();
    Ok(Slot {
        calls: calls.len(),
        median: median(&calls),
        sum,
        exchange,
        clock: clocks.map(|clocks| median(&clocks)),
    })
}

fn samples_for(call: f64) -> usize {
    ((SLOT / call.max(1e-9)).ceil() as usize).clamp(1, MOST_SAMPLES)
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

    #[test]
    fn calls_longer_than_the_exchange_are_refused() {
        assert_eq!(
            slot(&[timing(1.0), timing(3.0), timing(2.0)], 6.5)
                .unwrap()
                .median,
            2.0
        );
        assert!(matches!(
            slot(&[timing(4.0), timing(3.0)], 6.5),
            Err(Trouble::Void(_))
        ));
    }

    #[test]
    fn a_slot_has_a_clock_if_every_call_has() {
        let at = |clock| Timing { clock, ..timing(1.0) };
        let clock = |timed: &[Timing]| slot(timed, 9.0).unwrap().clock;
        assert_eq!(
            clock(&[at(Some(1400.0)), at(Some(1500.0)), at(Some(1980.0))]),
            Some(1500.0)
        );
        assert_eq!(clock(&[at(Some(1400.0)), at(None)]), None);
        assert_eq!(clock(&[at(Some(0.0))]), None);
    }

    #[test]
    fn a_slot_holds_as_many_calls_as_fill_it() {
        assert_eq!(samples_for(1.0), 1);
        assert_eq!(samples_for(1e-3), 20);
        assert_eq!(samples_for(0.0), MOST_SAMPLES);
    }
}
