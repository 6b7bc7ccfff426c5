//! The sign-flip test on process effects: a second opinion with very few assumptions.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use serde::{Deserialize, Serialize};

use crate::Error;

/// With fewer patterns the tails of the distribution rest on a handful of them.
pub(crate) const MIN_RESAMPLES: usize = 200;

/// How to draw sign patterns; the same settings give the same result on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resampling {
    /// How many to draw; at least 200.
    pub resamples: usize,
    /// Seed of the generator.
    pub seed: u64,
}

/// Up to this many processes all sign patterns are tried: 2¹³ of them.
const MAX_ENUMERATED: usize = 13;

/// p-values of "there is no difference", from process effects as log speed-ups.
///
/// Without a difference, each mean could equally well have had the other sign: the sides could have been swapped in
/// that process (Fisher 1935, "The Design of Experiments"). The p-value is the share of sign patterns whose sum is at
/// least as extreme as the observed one, including the observed pattern. Whole processes are flipped, jointly for all
/// problems of a suite, because all blocks of a process share its luck. The test needs symmetry, but neither normality
/// nor equal spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignFlip {
    /// p-value of "not faster": small when the candidate is faster.
    pub faster: f64,
    /// p-value of "not slower": small when the candidate is slower.
    pub slower: f64,
    /// p-value of "no difference": twice the smaller of the other two, at most 1. At least 2 / 2ⁿ with n processes:
    /// 0.125 for 4, 0.031 for 6, 0.0039 for 9.
    pub two_sided: f64,
    /// Whether all patterns were tried; otherwise random ones were drawn, as many as `resamples`.
    pub exact: bool,
}

impl SignFlip {
    /// Tests the process effects of a problem or suite.
    ///
    /// Up to 13 processes, all patterns are tried; with more, random ones. The observed pattern is then counted with
    /// them, so that no p-value is 0 (Phipson & Smyth 2010, "Permutation P-values Should Never Be Zero").
    ///
    /// # Errors
    /// No process at all.
    pub fn new(process_effects: &[f64], resampling: Resampling) -> Result<Self, Error> {
        if process_effects.is_empty() {
            return Err(Error::TooFewProcesses { found: 0 });
        }
        let observed: f64 = process_effects.iter().sum();
        // Equal sums in a different order differ by rounding and still count as ties.
        let slack = 1e-12 * process_effects.iter().map(|mean| mean.abs()).sum::<f64>();
        let (mut faster, mut slower) = (0_u64, 0_u64);
        let mut count = |flipped: &mut dyn FnMut(usize) -> bool| {
            let signed = |(place, mean): (usize, &f64)| if flipped(place) { -mean } else { *mean };
            let sum: f64 = process_effects.iter().enumerate().map(signed).sum();
            faster += u64::from(sum >= observed - slack);
            slower += u64::from(sum <= observed + slack);
        };

        let exact = process_effects.len() <= MAX_ENUMERATED;
        let patterns = if exact {
            let patterns = 1_u64 << process_effects.len();
            for pattern in 0..patterns {
                count(&mut |place| (pattern >> place) & 1 == 1);
            }
            patterns
        } else {
            let mut generator = ChaCha8Rng::seed_from_u64(resampling.seed);
            count(&mut |_| false);
            for _ in 0..resampling.resamples {
                count(&mut |_| generator.random::<bool>());
            }
            resampling.resamples as u64 + 1
        };
        let share = |count: u64| count as f64 / patterns as f64;
        Ok(Self {
            faster: share(faster),
            slower: share(slower),
            two_sided: (2.0 * share(faster.min(slower))).min(1.0),
            exact,
        })
    }
}

/// The smallest two-sided p-value that the test can give for this many processes: 2 / 2ⁿ.
pub(crate) fn smallest_p_value(processes: usize) -> f64 {
    2.0 * 0.5_f64.powf(processes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RESAMPLING: Resampling = Resampling {
        resamples: 10_000,
        seed: 3,
    };

    fn test(means: &[f64]) -> SignFlip {
        SignFlip::new(means, RESAMPLING).unwrap()
    }

    #[test]
    fn by_hand() {
        // The sums ±1 ±2 ±4 are the odd numbers from −7 to 7; observed is −1: five are no less, four no more.
        let found = test(&[1.0, 2.0, -4.0]);
        assert_eq!((found.faster, found.slower), (5.0 / 8.0, 4.0 / 8.0));
        assert_eq!((found.two_sided, found.exact), (1.0, true));
        assert_eq!(test(&[0.1, 0.2, 0.3, 0.1]).two_sided, 2.0 / 16.0);
        // All sums are ties.
        assert_eq!(test(&[0.0; 4]).two_sided, 1.0);
        assert!(SignFlip::new(&[], RESAMPLING).is_err());
    }

    #[test]
    fn random_patterns_come_near_the_exact_share() {
        // 13 positive and 1 negative of the same size: as many or more positive are 14 + 1 patterns of 2¹⁴.
        let mut means = [0.01; 14];
        means[3] = -0.01;
        let found = test(&means);
        assert!(!found.exact);
        let expected = 15.0 / 16384.0;
        assert!((found.faster - expected).abs() < 4.0 * (expected / 10_000.0_f64).sqrt());
        assert!(found.faster > 0.0);
        assert_eq!(found, test(&means));
    }

    #[test]
    fn the_smallest_p_value_is_reached() {
        for processes in [2, 4, 6, 9] {
            let means: Vec<f64> = (1..=processes).map(f64::from).collect();
            assert_eq!(test(&means).two_sided, smallest_p_value(means.len()));
        }
    }

    proptest! {
        #[test]
        fn swapping_the_arms_swaps_the_sides(means in prop::collection::vec(-0.1..0.1f64, 1..9)) {
            let swapped: Vec<f64> = means.iter().map(|mean| -mean).collect();
            let (one, other) = (test(&means), test(&swapped));
            prop_assert_eq!((one.faster, one.slower), (other.slower, other.faster));
            prop_assert_eq!(one.two_sided, other.two_sided);
            // The observed pattern counts on both sides.
            prop_assert!(one.faster + one.slower > 1.0);
        }
    }
}
