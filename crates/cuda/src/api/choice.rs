//! Which schedule a call gets.

use gauntlet_problem::{Form, GroupedGemm};
use gauntlet_schedule::{Epilogue, Lookup, Order, Packing, Roles, Schedule, Setup, Tile};

/// Most tokens of a group that the narrow kernel computes without reading weights twice.
const NARROW: usize = 16;

/// Which schedule a call gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// By the numbers of tokens: the narrow kernel where no group has more than 16, else the swapped one with its work
    /// balanced. Few variants, so that a new list of numbers hardly ever has to wait for a compiler.
    #[default]
    Automatic,
    /// The same for weights that were [repacked](crate::packing).
    Repacked,
    /// This one, always.
    Fixed(Schedule),
}

impl Choice {
    /// The schedule for a problem.
    pub(super) fn schedule(&self, gemm: &GroupedGemm) -> Schedule {
        match self {
            Self::Automatic => automatic(gemm),
            Self::Repacked => Schedule {
                packing: Packing::Fragments,
                ..automatic(gemm)
            },
            Self::Fixed(schedule) => schedule.clone(),
        }
    }
}

fn automatic(gemm: &GroupedGemm) -> Schedule {
    let most = gemm.groups.iter().map(|shape| shape.m).max().unwrap_or(0);
    // A tile of the dual form has as many rows of each of two weights.
    let rows = |rows: usize| match gemm.form {
        Form::Plain => rows,
        Form::Swiglu => rows / 2,
    };
    let narrow = Schedule {
        tile: Tile {
            m: rows(32),
            n: if most <= NARROW / 2 { NARROW / 2 } else { NARROW },
            k: narrow_depth(gemm.form),
        },
        stages: 2,
        epilogue: Epilogue::Direct,
        roles: Roles::Unified,
        order: Order::PerTile,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        swap_ab: true,
        ..Schedule::baseline()
    };
    if most <= NARROW {
        return narrow;
    }
    Schedule {
        tile: Tile {
            m: rows(128),
            n: 256,
            k: 128,
        },
        stages: 3,
        roles: Roles::Specialised,
        order: Order::Sorted,
        // More parts shorten the plan of one benchmark by 0.7 %, by the model of costs.
        split_k: 4,
        ..narrow
    }
}

/// A warp of the narrow kernel has 128 of a step's depth. In the plain form sixteen warps fill a multiprocessor, so that a
/// launch that begins before the last one's end cannot put two of its blocks where that one has left room, and none
/// elsewhere; measured on an H200 (M = 16, N = 4096, K = 7168): 9.5 µs, and 15.4 with eight warps and four stages. The
/// dual form has twice the blocks, and they run in pairs.
fn narrow_depth(form: Form) -> usize {
    match form {
        Form::Plain => 2048,
        Form::Swiglu => 1024,
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_problem::{GemmShape, OutputFormat};

    use super::*;
    use crate::plan::{self, Source};

    fn gemm(tokens: &[usize], form: Form) -> GroupedGemm {
        GroupedGemm {
            groups: tokens
                .iter()
                .map(|&m| GemmShape { m, n: 4096, k: 7168 })
                .collect(),
            form,
            output: OutputFormat::F16,
        }
    }

    #[test]
    fn the_kernel_follows_the_largest_group() {
        for form in [Form::Plain, Form::Swiglu] {
            let chosen = |tokens: &[usize]| {
                let gemm = gemm(tokens, form);
                let schedule = Choice::Automatic.schedule(&gemm);
                let plan = plan::plan(&gauntlet_problem::Problem::GroupedGemm(gemm), &schedule, 132).unwrap();
                let variant = plan.variant();
                (variant.source, variant.defines.get("TOKENS").cloned())
            };
            assert_eq!(chosen(&[0]), (Source::Narrow, Some("8".to_owned())));
            assert_eq!(chosen(&[1, 8, 3]), (Source::Narrow, Some("8".to_owned())));
            assert_eq!(chosen(&[1, 16]), (Source::Narrow, Some("16".to_owned())));
            assert_eq!(chosen(&[1, 17]), (Source::Swapped, None));
            assert_eq!(chosen(&[5000]), (Source::Swapped, None));
        }
    }
}
