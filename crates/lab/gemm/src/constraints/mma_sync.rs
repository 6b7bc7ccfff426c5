//! sm_80 and sm_89: `mma.sync`, operands dequantised to fp16 in registers. These are rules of the instructions, wider than those
//! of the CUDA kernels: rounds begin with the same baseline on every device, and records hold other authors' kernels.

use gauntlet_tiled_family::constraints::gpu::{REGISTERS, depth, registers};
use gauntlet_tiled_family::constraints::mma_sync::{SHAPE, columns, rows};
use gauntlet_tiled_family::constraints::{Rule, SWAP_AB, TILE_K, TILE_M, TILE_N};
use gauntlet_tiled_family::rules;

use crate::GemmFamily;

pub(super) const RULES: &[Rule<GemmFamily>] = rules! {
    [TILE_M, SWAP_AB], SHAPE, rows;
    [TILE_N], SHAPE, |s| columns(s, 8, "columns");
    [TILE_K], SHAPE, |s| depth(s, "mma.sync", 16);
    [TILE_N, TILE_M], REGISTERS, registers;
};
