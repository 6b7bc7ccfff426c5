//! Attention where only the unified kernel runs: on sm_80 and sm_89, and by the same kernel on sm_100a.

use gauntlet_device::Arch;
use gauntlet_operations::{Arithmetic, Roles};
use gauntlet_tiles::constraints::gpu::depth;
use gauntlet_tiles::constraints::mma_sync::SHAPE;
use gauntlet_tiles::constraints::{ARITHMETIC, ROLES, Rule, TILE_K};
use gauntlet_tiles::rules;

use super::{Situation, summed_at_once};
use crate::AttentionFamily;

pub(super) const RULES: &[Rule<AttentionFamily>] = rules! {
    [ROLES], "the CUDA kernels: those with roles multiply by wgmma, which sm_90a alone has", roles;
    [TILE_K], SHAPE, |s| depth(s, "mma.sync", summed_at_once(s));
    [ARITHMETIC], "PTX ISA, mma.sync: .e4m3 operands require sm_89 or higher", e4m3;
};

fn roles(situation: &Situation) -> Option<String> {
    (situation.schedule.roles == Roles::Specialised).then(|| {
        format!(
            "attention on {} has no kernel with roles; such kernels need a Hopper GPU",
            situation.device.arch
        )
    })
}

fn e4m3(situation: &Situation) -> Option<String> {
    (situation.arch() == Arch::Sm80 && situation.schedule.arithmetic == Arithmetic::Fp8)
        .then(|| "mma.sync on sm_80 does not multiply e4m3".to_owned())
}
