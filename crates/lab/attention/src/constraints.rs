//! The constraints of attention on each instruction set.

mod common;
mod gpu;
mod mma_sync;
mod sm100a;
mod sm90a;
mod sm90a_kernels;
mod unified;
mod words;

use gauntlet_device::Arch;
use gauntlet_problems::resources::{by_mma_sync, multiplied_bytes};
use gauntlet_tiled_family::constraints::{Rules, cpu, gpu as every_gpu};

use crate::AttentionFamily;

type Situation<'a> = gauntlet_tiled_family::constraints::Situation<'a, AttentionFamily>;

const CPU: Rules<AttentionFamily> = &[common::RULES, common::CPU, cpu::sides(), cpu::rules()];
const MMA_SYNC: Rules<AttentionFamily> = &[common::RULES, gpu::RULES, mma_sync::RULES, every_gpu::rules()];
const SM90A: Rules<AttentionFamily> = &[
    common::RULES,
    gpu::RULES,
    gpu::FUSED,
    sm90a::RULES,
    unified::RULES,
    sm90a_kernels::RULES,
    every_gpu::rules(),
];
const SM100A: Rules<AttentionFamily> = &[
    common::RULES,
    gpu::RULES,
    sm100a::RULES,
    unified::RULES,
    every_gpu::rules(),
];

/// The rules on a GPU of this instruction set.
pub(crate) fn rules(arch: Arch) -> Rules<AttentionFamily> {
    match arch {
        Arch::Cpu => CPU,
        Arch::Sm80 | Arch::Sm89 => MMA_SYNC,
        Arch::Sm90a => SM90A,
        Arch::Sm100a => SM100A,
    }
}

/// The instruction of a GPU that multiplies without storing its scores in shared memory, if the schedule uses it.
fn fused(situation: &Situation) -> Option<&'static str> {
    (!by_mma_sync(situation.schedule, situation.arch())).then_some("wgmma")
}

/// Products that one instruction sums: 32 bytes of operands.
fn summed_at_once(situation: &Situation) -> usize {
    32 / multiplied_bytes(situation.schedule, situation.sizes)
}
