//! Plain listings: a header and rows of words, as wide as the terminal.

use gauntlet_report::{Column, table};

use crate::sink;
use crate::trouble::{Trouble, terminal_width};

/// Prints a listing on standard output.
pub fn print(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Result<(), Trouble> {
    let head: Vec<_> = head.iter().map(|name| (*name, Column::Words)).collect();
    sink::print(table(&head, rows.into_iter().collect(), 0, terminal_width()))
}
