//! Operands as tensors, and draws of them with their results.

use gauntlet_scratch::Scratch;
use gauntlet_task::{Coverage, Expected, InputKind, InputTensors, Inputs, Limits, Output, Rules, TaskSizes};
use gauntlet_tensors::Tensor;

use crate::made::breaks_tolerance;

/// Operands drawn from a seed, with what is right for them.
pub(crate) struct Draw {
    pub(crate) inputs: Box<dyn Inputs>,
    /// The same, as tensors.
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) result: Output,
    expected: Expected,
    kind: InputKind,
}

impl Draw {
    /// Draws operands, and asks for their result.
    pub(crate) fn of(sizes: &dyn TaskSizes, kind: InputKind, seed: u64) -> Result<Self, String> {
        Self::with(sizes, kind, sizes.generate(kind, seed)?)
    }

    /// Asks for the result of operands that were drawn.
    pub(crate) fn with(
        sizes: &dyn TaskSizes,
        kind: InputKind,
        inputs: Box<dyn Inputs>,
    ) -> Result<Self, String> {
        Ok(Self {
            tensors: tensors_of(sizes, &*inputs)?,
            result: sizes.result(&*inputs)?,
            expected: sizes.expected(&*inputs, Coverage::Full)?,
            inputs,
            kind,
        })
    }

    /// The limits of one output; none where those of the rules hold for all together.
    pub(crate) fn limits(&self, output: usize) -> Option<Limits> {
        self.expected.parts.get(output)?.limits
    }

    /// What the task's own rules say of a result for these operands; none if it is right.
    pub(crate) fn fault(&self, sizes: &dyn TaskSizes, output: &Output) -> Option<String> {
        let pairs = output.0.iter().zip(&self.result.0).enumerate();
        for (index, (found, expected)) in pairs {
            let limits = self.limits(index);
            if limits.is_some_and(|limits| breaks_tolerance(found, expected, &limits)) {
                return Some(format!("`{}` has elements out of tolerance", expected.spec.name));
            }
        }
        let rules = sizes.rules(&Rules::default());
        let judged = (&*self.inputs, output);
        sizes.examine(&rules, Some(self.kind), judged, &self.expected).1
    }
}

/// The operands that a seed draws, as tensors.
pub(crate) fn drawn(sizes: &dyn TaskSizes, kind: InputKind, seed: u64) -> Result<Vec<Tensor>, String> {
    tensors_of(sizes, &*sizes.generate(kind, seed)?)
}

/// Operands as tensors; those of tasks with a type of their own are saved and read.
fn tensors_of(sizes: &dyn TaskSizes, inputs: &dyn Inputs) -> Result<Vec<Tensor>, String> {
    if let Some(tensors) = inputs.downcast::<InputTensors>() {
        return Ok(tensors.0.clone());
    }
    let folder = Scratch::new().map_err(|error| error.to_string())?;
    let path = folder.path().join("operands");
    inputs.save(&path).map_err(|error| error.to_string())?;
    let read = InputTensors::load(&path, &sizes.inputs()).map_err(|error| error.to_string())?;
    Ok(read.0)
}

/// The reference's result for operands given as tensors; an error if the task does not take them.
pub(crate) fn result_for(
    sizes: &dyn TaskSizes,
    like: &dyn Inputs,
    tensors: Vec<Tensor>,
) -> Result<Output, String> {
    let tensors = InputTensors(tensors);
    if like.downcast::<InputTensors>().is_some() {
        return sizes.probed(&tensors);
    }
    let folder = Scratch::new().map_err(|error| error.to_string())?;
    let path = folder.path().join("operands");
    tensors.save(&path).map_err(|error| error.to_string())?;
    let inputs = sizes.load(&path)?;
    sizes.probed(&*inputs)
}
