//! A common axis for speed-ups. Logarithmic, so that twice and half as fast are equally far from no change.

use gauntlet_stats::{Criteria, Interval, log_speedup, speedup_fraction};

/// The least that an axis spans, in log speed-up: smaller intervals are not magnified.
const MIN_SPAN: f64 = 0.01;

/// The part of the span left free at each end.
const MARGIN: f64 = 0.04;

/// Steps of percentages, finest first.
const STEPS: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];

/// From a span of ln 4 on, ticks are powers of two.
const SPAN_OF_POWERS: f64 = 1.386;

/// A range of log speed-ups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis that shows no change and all finite values (log speed-ups).
    pub fn covering(values: impl IntoIterator<Item = f64>) -> Self {
        let mut axis = Self { low: 0.0, high: 0.0 };
        for value in values.into_iter().filter(|value| value.is_finite()) {
            axis.low = axis.low.min(value);
            axis.high = axis.high.max(value);
        }
        let missing = (MIN_SPAN - axis.span()).max(0.0) / 2.0;
        let margin = MARGIN * axis.span().max(MIN_SPAN);
        Self {
            low: axis.low - missing - margin,
            high: axis.high + missing + margin,
        }
    }

    /// An axis that shows intervals and the criteria that judge them.
    pub fn of_intervals<'i>(intervals: impl IntoIterator<Item = &'i Interval>, criteria: &Criteria) -> Self {
        let bounds = intervals
            .into_iter()
            .flat_map(|interval| [interval.lower, interval.estimate, interval.upper]);
        Self::covering(bounds.chain([criteria.log_target(), criteria.log_practically_zero().0]))
    }

    /// The position of a log speed-up: 0 at the low end, 1 at the high end; values beyond the axis are put at its end.
    pub fn place(&self, value: f64) -> f64 {
        ((value - self.low) / self.span()).clamp(0.0, 1.0)
    }

    /// Whether a log speed-up lies on it.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// At most about `most` log speed-ups at round figures, no change among them, ascending.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        if self.span() > SPAN_OF_POWERS {
            return self.powers(most);
        }
        let (low, high) = (speedup_fraction(self.low), speedup_fraction(self.high));
        let fits = |step: &&f64| ((high - low) / **step) as usize <= most;
        let step = STEPS.iter().find(fits).unwrap_or(&1.0);
        let first = (low / step).ceil() as i64;
        let last = (high / step).floor() as i64;
        (first..=last)
            .map(|count| log_speedup(count as f64 * step))
            .collect()
    }

    fn powers(&self, most: usize) -> Vec<f64> {
        let doublings = self.span() / std::f64::consts::LN_2;
        let step = (doublings / most.max(1) as f64).ceil().max(1.0) * std::f64::consts::LN_2;
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|count| count as f64 * step).collect()
    }

    fn span(&self) -> f64 {
        self.high - self.low
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_keep_their_order_and_stay_inside() {
        let axis = Axis::covering([-0.3, 0.1]);
        assert!(axis.place(-0.3) > 0.0 && axis.place(0.1) < 1.0);
        assert!(axis.place(-0.3) < axis.place(0.0) && axis.place(0.0) < axis.place(0.1));
        assert_eq!(axis.place(f64::NEG_INFINITY), 0.0);
        assert_eq!(axis.place(f64::INFINITY), 1.0);
    }

    #[test]
    fn nothing_to_show_still_makes_an_axis() {
        let axis = Axis::covering([f64::NAN, f64::INFINITY]);
        assert!((axis.place(0.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn ticks_are_round() {
        let fractions = |axis: Axis, most| -> Vec<f64> {
            axis.ticks(most)
                .into_iter()
                .map(|tick| (speedup_fraction(tick) * 1e4).round() / 1e4)
                .collect()
        };
        assert_eq!(
            fractions(Axis::covering([-0.1, 0.1]), 5),
            [-0.1, -0.05, 0.0, 0.05, 0.1]
        );
        assert_eq!(fractions(Axis::covering([0.0, 16f64.ln()]), 4), [0.0, 3.0, 15.0]);
    }

    proptest! {
        #[test]
        fn ticks_hold_no_change_and_stay_on_the_axis(low in -3.0..0.0f64, high in 0.0..3.0f64, most in 3usize..12) {
            let axis = Axis::covering([low, high]);
            let ticks = axis.ticks(most);
            prop_assert!(ticks.contains(&0.0));
            prop_assert!(ticks.iter().all(|tick| axis.holds(*tick)));
            prop_assert!(ticks.len() <= most + 2, "{ticks:?}");
            prop_assert!(ticks.is_sorted());
        }
    }
}
