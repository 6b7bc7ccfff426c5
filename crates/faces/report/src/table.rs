//! Plain tables with a line under the header and no other lines.

use anstream::adapter::strip_str;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width};

use textwrap::core::display_width;

use crate::foreign::printed;
use crate::text::{bold, fitted, indented, widest};

/// The contents of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Words, which may be wrapped.
    Words,
    /// Words or pictures that stay on one line.
    Whole,
    /// Figures: on one line, aligned right.
    Figures,
}

/// A header: kinds of columns, each with the names of the columns of this kind.
macro_rules! columns {
    ($($kind:ident $($name:literal),+);+) => { [$($(($name, $crate::table::Column::$kind)),+),+] };
}
pub(crate) use columns;

/// Blanks after a column; the table itself adds one.
const GAP: u16 = 1;

/// Longer cells are cut. Widths are counted in 16 bits, for all columns together.
const MAX_CELL: usize = 2000;

/// Words are not broken into pieces shorter than this.
const SHORTEST_PIECE: usize = 6;

/// Lays out rows under a header, within `width` columns, of which `indent` are left free.
pub fn table(header: &[(&str, Column)], rows: Vec<Vec<String>>, indent: usize, width: usize) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|text| fitting(text)).collect())
        .collect();
    let room = width.saturating_sub(indent);
    let least = least_columns(header, &rows, room);
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    table
        .load_style(TableStyle::new().header_separator(line))
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(room).unwrap_or(u16::MAX))
        .set_header(header.iter().map(|(name, _)| bold(name)))
        .add_rows(rows);
    let last = header.len().saturating_sub(1);
    for (index, (column, (_, kind))) in table.column_iter_mut().zip(header).enumerate() {
        let gap = if index == last { 0 } else { GAP };
        column.set_padding((0, gap));
        column.set_constraint(match kind {
            Column::Words => ColumnConstraint::LowerBoundary(Width::Fixed(least[index] + gap)),
            Column::Whole | Column::Figures => ColumnConstraint::ContentWidth,
        });
        if *kind == Column::Figures {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    indented(&table.to_string(), indent)
}

/// A cell that is no longer than the table's own arithmetic allows.
fn fitting(text: &str) -> String {
    let text = printed(text);
    if display_width(&text) > MAX_CELL {
        fitted(&strip_str(&text).to_string(), MAX_CELL)
    } else {
        text.into_owned()
    }
}

/// The minimum columns of each column: its longest word, or all of it if it must stay on one line. If the sum exceeds
/// `room`, the longest words are broken until it fits.
fn least_columns(header: &[(&str, Column)], rows: &[Vec<String>], room: usize) -> Vec<u16> {
    let mut least: Vec<usize> = Vec::new();
    for (index, (name, kind)) in header.iter().enumerate() {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(index))
            .map(String::as_str)
            .chain([*name]);
        least.push(match kind {
            Column::Words => widest(cells.flat_map(str::split_whitespace)),
            Column::Whole | Column::Figures => widest(cells.flat_map(str::lines)),
        });
    }
    let gaps = header.len().saturating_sub(1) * (1 + usize::from(GAP));
    let breakable = |index: &usize| header[*index].1 == Column::Words;
    while least.iter().sum::<usize>() + gaps > room {
        let longest = (0..least.len())
            .filter(breakable)
            .max_by_key(|index| least[*index]);
        match longest {
            Some(index) if least[index] > SHORTEST_PIECE => least[index] -= 1,
            _ => break,
        }
    }
    least
        .into_iter()
        .map(|columns| u16::try_from(columns).unwrap_or(u16::MAX))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wrap_whole_and_figures_stay_in_one_line() {
        let header = columns!(Words "name", "text"; Figures "time");
        let text = "some words that must be wrapped somewhere";
        let rows = vec![vec![
            "softmax-in-registers".to_owned(),
            text.to_owned(),
            "1.25 ms".to_owned(),
        ]];
        let table = strip_str(&table(&header, rows, 2, 50)).to_string();
        assert!(
            table.contains("  softmax-in-registers  ") && table.contains(" 1.25 ms\n"),
            "{table}"
        );
        assert!(
            widest(table.lines()) <= 50 && table.lines().count() > 3,
            "{table}"
        );
    }
}
