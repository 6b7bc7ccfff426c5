//! sm_80 and sm_89: `mma.sync`, operands converted in registers. These are rules of the instructions, wider than those of the CUDA
//! kernels: records hold the schedules of other authors' kernels for these GPUs, which are judged by the same rules.

use gauntlet_device::Arch;
use gauntlet_problems::Arithmetic;
use gauntlet_tiled_family::constraints::gpu::{REGISTERS, depth, registers};
use gauntlet_tiled_family::constraints::mma_sync::{SHAPE, columns, rows};
use gauntlet_tiled_family::constraints::{ARITHMETIC, Rule, SWAP_AB, TILE_K, TILE_M, TILE_N};
use gauntlet_tiled_family::rules;

use super::{Situation, summed_at_once};
use crate::AttentionFamily;

pub(super) const RULES: &[Rule<AttentionFamily>] = rules! {
    [TILE_M, SWAP_AB], SHAPE, rows;
    // Keys are the columns of the scores and then the depth of P·V, which goes by 16 (fp16) or 32 (e4m3).
    [TILE_N], SHAPE, |s| columns(s, summed_at_once(s), "keys");
    [TILE_K], SHAPE, |s| depth(s, "mma.sync", summed_at_once(s));
    [TILE_N, TILE_M], REGISTERS, registers;
    [ARITHMETIC], "PTX ISA, mma.sync: .e4m3 operands require sm_89 or higher", e4m3;
};

fn e4m3(situation: &Situation) -> Option<String> {
    (situation.arch() == Arch::Sm80 && situation.schedule.arithmetic == Arithmetic::Fp8)
        .then(|| "mma.sync on sm_80 does not multiply e4m3".to_owned())
}
