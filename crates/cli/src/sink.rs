//! Where results are written.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::trouble::Trouble;

/// Writes a value as JSON to a file, or to standard output for `-`.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Trouble> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| Trouble::broken(error.to_string()))?;
    text.push(b'\n');
    if is_stdout(path) {
        return std::io::stdout()
            .write_all(&text)
            .map_err(|error| Trouble::broken(format!("standard output: {error}")));
    }
    write(path, &text)
}

/// Writes a file, whole or not at all: beside it first, then moved into place.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), Trouble> {
    let beside = path.with_extension("partial");
    std::fs::write(&beside, contents)
        .and_then(|()| std::fs::rename(&beside, path))
        .map_err(|error| {
            // The partial file is of no use to anyone; that it may not exist is fine.
            let _removed = std::fs::remove_file(&beside);
            Trouble::broken(format!(
                "{} cannot be written: {error}; check that its folder exists and the disk has room",
                path.display()
            ))
        })
}

/// Whether a path means standard output.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}
