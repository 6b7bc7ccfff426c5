//! Are neighbours in short sequences alike?

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::summary::mean;

/// How similar neighbours in sequences are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Dependence {
    /// Correlation of neighbours around their sequence's mean, corrected so that independent values give 0 on
    /// average.
    pub autocorrelation: f64,
    /// How many independent values the sequences are worth: N·(1 − ρ)/(1 + ρ), as for a first-order autoregression;
    /// never more than N.
    pub effective: f64,
    /// One-sided p-value of "neighbours are no more alike than others", by shuffling each sequence.
    pub p_value: f64,
}

impl Dependence {
    /// Examines sequences; none if no sequence has three values, or if nothing varies.
    ///
    /// Shuffles 999 times with a seed of its own, so that the same sequences give the same p-value.
    pub fn of(sequences: &[&[f64]]) -> Option<Self> {
        const SHUFFLES: usize = 999;
        let mut around: Vec<Vec<f64>> = sequences
            .iter()
            .filter(|sequence| sequence.len() > 2)
            .map(|sequence| sequence.iter().map(|value| value - mean(sequence)).collect())
            .collect();
        let squares: f64 = around.iter().map(|sequence| sum_of_squares(sequence)).sum();
        if squares.is_nan() || squares <= 0.0 {
            return None;
        }
        let products = |around: &[Vec<f64>]| -> f64 {
            let pairs = around.iter().flat_map(|sequence| sequence.windows(2));
            pairs.map(|pair| pair[0] * pair[1]).sum()
        };
        let observed = products(&around);
        // Around their own mean, n values in random order have −1/n of their sum of squares on average.
        let by_chance: f64 = around
            .iter()
            .map(|sequence| -sum_of_squares(sequence) / sequence.len() as f64)
            .sum();
        let autocorrelation = ((observed - by_chance) / squares).clamp(-1.0, 1.0);

        let mut generator = ChaCha8Rng::seed_from_u64(0);
        let mut as_alike = 1;
        for _ in 0..SHUFFLES {
            around
                .iter_mut()
                .for_each(|sequence| sequence.shuffle(&mut generator));
            as_alike += usize::from(products(&around) >= observed - 1e-12 * squares);
        }
        let count: usize = around.iter().map(Vec::len).sum();
        let positive = autocorrelation.max(0.0);
        Some(Self {
            autocorrelation,
            effective: count as f64 * (1.0 - positive) / (1.0 + positive),
            p_value: as_alike as f64 / (SHUFFLES + 1) as f64,
        })
    }
}

fn sum_of_squares(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_alike_count_for_less() {
        let slow: Vec<f64> = (0..40).map(|place| f64::from(place / 8 % 2)).collect();
        let alike = Dependence::of(&[&slow]).unwrap();
        assert!(
            alike.autocorrelation > 0.7 && alike.effective < 10.0 && alike.p_value <= 0.001,
            "{alike:?}"
        );
        let alternating: Vec<f64> = (0..40).map(|place| f64::from(place % 2)).collect();
        let unlike = Dependence::of(&[&alternating]).unwrap();
        assert!(
            unlike.autocorrelation < -0.9 && unlike.p_value > 0.9,
            "{unlike:?}"
        );
        assert_eq!(unlike.effective, 40.0);
        assert_eq!(Dependence::of(&[&[1.0, 2.0]]), None);
        assert_eq!(Dependence::of(&[&[1.0; 5]]), None);
    }

    #[test]
    fn independent_values_have_no_autocorrelation_on_average() {
        // All orders of a sequence together: the correction is exact.
        let values = [0.3, -1.0, 4.0];
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let found = orders.map(|order| {
            Dependence::of(&[&order.map(|place| values[place])])
                .unwrap()
                .autocorrelation
        });
        assert!(mean(&found).abs() < 1e-12, "{found:?}");
    }
}
