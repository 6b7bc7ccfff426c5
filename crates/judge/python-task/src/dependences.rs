//! What hangs on the inputs of a case that a comparison uses: those that a kernel could leave out.

use std::sync::atomic::Ordering;

use gauntlet_audit::{Dependence, Dependences, NullKernel, Substitute};
use gauntlet_task::{InputKind, Inputs, Remark, TaskSizes};
use gauntlet_tensors::TensorSpec;

use crate::noticed::{FIXED_INPUT, FULL_OF_INPUTS, SEEDS};
use crate::protocol::CaseTensors;
use crate::sizes::PythonSizes;

/// How long a call of the reference may take for that, in microseconds.
const QUICK_TO_ASK: u64 = 250_000;

impl PythonSizes {
    /// What hangs on each input of a small case that was used; none of others, whose reference would take long.
    pub(crate) fn dependences(&self) -> Option<&Dependences> {
        let tensors = self.tensors().ok()?;
        let all = tensors.inputs.iter().chain(&tensors.outputs);
        let is_small = all.map(TensorSpec::elements).sum::<usize>() <= FULL_OF_INPUTS;
        if !is_small || self.shortest.load(Ordering::Relaxed) > QUICK_TO_ASK {
            return None;
        }
        let asked = self.dependences.get_or_init(|| {
            let kind = InputKind::default();
            let mut drawn: Vec<Box<dyn Inputs>> = self.noticed().two_draws();
            if drawn.is_empty() {
                let anew = [SEEDS, SEEDS + 1].map(|seed| self.generate(kind, seed).ok());
                drawn.extend(anew.into_iter().flatten());
            }
            Dependences::of(self, kind, drawn).ok()
        });
        asked.as_ref()
    }

    /// Adds remarks on inputs on which nothing depends. One that is the same for all seeds, though the reference reads it, is as bad
    /// where the task could say so.
    pub(crate) fn add_dependences(&self, remarks: &mut Vec<Remark>, tensors: &CaseTensors) {
        let is_all = remarks.iter().any(|remark| remark.is_blind);
        let Some(dependences) = self.dependences().filter(|_| !is_all) else {
            return;
        };
        let can_say_so = self.task().opened().accepts.is_some();
        let is_told = |input: &&Dependence| {
            let is_constant = tensors.constant.contains(&input.input);
            input.is_fixed && !is_constant && matches!(input.ignorable, None | Some(Substitute::Fixed(_)))
        };
        let reads_a_fixed = dependences
            .iter()
            .filter(is_told)
            .any(|input| input.is_read == Some(true));
        for remark in remarks.iter_mut().filter(|remark| remark.name == FIXED_INPUT) {
            remark.is_blind = can_say_so && reads_a_fixed;
        }
        for input in dependences.iter().filter(|input| !is_told(input)) {
            let Some(sentence) = input.sentence() else {
                continue;
            };
            remarks.push(Remark {
                name: NullKernel::IgnoredInput.name(),
                input: Some(input.input.clone()),
                text: format!("{}, {sentence}", self.on()),
                is_blind: can_say_so && !input.is_setting,
            });
        }
    }
}
