//! Bars made of block characters.

use owo_colors::Style;

use crate::text::paint;

/// Blocks of one to seven eighths.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Phases of a call in display order, each with a fill that distinguishes it without colour.
const PHASES: [(&str, char, Style); 5] = [
    ("setup", '░', Style::new().magenta()),
    ("load", '▓', Style::new().cyan()),
    ("multiply", '█', Style::new().green()),
    ("epilogue", '▒', Style::new().yellow()),
    ("wait", '·', Style::new().bright_black()),
];

/// The fill of phases without one of their own.
const OTHER: (char, Style) = ('╳', Style::new().white());

/// A bar for a fraction of a whole, to an eighth of a column, without trailing blanks.
pub fn bar(part: f64, columns: usize) -> String {
    let eighths = (part.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if let Some(index) = (eighths % 8).checked_sub(1) {
        bar.push(EIGHTHS[index]);
    }
    bar
}

/// A bar from one position of a whole to another, to half a column: blanks, then blocks. A bar shorter than half a
/// column is a thin line.
pub fn floating(from: f64, to: f64, columns: usize) -> String {
    let halves = |place: f64| (place.clamp(0.0, 1.0) * columns as f64 * 2.0).round() as usize;
    let (low, high) = (halves(from.min(to)), halves(from.max(to)));
    if low == high {
        let last = columns.saturating_sub(1);
        let line = if low % 2 == 0 && low / 2 <= last {
            '▏'
        } else {
            '│'
        };
        return " ".repeat((low / 2).min(last)) + &line.to_string();
    }
    let cell = |column: usize| match (low <= 2 * column, high >= 2 * column + 2) {
        (true, true) => '█',
        (true, false) => '▌',
        (false, _) => '▐',
    };
    " ".repeat(low / 2) + &(low / 2..high.div_ceil(2)).map(cell).collect::<String>()
}

/// The position of a phase in display order.
pub fn phase_order(name: &str) -> usize {
    PHASES
        .iter()
        .position(|(phase, ..)| *phase == name)
        .unwrap_or(PHASES.len())
}

/// Shares as one bar.
pub fn stacked(shares: &[(String, f64)], columns: usize) -> String {
    let parts: Vec<f64> = shares.iter().map(|(_, share)| *share).collect();
    let cells = apportioned(&parts, columns);
    shares
        .iter()
        .zip(cells)
        .map(|((name, _), cells)| {
            let (fill, style) = fill(name);
            paint(fill.to_string().repeat(cells), style)
        })
        .collect()
}

/// The legend of the bar, greatest share first: `█ multiply 62 %  ▓ load 30 %`.
pub fn legend(shares: &[(String, f64)]) -> String {
    let mut shares: Vec<_> = shares.iter().collect();
    shares.sort_by(|one, other| other.1.total_cmp(&one.1));
    let entry = |(name, share): &(String, f64)| {
        let (fill, style) = fill(name);
        format!("{} {name} {:.0} %", paint(fill, style), share * 100.0)
    };
    shares.into_iter().map(entry).collect::<Vec<_>>().join("  ")
}

fn fill(phase: &str) -> (char, Style) {
    PHASES
        .get(phase_order(phase))
        .map_or(OTHER, |(_, fill, style)| (*fill, *style))
}

/// Whole columns in proportion to the parts, adding up to `columns`: the columns left after rounding down go to the
/// greatest remainders.
fn apportioned(parts: &[f64], columns: usize) -> Vec<usize> {
    let sum: f64 = parts.iter().map(|part| part.max(0.0)).sum();
    if sum <= 0.0 {
        return vec![0; parts.len()];
    }
    let exact: Vec<f64> = parts
        .iter()
        .map(|part| part.max(0.0) / sum * columns as f64)
        .collect();
    let mut cells: Vec<usize> = exact.iter().map(|cells| *cells as usize).collect();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|one, other| exact[*other].fract().total_cmp(&exact[*one].fract()));
    let left = columns.saturating_sub(cells.iter().sum());
    for index in order.into_iter().take(left) {
        cells[index] += 1;
    }
    cells
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bars_have_eighths() {
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.85, 10), "████████▌");
        assert_eq!(bar(2.0, 3), "███");
    }

    #[test]
    fn floating_bars_begin_where_others_end() {
        assert_eq!(floating(0.0, 0.5, 4), "██");
        assert_eq!(floating(0.5, 1.0, 4), "  ██");
        assert_eq!(floating(0.125, 0.5, 4), "▐█");
        assert_eq!(floating(0.25, 0.875, 4), " ██▌");
        assert_eq!(floating(0.5, 0.5, 4), "  ▏");
        assert_eq!(floating(0.63, 0.64, 4), "  │");
        assert_eq!(floating(1.0, 1.0, 4), "   │");
        // A bar that ends to the left of its start.
        assert_eq!(floating(0.5, 0.25, 4), " █");
    }

    #[test]
    fn columns_left_over_go_to_the_greatest_remainders() {
        assert_eq!(apportioned(&[0.5, 0.3, 0.2], 10), [5, 3, 2]);
        assert_eq!(apportioned(&[0.34, 0.33, 0.33], 10), [4, 3, 3]);
        assert_eq!(apportioned(&[0.0, 0.0], 10), [0, 0]);
    }

    proptest! {
        #[test]
        fn a_stacked_bar_is_full(parts in prop::collection::vec(0.01..1.0f64, 1..8), columns in 1usize..100) {
            let cells = apportioned(&parts, columns);
            prop_assert_eq!(cells.iter().sum::<usize>(), columns);
        }
    }
}
