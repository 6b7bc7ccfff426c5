//! The specialised kernel: one warp loads, two to four warp groups multiply.

use gauntlet_operations::{Arithmetic, Lookup, Order, Roles, Schedule, Setup, Tile};

use super::{BRAINS, EIGHTS, HALVES, INTEGERS, variant};
use crate::shipped::Shipped;

pub(super) fn shipped() -> Vec<Shipped> {
    let specialised = |queries: usize, stages: usize, arithmetic: Arithmetic| Schedule {
        tile: Tile::from([queries, 128, 64]),
        stages,
        roles: Roles::Specialised,
        order: Order::Sorted,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        arithmetic,
        ..Schedule::baseline()
    };
    let (fp16, fp8) = (Arithmetic::Fp16, Arithmetic::Fp8);
    vec![
        variant("specialised", HALVES, specialised(128, 2, fp16)),
        variant("specialised", HALVES.equal(), specialised(128, 2, fp16)),
        variant("specialised", HALVES.equal().causal(), specialised(128, 2, fp16)),
        variant("specialised", HALVES.long_heads(), specialised(128, 2, fp16)),
        variant("specialised", BRAINS.causal(), specialised(128, 2, fp16)),
        variant("specialised", BRAINS.long_heads(), specialised(128, 2, fp16)),
        variant("specialised, 256 queries", HALVES, specialised(256, 2, fp16)),
        variant(
            "specialised, 256 queries",
            HALVES.equal(),
            specialised(256, 2, fp16),
        ),
        variant(
            "specialised, 256 queries",
            BRAINS.causal(),
            specialised(256, 2, fp16),
        ),
        variant(
            "specialised, 192 queries",
            HALVES.long_heads(),
            specialised(192, 2, fp16),
        ),
        variant(
            "specialised, 192 queries",
            BRAINS.long_heads().causal(),
            specialised(192, 2, fp16),
        ),
        variant("specialised, converted", EIGHTS, specialised(128, 2, fp16)),
        variant("specialised, fp8", EIGHTS.equal(), specialised(128, 2, fp8)),
        variant("specialised, fp8", EIGHTS.causal(), specialised(128, 2, fp8)),
        variant("specialised, fp8", EIGHTS.long_heads(), specialised(128, 2, fp8)),
        variant(
            "specialised, fp8, 256 queries",
            EIGHTS.equal(),
            specialised(256, 2, fp8),
        ),
        variant(
            "specialised, fp8, 256 queries",
            EIGHTS.causal(),
            specialised(256, 2, fp8),
        ),
        variant(
            "specialised, fp8, 192 queries",
            EIGHTS.long_heads(),
            specialised(192, 2, fp8),
        ),
        variant(
            "specialised, fp8, 192 queries",
            EIGHTS.long_heads().causal(),
            specialised(192, 2, fp8),
        ),
        variant(
            "specialised, fp8",
            EIGHTS.causal().by_block(),
            specialised(128, 2, fp8),
        ),
        variant(
            "specialised, fp8, 256 queries",
            EIGHTS.equal().by_block(),
            specialised(256, 2, fp8),
        ),
        variant(
            "specialised, fp8, 192 queries",
            EIGHTS.long_heads().by_block(),
            specialised(192, 2, fp8),
        ),
        variant(
            "specialised, converted",
            INTEGERS.long_heads(),
            specialised(128, 2, fp16),
        ),
        variant(
            "specialised, converted",
            INTEGERS.by_block(),
            specialised(128, 2, fp16),
        ),
    ]
}
