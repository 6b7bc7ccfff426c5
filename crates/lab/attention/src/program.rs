//! Schedules of attention written out as tile programs, one module an instruction set.

mod mma_sync;
mod sm90a;

use gauntlet_device::Arch;
use gauntlet_problems::resources::kernel_arch;
use gauntlet_problems::{Attention, Operation, Schedule};
use gauntlet_tile_program::TileProgram;

/// The schedule written out for these sizes on a GPU of this instruction set; `operation` has the same sizes.
pub(crate) fn program(
    schedule: &Schedule,
    attention: &Attention,
    operation: &Operation,
    arch: Arch,
) -> TileProgram {
    match kernel_arch(operation, arch) {
        arch @ (Arch::Cpu | Arch::Sm80 | Arch::Sm89 | Arch::Sm100a) => {
            mma_sync::program(schedule, attention, arch)
        }
        Arch::Sm90a => sm90a::program(schedule, attention),
    }
}
