//! A linear axis of time with round ticks.

/// Steps of ticks as multiples of a power of ten.
const STEPS: [f64; 4] = [1.0, 2.0, 5.0, 10.0];

/// Units and their seconds, greatest first.
const UNITS: [(&str, f64); 4] = [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)];

/// An axis of times from `from` to `to` (seconds) over a range of a picture.
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
    /// The position of a time; times beyond the axis are put at its end.
    pub fn x(&self, seconds: f64) -> f64 {
        let place = (seconds - self.from) / (self.to - self.from).max(f64::MIN_POSITIVE);
        self.left + place.clamp(0.0, 1.0) * (self.right - self.left)
    }

    /// At most about `most` round times on the axis with their labels, ascending.
    pub fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let span = self.to - self.from;
        if span <= 0.0 {
            return Vec::new();
        }
        let least = span / most.max(1) as f64;
        let power = 10f64.powf(least.log10().floor());
        let step = STEPS.iter().map(|step| step * power).find(|step| *step >= least);
        let step = step.unwrap_or(span);
        let first = (self.from / step - 1e-9).ceil() as i64;
        let last = (self.to / step + 1e-9).floor() as i64;
        let label = |tick: f64| label(tick, self.to, step);
        (first..=last)
            .map(|count| count as f64 * step)
            .map(|tick| (tick, label(tick)))
            .collect()
    }
}

/// A time in the unit that suits the greatest, with enough digits to distinguish neighbours.
fn label(seconds: f64, greatest: f64, step: f64) -> String {
    let unit = UNITS.iter().find(|(_, size)| greatest >= *size * (1.0 - 1e-9));
    let (name, size) = unit.unwrap_or(&("ns", 1e-9));
    let digits = (-(step / size).log10() - 1e-9).ceil().max(0.0) as usize;
    format!("{:.digits$} {name}", seconds / size)
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
    }

    #[test]
    fn labels_share_a_unit() {
        let labels = |from, to| {
            let scale = Scale {
                from,
                to,
                left: 0.0,
                right: 1.0,
            };
            let ticks = scale.ticks(4).into_iter().map(|(_, label)| label);
            ticks.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(labels(1.0, 3.0), "1.0 s, 1.5 s, 2.0 s, 2.5 s, 3.0 s");
        assert_eq!(labels(0.0, 8.2e-6), "0 µs, 5 µs");
        assert_eq!(labels(400e-6, 440e-6), "400 µs, 410 µs, 420 µs, 430 µs, 440 µs");
        assert_eq!(labels(0.9995e-3, 1.0005e-3), "0.9995 ms, 1.0000 ms, 1.0005 ms");
    }

    proptest! {
        #[test]
        fn ticks_are_few_and_on_the_axis(from in 0.0..1.0f64, span in 1e-9..1.0f64, most in 2usize..20) {
            let scale = Scale { from, to: from + span, left: 0.0, right: 1.0 };
            let ticks = scale.ticks(most);
            prop_assert!(ticks.len() <= most + 1, "{ticks:?}");
            let slack = 1e-6 * span;
            prop_assert!(ticks.iter().all(|(tick, _)| (from - slack..=from + span + slack).contains(tick)));
            prop_assert!(ticks.is_sorted_by_key(|(tick, _)| *tick));
            prop_assert!(ticks.windows(2).all(|pair| pair[0].1 != pair[1].1), "{ticks:?}");
        }
    }
}
