//! How much of an output the oracle computes.

use std::collections::BTreeSet;
use std::fmt;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::{Attention, Problem};

/// Under this many FLOPs a whole output is computed: less than a second of f64 products on two cores.
const FULL_BELOW: u64 = 8_000_000_000;

/// Under this many even a glance takes all: some ten milliseconds.
const FULL_AT_A_GLANCE: u64 = 100_000_000;

/// How much of an output the oracle computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// Every element.
    Full,
    /// In each part every element of some rows, and every element of some columns: the first and the last, those at
    /// the edges of blocks of 128, and drawn ones. Attention, whose rows are short, has rows only.
    Sampled {
        /// Rows of each part, at most.
        rows: usize,
        /// Columns of each part, at most.
        columns: usize,
        /// What the drawn ones are drawn from: a fresh one each time, or a kernel could be wrong for ever where nobody looks.
        #[serde(default)]
        seed: u64,
    },
}

impl Coverage {
    /// The whole output where that takes less than a second or so, else a sample drawn from a seed.
    pub fn choose(problem: &Problem, seed: u64) -> Self {
        if problem.flops() < FULL_BELOW {
            return Self::Full;
        }
        match problem {
            Problem::GroupedGemm(_) => Self::Sampled {
                rows: 8,
                columns: 32,
                seed,
            },
            Problem::Attention(attention) => Self::Sampled {
                rows: attention_rows(attention),
                columns: 0,
                seed,
            },
        }
    }

    /// A few rows and columns of each part: milliseconds, so that results can be looked at between measurements.
    pub fn spot(problem: &Problem, seed: u64) -> Self {
        if problem.flops() < FULL_AT_A_GLANCE {
            return Self::Full;
        }
        match problem {
            Problem::GroupedGemm(_) => Self::Sampled {
                rows: 2,
                columns: 8,
                seed,
            },
            Problem::Attention(_) => Self::Sampled {
                rows: 2,
                columns: 0,
                seed,
            },
        }
    }

    /// The rows of a part computed whole, ascending.
    pub(super) fn rows(self, part: usize, length: usize) -> Vec<usize> {
        match self {
            Self::Full => (0..length).collect(),
            Self::Sampled { rows, seed, .. } => sample([seed, 2 * part as u64], length, rows),
        }
    }

    /// The columns of a part computed whole, ascending.
    pub(super) fn columns(self, part: usize, length: usize) -> Vec<usize> {
        match self {
            Self::Full => (0..length).collect(),
            Self::Sampled { columns, seed, .. } => sample([seed, 2 * part as u64 + 1], length, columns),
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(formatter, "every element"),
            Self::Sampled { rows, columns: 0, .. } => write!(formatter, "{rows} rows of each part"),
            Self::Sampled { rows, columns, .. } => {
                write!(formatter, "{rows} rows and {columns} columns of each part")
            }
        }
    }
}

/// As many rows a head as the budget allows, but no fewer than the fixed places and some drawn ones.
fn attention_rows(attention: &Attention) -> usize {
    let row_flops: u64 = attention
        .sequences
        .iter()
        .map(|sequence| 4 * (sequence.keys * attention.head_size * attention.heads) as u64)
        .sum();
    ((FULL_BELOW / 2 / row_flops.max(1)) as usize).clamp(8, 256)
}

/// `count` of `length` places: the ends and the edges of blocks of 128, but no more of these than leave a quarter, and one at least, to
/// those that are drawn.
fn sample([seed, stream]: [u64; 2], length: usize, count: usize) -> Vec<usize> {
    if count >= length {
        return (0..length).collect();
    }
    let last = length - 1;
    let edges = [0, last, 128, 127, last / 128 * 128, 1];
    let mut places: BTreeSet<usize> = BTreeSet::new();
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(stream);
    let drawn = std::iter::repeat_with(|| generator.random_range(0..length));
    let edges = edges
        .into_iter()
        .filter(|&place| place < length)
        .take(count - (count / 4).max(1).min(count));
    for place in edges.chain(drawn) {
        if places.len() == count {
            break;
        }
        places.insert(place);
    }
    places.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_holds_the_ends_and_the_edges_of_blocks() {
        let places = sample([1, 3], 300, 9);
        assert_eq!(places.len(), 9);
        assert!(places.is_sorted());
        for place in [0, 1, 127, 128, 256, 299] {
            assert!(places.contains(&place), "{place} in {places:?}");
        }
        assert_ne!(places, sample([1, 4], 300, 9));
        assert_ne!(places, sample([2, 3], 300, 9));
    }

    #[test]
    fn small_problems_are_computed_whole_and_large_ones_sampled() {
        let gemm = |m| {
            let groups = vec![crate::GemmShape { m, n: 1000, k: 1024 }];
            Problem::GroupedGemm(crate::GroupedGemm {
                groups,
                form: Default::default(),
                output: Default::default(),
            })
        };
        assert_eq!(Coverage::choose(&gemm(1000), 1), Coverage::Full);
        assert!(matches!(
            Coverage::choose(&gemm(4000), 1),
            Coverage::Sampled {
                rows: 8,
                columns: 32,
                seed: 1
            }
        ));
        let attention = |length| {
            Problem::Attention(Attention {
                sequences: vec![crate::Sequence {
                    queries: length,
                    keys: length,
                }],
                heads: 8,
                kv_heads: 8,
                head_size: 64,
                causal: false,
                format: crate::AttentionFormat::F16,
                scaling: crate::Scaling::PerHead,
                output: Default::default(),
            })
        };
        assert_eq!(Coverage::choose(&attention(512), 5), Coverage::Full);
        assert_eq!(
            Coverage::choose(&attention(2048), 5),
            Coverage::Sampled {
                rows: 256,
                columns: 0,
                seed: 5
            }
        );
        assert_eq!(
            Coverage::choose(&attention(1 << 20), 5),
            Coverage::Sampled {
                rows: 8,
                columns: 0,
                seed: 5
            }
        );
    }

    #[test]
    fn a_sample_never_exceeds_the_length_or_the_count() {
        assert_eq!(sample([0, 0], 3, 8), [0, 1, 2]);
        assert_eq!(sample([0, 0], 0, 8), [0; 0]);
        assert_eq!(sample([0, 0], 50, 0), [0; 0]);
        for seed in 0..20 {
            let places = sample([seed, 0], 1000, 2);
            assert_eq!((places.len(), places[0]), (2, 0));
            assert_eq!(sample([seed, 0], 1000, 1).len(), 1);
        }
    }
}
