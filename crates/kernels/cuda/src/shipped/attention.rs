//! Attention's variants: the steps of its staircase, then formats, head sizes and masks of the fastest kernels.

mod case;

use gauntlet_device::Arch;
use gauntlet_problems::resources::block_bytes;
use gauntlet_problems::{
    Arithmetic, Cluster, Epilogue, Exponential, Layout, Lookup, Order, OutputFormat, Roles, Schedule, Scores,
    Setup, Tile, Values,
};

use self::case::{BRAINS, EIGHTS, HALVES, INTEGERS, variant};
use super::Shipped;

/// All of attention's variants, in the order of the staircase.
pub(super) fn shipped() -> Vec<Shipped> {
    let mut shipped = unified();
    shipped.extend(unified_fp8());
    shipped.extend(specialised());
    shipped.extend(resident());
    shipped
}

/// Bytes of shared memory of an L4's block (CUDA C++ Programming Guide, technical specifications).
const MIN_BLOCK: usize = 99 << 10;

/// Those for an architecture before Hopper: the steps of the staircase that fit an L4, tiles that it has room for, and
/// products of e4m3 where the architecture has them.
pub(super) fn before_hopper(arch: Arch) -> Vec<Shipped> {
    let mut shipped = unified();
    shipped.retain(|one| block_bytes(&one.schedule, &one.problem, arch) <= MIN_BLOCK);
    let fused = |queries: usize, keys: usize, stages: usize| Schedule {
        tile: Tile::from([queries, keys, 64]),
        stages,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        ..Schedule::baseline()
    };
    shipped.extend([
        variant("swizzled, two stages", HALVES, fused(64, 64, 2)),
        variant(
            "swizzled, two stages, 128 queries",
            HALVES.equal(),
            fused(128, 64, 2),
        ),
        variant(
            "swizzled, two stages, 128 queries",
            BRAINS.causal(),
            fused(128, 64, 2),
        ),
        variant(
            "swizzled, two stages, 128 queries",
            HALVES.long_heads(),
            fused(128, 64, 2),
        ),
        variant(
            "swizzled, 128 queries, 128 keys",
            EIGHTS.equal(),
            fused(128, 128, 3),
        ),
    ]);
    if arch != Arch::Sm80 {
        shipped.extend(unified_fp8());
    }
    shipped
}

/// The unified kernel with products of e4m3.
fn unified_fp8() -> Vec<Shipped> {
    let fp8 = |queries: usize, stages: usize, scores: Scores| Schedule {
        tile: Tile::from([queries, 64, 64]),
        stages,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        arithmetic: Arithmetic::Fp8,
        scores,
        ..Schedule::baseline()
    };
    vec![
        variant("fp8", EIGHTS, fp8(64, 3, Scores::Registers)),
        variant(
            "fp8, scores in place",
            EIGHTS.equal(),
            fp8(64, 2, Scores::InPlace),
        ),
        variant(
            "fp8, 128 queries",
            EIGHTS.causal(),
            fp8(128, 3, Scores::Registers),
        ),
        variant(
            "fp8, 128 queries",
            EIGHTS.long_heads(),
            fp8(128, 2, Scores::Registers),
        ),
        variant("fp8", EIGHTS.by_block(), fp8(64, 3, Scores::Registers)),
        variant(
            "fp8, few queries, split",
            EIGHTS.decoded().long_heads(),
            Schedule {
                split_k: 4,
                ..fp8(16, 4, Scores::Registers)
            },
        ),
    ]
}

/// The unified kernel's staircase, a step after the other, and the operands and results beside e4m3 and fp16.
fn unified() -> Vec<Shipped> {
    let one_stage = Schedule {
        tile: Tile::from([64, 64, 64]),
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        scores: Scores::Separate,
        values: Values::Scalar,
        layout: Layout::Plain,
        ..Schedule::baseline()
    };
    let two_stages = Schedule {
        stages: 2,
        ..one_stage.clone()
    };
    let matrix = Schedule {
        values: Values::Matrix,
        ..two_stages.clone()
    };
    let in_place = Schedule {
        scores: Scores::InPlace,
        ..matrix.clone()
    };
    let fused = Schedule {
        scores: Scores::Registers,
        ..in_place.clone()
    };
    let three_stages = Schedule {
        stages: 3,
        ..fused.clone()
    };
    let swizzled = Schedule {
        layout: Layout::Swizzled,
        ..three_stages.clone()
    };
    let with = |exponential| Schedule {
        exponential,
        ..swizzled.clone()
    };
    let staged = Schedule {
        epilogue: Epilogue::Staged,
        ..swizzled.clone()
    };
    let steps = [
        ("one stage", one_stage),
        ("two stages", two_stages),
        ("matrix values", matrix),
        ("scores in place", in_place),
        ("fused", fused),
        ("three stages", three_stages),
        ("swizzled", swizzled.clone()),
        ("staged epilogue", staged.clone()),
        ("polynomial", with(Exponential::Polynomial)),
        ("table", with(Exponential::Table)),
    ];
    // Each way of multiplying values has its own with scales of blocks.
    let by_block = [
        variant("one stage", INTEGERS.by_block(), steps[0].1.clone()),
        variant("matrix values", EIGHTS.by_block(), steps[2].1.clone()),
        variant("swizzled", EIGHTS.by_block().causal(), swizzled.clone()),
    ];
    let mut shipped: Vec<_> = steps
        .into_iter()
        .map(|(name, schedule)| variant(name, EIGHTS, schedule))
        .collect();
    shipped.extend(by_block);
    shipped.extend(others(&swizzled, &staged));
    shipped.extend(in_parts(&swizzled));
    shipped
}

/// Keys split over blocks, and in tiles of 16 queries over warps.
fn in_parts(swizzled: &Schedule) -> [Shipped; 6] {
    let split = |queries: usize, parts: usize| Schedule {
        tile: Tile::from([queries, 64, 64]),
        split_k: parts,
        ..swizzled.clone()
    };
    [
        variant("few queries", HALVES.decoded(), split(16, 1)),
        variant("few queries, split", HALVES.decoded().long_heads(), split(16, 4)),
        variant("few queries, split", BRAINS.decoded().causal(), split(16, 3)),
        variant("few queries, split", EIGHTS.decoded().by_block(), split(16, 4)),
        variant(
            "few queries, split",
            INTEGERS.decoded().long_heads(),
            split(16, 2),
        ),
        variant("split", HALVES.causal(), split(64, 3)),
    ]
}

/// Causal masks, larger heads and tiles, and other operands and results.
fn others(swizzled: &Schedule, staged: &Schedule) -> [Shipped; 5] {
    let deep = |queries: usize, schedule: &Schedule| Schedule {
        tile: Tile::from([queries, 128, 128]),
        stages: 2,
        ..schedule.clone()
    };
    let rounded = EIGHTS.long_heads().causal().to(OutputFormat::Bf16);
    let single = BRAINS.long_heads().to(OutputFormat::F32);
    let integers = INTEGERS.long_heads().causal().by_block().to(OutputFormat::Bf16);
    // With scales by block, 128 keys a step leave too few registers for heads of 128: threads spill 16 bytes.
    let narrow = Schedule {
        tile: Tile::from([64, 64, 128]),
        ..deep(64, staged)
    };
    [
        variant("swizzled", HALVES.causal(), swizzled.clone()),
        variant("swizzled", INTEGERS, swizzled.clone()),
        variant("staged epilogue", rounded, deep(64, staged)),
        variant("staged epilogue", integers, narrow),
        variant("swizzled, 128 queries", single, deep(128, swizzled)),
    ]
}

/// The specialised kernel: every format, head size and mask, in tiles of 128 queries and of as many as fit.
fn specialised() -> Vec<Shipped> {
    let (fp16, fp8) = (Arithmetic::Fp16, Arithmetic::Fp8);
    let cases = [
        (128, fp16, HALVES),
        (128, fp16, HALVES.equal()),
        (128, fp16, HALVES.equal().causal()),
        (128, fp16, HALVES.long_heads()),
        (128, fp16, BRAINS.causal()),
        (128, fp16, BRAINS.long_heads()),
        (256, fp16, HALVES),
        (256, fp16, HALVES.equal()),
        (256, fp16, BRAINS.causal()),
        (192, fp16, HALVES.long_heads()),
        (192, fp16, BRAINS.long_heads().causal()),
        (128, fp16, EIGHTS),
        (128, fp8, EIGHTS.equal()),
        (128, fp8, EIGHTS.causal()),
        (128, fp8, EIGHTS.long_heads()),
        (256, fp8, EIGHTS.equal()),
        (256, fp8, EIGHTS.causal()),
        (192, fp8, EIGHTS.long_heads()),
        (192, fp8, EIGHTS.long_heads().causal()),
        (128, fp8, EIGHTS.causal().by_block()),
        (256, fp8, EIGHTS.equal().by_block()),
        (192, fp8, EIGHTS.long_heads().by_block()),
        (128, fp16, INTEGERS.long_heads()),
        (128, fp16, INTEGERS.by_block()),
    ];
    let split = [
        (128, fp16, HALVES.long_heads().causal(), 4),
        (128, fp16, HALVES.equal(), 2),
        (256, fp8, EIGHTS.equal().by_block(), 3),
        (192, fp16, BRAINS.long_heads(), 2),
        (128, fp16, INTEGERS.causal(), 3),
    ];
    let cases = cases.map(|(queries, arithmetic, case)| (queries, arithmetic, case, 1));
    let shipped = cases
        .into_iter()
        .chain(split)
        .map(|(queries, arithmetic, case, parts)| {
            let multiplied = match arithmetic {
                Arithmetic::Fp8 => ", fp8",
                Arithmetic::Fp16 if case.format.has_scales() => ", converted",
                Arithmetic::Fp16 => "",
            };
            let size = match queries {
                128 => String::new(),
                _ => format!(", {queries} queries"),
            };
            let schedule = Schedule {
                tile: Tile::from([queries, 128, 64]),
                stages: 2,
                roles: Roles::Specialised,
                order: Order::Sorted,
                lookup: Lookup::Precomputed,
                setup: Setup::Once,
                arithmetic,
                split_k: parts,
                ..Schedule::baseline()
            };
            let split = if parts > 1 { ", split" } else { "" };
            variant(&format!("specialised{multiplied}{size}{split}"), case, schedule)
        });
    shipped.collect()
}

/// The resident kernel: every operand format, both head sizes, and splits over clusters.
fn resident() -> Vec<Shipped> {
    let held = |keys: usize, split_k: usize| Schedule {
        tile: Tile::from([64, keys, 64]),
        roles: Roles::Specialised,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        split_k,
        cluster: Cluster { m: 1, n: split_k },
        ..Schedule::baseline()
    };
    let short = || held(128, 2);
    let fp8 = || Schedule {
        arithmetic: Arithmetic::Fp8,
        ..short()
    };
    let runs = |stages| Schedule { stages, ..short() };
    let with = |exponential| Schedule {
        exponential,
        ..short()
    };
    let single = HALVES.equal().to(OutputFormat::F32);
    let cases = [
        ("", HALVES.equal(), short()),
        ("", BRAINS.equal(), short()),
        ("", EIGHTS.equal(), short()),
        (", fp8", EIGHTS.equal(), fp8()),
        (", one block", HALVES, held(256, 1)),
        (", four blocks", HALVES, held(64, 4)),
        (", two blocks", HALVES.long_heads(), short()),
        // e4m3 beside what it is converted to has room for fewer keys.
        (", four blocks", EIGHTS.long_heads(), held(64, 4)),
        (", fp8", EIGHTS.long_heads(), fp8()),
        ("", HALVES.equal().causal(), short()),
        ("", single, short()),
        (", two runs", HALVES.equal(), runs(2)),
        (", four runs", HALVES.equal(), runs(4)),
        (", polynomial", HALVES.equal(), with(Exponential::Polynomial)),
        (", fp8", EIGHTS.equal().by_block(), fp8()),
        (", fp8", EIGHTS.long_heads().by_block(), fp8()),
        ("", INTEGERS.equal(), short()),
        (", four blocks", INTEGERS.by_block(), held(64, 4)),
        (", table", HALVES.equal(), with(Exponential::Table)),
    ];
    cases
        .map(|(name, case, schedule)| variant(&format!("resident{name}"), case, schedule))
        .into()
}
