//! How much of an output the reference computes.

use std::collections::BTreeSet;
use std::fmt;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Below this many FLOPs a whole output is computed: less than a second of f64 products on two cores.
pub const FULL_BELOW: u64 = 8_000_000_000;

/// Below this many FLOPs even a spot check between measurements covers the whole output: some ten milliseconds.
pub const FULL_AT_A_GLANCE: u64 = 100_000_000;

/// How much of an output the reference computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// Every element.
    Full,
    /// Every element of some rows and of some columns of each part: the first and the last, those at the edges of
    /// blocks of 128, and random ones. Attention, which has short rows, uses rows only.
    Sampled {
        /// Rows of each part, at most.
        rows: usize,
        /// Columns of each part, at most.
        columns: usize,
        /// The seed of the random ones, different each time: with a fixed seed a kernel could stay wrong at elements
        /// that are never checked.
        #[serde(default)]
        seed: u64,
    },
}

impl Coverage {
    /// The rows of a part computed whole, ascending.
    pub fn rows(self, part: usize, length: usize) -> Vec<usize> {
        match self {
            Self::Full => (0..length).collect(),
            Self::Sampled { rows, seed, .. } => sample([seed, 2 * part as u64], length, rows),
        }
    }

    /// The columns of a part computed whole, ascending.
    pub fn columns(self, part: usize, length: usize) -> Vec<usize> {
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

/// `count` of `length` positions: the ends and the edges of blocks of 128, limited so that at least a quarter, and at
/// least one, of the positions are random.
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
