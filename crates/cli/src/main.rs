//! The `gauntlet` command.
fn main() {}
