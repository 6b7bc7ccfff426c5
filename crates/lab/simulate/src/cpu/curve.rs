//! A cost measured at a few sizes.

/// A cost by size. Between measured sizes it is interpolated over the logarithm of the size; beyond them it is
/// constant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// Sizes and costs, by rising size.
    points: Vec<(f64, f64)>,
}

impl Curve {
    pub(super) fn new(mut points: Vec<(f64, f64)>) -> Self {
        points.sort_by(|left, right| left.0.total_cmp(&right.0));
        Self { points }
    }

    /// The cost at a size; 0 if nothing was measured.
    pub(super) fn at(&self, size: f64) -> f64 {
        let after = self.points.partition_point(|(at, _)| *at < size);
        let before = after.checked_sub(1).map(|index| self.points[index]);
        match (before, self.points.get(after).copied()) {
            (None, None) => 0.0,
            (Some((_, cost)), None) | (None, Some((_, cost))) => cost,
            (Some((left, from)), Some((right, to))) => {
                from + (to - from) * (size / left).ln() / (right / left).ln()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_sizes_it_goes_by_their_logarithm_and_beyond_them_it_stays() {
        let curve = Curve::new(vec![(400.0, 5.0), (100.0, 1.0)]);
        assert_eq!(curve.at(1.0), 1.0);
        assert_eq!(curve.at(100.0), 1.0);
        assert!((curve.at(200.0) - 3.0).abs() < 1e-12);
        assert_eq!(curve.at(400.0), 5.0);
        assert_eq!(curve.at(1e9), 5.0);
        assert_eq!(Curve::default().at(3.0), 0.0);
    }
}
