//! Schedules of attention written out as tile programs, one module an instruction set.

mod mma_sync;
mod sm100a;
mod sm90a;

use gauntlet_device::Arch;
use gauntlet_operations::{Attention, Operation, Schedule};
use gauntlet_task::program::{Product, TileProgram};
use gauntlet_tiles::program::{multiply, panels, softmax_in_registers};

/// The schedule written out for these sizes on this instruction set; `operation` has the same sizes.
pub(crate) fn program(
    schedule: &Schedule,
    attention: &Attention,
    operation: &Operation,
    arch: Arch,
) -> TileProgram {
    match arch {
        Arch::Cpu => panels(schedule, true, |panels| {
            vec![
                multiply(Product::Scores, panels),
                softmax_in_registers(),
                multiply(Product::Values, panels),
            ]
        }),
        Arch::Sm80 | Arch::Sm89 => mma_sync::program(schedule, attention, operation, arch),
        Arch::Sm90a => sm90a::program(schedule, attention, operation),
        Arch::Sm100a => sm100a::program(schedule, operation),
    }
}
