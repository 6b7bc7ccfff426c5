//! sm_100a, where attention is computed by the unified kernel alone.

use gauntlet_problems::Roles;
use gauntlet_tiled_family::constraints::{ROLES, Rule};
use gauntlet_tiled_family::rules;

use super::Situation;
use crate::AttentionFamily;

pub(super) const RULES: &[Rule<AttentionFamily>] = rules! {
    [ROLES], "the CUDA kernels: those with roles multiply by wgmma, which sm_90a alone has", roles;
};

fn roles(situation: &Situation) -> Option<String> {
    (situation.schedule.roles == Roles::Specialised)
        .then(|| "attention on sm_100a has no kernel with roles; such kernels need a Hopper GPU".to_owned())
}
