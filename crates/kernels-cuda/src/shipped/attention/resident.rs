//! The resident kernel: every operand format, both head sizes, and splits over clusters.

use gauntlet_operations::OutputFormat;
use gauntlet_operations::{Arithmetic, Cluster, Exponential, Lookup, Roles, Schedule, Setup, Tile};

use super::{BRAINS, Case, EIGHTS, HALVES, INTEGERS, variant};
use crate::shipped::Shipped;

pub(super) fn shipped() -> Vec<Shipped> {
    let short = resident(128, 2);
    let fp8 = |schedule: Schedule| Schedule {
        arithmetic: Arithmetic::Fp8,
        ..schedule
    };
    let runs = |stages| Schedule {
        stages,
        ..short.clone()
    };
    let with = |exponential| Schedule {
        exponential,
        ..short.clone()
    };
    let single = Case {
        output: OutputFormat::F32,
        ..HALVES.equal()
    };
    vec![
        variant("resident", HALVES.equal(), short.clone()),
        variant("resident", BRAINS.equal(), short.clone()),
        variant("resident", EIGHTS.equal(), short.clone()),
        variant("resident, fp8", EIGHTS.equal(), fp8(short.clone())),
        variant("resident, one block", HALVES, resident(256, 1)),
        variant("resident, four blocks", HALVES, resident(64, 4)),
        variant("resident, two blocks", HALVES.long_heads(), resident(128, 2)),
        // e4m3 beside what it is converted to has room for fewer keys.
        variant("resident, four blocks", EIGHTS.long_heads(), resident(64, 4)),
        variant("resident, fp8", EIGHTS.long_heads(), fp8(short.clone())),
        variant("resident", HALVES.equal().causal(), short.clone()),
        variant("resident", single, short.clone()),
        variant("resident, two runs", HALVES.equal(), runs(2)),
        variant("resident, four runs", HALVES.equal(), runs(4)),
        variant(
            "resident, polynomial",
            HALVES.equal(),
            with(Exponential::Polynomial),
        ),
        variant("resident, fp8", EIGHTS.equal().by_block(), fp8(short.clone())),
        variant(
            "resident, fp8",
            EIGHTS.long_heads().by_block(),
            fp8(short.clone()),
        ),
        variant("resident", INTEGERS.equal(), short.clone()),
        variant("resident, four blocks", INTEGERS.by_block(), resident(64, 4)),
        variant("resident, table", HALVES.equal(), with(Exponential::Table)),
    ]
}

/// A schedule with `keys` keys of a warp group, split over a cluster of `split_k` blocks.
fn resident(keys: usize, split_k: usize) -> Schedule {
    Schedule {
        tile: Tile::from([64, keys, 64]),
        roles: Roles::Specialised,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        split_k,
        cluster: Cluster { m: 1, n: split_k },
        ..Schedule::baseline()
    }
}
