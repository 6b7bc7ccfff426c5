//! A problem with its family's knowledge of its kernels.

use std::fmt;
use std::sync::Arc;

use gauntlet_device::{Arch, Gpu};
use gauntlet_problems::{Operation, Schedule};
use gauntlet_task::Sizes;
use gauntlet_tile_program::TileProgram;

use crate::Part;
use crate::gpu::{Bundle, Kind, Machine, Results, Setting, Step};
use crate::tiles::Class;

/// A family's knowledge of the kernels that compute one problem: what they do, and what each tile costs.
pub trait Model: fmt::Debug + Send + Sync {
    /// What a block does under a schedule on an instruction set.
    fn program(&self, schedule: &Schedule, arch: Arch) -> TileProgram;

    /// Groups of a GEMM, sequences of attention.
    fn groups(&self) -> usize;

    /// Bytes that must move if every operand is read once and every result written once.
    fn bytes(&self) -> f64;

    /// Rows of tokens (queries) of a tile, and those of each group.
    fn rows(&self, schedule: &Schedule, arch: Arch) -> (usize, Vec<usize>);

    /// The tiles, in the order of their groups or sequences.
    fn classes(&self, schedule: &Schedule, arch: Arch) -> Vec<Class>;

    /// Parameters that affect a part of the time, in addition to those of every family.
    fn levers(&self, part: Part) -> &'static [&'static str];

    /// Registers of a thread that converts operands, besides its sums, where they are more than usual.
    fn converting_registers(&self, _schedule: &Schedule, _arch: Arch) -> Option<f64> {
        None
    }

    /// The kinds of tiles on a GPU in the order of the groups: `cache` is the size of the second-level cache in bytes,
    /// `clusters` the number of clusters that run at a time.
    fn kinds(
        &self,
        schedule: &Schedule,
        bundle: Bundle,
        cache: f64,
        clusters: usize,
        arch: Arch,
    ) -> Vec<Kind>;

    /// Floating-point operations a cycle of a multiprocessor in the narrowest format that is exact for the operands.
    fn product_rate(&self, gpu: &Gpu) -> f64;

    /// The same for the instructions that a schedule uses.
    fn scheduled_rate(&self, schedule: &Schedule, machine: &Machine, gpu: &Gpu) -> f64;

    /// Values that a separate kernel converts to fp16 beforehand, and the bytes of each before that; none if no kernel does.
    fn converted_beforehand(&self, _schedule: &Schedule, _arch: Arch) -> Option<(f64, f64)> {
        None
    }

    /// One step of a tile on a GPU.
    fn step(&self, kind: &Kind, setting: &Setting) -> Step;

    /// The results of a tile on a GPU.
    fn results(&self, setting: &Setting) -> Results;
}

/// A problem whose kernels can be simulated: an operation, and the model that its family has of it.
#[derive(Debug, Clone)]
pub struct Problem {
    operation: Operation,
    model: Arc<dyn Model>,
}

impl Problem {
    /// The problem of an operation with a model of the same sizes.
    pub fn new(operation: Operation, model: impl Model + 'static) -> Self {
        let model = Arc::new(model);
        Self { operation, model }
    }

    /// The problem of sizes of a task; none if no model covers its kernels.
    pub fn of(sizes: &Sizes) -> Option<&Self> {
        sizes.schedules()?.model()?.downcast_ref()
    }

    /// The family's model.
    pub fn model(&self) -> &dyn Model {
        self.model.as_ref()
    }

    /// What is computed.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }
}
