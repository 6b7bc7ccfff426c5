//! A case of kernels that are trusted. Nothing is hidden from them: both sides get one load of fresh operands, on which they
//! warm up and are timed, and keep only the results that are asked for.

use std::path::Path;
use std::time::Instant;

use gauntlet_stats::BlockOrder;
use gauntlet_worker::most_calls;
use gauntlet_worker::protocol::HOLD;
use rand::{RngExt, rng};

use super::plan::{MAX_SAMPLES, Plan, hold_for, samples_for};
use super::processors::ProcessorUse;
use super::{Dealt, Measured, Pair, block, on_gpu};
use crate::comparison::conduct::CaseConduct;
use crate::comparison::requests::{Deck, length};
use crate::comparison::results::Checker;
use crate::comparison::side::{Purpose, Side};
use crate::comparison::warm_up::WarmingUp;
use crate::runner::ExaminationFailure;

/// Target duration of a slot.
const SLOT: f64 = 8e-3;

/// In one pair of so many results of timed calls are asked for: computing what they should be takes longer than the calls.
const CHECKED_PAIRS: usize = 3;

/// The blocks of a case take about this many seconds at most, with their load if there is one, as long as one block is left.
const MAX_SECONDS: f64 = 0.6;

impl Pair<'_> {
    /// Measures a case in blocks of the given orders.
    pub(super) fn measure_trusted(
        &mut self,
        dealt: &Dealt,
        orders: &[BlockOrder],
    ) -> Result<Measured, ExaminationFailure> {
        let mut checker = Checker::new(
            self.workshop,
            self.rules,
            dealt.case,
            dealt.fresh.iter().collect(),
        );
        let sets: Vec<usize> = (0..dealt.fresh.len()).collect();
        let begun = Instant::now();
        let (plan, call) = self.prepare_trusted(dealt, &sets, &mut checker)?;
        self.spent.preparing += begun.elapsed().as_secs_f64();
        let (begun, heated_before) = (Instant::now(), self.spent.heating);
        let of_block = 4.0 * (call * plan.target as f64 + self.load.unwrap_or(0.0));
        let most = (MAX_SECONDS / of_block.max(f64::MIN_POSITIVE)).max(1.0);
        let orders = &orders[..orders.len().min(most as usize)];
        let is_checked = self.process.is_multiple_of(CHECKED_PAIRS);
        let checked = is_checked.then(|| rng().random_range(0..2 * orders.len().max(1)));
        let mut deck = deck(dealt);
        let mut blocks = Vec::new();
        for (number, order) in orders.iter().enumerate() {
            let forced = checked.and_then(|slot| slot.checked_sub(2 * number));
            let forced = forced.filter(|place| *place < 2);
            let taken = self.block(*order, &plan, forced, &mut deck, &sets, &mut checker)?;
            blocks.push(block(self.process, &taken.slots));
        }
        self.spent.measuring += begun.elapsed().as_secs_f64() - (self.spent.heating - heated_before);
        Ok(Measured {
            blocks,
            conduct: CaseConduct::new(self.process, on_gpu(self.workshop)),
        })
    }

    /// Builds both sides, loads the operands and lets both warm up; also returns the seconds of the longer call.
    fn prepare_trusted(
        &mut self,
        dealt: &Dealt,
        sets: &[usize],
        checker: &mut Checker,
    ) -> Result<(Plan, f64), ExaminationFailure> {
        let files: Vec<&Path> = dealt.fresh.iter().map(|set| set.operands.path()).collect();
        for side in self.in_turn(0) {
            let schedule = dealt.schedules[side.arm.index()];
            side.ask(Purpose::Build, 1, |worker| {
                worker.build(&dealt.case.sizes, schedule)
            })?;
            side.ask(Purpose::Load, 1, |worker| worker.load(&files, copies_of(dealt)))?;
            side.ask(Purpose::Prepare, 1, |worker| worker.prepare())?;
        }
        self.hold_back_for(HOLD);
        let is_on_gpu = on_gpu(self.workshop);
        if !is_on_gpu {
            self.use_all_processors();
        }
        let chooses = [&self.baseline, &self.candidate]
            .into_iter()
            .all(Side::chooses_results);
        let most = match chooses {
            true => MAX_SAMPLES,
            false => most_calls(&dealt.case.sizes).min(MAX_SAMPLES),
        };
        let (mut calls, mut host, mut is_single) = ([0.0; 2], 0.0_f64, !is_on_gpu);
        for arm in self.in_turn(0).map(|side| side.arm) {
            let mut warming = WarmingUp::new(self.trust);
            let mut deck = deck(dealt);
            let mut uses_one = false;
            while !warming.is_over() {
                let number = match warming.calls() {
                    0 => 1,
                    _ => length(samples_for([warming.turn(); 2], SLOT), most, &mut rng()),
                };
                let request = deck.deal(number, &mut rng());
                let use_before = is_single.then(|| ProcessorUse::begin(self.side(arm)));
                let slot = self.turn(arm, &request, sets, checker)?.0;
                warming.note(&slot);
                // Of the last request, since the first ones compile and import.
                uses_one = use_before.is_some_and(|before| before.was_of_one(self.side(arm), slot.sum));
            }
            is_single &= uses_one;
            host = host.max(warming.host());
            // What lies around a call on a GPU takes longer than many kernels.
            calls[arm.index()] = warming.turn().max(if is_on_gpu { warming.whole() } else { 0.0 });
        }
        if is_single {
            self.share_one_processor(checker)?;
        }
        self.hold_back_for(hold_for(host));
        let plan = Plan {
            target: samples_for(calls, SLOT).min(most),
            most,
            checking: 0.0,
            pause: 0.0,
        };
        Ok((plan, calls[0].max(calls[1])))
    }
}

/// All copies alike: no values are kept from the kernels.
fn deck(dealt: &Dealt) -> Deck {
    Deck::new(copies_of(dealt), 1, &[])
}

/// Each set lies somewhere.
fn copies_of(dealt: &Dealt) -> usize {
    dealt.copies.max(dealt.fresh.len())
}
