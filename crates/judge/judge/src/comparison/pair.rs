//! One pair of fresh processes. Both sides build, warm up, load and are timed in turns, case after case; after any
//! request the results of calls that are drawn at random are asked for and checked.
//!
//! A case is measured in one or two loads. A load has a known set of operands, on which both sides have warmed up, and
//! sets whose values no worker of the pair has seen. Lone calls on new and on known values come first, in random order;
//! the blocks follow, whose requests meet the remaining new sets somewhere among their calls. The second load brings new
//! values to addresses that are in use.

mod loading;
mod plan;
mod processors;
mod trusted;
mod turns;

use std::time::Instant;

use gauntlet_parameters::Parameters;
use gauntlet_stats::{Arm, Block, BlockOrder};
use gauntlet_task::{Case, Rules};
use gauntlet_worker::most_calls;
use gauntlet_worker::protocol::{HOLD, Scope};
use rand::{RngExt, rng};

use super::conduct::CaseConduct;
use super::device::Readings;
use super::heating::{Heated, least_calls};
use super::requests::{Deck, TimedRequest, checking, length};
use super::results::{Checker, OperandSet};
use super::side::{Purpose, Side};
use super::slot::Slot;
use super::warm_up::WarmingUp;
use crate::evidence::{Candidate, Measurement, Spent, Trust};
use crate::runner::{ExaminationFailure, Readers, Workshop, sets, side_by_side};
use plan::{MAX_SAMPLES, Plan, SLOT, SLOT_ON_GPU, hold_for, loads, samples_for};

/// A case with the operands that a pair is given.
pub struct Dealt<'c> {
    /// The case.
    pub case: &'c Case,
    /// Operands to warm up on.
    pub warm_up: &'c OperandSet,
    /// Sets of operands that no worker has seen before, at least one.
    pub fresh: &'c [OperandSet],
    /// How many copies to rotate over, at least.
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
    /// Whether hosts of this program load operands and hand out results on both sides.
    hosted: bool,
    /// Whether neither kernel has code in the process that clocks it.
    device_only: bool,
    /// Whether some calls are clocked as a whole too: the candidate has code in the process that clocks calls on the device alone.
    takes_whole_calls: bool,
    /// Whether the kernels are watched for cheats.
    trust: Trust,
    /// The least seconds of load before each slot; none where calls are isolated.
    load: Option<f64>,
    /// From where to where calls are clocked; none on a CPU.
    scope: Option<Scope>,
    baseline: Side,
    candidate: Side,
    /// Whether both sides may run on one processor only.
    shares_processor: bool,
    /// The state of the device after the slots of this case.
    readings: Readings,
    spent: Spent,
}

impl<'a> Pair<'a> {
    /// Starts both processes side by side, because importing libraries and opening a device take seconds. Leaves rayon's
    /// threads to those that make operands meanwhile.
    pub fn start(
        workshop: &'a Workshop,
        rules: &'a Rules,
        process: usize,
        measurement: &Measurement,
        baseline: &Candidate,
        candidate: &Candidate,
    ) -> Result<Self, ExaminationFailure> {
        let mut spent = Spent::default();
        let hosted = baseline.is_hosted() && candidate.is_hosted();
        let device_only = baseline.device_only && candidate.device_only;
        let has_host = !candidate.device_only;
        let (baseline, candidate) = clocked(&mut spent.workers, || {
            side_by_side(
                || Side::start(workshop, Arm::Baseline, baseline, measurement.trust),
                || Side::start(workshop, Arm::Candidate, candidate, measurement.trust),
            )
        });
        let (mut baseline, mut candidate) = (baseline?, candidate?);
        baseline.must_be_reached_like(&candidate)?;
        candidate.must_be_reached_like(&baseline)?;
        // The hold before each call of a held worker on a GPU is far longer than the call, so a worker without one would show
        // nothing of what lies around it.
        let held_apart = on_gpu(workshop) && !(baseline.is_held() && candidate.is_held());
        // The coordinator clocks single calls to find cheats, so it lets the hosts of trusted kernels make their calls in a row.
        if held_apart || !measurement.trust.is_watched() {
            baseline.release();
            candidate.release();
        }
        let scope = common_scope(
            measurement.scope,
            [&baseline, &candidate].map(Side::has_device_times),
        );
        if scope == Scope::Call {
            baseline.clock(scope);
            candidate.clock(scope);
        }
        Ok(Self {
            workshop,
            rules,
            process,
            hosted,
            device_only,
            takes_whole_calls: on_gpu(workshop)
                && scope == Scope::Device
                && has_host
                && measurement.trust.is_watched(),
            trust: measurement.trust,
            load: measurement.load(),
            scope: on_gpu(workshop).then_some(scope),
            baseline,
            candidate,
            shares_processor: false,
            readings: Readings::default(),
            spent,
        })
    }

    /// Seconds that starting both processes took.
    pub fn starting(&self) -> f64 {
        self.spent.workers
    }

    /// The same pair, whose processes started beside those of others and took this share of the time.
    pub fn started_in(mut self, seconds: f64) -> Self {
        self.spent.workers = seconds;
        self
    }

    /// From where to where calls are clocked; none on a CPU.
    pub fn scope(&self) -> Option<Scope> {
        self.scope
    }

    /// Whether each side's host can say what the device did in a call; none on a CPU.
    pub fn tells_activity(&self) -> Option<[bool; 2]> {
        self.scope
            .map(|_| [&self.baseline, &self.candidate].map(Side::tells_activity))
    }

    /// The readers of fresh sets of operands.
    pub fn readers(&self) -> Readers {
        sets::readers(self.are_held())
    }

    fn are_held(&self) -> bool {
        self.baseline.is_held() && self.candidate.is_held()
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
            side_by_side(|| drop(baseline), || drop(candidate));
        });
        spent
    }

    /// Measures a case in blocks of the given orders.
    pub fn measure(&mut self, dealt: &Dealt, orders: &[BlockOrder]) -> Result<Measured, ExaminationFailure> {
        if !self.trust.is_watched() {
            return self.measure_trusted(dealt, orders);
        }
        let mut conduct = CaseConduct::new(self.process, on_gpu(self.workshop));
        conduct.note_device_only(self.device_only);
        let sets = std::iter::once(dealt.warm_up).chain(dealt.fresh).collect();
        let mut checker = Checker::new(self.workshop, self.rules, dealt.case, sets);
        let begun = Instant::now();
        let plan = self.prepare(dealt, &mut checker, &mut conduct)?;
        self.spent.preparing += begun.elapsed().as_secs_f64();
        let checked = rng().random_range(0..2 * orders.len().max(1));
        let mut slots: Vec<(Arm, Slot)> = Vec::new();
        let mut heated: Vec<(Arm, Heated)> = Vec::new();
        let heated_before = self.spent.heating;
        let mut blocks = Vec::new();
        let mut fresh: Vec<(usize, usize)> = Vec::new();
        for (sets, orders) in loads(dealt.fresh.len(), orders) {
            let begun = Instant::now();
            let copies = self.load_fresh(dealt, sets.clone())?;
            let mut deck = Deck::new(copies, 1 + sets.len(), &[0]);
            let numbers: Vec<usize> = std::iter::once(0).chain(sets.map(|set| set + 1)).collect();
            self.lone_calls(&plan, &mut deck, &numbers, &mut checker, &mut conduct)?;
            self.spent.preparing += begun.elapsed().as_secs_f64();
            let begun = Instant::now();
            for order in orders {
                let forced = checked.checked_sub(2 * blocks.len()).filter(|place| *place < 2);
                let taken = self.block(*order, &plan, forced, &mut deck, &numbers, &mut checker)?;
                for (place, calls) in taken.fresh.iter().enumerate() {
                    fresh.extend(calls.iter().map(|call| (2 * blocks.len() + place, *call)));
                }
                blocks.push(block(self.process, &taken.slots));
                slots.extend(taken.slots);
                heated.extend(taken.heated);
                // A call on known values is nothing that a worker could tell from one on new values.
                let (_, alone) = self.lone(&plan, &mut deck, 0, &numbers, &mut checker)?;
                conduct.note_alone(&alone);
                if self.takes_whole_calls {
                    let slots = self.whole_calls(&plan, &deck, &numbers, &mut checker)?;
                    conduct.note_whole_calls(&slots);
                }
            }
            self.spent.measuring += begun.elapsed().as_secs_f64();
        }
        self.spent.measuring -= self.spent.heating - heated_before;
        conduct.note_slots(&slots);
        if heated.is_empty() {
            conduct.note_fresh_in_slots(&fresh, &slots);
            conduct.note_loads(&slots);
        } else {
            let firsts: Vec<_> = heated
                .iter()
                .map(|(arm, one)| (*arm, one.first.clone()))
                .collect();
            conduct.note_fresh_in_slots(&fresh, &firsts);
            conduct.note_heating(&heated, &slots);
        }
        conduct.note_readings(std::mem::take(&mut self.readings));
        let accounts = [self.baseline.end_case(), self.candidate.end_case()];
        conduct.note_accounts(accounts, self.hosted);
        let begun = Instant::now();
        checker.files_are_untouched()?;
        self.spent.results += begun.elapsed().as_secs_f64();
        Ok(Measured { blocks, conduct })
    }

    /// Builds both sides and lets them warm up on operands that are known from then on.
    fn prepare(
        &mut self,
        dealt: &Dealt,
        checker: &mut Checker,
        conduct: &mut CaseConduct,
    ) -> Result<Plan, ExaminationFailure> {
        let keeps_results = !self.are_held();
        let most = if keeps_results {
            most_calls(&dealt.case.sizes).min(MAX_SAMPLES)
        } else {
            MAX_SAMPLES
        };
        // One after the other, since a worker may benchmark alternatives here. The order alternates: on an H100 the side that
        // built first in every pair was 0.8 % faster than its twin, by where its memory lay.
        for side in self.in_turn(0) {
            let schedule = dealt.schedules[side.arm.index()];
            side.ask(Purpose::Build, 1, |worker| {
                worker.build(&dealt.case.sizes, schedule)
            })?;
        }
        self.load_known(dealt, conduct)?;
        // Between the calls of held workers operands are moved, and slots are short of calls rather than long.
        let slot = if on_gpu(self.workshop) && keeps_results {
            SLOT_ON_GPU
        } else {
            SLOT
        };
        // With the shortest loads where calls will have longer ones: operands are sealed then, which the plan has to know.
        let is_heated = self.load_in_slots().is_some();
        self.hold_back_for(HOLD);
        let mut calls = [0.0; 2];
        let (mut fetching, mut pause, mut host): (f64, f64, f64) = (0.0, 0.0, 0.0);
        for arm in self.in_turn(0).map(|side| side.arm) {
            let mut warming = WarmingUp::new(self.trust);
            let mut last = 1;
            let is_held = self.side(arm).is_held();
            if is_held {
                fetching = fetching.max(self.fetching(arm, checker)?);
            } else {
                self.turn(arm, &on_known(1, Vec::new()), &[0], checker)?;
            }
            while !warming.is_over() {
                if warming.turn() > 0.0 {
                    last = length(samples_for([warming.turn(); 2], slot), most, &mut rng());
                }
                let request = TimedRequest {
                    heat: vec![0.0; if is_heated { last } else { 0 }],
                    ..on_known(last, Vec::new())
                };
                warming.note(&self.turn(arm, &request, &[0], checker)?.0);
            }
            pause = pause.max(warming.pause());
            host = host.max(warming.host());
            if !is_held {
                let (_, seconds) = checker.take(self.side(arm), rng().random_range(0..last), 0)?;
                fetching = fetching.max(seconds);
            }
            calls[arm.index()] = warming.turn();
            conduct.note_warm_up(arm, &warming);
        }
        let hold = hold_for(host);
        self.hold_back_for(hold);
        if !keeps_results && self.scope == Some(Scope::Device) {
            conduct.note_hold(hold);
        }
        self.baseline.begin_case();
        self.candidate.begin_case();
        let least = self
            .load_in_slots()
            .map_or(1, |seconds| least_calls(seconds, pause));
        let target = samples_for(calls, slot).max(least).min(most);
        Ok(Plan {
            target,
            most,
            checking: checking(target as f64 * calls[0].max(calls[1]), fetching),
            pause,
        })
    }

    /// Lets both hosts hold the device back before each call for this many seconds: the coordinator's clock sees it.
    fn hold_back_for(&mut self, seconds: f64) {
        self.baseline.hold_back_for(seconds);
        self.candidate.hold_back_for(seconds);
    }

    /// The least seconds of load before a slot, if both sides can have it within their slots.
    pub(super) fn load_in_slots(&self) -> Option<f64> {
        self.load
            .filter(|_| self.baseline.heats() && self.candidate.heats())
    }

    /// Takes the first calls of a held worker, whose results can be read at once only; returns the seconds by which a call
    /// whose result is read and checked takes longer.
    fn fetching(&mut self, arm: Arm, checker: &mut Checker) -> Result<f64, ExaminationFailure> {
        let mut seconds = [0.0; 3];
        // The first check also computes what is expected, once for a set.
        for (checks, seconds) in [vec![0], Vec::new(), vec![0]].into_iter().zip(&mut seconds) {
            clocked(seconds, || self.turn(arm, &on_known(1, checks), &[0], checker))?;
        }
        Ok((seconds[2] - seconds[1]).max(0.0))
    }
}

/// A request for calls on the only copy of the known set.
fn on_known(calls: usize, checks: Vec<usize>) -> TimedRequest {
    TimedRequest {
        copies: vec![0; calls],
        fresh: Vec::new(),
        checks,
        is_slot: false,
        heat: Vec::new(),
    }
}

/// From where to where the calls of both sides are clocked: whole calls unless both hosts can clock the device alone.
fn common_scope(wanted: Scope, have_device_times: [bool; 2]) -> Scope {
    if have_device_times == [true; 2] {
        wanted
    } else {
        Scope::Call
    }
}

/// Whether calls are computed on a GPU. A worker's CPU time then does not show how much it computes.
fn on_gpu(workshop: &Workshop) -> bool {
    workshop.instruments().is_some()
}

fn block(process: usize, slots: &[(Arm, Slot)]) -> Block {
    let of = |wanted: Arm, figure: fn(&Slot) -> Option<f64>| -> Vec<f64> {
        let own = slots.iter().filter(|(arm, _)| *arm == wanted);
        own.filter_map(|(_, slot)| figure(slot)).collect()
    };
    let times = |arm| of(arm, |slot| Some(slot.typical));
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

    #[test]
    fn both_sides_are_clocked_alike() {
        for (wanted, can, scope) in [
            (Scope::Device, [true, true], Scope::Device),
            (Scope::Device, [true, false], Scope::Call),
            (Scope::Device, [false, true], Scope::Call),
            (Scope::Call, [true, true], Scope::Call),
        ] {
            assert_eq!(common_scope(wanted, can), scope, "{wanted}, {can:?}");
        }
    }

    #[test]
    fn what_is_clocked_is_added() {
        let mut seconds = 1.0;
        assert_eq!(clocked(&mut seconds, || 7), 7);
        assert!(seconds > 1.0);
    }
}
