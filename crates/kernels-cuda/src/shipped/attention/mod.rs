//! Attention's variants: the steps of its staircase, then formats, head sizes and masks of the fastest kernels.

mod resident;
mod specialised;
mod unified;

use gauntlet_operations::{Attention, AttentionFormat, Operation, OutputFormat, Scaling, Sequence};
use gauntlet_operations::{Schedule, Tile};

use super::Shipped;

/// Queries and keys of sequences of equal lengths: a tile's place follows from its number.
const EQUAL: &[[usize; 2]] = &[[512, 512]; 2];
/// Sequences of unequal lengths, none a multiple of any tile; tiles are found in a table.
const RAGGED: &[[usize; 2]] = &[[100, 300], [1, 477], [511, 511]];

/// What a variant is compiled for.
#[derive(Clone, Copy)]
struct Case {
    sequences: &'static [[usize; 2]],
    format: AttentionFormat,
    scaling: Scaling,
    head_size: usize,
    causal: bool,
    output: OutputFormat,
}

const HALVES: Case = Case {
    sequences: RAGGED,
    format: AttentionFormat::F16,
    scaling: Scaling::PerHead,
    head_size: 64,
    causal: false,
    output: OutputFormat::F16,
};
const BRAINS: Case = Case {
    format: AttentionFormat::Bf16,
    output: OutputFormat::Bf16,
    ..HALVES
};
const EIGHTS: Case = Case {
    format: AttentionFormat::E4m3,
    ..HALVES
};

const INTEGERS: Case = Case {
    format: AttentionFormat::Int8,
    ..HALVES
};

impl Case {
    fn equal(self) -> Self {
        Self {
            sequences: EQUAL,
            ..self
        }
    }

    fn causal(self) -> Self {
        Self { causal: true, ..self }
    }

    fn by_block(self) -> Self {
        Self {
            scaling: Scaling::PerBlock,
            ..self
        }
    }

    fn long_heads(self) -> Self {
        Self {
            head_size: 128,
            ..self
        }
    }
}

/// All of attention's variants, in the order of the staircase.
pub(super) fn shipped() -> Vec<Shipped> {
    let mut shipped = unified::shipped();
    shipped.extend(specialised::shipped());
    shipped.extend(resident::shipped());
    shipped
}

/// A schedule for a case; its tile is as deep as the case's heads.
fn variant(name: &str, case: Case, schedule: Schedule) -> Shipped {
    let Case {
        format, head_size, ..
    } = case;
    let scales = if case.scaling == Scaling::PerBlock {
        " per block"
    } else {
        ""
    };
    let equal = if case.sequences == EQUAL { ", equal" } else { "" };
    let mask = if case.causal { ", causal" } else { "" };
    let output = match (format, case.output) {
        (AttentionFormat::Bf16, OutputFormat::Bf16) | (_, OutputFormat::F16) => "",
        (_, OutputFormat::Bf16) => ", bf16 results",
        (_, OutputFormat::F32) => ", f32 results",
    };
    let sequences = case.sequences.iter();
    Shipped {
        name: format!("attention, {name}, {format}{scales}, head {head_size}{equal}{mask}{output}"),
        problem: Operation::Attention(Attention {
            sequences: sequences
                .map(|&[queries, keys]| Sequence { queries, keys })
                .collect(),
            heads: 8,
            kv_heads: 4,
            head_size,
            causal: case.causal,
            format,
            scaling: case.scaling,
            output: case.output,
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
