//! sm_80 and sm_89: `mma.sync`, operands dequantised to fp16 in registers.

use gauntlet_device::Arch;

use super::lever::{ARITHMETIC, SWAP_AB, TILE_K, TILE_M, TILE_N};
use super::{Rule, Situation};
use crate::Arithmetic;
use crate::resources::accumulators;

const SHAPE: &str = "PTX ISA, mma.sync.m16n8k16 for 16-bit operands";

pub(super) const RULES: &[Rule] = rules! {
    [TILE_M, SWAP_AB], SHAPE, rows;
    [TILE_N], SHAPE, columns;
    [TILE_K], SHAPE, depth;
    [TILE_N, TILE_M],
        "CUDA C++ Programming Guide, technical specifications: registers of a multiprocessor",
        registers;
    [ARITHMETIC], "PTX ISA, mma.sync: .e4m3 operands require sm_89 or higher", e4m3;
};

fn rows(situation: &Situation) -> Option<String> {
    (!situation.schedule.tile.m.is_multiple_of(16)).then(|| {
        format!(
            "mma.sync on {} works on 16 rows, and a tile is made of whole ones",
            situation.arch()
        )
    })
}

fn columns(situation: &Situation) -> Option<String> {
    // Keys are the columns of the scores and then the depth of P·V, which goes by 16 (fp16) or 32 (e4m3).
    let (step, of) = situation.attention().map_or((8, "columns"), |attention| {
        (situation.summed_at_once(attention), "keys")
    });
    (!situation.schedule.tile.n.is_multiple_of(step)).then(|| {
        format!(
            "mma.sync on {} works on {step} {of}, and a tile is made of whole ones",
            situation.arch()
        )
    })
}

fn depth(situation: &Situation) -> Option<String> {
    let step = situation
        .attention()
        .map_or(16, |attention| situation.summed_at_once(attention));
    (!situation.schedule.tile.k.is_multiple_of(step))
        .then(|| format!("mma.sync on {} sums {step} products at a time", situation.arch()))
}

pub(super) fn registers(situation: &Situation) -> Option<String> {
    let limit = situation.gpu()?.registers.get();
    let needed = accumulators(situation.schedule, situation.operation);
    (needed as f64 >= limit).then(|| {
        format!("{needed} fp32 accumulators leave nothing of the {limit} registers of a multiprocessor")
    })
}

fn e4m3(situation: &Situation) -> Option<String> {
    situation.attention()?;
    (situation.arch() == Arch::Sm80 && situation.schedule.arithmetic == Arithmetic::Fp8)
        .then(|| "mma.sync on sm_80 does not multiply e4m3".to_owned())
}
