//! Is there a trend in short sequences? Tested by ranks, because times are far from normal.

use serde::{Deserialize, Serialize};

use crate::ranks::two_sided_p_value;
use crate::summary::median;

/// A monotone trend in one or more sequences.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// Change per step: the median of the slopes between all pairs of the same sequence (Theil 1950, Sen 1968).
    pub slope: f64,
    /// Two-sided p-value of "no trend".
    pub p_value: f64,
}

impl Trend {
    /// The test of Mann (1945) and Kendall, corrected for ties and for continuity: the number of rising pairs minus the
    /// number of falling pairs, relative to its spread if every order were equally likely.
    ///
    /// Several sequences are tested for a common trend by adding up both, as Hirsch, Slack & Smith (1982) do with
    /// seasons; differences between sequences then do not matter. The normal approximation is good from about 8 values
    /// in all. None when no sequence has two different values.
    pub fn of(sequences: &[&[f64]]) -> Option<Self> {
        let (mut score, mut variance, mut slopes) = (0.0, 0.0, Vec::new());
        for sequence in sequences {
            for (place, early) in sequence.iter().enumerate() {
                for (steps, late) in sequence[place..].iter().enumerate().skip(1) {
                    let rise = late - early;
                    score += if rise == 0.0 { 0.0 } else { rise.signum() };
                    slopes.push(rise / steps as f64);
                }
            }
            variance += score_variance(sequence);
        }
        if variance <= 0.0 {
            return None;
        }
        Some(Self {
            slope: median(&slopes),
            p_value: two_sided_p_value(score, 1.0, variance),
        })
    }
}

/// The variance of Kendall's score if every order is equally likely: (n(n−1)(2n+5) − Σ t(t−1)(2t+5)) / 18 over groups
/// of t ties.
fn score_variance(sequence: &[f64]) -> f64 {
    let of = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0);
    let mut ascending = sequence.to_vec();
    ascending.sort_by(f64::total_cmp);
    let groups = ascending.chunk_by(|one, next| one == next);
    let ties: f64 = groups.map(|group| of(group.len() as f64)).sum();
    (of(sequence.len() as f64) - ties) / 18.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use statrs::distribution::{ContinuousCDF, Normal};

    #[test]
    fn a_trend_by_hand() {
        // 1 3 2 4: five pairs rise, one falls; variance 4·3·13/18; slopes 2 .5 1 −1 .5 2, median .75.
        let trend = Trend::of(&[&[1.0, 3.0, 2.0, 4.0]]).unwrap();
        let expected = 2.0 * Normal::standard().cdf(-3.0 / (156.0_f64 / 18.0).sqrt());
        assert!((trend.p_value - expected).abs() < 1e-12);
        assert!((trend.slope - 0.75).abs() < 1e-12);
        assert_eq!(Trend::of(&[]), None);
        assert_eq!(Trend::of(&[&[1.0], &[2.0]]), None);
        assert_eq!(Trend::of(&[&[1.0, 1.0]]), None);
    }

    #[test]
    fn a_common_trend_is_seen_where_levels_differ() {
        let sequences: Vec<[f64; 3]> = (0..9)
            .map(|process| f64::from(process * 7 % 9))
            .map(|level| [level, level + 0.1, level + 0.2])
            .collect();
        let each: Vec<&[f64]> = sequences.iter().map(|sequence| &sequence[..]).collect();
        let trend = Trend::of(&each).unwrap();
        assert!(
            trend.p_value < 1e-4 && (trend.slope - 0.1).abs() < 1e-9,
            "{trend:?}"
        );
        let whole: Vec<f64> = sequences.concat();
        assert!(Trend::of(&[&whole]).unwrap().p_value > 0.05);
    }

    proptest! {
        #[test]
        fn backwards_the_trend_turns(values in prop::collection::vec(-5..5i32, 4..20)) {
            let forwards: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
            let backwards: Vec<f64> = forwards.iter().rev().copied().collect();
            match (Trend::of(&[&forwards]), Trend::of(&[&backwards])) {
                (Some(one), Some(other)) => {
                    prop_assert!((one.slope + other.slope).abs() < 1e-12);
                    prop_assert!((one.p_value - other.p_value).abs() < 1e-12);
                    prop_assert!(one.p_value <= 1.0);
                }
                (one, other) => prop_assert_eq!(one, other),
            }
        }
    }
}
