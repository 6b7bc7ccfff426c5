//! The CPU: panels in cache, threads instead of blocks.

use super::lever::{CLUSTER, ROLES, STAGES, TILE_K, TILE_M, TILE_N};
use super::{Rule, Situation};
use crate::resources::block_bytes;
use crate::{Cluster, Roles};

const KERNEL: &str = "the CPU kernels: vectors of 16 lanes, one scale for each 16 values";

/// Panels that overflow the second-level cache this many times are read from memory again and again.
const PANELS_OVER_L2: f64 = 4.0;

pub(super) const RULES: &[Rule] = rules! {
    [TILE_M], KERNEL, rows;
    [TILE_N], KERNEL, columns;
    [TILE_K], KERNEL, depth;
    [STAGES], "the CPU kernels: a ring of at most 8 panels", stages;
    [STAGES, TILE_K, TILE_N, TILE_M],
        "Gauntlet's own limit: a thread's panels may take four times its second-level cache",
        panels;
    [ROLES, STAGES], "definition of the word: one side prepares while the other multiplies", roles;
    [CLUSTER], "definition of the word: no blocks share loads on a CPU", cluster;
};

fn rows(situation: &Situation) -> Option<String> {
    (situation.schedule.tile.m > 1024).then(|| "the CPU kernels take at most 1024 rows at once".to_owned())
}

fn columns(situation: &Situation) -> Option<String> {
    (!situation.schedule.tile.n.is_multiple_of(16))
        .then(|| "the CPU kernels take columns in multiples of 16".to_owned())
}

fn depth(situation: &Situation) -> Option<String> {
    situation.gemm()?;
    (!situation.schedule.tile.k.is_multiple_of(16))
        .then(|| "a panel holds whole blocks of 16 values with one scale".to_owned())
}

fn stages(situation: &Situation) -> Option<String> {
    (situation.schedule.stages > 8).then(|| "the CPU kernels prepare at most 8 panels ahead".to_owned())
}

fn panels(situation: &Situation) -> Option<String> {
    let limit = PANELS_OVER_L2 * situation.device.memory.l2_size.as_ref()?.get();
    let needed = block_bytes(situation.schedule, situation.operation, situation.arch());
    (needed as f64 > limit).then(|| {
        format!(
            "tile {} needs {needed} B of panels a thread, more than four times the second-level cache ({limit} B)",
            situation.schedule.tile
        )
    })
}

fn roles(situation: &Situation) -> Option<String> {
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

fn cluster(situation: &Situation) -> Option<String> {
    (situation.schedule.cluster != Cluster { m: 1, n: 1 })
        .then(|| "no blocks share loads on a CPU".to_owned())
}
