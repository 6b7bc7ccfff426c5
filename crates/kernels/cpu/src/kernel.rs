//! A kernel: a problem under a schedule, ready to run.

use gauntlet_nvfp4::Nvfp4Tensor;
use gauntlet_problems::{GroupInputs, Inputs, Operation, Output};

use crate::attention::AttentionPlan;
use crate::error::{BuildError, RunError, wrong_family};
use crate::family::{Operands, Setting};
use crate::gemm::{GemmOperands, GemmPlan, PackedWeights, Weights};
use crate::prepared::{Builder, Prepared, Resources, RunTimes};

/// A problem under a schedule, ready to run.
#[derive(Debug)]
pub struct Kernel(Family);

#[derive(Debug)]
enum Family {
    GroupedGemm(Prepared<GemmPlan>),
    Attention(Prepared<AttentionPlan>),
}

impl Kernel {
    /// Plans a problem, which is valid.
    pub(crate) fn build(problem: &Operation, builder: Builder) -> Result<Self, BuildError> {
        let family = match problem {
            Operation::GroupedGemm(gemm) => {
                let gemm = gemm.clone();
                let make_plan = move |setting: &Setting<'_>| GemmPlan::new(&gemm, setting);
                Family::GroupedGemm(Prepared::new(builder, Box::new(make_plan))?)
            }
            Operation::Attention(attention) => {
                let attention = attention.clone();
                let make_plan = move |setting: &Setting<'_>| AttentionPlan::new(&attention, setting);
                Family::Attention(Prepared::new(builder, Box::new(make_plan))?)
            }
        };
        Ok(Self(family))
    }

    /// The resources of the kernel.
    pub fn resources(&self) -> &Resources {
        match &self.0 {
            Family::GroupedGemm(prepared) => prepared.resources(),
            Family::Attention(prepared) => prepared.resources(),
        }
    }

    /// Computes `output` from `inputs`.
    ///
    /// # Errors
    ///
    /// If the operands do not fit the problem that the kernel was built for, or (set-up per call) if memory runs out.
    pub fn run(&mut self, inputs: &Inputs, output: &mut Output) -> Result<RunTimes, RunError> {
        self.run_inputs::<false>(inputs, output)
    }

    /// Like [`run`](Self::run), and also measures where the time went, which slows the call a little.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_traced(&mut self, inputs: &Inputs, output: &mut Output) -> Result<RunTimes, RunError> {
        self.run_inputs::<true>(inputs, output)
    }

    /// Computes `output` from the operands of each group, without copying them.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), or if the weights were packed for a different plan.
    pub fn run_gemm(
        &mut self,
        operands: &[GemmOperands<'_>],
        output: &mut Output,
    ) -> Result<RunTimes, RunError> {
        self.run_operands::<false>(Operands::GroupedGemm(operands), output)
    }

    /// Packs weights, `[n, k]`, once. All kernels with the same tile, `swap_ab` and instructions can use them.
    ///
    /// # Errors
    ///
    /// If memory for them runs out, or the kernel is not a GEMM.
    pub fn pack_weights(&self, weights: &Nvfp4Tensor) -> Result<PackedWeights, RunError> {
        match &self.0 {
            Family::GroupedGemm(prepared) => {
                let packed = prepared.with_plan(|plan| PackedWeights::pack(plan, weights))?;
                Ok(packed?)
            }
            Family::Attention(_) => Err(wrong_family("weights", "attention")),
        }
    }

    fn run_inputs<const TRACED: bool>(
        &mut self,
        inputs: &Inputs,
        output: &mut Output,
    ) -> Result<RunTimes, RunError> {
        match inputs {
            Inputs::GroupedGemm(groups) => {
                let operands: Vec<_> = groups.iter().map(gemm_operands).collect();
                self.run_operands::<TRACED>(Operands::GroupedGemm(&operands), output)
            }
            Inputs::Attention(inputs) => self.run_operands::<TRACED>(Operands::Attention(inputs), output),
        }
    }

    fn run_operands<const TRACED: bool>(
        &mut self,
        operands: Operands<'_>,
        output: &mut Output,
    ) -> Result<RunTimes, RunError> {
        match &mut self.0 {
            Family::GroupedGemm(prepared) => prepared.run::<TRACED>(operands, output),
            Family::Attention(prepared) => prepared.run::<TRACED>(operands, output),
        }
    }
}

/// A group's operands; none if its tokens are not NVFP4.
fn gemm_operands(group: &GroupInputs) -> GemmOperands<'_> {
    GemmOperands {
        a: (&group.a).into(),
        b: Weights::Tensor(&group.b),
        b2: group.b2.as_ref().map(Weights::Tensor),
    }
}
