//! How far two problems are apart, for choosing the schedule of the nearest.

use gauntlet_problem::{Attention, GroupedGemm, Problem};

/// Farther than this, as a factor, a problem's schedule says nothing of another's.
pub const FARTHEST: f64 = 4.0;

/// The greatest of the logarithms of the ratios of sizes: of a GEMM the groups, all rows, and the mean columns and
/// depth; of attention the heads over all sequences, all queries, and the mean keys. None between problems that differ
/// in more than sizes.
pub(crate) fn distance(one: &Problem, other: &Problem) -> Option<f64> {
    let sizes = match (one, other) {
        (Problem::GroupedGemm(one), Problem::GroupedGemm(other)) => {
            (one.form == other.form && one.output == other.output).then(|| {
                gemm_sizes(one)
                    .into_iter()
                    .zip(gemm_sizes(other))
                    .collect::<Vec<_>>()
            })
        }
        (Problem::Attention(one), Problem::Attention(other)) => alike(one, other).then(|| {
            attention_sizes(one)
                .into_iter()
                .zip(attention_sizes(other))
                .collect()
        }),
        _ => None,
    }?;
    let ratios = sizes
        .into_iter()
        .map(|(one, other)| (one.max(1.0) / other.max(1.0)).ln().abs());
    ratios.reduce(f64::max)
}

fn alike(one: &Attention, other: &Attention) -> bool {
    one.head_size == other.head_size
        && one.causal == other.causal
        && one.format == other.format
        && one.output == other.output
        && one.heads * other.kv_heads == other.heads * one.kv_heads
}

fn gemm_sizes(gemm: &GroupedGemm) -> [f64; 4] {
    let groups = gemm.groups.len().max(1) as f64;
    let sum =
        |size: fn(&gauntlet_problem::GemmShape) -> usize| gemm.groups.iter().map(size).sum::<usize>() as f64;
    [
        groups,
        sum(|shape| shape.m),
        sum(|shape| shape.n) / groups,
        sum(|shape| shape.k) / groups,
    ]
}

fn attention_sizes(attention: &Attention) -> [f64; 3] {
    let sequences = attention.sequences.len().max(1) as f64;
    let queries: usize = attention.sequences.iter().map(|sequence| sequence.queries).sum();
    let keys: usize = attention.sequences.iter().map(|sequence| sequence.keys).sum();
    [
        sequences * attention.heads as f64,
        queries as f64,
        keys as f64 / sequences,
    ]
}
