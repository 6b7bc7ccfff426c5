//! Operands in device memory.

use std::rc::Rc;

use gauntlet_problem::{GroupInputs, GroupedGemm, Inputs, InputsError, Problem};

use super::layout::Layout;
use crate::driver::{Context, DeviceMemory, DriverError};
use crate::error::RunError;
use crate::plan::{PlanError, Weights};

/// One copy of a problem's operands in device memory.
#[derive(Debug)]
pub struct Operands {
    pub(super) tokens: DeviceMemory,
    pub(super) token_scales: DeviceMemory,
    /// Where each group's weights lie in `weight_memory`.
    pub(super) weights: Vec<Weights>,
    weight_memory: DeviceMemory,
}

impl Operands {
    fn new(context: &Context, layout: &Layout, inputs: &[GroupInputs]) -> Result<Self, DriverError> {
        let pieces = layout.pieces(inputs);
        let weights = DeviceMemory::assembled(context, layout.weight_bytes, &pieces.weights)?;
        Ok(Self {
            tokens: DeviceMemory::assembled(context, layout.token_bytes, &pieces.tokens)?,
            token_scales: DeviceMemory::assembled(context, layout.token_scale_bytes, &pieces.token_scales)?,
            weights: layout.weights(inputs, weights.address()),
            weight_memory: weights,
        })
    }

    /// Another copy, made on the device.
    fn copied(&self, layout: &Layout, inputs: &[GroupInputs]) -> Result<Self, DriverError> {
        let weights = self.weight_memory.copied()?;
        Ok(Self {
            tokens: self.tokens.copied()?,
            token_scales: self.token_scales.copied()?,
            weights: layout.weights(inputs, weights.address()),
            weight_memory: weights,
        })
    }

    /// Bytes of device memory.
    pub fn bytes(&self) -> usize {
        self.tokens.bytes() + self.token_scales.bytes() + self.weight_memory.bytes()
    }
}

/// Copies operands to the device, `copies` times in all.
pub(super) fn load(
    context: &Context,
    problem: &Problem,
    sets: &[Inputs],
    copies: usize,
) -> Result<Vec<Rc<Operands>>, RunError> {
    let gemm = grouped_gemm(problem)?;
    let layout = Layout::new(gemm);
    let (free, _) = context.memory()?;
    let bytes = layout.bytes().saturating_mul(copies);
    if bytes > free {
        return Err(RunError::Memory { copies, bytes, free });
    }
    let mut loaded: Vec<Rc<Operands>> = Vec::with_capacity(copies);
    let mut groups = Vec::with_capacity(sets.len());
    for set in sets.iter().take(copies) {
        set.validate(problem)?;
        let Inputs::GroupedGemm(inputs) = set else {
            return Err(InputsError::Family.into());
        };
        loaded.push(Rc::new(Operands::new(context, &layout, inputs)?));
        groups.push(inputs);
    }
    for (copy, inputs) in (loaded.len()..copies).zip(groups.into_iter().cycle()) {
        let copied = loaded[copy % sets.len()].copied(&layout, inputs)?;
        loaded.push(Rc::new(copied));
    }
    Ok(loaded)
}

/// The problem, if it is of the one family that has kernels here.
pub(super) fn grouped_gemm(problem: &Problem) -> Result<&GroupedGemm, PlanError> {
    match problem {
        Problem::GroupedGemm(gemm) => Ok(gemm),
        Problem::Attention(_) => Err(PlanError::Attention),
    }
}
