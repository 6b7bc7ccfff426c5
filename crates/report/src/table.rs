//! Thin tables: a line under the header and nothing else.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle};

use crate::text::{bold, indented};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Words, which may be wrapped.
    Words,
    /// Words or pictures that stay in one line.
    Whole,
    /// Figures: in one line, to the right.
    Figures,
}

/// Lays out rows under a header, within `width` columns, `indent` of them left free.
pub fn table(header: &[(&str, Column)], rows: Vec<Vec<String>>, indent: usize, width: usize) -> String {
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    table
        .load_style(TableStyle::new().header_separator(line))
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(width.saturating_sub(indent)).unwrap_or(u16::MAX))
        .set_header(header.iter().map(|(name, _)| bold(name)))
        .add_rows(rows);
    let last = header.len().saturating_sub(1);
    for (index, (column, (_, kind))) in table.column_iter_mut().zip(header).enumerate() {
        column.set_padding((0, if index == last { 0 } else { 2 }));
        if *kind != Column::Words {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        if *kind == Column::Figures {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    indented(&table.to_string(), indent)
}
