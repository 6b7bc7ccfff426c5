//! The CPU: panels in cache, threads instead of blocks.

use super::lever::Lever;
use super::{Rule, Situation};
use crate::resources::block_bytes;
use crate::{Cluster, Roles};

const KERNEL: &str = "the CPU kernels: vectors of 16 lanes, one scale for each 16 values";

/// Panels that overflow the second-level cache this many times are read from memory again and again.
const PANELS_OVER_L2: f64 = 4.0;

pub(super) const RULES: &[Rule] = &[
    Rule {
        parameter: Lever::TILE_M,
        levers: &[Lever::TILE_M],
        source: KERNEL,
        broken: rows,
    },
    Rule {
        parameter: Lever::TILE_N,
        levers: &[Lever::TILE_N],
        source: KERNEL,
        broken: columns,
    },
    Rule {
        parameter: Lever::TILE_K,
        levers: &[Lever::TILE_K],
        source: KERNEL,
        broken: depth,
    },
    Rule {
        parameter: Lever::STAGES,
        levers: &[Lever::STAGES],
        source: "the CPU kernels: a ring of at most 8 panels",
        broken: stages,
    },
    Rule {
        parameter: Lever::STAGES,
        levers: &[Lever::STAGES, Lever::TILE_K, Lever::TILE_N, Lever::TILE_M],
        source: "Gauntlet's own limit: a thread's panels may take four times its second-level cache",
        broken: panels,
    },
    Rule {
        parameter: Lever::ROLES,
        levers: &[Lever::ROLES, Lever::STAGES],
        source: "definition of the word: one side prepares while the other multiplies",
        broken: roles,
    },
    Rule {
        parameter: Lever::CLUSTER,
        levers: &[Lever::CLUSTER],
        source: "definition of the word: no blocks share loads on a CPU",
        broken: cluster,
    },
];

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
        return Some("someone must prepare and someone multiply, and there is one thread".to_owned());
    }
    (situation.schedule.stages < 2)
        .then(|| "with one stage nobody can prepare while another multiplies; it takes 2".to_owned())
}

fn cluster(situation: &Situation) -> Option<String> {
    (situation.schedule.cluster != Cluster { m: 1, n: 1 })
        .then(|| "no blocks share loads on a CPU".to_owned())
}
