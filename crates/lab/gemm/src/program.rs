//! Schedules of grouped GEMM written out as tile programs, one module an instruction set.

mod sm100a;
mod sm90a;

use gauntlet_device::Arch;
use gauntlet_problems::resources::{accumulators, is_unified, kernel_arch};
use gauntlet_problems::{GroupedGemm, Operation, Roles, Schedule};
use gauntlet_tile_program::{Guard, Product, TileProgram};
use gauntlet_tiled_family::program::{Buffers, Pipeline, convert, multiply, warps_for_sums};

/// Warps of a block of the unified kernel.
const UNIFIED_WARPS: usize = 4;

/// The schedule written out for these sizes on a GPU of this instruction set; `operation` has the same sizes.
pub(crate) fn program(
    schedule: &Schedule,
    gemm: &GroupedGemm,
    operation: &Operation,
    arch: Arch,
) -> TileProgram {
    match kernel_arch(operation, arch) {
        arch @ (Arch::Cpu | Arch::Sm80 | Arch::Sm89) => mma_sync(schedule, operation, arch),
        arch @ Arch::Sm90a if is_unified(schedule, arch) => mma_sync(schedule, operation, arch),
        Arch::Sm90a => sm90a::program(schedule, gemm),
        Arch::Sm100a => sm100a::program(schedule, operation),
    }
}

/// `mma.sync` on operands that are converted in registers.
fn mma_sync(schedule: &Schedule, operation: &Operation, arch: Arch) -> TileProgram {
    let mut buffers = Buffers::default();
    let guard = match schedule.roles {
        Roles::Unified => Guard::Block,
        Roles::Specialised => Guard::Barriers,
    };
    let operands = buffers.operands(schedule, guard);
    let warps = if is_unified(schedule, arch) {
        UNIFIED_WARPS
    } else {
        warps_for_sums(accumulators(schedule, operation))
    };
    let pipeline = Pipeline {
        warps,
        operands,
        queries: None,
        staging: buffers.staging(schedule),
        products: vec![convert(operands, None), multiply(Product::Gemm, operands)],
        meets: false,
        overwrites: false,
        merges: false,
    };
    pipeline.program(buffers, schedule)
}
