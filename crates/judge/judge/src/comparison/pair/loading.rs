//! The operands that the sides of a watched pair load: the known set, and fresh ones beside it.

use std::ops::Range;

use super::{Dealt, Pair, on_gpu};
use crate::comparison::conduct::CaseConduct;
use crate::comparison::side::Purpose;
use crate::runner::{ExaminationFailure, Operands, sets};

impl Pair<'_> {
    /// Lets each side load the known set, and prepare. This is the only time: later loads bring the same constant inputs,
    /// and with their other inputs present a worker could compute results here, where nothing is charged.
    pub(super) fn load_known(
        &mut self,
        dealt: &Dealt,
        conduct: &mut CaseConduct,
    ) -> Result<(), ExaminationFailure> {
        let file = dealt.warm_up.operands.path();
        for side in self.in_turn(0) {
            side.ask(Purpose::Load, 1, |worker| worker.load(&[file], 1))?;
            let (bytes, effort) = side.ask(Purpose::Prepare, 1, |worker| worker.prepare())?;
            conduct.note_preparing(side.arm, effort.exchange, bytes);
        }
        Ok(())
    }

    /// Lets each side load the known set and these fresh ones; returns the number of copies.
    pub(super) fn load_fresh(
        &mut self,
        dealt: &Dealt,
        fresh: Range<usize>,
    ) -> Result<usize, ExaminationFailure> {
        let known = &dealt.warm_up.operands;
        let new: Vec<&Operands> = dealt.fresh[fresh.clone()]
            .iter()
            .map(|set| &set.operands)
            .collect();
        let sets = 1 + new.len();
        let is_written_anew =
            self.are_held() && !on_gpu(self.workshop) && dealt.case.sizes.constant_inputs().is_empty();
        let copies = match is_written_anew {
            // A single new set lies in two places, so that slots need not use the known one.
            true if new.len() < 2 => 2 * sets,
            true => sets,
            // The known set is not dealt to slots, so the others have to leave the cache by themselves.
            false => sets * dealt.copies.div_ceil(new.len().max(1)).max(1),
        };
        for side in self.in_turn(fresh.start) {
            side.ask(Purpose::Load, sets, |worker| {
                sets::load(worker, known, &new, copies)
            })?;
        }
        Ok(copies)
    }
}
