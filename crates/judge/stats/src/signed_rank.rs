//! Wilcoxon's signed-rank statistic, which says how many averages of two pairs lie beyond the centre by chance.

/// The distribution of the signed-rank statistic W of a number of pairs whose effects are symmetric around their centre.
///
/// W is also the number of averages of two pairs (each pair with itself included) that lie over the centre (Tukey 1949;
/// Hodges & Lehmann 1963, "Estimates of Location Based on Rank Tests"), so its tails are those of the averages' order
/// statistics, whatever the shape of the noise.
#[derive(Debug)]
pub(crate) struct SignedRank {
    /// P(W ≤ w) for each w.
    cumulative: Vec<f64>,
}

impl SignedRank {
    /// Of this many pairs: each rank counts or not, with equal chances.
    pub(crate) fn of(pairs: usize) -> Self {
        let most = pairs * (pairs + 1) / 2;
        let mut chances = vec![0.0; most + 1];
        chances[0] = 1.0;
        for rank in 1..=pairs {
            for sum in (0..=rank * (rank + 1) / 2).rev() {
                let with = if sum >= rank { chances[sum - rank] } else { 0.0 };
                chances[sum] = 0.5 * (chances[sum] + with);
            }
        }
        let cumulative = chances.iter().scan(0.0, |sum, chance| {
            *sum += chance;
            Some(*sum)
        });
        Self {
            cumulative: cumulative.collect(),
        }
    }

    /// The place among the averages in ascending order, counted from 1, of the bound that lies over the centre with the
    /// probability `tail`, under a half. Between two places, where the probability lies between theirs (interpolated as
    /// Hettmansperger & Sheather 1986 do for the median). None where even the smallest average is over the centre more often.
    pub(crate) fn place(&self, tail: f64) -> Option<f64> {
        // 1e-12, since a tail that is computed from a confidence may lack the last digits of a power of a half.
        let whole = self
            .cumulative
            .partition_point(|chance| *chance <= tail * (1.0 + 1e-12));
        let [below, above] = [whole.checked_sub(1)?, whole].map(|place| self.cumulative[place]);
        Some(whole as f64 + ((tail - below) / (above - below)).max(0.0))
    }

    /// The inverse: the probability with which a bound at this place, at least 1, lies over the centre.
    pub(crate) fn tail(&self, place: f64) -> f64 {
        let last = self.cumulative.len() - 1;
        let whole = (place as usize).clamp(1, last);
        let [below, above] = [whole - 1, whole].map(|place| self.cumulative[place]);
        below + (place - whole as f64).min(1.0) * (above - below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Sums of {1, 2, 3}: 0 1 2 3 3 4 5 6, of eight.
        let three = SignedRank::of(3);
        assert_eq!(
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0].map(|place| three.tail(place) * 8.0),
            [1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0]
        );
        assert_eq!((three.place(0.1), three.place(0.125)), (None, Some(1.0)));
        assert_eq!((three.place(0.28125), three.tail(2.25)), (Some(2.25), 0.28125));
    }

    #[test]
    fn critical_values_of_the_printed_tables() {
        // (pairs, one-sided level, largest W with P(W ≤ w) at most the level): any table of the signed-rank test.
        for (pairs, level, largest) in [
            (8, 0.025, 3),
            (10, 0.025, 8),
            (12, 0.005, 7),
            (20, 0.025, 52),
            (30, 0.005, 109),
        ] {
            let place = SignedRank::of(pairs).place(level).unwrap();
            assert_eq!(place as usize, largest + 1, "{pairs}");
        }
    }

    #[test]
    fn many_pairs_neither_overflow_nor_vanish() {
        let many = SignedRank::of(400);
        let all = 400 * 401 / 2;
        assert!((many.tail(all as f64 + 1.0) - 1.0).abs() < 1e-9);
        // A normal distribution of mean n(n + 1)/4 and variance n(n + 1)(2n + 1)/24: z of 0.0005 is 3.2905.
        let expected = all as f64 / 2.0 - 3.2905 * (all as f64 * 801.0 / 12.0).sqrt();
        let found = many.place(0.0005).unwrap();
        assert!((found / expected - 1.0).abs() < 0.002, "{found} {expected}");
    }
}
