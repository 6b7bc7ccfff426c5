//! A comparison in progress, in a line.

use gauntlet_judge::Narrowing;
use gauntlet_stats::{log_speedup, percent_interval};
use owo_colors::Style;

use crate::axis::Axis;
use crate::picture::Picture;

/// Columns of the picture.
const COLUMNS: usize = 32;

/// The minimum range of the picture on either side, so that the interval visibly narrows and the axis does not zoom.
const LEAST: f64 = 0.10;

/// The progress: `pair 5, next look at 6   ├──●──┤   +3.1 % [+0.4 … +6.0]`.
pub fn narrowing(narrowing: &Narrowing) -> String {
    let Narrowing {
        pairs,
        next_look,
        interval,
        criteria,
        ..
    } = narrowing;
    let axis = Axis::covering([
        interval.lower,
        interval.upper,
        log_speedup(-LEAST),
        log_speedup(LEAST),
    ]);
    let picture = Picture::with_guides(&axis, criteria, COLUMNS)
        .interval(&axis, interval, Style::new())
        .text();
    format!(
        "pair {pairs}, next look at {next_look} {picture} {}",
        percent_interval(interval)
    )
}

#[cfg(test)]
mod tests {
    use gauntlet_stats::{Criteria, Interval, Origin};

    use super::*;

    #[test]
    fn the_axis_stands_still_while_the_interval_narrows() {
        let criteria = Criteria::default();
        let line = |half: f64| {
            let interval = Interval {
                estimate: 0.03,
                lower: 0.03 - half,
                upper: 0.03 + half,
                origin: Origin::Measured {
                    confidence: 0.95,
                    processes: 4,
                },
            };
            let text = narrowing(&Narrowing {
                candidate: "one",
                pairs: 4,
                next_look: 6,
                interval,
                criteria: &criteria,
            });
            anstream::adapter::strip_str(&text).to_string()
        };
        let wide = line(0.05);
        let narrow = line(0.02);
        assert!(narrow.starts_with("pair 4, next look at 6 "), "{narrow}");
        let columns = |line: &str, mark| line.chars().position(|character| character == mark);
        assert_eq!(columns(&wide, '●'), columns(&narrow, '●'));
        assert!(columns(&wide, '├') < columns(&narrow, '├'), "{wide}\n{narrow}");
    }
}
