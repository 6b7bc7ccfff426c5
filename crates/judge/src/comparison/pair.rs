//! One pair of fresh processes. Both sides build, warm up, load and are timed in turns, case after case; after any
//! request the results of calls that are drawn at random are asked for and checked.
//!
//! A case is measured in one or two loads. A load has a known set of operands, on which both sides have warmed up, and
//! sets whose values no worker of the pair has seen. Lone calls on new and on known values come first, in random order;
//! the blocks follow, whose requests meet the remaining new sets somewhere among their calls. The second load brings new
//! values to addresses that are in use.

use std::ops::Range;
use std::time::Instant;

use gauntlet_parameters::Parameters;
use gauntlet_stats::{Arm, Block, BlockOrder};
use gauntlet_task::{Case, Output, Rules};
use gauntlet_worker::most_calls;
use rand::seq::SliceRandom;
use rand::{RngExt, rng};

use super::conduct::CaseConduct;
use super::device::{Readings, strangers};
use super::heating::{Heated, LoadPlan, heat};
use super::requests::{Deck, TimedRequest, checking, draw_checks, length};
use super::results::{Checker, OperandSet};
use super::side::{Purpose, Side};
use super::slot::Slot;
use super::warm_up::WarmingUp;
use crate::evidence::{Candidate, Spent};
use crate::runner::{ExaminationFailure, Operands, Readers, Workshop, sets};

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

/// Most lone calls on new values in a load.
const MOST_LONE: usize = 6;

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
    /// The least seconds of load before each slot; none where calls are isolated.
    load: Option<f64>,
    baseline: Side,
    candidate: Side,
    /// The state of the device after the slots of this case.
    readings: Readings,
    spent: Spent,
}

/// The slots of a block.
struct TakenBlock {
    /// In the order taken.
    slots: Vec<(Arm, Slot)>,
    /// The load before each of them; empty where calls are isolated.
    heated: Vec<(Arm, Heated)>,
    /// The calls on new values of the first request after each pause, for either of a side's turns: of the slot, or of the
    /// load before it.
    fresh: [Vec<usize>; 2],
}

/// What the requests of a case have in common.
struct Plan {
    /// Calls of a slot, about.
    target: usize,
    /// Most calls of a request.
    most: usize,
    /// The probability that results of a request are asked for.
    checking: f64,
}

impl Plan {
    /// A request like those of slots, without checks.
    fn deal(&self, deck: &mut Deck) -> TimedRequest {
        deck.deal(length(self.target, self.most, &mut rng()), &mut rng())
    }

    /// The request of a slot, whose results are asked for with this probability.
    fn deal_slot(&self, deck: &mut Deck, checking: f64) -> TimedRequest {
        let request = self.deal(deck);
        TimedRequest {
            checks: draw_checks(request.copies.len(), checking, &mut rng()),
            is_slot: true,
            ..request
        }
    }
}

impl<'a> Pair<'a> {
    /// Starts both processes in parallel, because driver start-up takes time. Runs on rayon's global pool, whose
    /// threads never end: a worker is killed when the thread that started it ends, so a scoped thread would kill it
    /// here.
    pub fn start(
        workshop: &'a Workshop,
        rules: &'a Rules,
        process: usize,
        load: Option<f64>,
        baseline: &Candidate,
        candidate: &Candidate,
    ) -> Result<Self, ExaminationFailure> {
        let mut spent = Spent::default();
        let hosted = baseline.is_hosted() && candidate.is_hosted();
        let (baseline, candidate) = clocked(&mut spent.workers, || {
            rayon::join(
                || Side::start(workshop, Arm::Baseline, baseline),
                || Side::start(workshop, Arm::Candidate, candidate),
            )
        });
        let (baseline, candidate) = (baseline?, candidate?);
        baseline.must_be_reached_like(&candidate)?;
        candidate.must_be_reached_like(&baseline)?;
        Ok(Self {
            workshop,
            rules,
            process,
            hosted,
            load,
            baseline,
            candidate,
            readings: Readings::default(),
            spent,
        })
    }

    /// The readers of fresh sets of operands.
    pub fn readers(&self, case: &Case) -> Readers {
        let sides = [&self.baseline, &self.candidate];
        sets::readers(sides.into_iter().all(|side| side.is_held(&case.sizes)))
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
        let mut conduct = CaseConduct::new(self.process, on_gpu(self.workshop));
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
            }
            self.spent.measuring += begun.elapsed().as_secs_f64();
        }
        self.spent.measuring -= self.spent.heating - heated_before;
        conduct.note_slots(&slots);
        if heated.is_empty() {
            conduct.note_fresh_in_slots(&fresh, &slots);
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
        let sides = [&self.baseline, &self.candidate];
        let keeps_results = sides.into_iter().any(|side| !side.is_held(&dealt.case.sizes));
        let most = if keeps_results {
            most_calls(&dealt.case.sizes).min(MOST_SAMPLES)
        } else {
            MOST_SAMPLES
        };
        // One after the other, since a worker may benchmark alternatives here.
        for (side, schedule) in [&mut self.baseline, &mut self.candidate]
            .into_iter()
            .zip(dealt.schedules)
        {
            side.ask(Purpose::Build, 1, |worker| {
                worker.build(&dealt.case.sizes, schedule)
            })?;
        }
        self.load_known(dealt, conduct)?;
        let slot = if on_gpu(self.workshop) { SLOT_ON_GPU } else { SLOT };
        let mut calls = [0.0; 2];
        let mut fetching: f64 = 0.0;
        for (place, arm) in [Arm::Baseline, Arm::Candidate].into_iter().enumerate() {
            let mut warming = WarmingUp::default();
            let mut last = 1;
            let is_held = self.side(arm).is_held(&dealt.case.sizes);
            self.turn(arm, &on_known(1, Vec::new()), &[0], checker)?;
            while !warming.is_over() {
                if warming.turn() > 0.0 {
                    last = length(samples_for([warming.turn(); 2], slot), most, &mut rng());
                }
                // A held worker's result can be read at once only, and one is enough here.
                let checks = (is_held && warming.calls() == 0).then(|| rng().random_range(0..last));
                let checks = checks.into_iter().collect();
                warming.note(&self.turn(arm, &on_known(last, checks), &[0], checker)?.0);
            }
            if !is_held {
                let (_, seconds) = checker.take(self.side(arm), rng().random_range(0..last), 0)?;
                fetching = fetching.max(seconds);
            }
            calls[place] = warming.turn();
            conduct.note_warm_up(arm, &warming);
        }
        self.baseline.begin_case();
        self.candidate.begin_case();
        let target = samples_for(calls, slot).min(most);
        Ok(Plan {
            target,
            most,
            checking: checking(target as f64 * calls[0].max(calls[1]), fetching),
        })
    }

    /// Lets each side load the known set, and prepare. This is the only time: later loads bring the same constant inputs,
    /// and with their other inputs present a worker could compute results here, where nothing is charged.
    fn load_known(&mut self, dealt: &Dealt, conduct: &mut CaseConduct) -> Result<(), ExaminationFailure> {
        let file = dealt.warm_up.operands.path();
        for side in self.in_turn(0) {
            side.ask(Purpose::Load, 1, |worker| worker.load(&[file], 1))?;
            let (bytes, effort) = side.ask(Purpose::Prepare, 1, |worker| worker.prepare())?;
            conduct.note_preparing(side.arm, effort.exchange, bytes);
        }
        Ok(())
    }

    /// Lets each side load the known set and these fresh ones; returns the number of copies.
    fn load_fresh(&mut self, dealt: &Dealt, fresh: Range<usize>) -> Result<usize, ExaminationFailure> {
        let known = &dealt.warm_up.operands;
        let new: Vec<&Operands> = dealt.fresh[fresh.clone()]
            .iter()
            .map(|set| &set.operands)
            .collect();
        let sets = 1 + new.len();
        // The known set is not dealt to slots, so the others have to leave the cache by themselves.
        let copies = sets * dealt.copies.div_ceil(new.len().max(1)).max(1);
        for side in self.in_turn(fresh.start) {
            side.ask(Purpose::Load, sets, |worker| {
                sets::load(worker, &dealt.case.sizes, known, &new, copies)
            })?;
        }
        Ok(copies)
    }

    /// Takes lone calls on new and on known values, in random order. At least half of the sets are left to the blocks.
    fn lone_calls(
        &mut self,
        plan: &Plan,
        deck: &mut Deck,
        numbers: &[usize],
        checker: &mut Checker,
        conduct: &mut CaseConduct,
    ) -> Result<(), ExaminationFailure> {
        // Known values are now in memory that no call has used.
        let (_, slots) = self.lone(plan, deck, 0, numbers, checker)?;
        conduct.note_alone(&slots);
        let mut sets: Vec<usize> = (1..numbers.len()).collect();
        sets.shuffle(&mut rng());
        // A single set goes to either.
        let lone = match sets.len() {
            1 => usize::from(rng().random::<bool>()),
            fresh => (fresh / 2).min(MOST_LONE),
        };
        sets.truncate(lone);
        let known = vec![0; sets.len()];
        sets.extend(known);
        sets.shuffle(&mut rng());
        for set in sets {
            let (request, slots) = self.lone(plan, deck, set, numbers, checker)?;
            conduct.note_alone(&slots);
            conduct.note_lone(!request.fresh.is_empty(), slots);
        }
        Ok(())
    }

    /// Takes one lone call of each side on a copy of a set, the first side drawn.
    fn lone(
        &mut self,
        plan: &Plan,
        deck: &mut Deck,
        set: usize,
        numbers: &[usize],
        checker: &mut Checker,
    ) -> Result<(TimedRequest, [Slot; 2]), ExaminationFailure> {
        let mut request = deck.lone(set, &mut rng());
        request.checks = draw_checks(1, plan.checking, &mut rng());
        let first = if rng().random() {
            Arm::Baseline
        } else {
            Arm::Candidate
        };
        let (one, checked) = self.turn(first, &request, numbers, checker)?;
        let (other, checked_too) = self.turn(other_than(first), &request, numbers, checker)?;
        compare(checker, first, &checked, &checked_too)?;
        let slots = match first {
            Arm::Baseline => [one, other],
            Arm::Candidate => [other, one],
        };
        Ok((request, slots))
    }

    /// Takes the slots of a block: each side gets both requests, dealt when the first side needs them.
    fn block(
        &mut self,
        order: BlockOrder,
        plan: &Plan,
        forced: Option<usize>,
        deck: &mut Deck,
        numbers: &[usize],
        checker: &mut Checker,
    ) -> Result<TakenBlock, ExaminationFailure> {
        let mut taken = TakenBlock {
            slots: Vec::new(),
            heated: Vec::new(),
            fresh: [Vec::new(), Vec::new()],
        };
        let mut requests: [Option<TimedRequest>; 2] = [None, None];
        let mut openings: [Option<TimedRequest>; 2] = [None, None];
        let mut results: [Option<(Arm, Vec<Output>)>; 2] = [None, None];
        for arm in order.arms() {
            let place = taken.slots.iter().filter(|(other, _)| *other == arm).count();
            if let Some(seconds) = self.load {
                let opening = openings[place].get_or_insert_with(|| plan.deal(deck)).clone();
                taken.fresh[place].clone_from(&opening.fresh);
                let load = LoadPlan {
                    seconds,
                    checking: plan.checking,
                };
                let heated = self.heat(arm, &load, opening, || plan.deal(deck), numbers, checker)?;
                taken.heated.push((arm, heated));
            }
            let share = if forced == Some(place) { 1.0 } else { plan.checking };
            let request = requests[place].get_or_insert_with(|| plan.deal_slot(deck, share));
            if self.load.is_none() {
                taken.fresh[place].clone_from(&request.fresh);
            }
            let (slot, checked) = self.turn(arm, request, numbers, checker)?;
            taken.slots.push((arm, slot));
            match results[place].take() {
                None => results[place] = Some((arm, checked)),
                Some((first, before)) => compare(checker, first, &before, &checked)?,
            }
        }
        Ok(taken)
    }

    /// Puts a side under load.
    fn heat(
        &mut self,
        arm: Arm,
        load: &LoadPlan,
        opening: TimedRequest,
        deal: impl FnMut() -> TimedRequest,
        numbers: &[usize],
        checker: &mut Checker,
    ) -> Result<Heated, ExaminationFailure> {
        let begun = Instant::now();
        let turn = |request: &TimedRequest| Ok(self.turn(arm, request, numbers, checker)?.0);
        let heated = heat(load, opening, &mut rng(), deal, turn)?;
        self.spent.heating += begun.elapsed().as_secs_f64();
        Ok(heated)
    }

    fn side(&mut self, arm: Arm) -> &mut Side {
        match arm {
            Arm::Baseline => &mut self.baseline,
            Arm::Candidate => &mut self.candidate,
        }
    }

    /// Reads the state of the device after a slot, before its results are asked for.
    fn read_device(&mut self, arm: Arm) {
        if let Some(reading) = self.workshop.read_device() {
            let sides = [&mut self.baseline, &mut self.candidate];
            let strangers = strangers(reading.processes.as_deref(), sides);
            self.readings.note(arm, &reading, strangers);
        }
    }

    /// One side's turn: the request, and the results that are asked for.
    fn turn(
        &mut self,
        arm: Arm,
        request: &TimedRequest,
        numbers: &[usize],
        checker: &mut Checker,
    ) -> Result<(Slot, Vec<Output>), ExaminationFailure> {
        let side = self.side(arm);
        let set = |call: usize| numbers[request.copies[call] % numbers.len()];
        if side.is_held(checker.sizes()) {
            let (slot, outputs) = side.step(request, set, checker)?;
            if request.is_slot {
                self.read_device(arm);
            }
            for (call, output) in request.checks.iter().zip(&outputs) {
                checker.check(arm, set(*call), output)?;
            }
            return Ok((slot, outputs));
        }
        let slot = side.time(&request.copies)?;
        if request.is_slot {
            self.read_device(arm);
        }
        let mut outputs = Vec::new();
        for call in &request.checks {
            outputs.push(checker.take(self.side(arm), *call, set(*call))?.0);
        }
        Ok((slot, outputs))
    }

    /// Both sides in alternating order: the side that goes first may meet other caches or another clock than the side
    /// that follows.
    fn in_turn(&mut self, place: usize) -> [&mut Side; 2] {
        let mut sides = [&mut self.baseline, &mut self.candidate];
        sides.rotate_left((self.process + place) % 2);
        sides
    }
}

/// A request for calls on the only copy of the known set.
fn on_known(calls: usize, checks: Vec<usize>) -> TimedRequest {
    TimedRequest {
        copies: vec![0; calls],
        fresh: Vec::new(),
        checks,
        is_slot: false,
    }
}

fn other_than(arm: Arm) -> Arm {
    match arm {
        Arm::Baseline => Arm::Candidate,
        Arm::Candidate => Arm::Baseline,
    }
}

/// Compares the results of the same calls; `first` is the side of the first ones.
fn compare(
    checker: &Checker,
    first: Arm,
    one: &[Output],
    other: &[Output],
) -> Result<(), ExaminationFailure> {
    one.iter().zip(other).try_for_each(|(one, other)| match first {
        Arm::Baseline => checker.compare(one, other),
        Arm::Candidate => checker.compare(other, one),
    })
}

/// Whether calls are computed on a GPU. A worker's CPU time then does not show how much it computes.
fn on_gpu(workshop: &Workshop) -> bool {
    workshop.instruments().is_some()
}

/// The fresh sets of each load, and its blocks: two loads if there are enough of both.
fn loads(sets: usize, orders: &[BlockOrder]) -> Vec<(Range<usize>, &[BlockOrder])> {
    if sets < 2 || orders.len() < 2 {
        return vec![(0..sets, orders)];
    }
    let (half, (before, after)) = (sets.div_ceil(2), orders.split_at(orders.len().div_ceil(2)));
    vec![(0..half, before), (half..sets, after)]
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

    #[test]
    fn a_slot_holds_as_many_calls_as_fill_it() {
        assert_eq!(samples_for([1.0; 2], SLOT), 1);
        assert_eq!(samples_for([1e-3; 2], SLOT), 20);
        assert_eq!(samples_for([0.0; 2], SLOT), MOST_SAMPLES);
        assert_eq!(samples_for([1e-3, 5e-4], SLOT), 40);
        assert_eq!(samples_for([1e-4, 1e-3], SLOT), 160, "no more than eight slots");
    }

    #[test]
    fn a_second_load_brings_new_values_to_used_addresses() {
        let orders = [BlockOrder::Abba, BlockOrder::Baab, BlockOrder::Abba];
        let split = |sets, orders| {
            let parts = loads(sets, orders);
            parts
                .into_iter()
                .map(|(sets, orders)| (sets, orders.len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(split(8, &orders), [(0..4, 2), (4..8, 1)]);
        assert_eq!(split(2, &orders), [(0..1, 2), (1..2, 1)]);
        assert_eq!(split(1, &orders), [(0..1, 3)]);
        assert_eq!(split(4, &orders[..1]), [(0..4, 1)]);
    }

    #[test]
    fn what_is_clocked_is_added() {
        let mut seconds = 1.0;
        assert_eq!(clocked(&mut seconds, || 7), 7);
        assert!(seconds > 1.0);
    }
}
