//! Time of a request that no report accounts for.
//!
//! The coordinator's clock sees an exchange from its first byte to its last; the worker reports the calls in it. What the
//! reports leave out is messages and waiting, of which the baseline, asked the same number of calls right beside, shows how
//! much there is. A neighbour on the machine lengthens calls and the reports of honest calls with them, so that it hardly
//! adds to what they leave out; but it adds to what is left out by a worker that reports its best call in place of each.
//!
//! Slots are compared one by one, and only whether a slot leaves out more than another counts, not how much: one slot of
//! which a neighbour took half says no more than any other.

use crate::evidence::Unaccounted;

impl Unaccounted {
    /// None with so few slots that the sign test bounds nothing. `confidence` is that of each bound.
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

/// The most slots of `count` that can lie on one side of the median's bound: the largest number k for which k or fewer of
/// `count` throws of a coin are heads with a probability of at most `error`. None if even no head at all is likelier.
fn slots_beyond(count: usize, error: f64) -> Option<usize> {
    // Logarithms, since 2⁻ᶜ is no number of f64 from 1,075 slots on.
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
        // 1/64 of six throws have no head, and 7/64 at most one.
        assert_eq!(slots_beyond(6, 0.01), None);
        assert_eq!(slots_beyond(6, 0.02), Some(0));
        assert_eq!(slots_beyond(6, 0.11), Some(1));
        // From tables of the binomial distribution: 7 of 30 at most has 0.0026, 8 has 0.0081, 9 has 0.0214.
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
