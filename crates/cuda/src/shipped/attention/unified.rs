//! Attention: the unified kernel's staircase, a step after the other, and the operands and results beside e4m3 and fp16.

use gauntlet_problem::{Attention, AttentionFormat, OutputFormat, Problem, Scaling, Sequence};
use gauntlet_schedule::{Epilogue, Exponential, Layout, Lookup, Schedule, Scores, Setup, Tile, Values};

use crate::shipped::Shipped;

/// Sequences of which none is a multiple of any tile, and the heads share keys.
fn problem(head_size: usize, causal: bool, format: AttentionFormat, output: OutputFormat) -> Problem {
    let lengths = [(300, 500), (1, 777)];
    Problem::Attention(Attention {
        sequences: lengths.map(|(queries, keys)| Sequence { queries, keys }).to_vec(),
        heads: 8,
        kv_heads: 4,
        head_size,
        causal,
        format,
        scaling: Scaling::default(),
        output,
    })
}

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
    let eights = problem(64, false, AttentionFormat::E4m3, OutputFormat::F16);
    let mut shipped: Vec<_> = steps
        .into_iter()
        .map(|(name, schedule)| Shipped {
            name: format!("attention, {name}"),
            problem: eights.clone(),
            schedule,
        })
        .collect();
    shipped.extend(others(&swizzled, &staged));
    shipped
}

/// Causal masks, larger heads and tiles, and other operands and results.
fn others(swizzled: &Schedule, staged: &Schedule) -> Vec<Shipped> {
    let deep = |tile: [usize; 3], stages, schedule: &Schedule| Schedule {
        tile: Tile::from(tile),
        stages,
        ..schedule.clone()
    };
    let others = [
        (
            "causal, fp16",
            problem(64, true, AttentionFormat::F16, OutputFormat::F16),
            swizzled.clone(),
        ),
        (
            "causal, head 128",
            problem(128, true, AttentionFormat::E4m3, OutputFormat::Bf16),
            deep([64, 128, 128], 2, staged),
        ),
        (
            "bf16, head 128, f32",
            problem(128, false, AttentionFormat::Bf16, OutputFormat::F32),
            deep([128, 128, 128], 2, swizzled),
        ),
    ];
    others
        .into_iter()
        .map(|(name, problem, schedule)| Shipped {
            name: format!("attention, {name}"),
            problem,
            schedule,
        })
        .collect()
}
