//! Problems, schedules that suit them, and operands that do not stay in the caches.

use std::error::Error;

use gauntlet_cpu::{Engine, Kernel};
use gauntlet_problem::{Form, GemmShape, GroupedGemm, InputKind, Inputs, Output, OutputFormat, Problem};
use gauntlet_schedule::Schedule;

use crate::Setting;

/// Copies of the operands together are so many times as large as the last-level cache.
const CACHES: usize = 2;

/// One product.
pub fn problem(shape: [usize; 3], form: Form) -> Problem {
    let [m, n, k] = shape;
    Problem::GroupedGemm(GroupedGemm {
        groups: vec![GemmShape { m, n, k }],
        form,
        output: OutputFormat::F16,
    })
}

/// The schedule that was asked for, or the one that the engine recommends.
pub fn schedule(engine: &Engine, problem: &Problem, setting: &Setting) -> Schedule {
    match (&setting.schedule, problem) {
        (None, Problem::GroupedGemm(gemm)) => engine.recommend(gemm),
        (Some(schedule), _) => schedule.clone(),
        (None, Problem::Attention(_)) => Schedule::baseline(),
    }
}

/// Copies of the operands of `problem`, enough that none is still in a cache when its turn comes again.
pub fn copies(problem: &Problem, setting: &Setting) -> Vec<Inputs> {
    let inputs = Inputs::generate(problem, InputKind::Wide, 1);
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
        problem: &Problem,
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

    /// What the last call computed.
    pub fn result(&self) -> Vec<f32> {
        (0..self.output.len())
            .map(|index| self.output.get(index))
            .collect()
    }
}
