//! What attention's variants are compiled for: sequences, formats, head sizes and masks.

use gauntlet_problems::{
    Attention, AttentionFormat, Operation, OutputFormat, Scaling, Schedule, Sequence, Tile,
};

use super::Shipped;

/// Queries and keys of sequences of equal lengths: a tile's place follows from its number.
const EQUAL: &[[usize; 2]] = &[[512, 512]; 2];
/// Sequences of unequal lengths, none a multiple of any tile; tiles are found in a table.
const RAGGED: &[[usize; 2]] = &[[100, 300], [1, 477], [511, 511]];
/// Sequences of few queries, as in decoding: heads that share a key head are packed.
const DECODED: &[[usize; 2]] = &[[1, 2000], [7, 477]];

/// What a variant is compiled for.
#[derive(Clone, Copy)]
pub(super) struct Case {
    sequences: &'static [[usize; 2]],
    pub(super) format: AttentionFormat,
    scaling: Scaling,
    head_size: usize,
    causal: bool,
    output: OutputFormat,
}

pub(super) const HALVES: Case = Case {
    sequences: RAGGED,
    format: AttentionFormat::F16,
    scaling: Scaling::PerHead,
    head_size: 64,
    causal: false,
    output: OutputFormat::F16,
};
pub(super) const BRAINS: Case = Case {
    format: AttentionFormat::Bf16,
    output: OutputFormat::Bf16,
    ..HALVES
};
pub(super) const EIGHTS: Case = Case {
    format: AttentionFormat::E4m3,
    ..HALVES
};

pub(super) const INTEGERS: Case = Case {
    format: AttentionFormat::Int8,
    ..HALVES
};

impl Case {
    pub(super) fn equal(self) -> Self {
        Self {
            sequences: EQUAL,
            ..self
        }
    }

    pub(super) fn decoded(self) -> Self {
        Self {
            sequences: DECODED,
            ..self
        }
    }

    pub(super) fn causal(self) -> Self {
        Self { causal: true, ..self }
    }

    pub(super) fn by_block(self) -> Self {
        Self {
            scaling: Scaling::PerBlock,
            ..self
        }
    }

    /// With results in a format.
    pub(super) fn to(self, output: OutputFormat) -> Self {
        Self { output, ..self }
    }

    pub(super) fn long_heads(self) -> Self {
        Self {
            head_size: 128,
            ..self
        }
    }
}

/// A schedule for a case; its tile is as deep as the case's heads.
pub(super) fn variant(name: &str, case: Case, schedule: Schedule) -> Shipped {
    let Case {
        format, head_size, ..
    } = case;
    let scales = if case.scaling == Scaling::PerBlock {
        " per block"
    } else {
        ""
    };
    let equal = match case.sequences {
        EQUAL => ", equal",
        DECODED => ", decoded",
        _ => "",
    };
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
