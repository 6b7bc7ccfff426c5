//! The CPU: panels in cache, threads instead of blocks.

use gauntlet_problems::resources::block_bytes;
use gauntlet_problems::{Cluster, Roles};

use super::{CLUSTER, ROLES, Rule, STAGES, Situation, TILE_K, TILE_M, TILE_N};
use crate::TiledFamily;

/// The source of rules about the CPU kernels.
pub const KERNEL: &str = "the CPU kernels: vectors of 16 lanes, one scale for each 16 values";

/// Panels that overflow the second-level cache this many times are read from memory again and again.
const PANELS_OVER_L2: f64 = 4.0;

/// The sides of a tile.
pub const fn sides<F: TiledFamily>() -> &'static [Rule<F>] {
    rules! {
        [TILE_M], KERNEL, rows;
        [TILE_N], KERNEL, columns;
    }
}

/// Panels, threads and blocks.
pub const fn rules<F: TiledFamily>() -> &'static [Rule<F>] {
    rules! {
        [STAGES], "the CPU kernels: a ring of at most 8 panels", stages;
        [STAGES, TILE_K, TILE_N, TILE_M],
            "Gauntlet's own limit: a thread's panels may take four times its second-level cache",
            panels;
        [ROLES, STAGES], "definition of the word: one side prepares while the other multiplies", roles;
        [CLUSTER], "definition of the word: no blocks share loads on a CPU", cluster;
    }
}

fn rows<F: TiledFamily>(situation: &Situation<F>) -> Option<String> {
    (situation.schedule.tile.m > 1024).then(|| "the CPU kernels take at most 1024 rows at once".to_owned())
}

fn columns<F: TiledFamily>(situation: &Situation<F>) -> Option<String> {
    (!situation.schedule.tile.n.is_multiple_of(16))
        .then(|| "the CPU kernels take columns in multiples of 16".to_owned())
}

fn stages<F: TiledFamily>(situation: &Situation<F>) -> Option<String> {
    (situation.schedule.stages > 8).then(|| "the CPU kernels prepare at most 8 panels ahead".to_owned())
}

fn panels<F: TiledFamily>(situation: &Situation<F>) -> Option<String> {
    let limit = PANELS_OVER_L2 * situation.device.memory.l2_size.as_ref()?.get();
    let needed = block_bytes(situation.schedule, situation.operation, situation.arch());
    (needed as f64 > limit).then(|| {
        format!(
            "tile {} needs {needed} B of panels a thread, more than four times the second-level cache ({limit} B)",
            situation.schedule.tile
        )
    })
}

fn roles<F: TiledFamily>(situation: &Situation<F>) -> Option<String> {
    if situation.schedule.roles != Roles::Specialised {
        return None;
    }
    let threads = situation.device.processors.get();
    if threads < 2.0 {
        return Some(
            "specialised roles need a thread that prepares and one that multiplies, and there is one thread"
                .to_owned(),
        );
    }
    (situation.schedule.stages < 2)
        .then(|| "with one stage no thread can prepare while another multiplies; it takes 2".to_owned())
}

fn cluster<F: TiledFamily>(situation: &Situation<F>) -> Option<String> {
    (situation.schedule.cluster != Cluster { m: 1, n: 1 })
        .then(|| "no blocks share loads on a CPU".to_owned())
}
