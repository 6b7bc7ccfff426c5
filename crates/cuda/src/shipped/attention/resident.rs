//! Attention of short sequences: every operand format, both head sizes, and splits over clusters.

use gauntlet_problem::{Attention, AttentionFormat, OutputFormat, Problem, Scaling, Sequence};
use gauntlet_schedule::{Arithmetic, Cluster, Exponential, Lookup, Roles, Schedule, Setup, Tile};

use crate::shipped::Shipped;

/// Queries and keys: sequences of one length, and of several, the shortest with keys for each of four blocks.
const EQUAL: [[usize; 2]; 2] = [[512, 512]; 2];
const RAGGED: [[usize; 2]; 3] = [[100, 512], [1, 256], [64, 300]];

/// A name, the head size, keys of a warp group, and blocks of a cluster.
type Shape = (&'static str, usize, usize, usize);

const SHORT: Shape = ("resident", 64, 128, 2);
const SHAPES: [Shape; 4] = [
    ("resident, one block", 64, 256, 1),
    ("resident, four blocks", 64, 64, 4),
    ("resident, long heads", 128, 128, 2),
    ("resident, long heads, few keys", 128, 64, 4),
];

const FORMATS: [(&str, AttentionFormat, OutputFormat, Arithmetic); 4] = [
    ("f16", AttentionFormat::F16, OutputFormat::F16, Arithmetic::Fp16),
    (
        "bf16",
        AttentionFormat::Bf16,
        OutputFormat::Bf16,
        Arithmetic::Fp16,
    ),
    (
        "e4m3 as f16",
        AttentionFormat::E4m3,
        OutputFormat::F16,
        Arithmetic::Fp16,
    ),
    ("e4m3", AttentionFormat::E4m3, OutputFormat::F16, Arithmetic::Fp8),
];

pub(super) fn shipped() -> Vec<Shipped> {
    let mut shipped: Vec<_> = FORMATS
        .iter()
        .map(|format| variant(SHORT, *format, &EQUAL, |_, _| {}))
        .collect();
    shipped.extend(SHAPES.map(|shape| variant(shape, FORMATS[0], &RAGGED, |_, _| {})));
    // e4m3 beside what it is converted to has room for fewer keys.
    shipped.push(variant(SHAPES[3], FORMATS[2], &RAGGED, |_, _| {}));
    shipped.push(variant(SHAPES[2], FORMATS[3], &RAGGED, |_, _| {}));
    let named = |end: &str, change: fn(&mut Schedule, &mut Attention)| {
        let mut one = variant(SHORT, FORMATS[0], &EQUAL, change);
        one.name += end;
        one
    };
    shipped.extend([
        named(", causal", |_, attention| attention.causal = true),
        named(", f32 results", |_, attention| {
            attention.output = OutputFormat::F32
        }),
        named(", two runs", |schedule, _| schedule.stages = 2),
        named(", four runs", |schedule, _| schedule.stages = 4),
        named(", polynomial", |schedule, _| {
            schedule.exponential = Exponential::Polynomial
        }),
        named(", table", |schedule, _| schedule.exponential = Exponential::Table),
    ]);
    shipped
}

fn variant(
    (name, head_size, keys, split_k): Shape,
    (format_name, format, output, arithmetic): (&str, AttentionFormat, OutputFormat, Arithmetic),
    sequences: &[[usize; 2]],
    change: fn(&mut Schedule, &mut Attention),
) -> Shipped {
    let mut attention = Attention {
        sequences: sequences
            .iter()
            .map(|&[queries, keys]| Sequence { queries, keys })
            .collect(),
        heads: 8,
        kv_heads: 8,
        head_size,
        causal: false,
        format,
        scaling: Scaling::default(),
        output,
    };
    let mut schedule = Schedule {
        tile: Tile::from([64, keys, head_size]),
        roles: Roles::Specialised,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        split_k,
        cluster: Cluster { m: 1, n: split_k },
        arithmetic,
        ..Schedule::baseline()
    };
    change(&mut schedule, &mut attention);
    Shipped {
        name: format!("{name}, {format_name}"),
        problem: Problem::Attention(attention),
        schedule,
    }
}
