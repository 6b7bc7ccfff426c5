//! The constraints of grouped GEMM on each instruction set.

mod common;
mod common_kernels;
mod mma_sync;
mod sm100a;
mod sm90a;

use gauntlet_device::Arch;
use gauntlet_tiled_family::constraints::{Rule, Rules, TILE_K, blackwell, cpu, gpu};
use gauntlet_tiled_family::rules;

use crate::GemmFamily;

type Situation<'a> = gauntlet_tiled_family::constraints::Situation<'a, GemmFamily>;

const CPU: Rules<GemmFamily> = &[common::RULES, cpu::sides(), PANELS, cpu::rules()];
const MMA_SYNC: Rules<GemmFamily> = &[common::RULES, mma_sync::RULES, gpu::rules()];
const COMMON_KERNELS: Rules<GemmFamily> = &[common::RULES, common_kernels::RULES, gpu::rules()];
const SM90A: Rules<GemmFamily> = &[common::RULES, sm90a::RULES, gpu::rules()];
const SM100A: Rules<GemmFamily> = &[common::RULES, sm100a::RULES, blackwell::rules(), gpu::rules()];

/// The rules of these sizes on this device. On sm_100a, tokens that its own kernel does not multiply have the rules of the
/// kernels that do.
pub(crate) fn rules(situation: &Situation) -> Rules<GemmFamily> {
    match situation.device.arch {
        Arch::Cpu => CPU,
        Arch::Sm80 | Arch::Sm89 => MMA_SYNC,
        Arch::Sm90a => SM90A,
        Arch::Sm100a if situation.arch() == Arch::Sm100a => SM100A,
        Arch::Sm100a => COMMON_KERNELS,
    }
}

const PANELS: &[Rule<GemmFamily>] = rules! {
    [TILE_K], cpu::KERNEL, depth;
};

fn depth(situation: &Situation) -> Option<String> {
    (!situation.schedule.tile.k.is_multiple_of(16))
        .then(|| "a panel holds whole blocks of 16 values with one scale".to_owned())
}
