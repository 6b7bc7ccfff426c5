//! Schedules written out as tile programs, one module an instruction set.
//!
//! What a block does for one tile depends on tile, stages, epilogue, roles and swap-AB. Order, lookup, setup, split-K and
//! cluster decide which tiles it is given, and how many.

mod cpu;
mod mma_sync;
mod sm100a;
mod sm90a;
mod sm90a_attention;
mod text;

use gauntlet_device::Arch;
use gauntlet_operations::Operation;
use gauntlet_task::program::{
    Action, Buffer, BufferIndex, Condition, Contents, CopyMethod, Extent, Filled, Guard, Product, Role,
    Signal, Statement, TileProgram,
};

use crate::Schedule;

/// The schedule written out for this operation on this instruction set.
pub fn program(schedule: &Schedule, operation: &Operation, arch: Arch) -> TileProgram {
    match arch {
        Arch::Cpu => cpu::program(schedule, operation),
        Arch::Sm80 | Arch::Sm89 => mma_sync::program(schedule, operation, arch),
        Arch::Sm90a => sm90a::program(schedule, operation),
        Arch::Sm100a => sm100a::program(schedule, operation),
    }
}
