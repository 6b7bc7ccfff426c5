//! The order in which the two sides run.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// The kernel that is compared against (A).
    Baseline,
    /// The kernel that is judged (B).
    Candidate,
}

impl Arm {
    /// Its place where figures of both sides stand in an array, the baseline's first.
    pub fn index(self) -> usize {
        match self {
            Self::Baseline => 0,
            Self::Candidate => 1,
        }
    }
}

/// The order of the four runs of a block. Either order cancels a drift that is linear over the block, because both
/// sides have the same mean position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockOrder {
    /// Baseline, candidate, candidate, baseline.
    Abba,
    /// Candidate, baseline, baseline, candidate.
    Baab,
}

impl BlockOrder {
    /// Which side runs in each of the four places.
    pub fn arms(self) -> [Arm; 4] {
        use Arm::{Baseline, Candidate};
        match self {
            Self::Abba => [Baseline, Candidate, Candidate, Baseline],
            Self::Baab => [Candidate, Baseline, Baseline, Candidate],
        }
    }
}

/// The orders of the `blocks` blocks of one process: the same for the same seed and process, independent
/// between processes, and a longer list begins with the shorter one.
///
/// Drawn in permuted pairs (each pair holds one ABBA and one BAAB, in random order; permuted-block randomisation, Matts
/// & Lachin 1988), so that a disturbance of the first or last place of a block affects both sides equally often, and no
/// periodic disturbance can stay in step with the design.
pub fn block_orders(seed: u64, process: usize, blocks: usize) -> Vec<BlockOrder> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(process as u64);
    let mut orders = Vec::with_capacity(blocks + 1);
    while orders.len() < blocks {
        orders.extend(if generator.random::<bool>() {
            [BlockOrder::Abba, BlockOrder::Baab]
        } else {
            [BlockOrder::Baab, BlockOrder::Abba]
        });
    }
    orders.truncate(blocks);
    orders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_drift_cancels_in_a_block() {
        for order in [BlockOrder::Abba, BlockOrder::Baab] {
            let place_sum = |arm| (0..4).filter(|place| order.arms()[*place] == arm).sum::<usize>();
            assert_eq!(place_sum(Arm::Baseline), place_sum(Arm::Candidate));
        }
        assert_ne!(BlockOrder::Abba.arms(), BlockOrder::Baab.arms());
    }

    #[test]
    fn orders_are_reproducible_balanced_and_random() {
        let orders = block_orders(11, 3, 101);
        assert_eq!(orders.len(), 101);
        assert_eq!(orders, block_orders(11, 3, 101));
        assert_eq!(orders[..40], block_orders(11, 3, 40));
        assert_ne!(orders, block_orders(11, 4, 101));
        assert_ne!(orders, block_orders(12, 3, 101));
        for pair in orders.chunks_exact(2) {
            assert_ne!(pair[0], pair[1]);
        }
        let first_abba = orders
            .chunks_exact(2)
            .filter(|pair| pair[0] == BlockOrder::Abba)
            .count();
        assert!((10..=40).contains(&first_abba), "{first_abba} of 50");
    }
}
