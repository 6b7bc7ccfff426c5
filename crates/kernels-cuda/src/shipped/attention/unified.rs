//! Attention: the unified kernel's staircase, a step after the other, and the operands and results beside e4m3 and fp16.

use gauntlet_operations::OutputFormat;
use gauntlet_operations::{Epilogue, Exponential, Layout, Lookup, Schedule, Scores, Setup, Tile, Values};

use super::{BRAINS, Case, EIGHTS, HALVES, INTEGERS, variant};
use crate::shipped::Shipped;

pub(super) fn shipped() -> Vec<Shipped> {
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
    shipped
}

/// Causal masks, larger heads and tiles, and other operands and results.
fn others(swizzled: &Schedule, staged: &Schedule) -> [Shipped; 5] {
    let deep = |queries: usize, schedule: &Schedule| Schedule {
        tile: Tile::from([queries, 128, 128]),
        stages: 2,
        ..schedule.clone()
    };
    let with = |output, case: Case| Case { output, ..case };
    let rounded = with(OutputFormat::Bf16, EIGHTS.long_heads().causal());
    let single = with(OutputFormat::F32, BRAINS.long_heads());
    let integers = with(OutputFormat::Bf16, INTEGERS.long_heads().causal().by_block());
    [
        variant("swizzled", HALVES.causal(), swizzled.clone()),
        variant("swizzled", INTEGERS, swizzled.clone()),
        variant("staged epilogue", rounded, deep(64, staged)),
        variant("staged epilogue", integers, deep(64, staged)),
        variant("swizzled, 128 queries", single, deep(128, swizzled)),
    ]
}
