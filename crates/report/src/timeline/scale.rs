//! A linear axis of time with round ticks.

/// Steps of ticks as multiples of a power of ten.
const STEPS: [f64; 4] = [1.0, 2.0, 5.0, 10.0];

/// Times from `from` to `to` (seconds) over a stretch of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The time at the left end.
    pub from: f64,
    /// The time at the right end.
    pub to: f64,
    /// The left end.
    pub left: f64,
    /// The right end.
    pub right: f64,
}

impl Scale {
    /// Where a time lies; what is beyond lies at the end.
    pub fn x(&self, seconds: f64) -> f64 {
        let place = (seconds - self.from) / (self.to - self.from).max(f64::MIN_POSITIVE);
        self.left + place.clamp(0.0, 1.0) * (self.right - self.left)
    }

    /// At most about `most` round times on the axis, ascending.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let span = self.to - self.from;
        if span <= 0.0 {
            return vec![self.from];
        }
        let least = span / most.max(1) as f64;
        let power = 10f64.powf(least.log10().floor());
        let step = STEPS.iter().map(|step| step * power).find(|step| *step >= least);
        let step = step.unwrap_or(span);
        let first = (self.from / step - 1e-9).ceil() as i64;
        let last = (self.to / step + 1e-9).floor() as i64;
        (first..=last).map(|count| count as f64 * step).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_lie_in_proportion() {
        let scale = Scale {
            from: 1.0,
            to: 3.0,
            left: 100.0,
            right: 300.0,
        };
        assert_eq!(scale.x(1.5), 150.0);
        assert_eq!(scale.x(9.0), 300.0);
        assert_eq!(scale.ticks(4), [1.0, 1.5, 2.0, 2.5, 3.0]);
    }

    proptest! {
        #[test]
        fn ticks_are_few_and_on_the_axis(from in 0.0..1.0f64, span in 1e-9..1.0f64, most in 2usize..20) {
            let scale = Scale { from, to: from + span, left: 0.0, right: 1.0 };
            let ticks = scale.ticks(most);
            prop_assert!(ticks.len() <= most + 1, "{ticks:?}");
            let slack = 1e-6 * span;
            prop_assert!(ticks.iter().all(|tick| (from - slack..=from + span + slack).contains(tick)));
            prop_assert!(ticks.is_sorted());
        }
    }
}
