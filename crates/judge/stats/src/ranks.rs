//! Rank sums and the normal approximation to them.

use statrs::distribution::{ContinuousCDF, Normal};

/// The rank sum of one side minus its mean under the hypothesis that the sides do not differ, and its variance under
/// that hypothesis, corrected for ties.
pub(crate) struct RankSum {
    pub(crate) distance: f64,
    pub(crate) variance: f64,
}

impl RankSum {
    pub(crate) fn of(one: &[f64], other: &[f64]) -> Self {
        let (count, other_count) = (one.len() as f64, other.len() as f64);
        let all = count + other_count;
        // The values of both sides, each with its side, in groups of ties, which share their mean rank.
        let mut pooled: Vec<(f64, bool)> = one.iter().map(|value| (*value, true)).collect();
        pooled.extend(other.iter().map(|value| (*value, false)));
        pooled.sort_by(|left, right| left.0.total_cmp(&right.0));
        let (mut below, mut rank_sum, mut ties) = (0.0, 0.0, 0.0);
        for group in pooled.chunk_by(|left, right| left.0 == right.0) {
            let tied = group.len() as f64;
            let of_one = group.iter().filter(|(_, is_one)| *is_one).count() as f64;
            rank_sum += of_one * (below + (tied + 1.0) / 2.0);
            ties += tied.powi(3) - tied;
            below += tied;
        }
        Self {
            distance: rank_sum - count * (all + 1.0) / 2.0,
            variance: count * other_count / 12.0 * (all + 1.0 - ties / (all * (all - 1.0))),
        }
    }
}

/// Two-sided p-value of a sum with mean 0 and step size 2 · `continuity`.
pub(crate) fn two_sided_p_value(sum: f64, continuity: f64, variance: f64) -> f64 {
    let statistic = (sum.abs() - continuity).max(0.0) / variance.sqrt();
    2.0 * Normal::standard().cdf(-statistic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Ranks 1, 2.5 against 2.5, 4: sum 3.5, mean 5; 4/12 · (5 − 6/12).
        let RankSum { distance, variance } = RankSum::of(&[1.0, 2.0], &[3.0, 2.0]);
        assert_eq!((distance, variance), (-1.5, 1.5));
        assert_eq!(RankSum::of(&[1.0], &[1.0, 1.0]).variance, 0.0);
        assert_eq!(two_sided_p_value(0.4, 0.5, 1.0), 1.0);
        assert!((two_sided_p_value(-2.459_964, 0.5, 1.0) - 0.05).abs() < 1e-6);
    }
}
