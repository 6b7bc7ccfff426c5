//! Problems, schedules for them, and operands that do not stay in the caches.

use std::error::Error;

use gauntlet_families::operations::generate;
use gauntlet_kernels_cpu::{Engine, Kernel};
use gauntlet_problems::{
    Form, GemmShape, GroupedGemm, Inputs, Operation, Output, OutputFormat, Schedule, TokenFormat,
};
use gauntlet_task::InputKind;

use crate::Setting;

/// The size of all copies of the operands together, in multiples of the last-level cache.
const CACHES: usize = 2;

/// One product.
pub fn problem(shape: [usize; 3], form: Form) -> Operation {
    problem_of(shape, form, TokenFormat::Nvfp4)
}

/// One product of tokens of a format.
pub fn problem_of(shape: [usize; 3], form: Form, tokens: TokenFormat) -> Operation {
    let [m, n, k] = shape;
    Operation::GroupedGemm(GroupedGemm {
        groups: vec![GemmShape { m, n, k }],
        form,
        output: OutputFormat::F16,
        tokens,
    })
}

/// The schedule of the command line, or else the one that the engine recommends.
pub fn schedule(engine: &Engine, problem: &Operation, setting: &Setting) -> Schedule {
    match (&setting.schedule, problem) {
        (None, Operation::GroupedGemm(gemm)) => engine.recommend(gemm),
        (Some(schedule), _) => schedule.clone(),
        (None, Operation::Attention(_)) => Schedule::baseline(),
    }
}

/// Copies of the operands of `problem`, enough that none is still cached when it is used again.
pub fn copies(problem: &Operation, setting: &Setting) -> Vec<Inputs> {
    let inputs = generate(problem, InputKind::Wide, 1);
    let count = (CACHES * setting.cache)
        .div_ceil(inputs.memory_bytes().max(1))
        .max(2);
    vec![inputs; count]
}

/// A kernel with its result, called on one copy after another.
pub struct Calls<'a> {
    kernel: Kernel,
    copies: &'a [Inputs],
    output: Output,
}

impl<'a> Calls<'a> {
    pub fn new(
        engine: &Engine,
        problem: &Operation,
        schedule: &Schedule,
        copies: &'a [Inputs],
    ) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            kernel: engine.build(problem, schedule)?,
            copies,
            output: Output::poisoned(problem),
        })
    }

    /// One call.
    pub fn call(&mut self, turn: usize) -> Result<(), Box<dyn Error>> {
        self.kernel
            .run(&self.copies[turn % self.copies.len()], &mut self.output)?;
        Ok(())
    }

    /// The result of the last call.
    pub fn result(&self) -> Vec<f32> {
        (0..self.output.len())
            .map(|index| self.output.get(index))
            .collect()
    }
}
