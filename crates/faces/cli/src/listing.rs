//! Plain listings: a header and rows of words, as wide as the terminal.

use gauntlet_report::{Column, table, visible};
use gauntlet_stats::percent;

use crate::error::{CliError, terminal_width};
use crate::sink;

/// A fraction between its bounds, as percentages: `+3.1 % [+2.2 … +4.0]`.
pub fn between(estimate: f64, lower: f64, upper: f64) -> String {
    let [lower, upper] = [lower, upper].map(|bound| percent(bound).trim_end_matches(" %").to_owned());
    format!("{} [{lower} … {upper}]", percent(estimate))
}

/// Prints a listing on standard output.
pub fn print(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Result<(), CliError> {
    let head: Vec<_> = head.iter().map(|name| (*name, Column::Words)).collect();
    let shown = |row: Vec<String>| row.iter().map(|cell| visible(cell).into_owned()).collect();
    let rows = rows.into_iter().map(shown).collect();
    sink::print(table(&head, rows, 0, terminal_width()))
}
