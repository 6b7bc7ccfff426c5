//! Prints aligned lines.

/// A line: a title, and up to four figures.
pub fn row<C: AsRef<str>>(title: &str, cells: &[C]) {
    print!("{title:<32}");
    for (cell, width) in cells.iter().zip([9, 9, 22, 22]) {
        print!(" {:>width$}", cell.as_ref());
    }
    println!();
}

/// The heading of a part.
pub fn heading(title: &str, cells: &[&str]) {
    println!();
    row(title, cells);
}
