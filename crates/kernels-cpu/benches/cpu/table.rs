//! Aligned lines.

/// A line: what it is of, and up to four figures.
pub fn row<C: AsRef<str>>(title: &str, cells: &[C]) {
    print!("{title:<32}");
    for (cell, width) in cells.iter().zip([9, 9, 22, 22]) {
        print!(" {:>width$}", cell.as_ref());
    }
    println!();
}

/// The line above a part's.
pub fn heading(title: &str, cells: &[&str]) {
    println!();
    row(title, cells);
}
