//! Intervals drawn with characters on a common axis: `├──●──┤` where measured, `╟┄┄○┄┄╢` where only declared.

use gauntlet_stats::{Criteria, Interval, Origin};
use owo_colors::Style;
use textwrap::core::display_width;

use crate::axis::Axis;
use crate::speedup::bound;
use crate::text::{dim, paint};

/// A row of characters with a style each.
pub struct Picture {
    cells: Vec<(char, Style)>,
}

/// The characters of an interval: ends, line and middle.
struct Shape {
    left: char,
    line: char,
    middle: char,
    right: char,
}

const MEASURED: Shape = Shape {
    left: '├',
    line: '─',
    middle: '●',
    right: '┤',
};
const DECLARED: Shape = Shape {
    left: '╟',
    line: '┄',
    middle: '○',
    right: '╢',
};

impl Picture {
    /// An empty row with guides at the speed-ups between verdicts.
    pub fn with_guides(axis: &Axis, criteria: &Criteria, columns: usize) -> Self {
        let mut picture = Self {
            cells: vec![(' ', Style::new()); columns],
        };
        picture.put(
            axis,
            criteria.log_practically_zero().0,
            '┊',
            Style::new().red().dimmed(),
        );
        picture.put(axis, criteria.log_target(), '┊', Style::new().green().dimmed());
        picture.put(axis, 0.0, '│', Style::new().dimmed());
        picture
    }

    /// An empty row with a line at "no change".
    pub fn with_origin(axis: &Axis, columns: usize) -> Self {
        let mut picture = Self {
            cells: vec![(' ', Style::new()); columns],
        };
        picture.put(axis, 0.0, '│', Style::new().dimmed());
        picture
    }

    /// Draws an interval over the existing characters. A bound beyond the axis becomes an arrow.
    pub fn interval(mut self, axis: &Axis, interval: &Interval, style: Style) -> Self {
        let shape = match interval.origin {
            Origin::Measured { .. } => MEASURED,
            Origin::Declared | Origin::Calls { .. } | Origin::Predicted { .. } => DECLARED,
        };
        let (from, to) = (self.cell(axis, interval.lower), self.cell(axis, interval.upper));
        for cell in self.cells.iter_mut().take(to).skip(from) {
            *cell = (shape.line, style);
        }
        let end = |bound: f64, within: char, beyond: char| if axis.holds(bound) { within } else { beyond };
        self.put(axis, interval.lower, end(interval.lower, shape.left, '◄'), style);
        self.put(axis, interval.upper, end(interval.upper, shape.right, '►'), style);
        self.put(axis, interval.estimate, shape.middle, style);
        self
    }

    /// Draws one character over the existing ones.
    pub fn mark(mut self, axis: &Axis, value: f64, mark: char, style: Style) -> Self {
        self.put(axis, value, mark, style);
        self
    }

    /// The row as text.
    pub fn text(&self) -> String {
        self.cells
            .iter()
            .map(|(character, style)| paint(character, *style))
            .collect()
    }

    fn put(&mut self, axis: &Axis, value: f64, character: char, style: Style) {
        let cell = self.cell(axis, value);
        if let Some(place) = self.cells.get_mut(cell) {
            *place = (character, style);
        }
    }

    fn cell(&self, axis: &Axis, value: f64) -> usize {
        let last = self.cells.len().saturating_sub(1);
        (axis.place(value) * last as f64).round() as usize
    }
}

/// The figures under the guides that fit: "no change" first, then the target, then the lower bound of "practically
/// zero", then round figures.
pub fn scale(axis: &Axis, criteria: &Criteria, columns: usize) -> String {
    let mut labels = vec![
        (0.0, "0".to_owned()),
        (criteria.log_target(), bound(criteria.target)),
        (
            criteria.log_practically_zero().0,
            bound(-criteria.practically_zero),
        ),
    ];
    labels.extend(
        axis.ticks(columns / 10)
            .into_iter()
            .map(|tick| (tick, bound(gauntlet_stats::speedup_fraction(tick)))),
    );
    ruler(axis, &labels, columns)
}

/// The figures under an axis of multiples.
pub fn scale_of_multiples(axis: &Axis, columns: usize) -> String {
    let label = |tick: f64| (tick, format!("{}×", (tick.exp() * 100.0).round() / 100.0));
    let mut labels = vec![label(0.0)];
    labels.extend(axis.ticks(columns / 10).into_iter().map(label));
    ruler(axis, &labels, columns)
}

/// Puts each label under its position, unless another label is already there.
fn ruler(axis: &Axis, labels: &[(f64, String)], columns: usize) -> String {
    let mut row: Vec<char> = vec![' '; columns];
    let last = columns.saturating_sub(1);
    for (value, label) in labels {
        let width = display_width(label);
        if width > columns {
            continue;
        }
        let centre = (axis.place(*value) * last as f64).round() as usize;
        let start = centre.saturating_sub(width / 2).min(columns - width);
        let taken = start.saturating_sub(1)..(start + width + 1).min(columns);
        if row[taken].iter().any(|character| *character != ' ') {
            continue;
        }
        for (cell, character) in row[start..].iter_mut().zip(label.chars()) {
            *cell = character;
        }
    }
    dim(row.into_iter().collect::<String>().trim_end())
}

/// What the guides and marks mean.
pub fn legend<'o>(criteria: &Criteria, mut origins: impl Iterator<Item = &'o Origin>) -> String {
    let marks = match origins.find(|origin| !matches!(origin, Origin::Measured { .. })) {
        Some(Origin::Predicted { .. }) => "╟┄○┄╢ predicted, by the model's own error",
        Some(Origin::Calls { .. }) => "╟┄○┄╢ calls of one process a side",
        Some(_) => "╟┄○┄╢ declared bounds, no statistics",
        None => "├─●─┤ measured",
    };
    dim(format!(
        "│ no change  ┊ {} and the target {}  {marks}",
        bound(-criteria.practically_zero),
        bound(criteria.target)
    ))
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use gauntlet_stats::declared_interval;

    use super::*;

    fn drawn(interval: &Interval) -> String {
        let criteria = Criteria::default();
        let axis = Axis::covering([-0.2, 0.2]);
        let picture =
            Picture::with_guides(&axis, &criteria, 41).interval(&axis, interval, Style::new().red());
        strip_str(&picture.text()).to_string()
    }

    fn measured(lower: f64, estimate: f64, upper: f64) -> Interval {
        Interval {
            estimate,
            lower,
            upper,
            origin: Origin::Measured {
                confidence: 0.95,
                processes: 4,
            },
        }
    }

    #[test]
    fn an_interval_lies_over_the_guides() {
        let rows = [
            (
                measured(-0.1, 0.0, 0.1),
                "           ├────────●────────┤           ",
            ),
            (
                measured(0.1, 0.15, 0.18),
                "                   ┊│ ┊      ├────●──┤   ",
            ),
        ];
        for (interval, row) in rows {
            assert_eq!(drawn(&interval), row);
        }
    }

    #[test]
    fn declared_bounds_do_not_look_measured() {
        let text = drawn(&declared_interval(1.0, 1.1, 0.03).unwrap());
        assert!(
            text.contains('○') && text.contains('╟') && !text.contains('├'),
            "{text}"
        );
    }

    #[test]
    fn bounds_beyond_the_axis_are_arrows() {
        let text = drawn(&measured(f64::NEG_INFINITY, 0.0, f64::INFINITY));
        assert!(text.starts_with('◄') && text.ends_with('►'), "{text}");
    }

    #[test]
    fn labels_keep_apart_and_no_change_comes_first() {
        let axis = Axis::covering([-0.5, 0.5]);
        let text = strip_str(&scale(&axis, &Criteria::default(), 40)).to_string();
        assert!(text.contains(" 0 ") && !text.contains("+2 %"), "{text}");
        assert!(text.chars().count() <= 40);
    }
}
