//! Operands in device memory.

use std::rc::Rc;

use gauntlet_problem::{GroupInputs, GroupedGemm, Inputs, InputsError, Problem};

use super::layout::{Layout, Packed};
use crate::driver::{Context, DeviceMemory, DriverError};
use crate::error::RunError;
use crate::plan::{PlanError, Weights};

/// One copy of a problem's operands in device memory.
#[derive(Debug)]
pub struct Operands {
    pub(super) tokens: DeviceMemory,
    pub(super) token_scales: DeviceMemory,
    /// Where each group's weights lie in `_weights`.
    pub(super) weights: Vec<Weights>,
    _weights: DeviceMemory,
}

impl Operands {
    fn new(
        context: &Context,
        layout: &Layout,
        inputs: &[GroupInputs],
        packed: &Packed,
    ) -> Result<Self, DriverError> {
        let weights = DeviceMemory::from_bytes(context, &packed.weights)?;
        Ok(Self {
            tokens: DeviceMemory::from_bytes(context, &packed.tokens)?,
            token_scales: DeviceMemory::from_bytes(context, &packed.token_scales)?,
            weights: layout.weights(inputs, weights.address()),
            _weights: weights,
        })
    }

    /// Bytes of device memory.
    pub fn bytes(&self) -> usize {
        self.tokens.bytes() + self.token_scales.bytes() + self._weights.bytes()
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
    let mut packed = Vec::with_capacity(sets.len());
    for set in sets.iter().take(copies) {
        set.validate(problem)?;
        let Inputs::GroupedGemm(inputs) = set else {
            return Err(InputsError::Family.into());
        };
        packed.push((inputs, layout.pack(inputs)));
    }
    packed
        .iter()
        .cycle()
        .take(copies)
        .map(|(inputs, packed)| Ok(Rc::new(Operands::new(context, &layout, inputs, packed)?)))
        .collect()
}

/// The problem, if it is of the one family that has kernels here.
pub(super) fn grouped_gemm(problem: &Problem) -> Result<&GroupedGemm, PlanError> {
    match problem {
        Problem::GroupedGemm(gemm) => Ok(gemm),
        Problem::Attention(_) => Err(PlanError::Attention),
    }
}
