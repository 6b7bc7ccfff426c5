//! Time of an exchange that no report accounts for.
//!
//! The coordinator's clock sees an exchange from its first byte to its last; the worker reports the calls in it. The
//! rest is messages and waiting. The baseline, timed side by side with the same number of calls, shows how long these
//! take. Another load on the machine lengthens honest calls and their reports alike, so it adds little to the
//! unreported time. It does add to the unreported time of a worker that reports its best call in place of each call.
//!
//! Slots are compared one by one by a sign test: only whether a slot omits more than its counterpart counts, not how
//! much. A slot that lost half its time to another load weighs no more than any other.

use crate::evidence::Unaccounted;

impl Unaccounted {
    /// None if there are too few slots for the sign test to give a bound. `confidence` applies to each bound
    /// separately.
    pub fn of(shares: &[f64], confidence: f64) -> Option<Self> {
        let mut sorted = shares.to_vec();
        sorted.sort_by(f64::total_cmp);
        let beyond = slots_beyond(sorted.len(), 1.0 - confidence)?;
        Some(Self {
            median: gauntlet_stats::median(&sorted),
            lower: sorted[beyond],
            upper: sorted[sorted.len() - 1 - beyond],
            slots: sorted.len(),
        })
    }
}

/// The most slots of `count` that can lie on one side of the median's bound: the largest k for which `count` coin
/// tosses give k or fewer heads with a probability of at most `error`. None if even zero heads are more likely than
/// that.
fn slots_beyond(count: usize, error: f64) -> Option<usize> {
    // In logarithms, because 2^−count underflows f64 from 1,075 slots on.
    let mut log_probability = -(count as f64) * std::f64::consts::LN_2;
    let mut at_most = log_probability.exp();
    let mut beyond = None;
    for heads in 0..count / 2 {
        if at_most > error {
            break;
        }
        beyond = Some(heads);
        log_probability += ((count - heads) as f64 / (heads + 1) as f64).ln();
        at_most += log_probability.exp();
    }
    beyond
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_sign_test() {
        // The probability of no head in six tosses is 1/64, and of at most one head 7/64.
        assert_eq!(slots_beyond(6, 0.01), None);
        assert_eq!(slots_beyond(6, 0.02), Some(0));
        assert_eq!(slots_beyond(6, 0.11), Some(1));
        // From tables of the binomial distribution, for 30 tosses: P(at most 7) = 0.0026, P(at most 8) = 0.0081, P(at
        // most 9) = 0.0214.
        assert_eq!(slots_beyond(30, 0.01), Some(8));
        let many = slots_beyond(10_000, 0.01).unwrap();
        assert!((4880..=4885).contains(&many), "{many}");
    }

    #[test]
    fn slots_that_are_far_off_move_no_bound() {
        let mut shares = [0.05; 24];
        let calm = Unaccounted::of(&shares, 0.99).unwrap();
        assert_eq!((calm.lower, calm.median, calm.upper), (0.05, 0.05, 0.05));
        shares[3] = -100.0;
        shares[7] = 50.0;
        let disturbed = Unaccounted::of(&shares, 0.99).unwrap();
        assert_eq!(disturbed, calm);
        assert_eq!(Unaccounted::of(&[0.05; 4], 0.99), None);
    }
}
