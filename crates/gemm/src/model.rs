//! Grouped GEMM's model of its kernels.

use gauntlet_device::Arch;
use gauntlet_operations::{GroupedGemm, Operation, Schedule};
use gauntlet_simulate::{Model, Problem};
use gauntlet_task::program::TileProgram;

use crate::program;

/// These sizes as a problem that can be simulated.
pub fn problem(gemm: &GroupedGemm) -> Problem {
    let operation = Operation::GroupedGemm(gemm.clone());
    Problem::new(
        operation.clone(),
        Gemm {
            gemm: gemm.clone(),
            operation,
        },
    )
}

#[derive(Debug)]
struct Gemm {
    gemm: GroupedGemm,
    operation: Operation,
}

impl Model for Gemm {
    fn program(&self, schedule: &Schedule, arch: Arch) -> TileProgram {
        program::program(schedule, &self.gemm, &self.operation, arch)
    }
}
