//! Attention's variants: the steps of its staircase, then formats, head sizes and masks of the fastest kernels.

use gauntlet_problem::{Attention, AttentionFormat, OutputFormat, Problem, Sequence};
use gauntlet_schedule::{Arithmetic, Lookup, Order, Roles, Schedule, Setup, Tile};

use super::Shipped;

/// What a variant is compiled for.
#[derive(Clone, Copy)]
struct Operands {
    format: AttentionFormat,
    head_size: usize,
    causal: bool,
    output: OutputFormat,
}

const HALVES: Operands = Operands {
    format: AttentionFormat::F16,
    head_size: 64,
    causal: false,
    output: OutputFormat::F16,
};
const EIGHTS: Operands = Operands {
    format: AttentionFormat::E4m3,
    ..HALVES
};

/// All of attention's variants.
pub(super) fn shipped() -> Vec<Shipped> {
    specialised()
}

fn variant(name: &str, operands: Operands, schedule: Schedule) -> Shipped {
    let Operands {
        format,
        head_size,
        causal,
        output,
    } = operands;
    let mask = if causal { ", causal" } else { "" };
    let rounded = match output {
        OutputFormat::F16 => "",
        OutputFormat::Bf16 => ", bf16 out",
        OutputFormat::F32 => ", f32 out",
    };
    Shipped {
        name: format!("attention, {name}, {format}, head {head_size}{mask}{rounded}"),
        problem: Problem::Attention(Attention {
            // Unequal, so that a table is read; none a multiple of any tile.
            sequences: vec![
                Sequence {
                    queries: 100,
                    keys: 300,
                },
                Sequence {
                    queries: 511,
                    keys: 511,
                },
            ],
            heads: 4,
            kv_heads: 2,
            head_size,
            causal,
            format,
            output,
        }),
        schedule: Schedule {
            tile: Tile {
                k: head_size,
                ..schedule.tile
            },
            ..schedule
        },
    }
}

/// One warp loads, two or three warp groups multiply.
fn specialised() -> Vec<Shipped> {
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
    let long_heads = |operands: Operands| Operands {
        head_size: 128,
        ..operands
    };
    let causal = |operands: Operands| Operands {
        causal: true,
        ..operands
    };
    let brains = Operands {
        format: AttentionFormat::Bf16,
        output: OutputFormat::Bf16,
        ..HALVES
    };
    let (fp16, fp8) = (Arithmetic::Fp16, Arithmetic::Fp8);
    vec![
        variant("specialised", HALVES, specialised(128, 4, fp16)),
        variant("specialised", causal(HALVES), specialised(128, 4, fp16)),
        variant("specialised", long_heads(HALVES), specialised(128, 2, fp16)),
        variant("specialised", causal(brains), specialised(128, 4, fp16)),
        variant("specialised", long_heads(brains), specialised(128, 2, fp16)),
        variant("specialised, 192 queries", HALVES, specialised(192, 4, fp16)),
        variant("specialised, converted", EIGHTS, specialised(128, 3, fp16)),
        variant("specialised, fp8", EIGHTS, specialised(128, 4, fp8)),
        variant("specialised, fp8", causal(EIGHTS), specialised(128, 4, fp8)),
        variant("specialised, fp8", long_heads(EIGHTS), specialised(128, 4, fp8)),
    ]
}
