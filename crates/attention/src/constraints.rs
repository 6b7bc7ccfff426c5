//! The constraints of attention on each instruction set.

mod common;
mod gpu;
mod mma_sync;
mod sm100a;
mod sm90a;
mod sm90a_kernels;

use gauntlet_device::Arch;
use gauntlet_operations::resources::{by_mma_sync, multiplied_bytes};
use gauntlet_tiles::constraints::{Rules, blackwell, cpu, gpu as every_gpu};

use crate::AttentionFamily;

type Situation<'a> = gauntlet_tiles::constraints::Situation<'a, AttentionFamily>;

const CPU: Rules<AttentionFamily> = &[common::RULES, common::CPU, cpu::sides(), cpu::rules()];
const MMA_SYNC: Rules<AttentionFamily> = &[common::RULES, gpu::RULES, mma_sync::RULES, every_gpu::rules()];
const SM90A: Rules<AttentionFamily> = &[
    common::RULES,
    gpu::RULES,
    gpu::FUSED,
    sm90a::RULES,
    sm90a_kernels::RULES,
    every_gpu::rules(),
];
const SM100A: Rules<AttentionFamily> = &[
    common::RULES,
    gpu::RULES,
    gpu::FUSED,
    sm100a::RULES,
    blackwell::rules(),
    every_gpu::rules(),
];

/// The rules of an instruction set.
pub(crate) fn rules(arch: Arch) -> Rules<AttentionFamily> {
    match arch {
        Arch::Cpu => CPU,
        Arch::Sm80 | Arch::Sm89 => MMA_SYNC,
        Arch::Sm90a => SM90A,
        Arch::Sm100a => SM100A,
    }
}

/// The instruction that multiplies without storing its scores in shared memory, if there is one.
fn fused(situation: &Situation) -> Option<&'static str> {
    match situation.arch() {
        Arch::Sm90a if !by_mma_sync(situation.schedule, Arch::Sm90a) => Some("wgmma"),
        Arch::Sm100a => Some("tcgen05.mma"),
        Arch::Cpu | Arch::Sm80 | Arch::Sm89 | Arch::Sm90a => None,
    }
}

/// Products that one instruction sums: 32 bytes of operands.
fn summed_at_once(situation: &Situation) -> usize {
    32 / multiplied_bytes(situation.schedule, situation.sizes)
}
