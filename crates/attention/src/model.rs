//! Attention's model of its kernels.

use gauntlet_device::Arch;
use gauntlet_operations::{Attention, Operation, Schedule};
use gauntlet_simulate::Problem;
use gauntlet_task::program::TileProgram;

use crate::program;

/// These sizes as a problem that can be simulated.
pub fn problem(attention: &Attention) -> Problem {
    let operation = Operation::Attention(attention.clone());
    let model = Model {
        attention: attention.clone(),
        operation: operation.clone(),
    };
    Problem::new(operation, model)
}

#[derive(Debug)]
struct Model {
    attention: Attention,
    operation: Operation,
}

impl gauntlet_simulate::Model for Model {
    fn program(&self, schedule: &Schedule, arch: Arch) -> TileProgram {
        program::program(schedule, &self.attention, &self.operation, arch)
    }
}
