//! The turns of the two sides: a request goes to one side, then to the other, and results of the same calls are compared.

use std::time::Instant;

use gauntlet_stats::{Arm, BlockOrder};
use gauntlet_task::Output;
use gauntlet_worker::protocol::Scope;
use rand::seq::SliceRandom;
use rand::{RngExt, rng};

use super::Pair;
use super::plan::Plan;
use crate::comparison::conduct::CaseConduct;
use crate::comparison::device::strangers;
use crate::comparison::heating::{Heated, LoadPlan, heat};
use crate::comparison::requests::{Deck, TimedRequest, draw_checks};
use crate::comparison::results::Checker;
use crate::comparison::side::Side;
use crate::comparison::slot::Slot;
use crate::runner::ExaminationFailure;

/// Most lone calls on new values in a load.
const MAX_LONE: usize = 6;

/// Whole calls of a request, enough for a lower quartile: a call takes one to two milliseconds with the copies around it.
const WHOLE_CALLS: usize = 12;

/// The slots of a block.
pub(super) struct TakenBlock {
    /// In the order taken.
    pub slots: Vec<(Arm, Slot)>,
    /// The load before each of them; empty where calls are isolated, or the load is part of the slots.
    pub heated: Vec<(Arm, Heated)>,
    /// The calls on new values of the first request after each pause, for either of a side's turns: of the slot, or of the
    /// load before it.
    pub fresh: [Vec<usize>; 2],
}

impl Pair<'_> {
    /// Takes lone calls on new and on known values, in random order. At least half of the sets are left to the blocks.
    pub(super) fn lone_calls(
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
            fresh => (fresh / 2).min(MAX_LONE),
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
    pub(super) fn lone(
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

    /// Takes some calls of each side that are clocked as a whole, the first side drawn. Their results are asked for like those of slots.
    pub(super) fn whole_calls(
        &mut self,
        plan: &Plan,
        deck: &Deck,
        numbers: &[usize],
        checker: &mut Checker,
    ) -> Result<[(Arm, Slot); 2], ExaminationFailure> {
        let mut request = deck.known(WHOLE_CALLS.min(plan.most), &mut rng());
        request.checks = draw_checks(request.copies.len(), plan.checking, &mut rng());
        let first = if rng().random() {
            Arm::Baseline
        } else {
            Arm::Candidate
        };
        self.clock(Scope::Call);
        let (one, checked) = self.turn(first, &request, numbers, checker)?;
        let (other, checked_too) = self.turn(other_than(first), &request, numbers, checker)?;
        self.clock(Scope::Device);
        compare(checker, first, &checked, &checked_too)?;
        Ok([(first, one), (other_than(first), other)])
    }

    fn clock(&mut self, scope: Scope) {
        self.baseline.clock(scope);
        self.candidate.clock(scope);
    }

    /// Takes the slots of a block: each side gets both requests, dealt when the first side needs them.
    pub(super) fn block(
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
        let within = self.load_in_slots();
        let before = self.load.filter(|_| within.is_none());
        for arm in order.arms() {
            let place = taken.slots.iter().filter(|(other, _)| *other == arm).count();
            if let Some(seconds) = before {
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
            let request = requests[place].get_or_insert_with(|| plan.deal_slot(deck, share, within));
            if before.is_none() {
                taken.fresh[place].clone_from(&request.fresh);
            }
            let (slot, checked) = self.turn(arm, request, numbers, checker)?;
            self.spent.heating += slot.loads.iter().map(|load| load.seconds).sum::<f64>();
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
        let clock = || begun.elapsed().as_secs_f64();
        let heated = heat(load, opening, &mut rng(), clock, deal, turn)?;
        self.spent.heating += begun.elapsed().as_secs_f64();
        Ok(heated)
    }

    /// Reads the state of the device after a slot, before its results are asked for.
    fn read_device(&mut self, arm: Arm) {
        if let Some(reading) = self.workshop.read_device() {
            let strangers = reading.processes.as_deref().and_then(strangers);
            self.readings.note(arm, &reading, strangers);
        }
    }

    /// One side's turn: the request, and the results that are asked for.
    pub(super) fn turn(
        &mut self,
        arm: Arm,
        request: &TimedRequest,
        numbers: &[usize],
        checker: &mut Checker,
    ) -> Result<(Slot, Vec<Output>), ExaminationFailure> {
        let is_trusted = !self.trust.is_watched();
        let side = self.side(arm);
        let set = |call: usize| numbers[request.copies[call] % numbers.len()];
        if side.is_held() {
            let (slot, outputs) = side.step(request, set, checker)?;
            if request.is_slot {
                self.read_device(arm);
            }
            for (call, output) in request.checks.iter().zip(&outputs) {
                checker.check(arm, set(*call), output)?;
            }
            return Ok((slot, outputs));
        }
        let results = is_trusted.then_some(request.checks.as_slice());
        let slot = side.time(&request.copies, results)?;
        if request.is_slot {
            self.read_device(arm);
        }
        let mut outputs = Vec::new();
        for call in &request.checks {
            outputs.push(checker.take(self.side(arm), *call, set(*call))?.0);
        }
        Ok((slot, outputs))
    }

    pub(super) fn side(&mut self, arm: Arm) -> &mut Side {
        match arm {
            Arm::Baseline => &mut self.baseline,
            Arm::Candidate => &mut self.candidate,
        }
    }

    /// Both sides in alternating order: the side that goes first may meet other caches or another clock than the side
    /// that follows.
    pub(super) fn in_turn(&mut self, place: usize) -> [&mut Side; 2] {
        let mut sides = [&mut self.baseline, &mut self.candidate];
        sides.rotate_left((self.process + place) % 2);
        sides
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
