//! Schedules of attention written out as tile programs, one module an instruction set.

mod mma_sync;
mod sm90a;

use gauntlet_device::Arch;
use gauntlet_problems::resources::kernel_arch;
use gauntlet_problems::{Attention, Operation, Schedule};
use gauntlet_tile_program::{Product, TileProgram};
use gauntlet_tiled_family::program::{multiply, panels, softmax_in_registers};

/// The schedule written out for these sizes on a GPU of this instruction set; `operation` has the same sizes.
pub(crate) fn program(
    schedule: &Schedule,
    attention: &Attention,
    operation: &Operation,
    arch: Arch,
) -> TileProgram {
    match kernel_arch(operation, arch) {
        Arch::Cpu => panels(schedule, true, |panels| {
            vec![
                multiply(Product::Scores, panels),
                softmax_in_registers(),
                multiply(Product::Values, panels),
            ]
        }),
        arch @ (Arch::Sm80 | Arch::Sm89 | Arch::Sm100a) => mma_sync::program(schedule, attention, arch),
        Arch::Sm90a => sm90a::program(schedule, attention),
    }
}
