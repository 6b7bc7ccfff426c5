//! Where results are written.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::trouble::Trouble;

/// Prints text and a line's end on standard output, without colours where they are not wanted.
pub fn print(text: impl Display) -> Result<(), Trouble> {
    let mut output = anstream::stdout().lock();
    writeln!(output, "{text}")
        .and_then(|()| output.flush())
        .map_err(|error| Trouble::of_stdout(&error))
}

/// Writes a value as JSON to a file, or to standard output for `-`.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Trouble> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| Trouble::broken(error.to_string()))?;
    text.push(b'\n');
    if is_stdout(path) {
        return std::io::stdout()
            .write_all(&text)
            .map_err(|error| Trouble::of_stdout(&error));
    }
    write(path, &text)
}

/// Refuses a file that could not be written in the end, before anything that takes time.
pub fn check(path: &Path) -> Result<(), Trouble> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    if is_stdout(path) || folder.is_none_or(Path::is_dir) && !path.is_dir() {
        return Ok(());
    }
    Err(Trouble::bad_input(
        format!(
            "{} cannot be written: there is no such folder, or it is one",
            path.display()
        ),
        "give a file in a folder that exists",
    ))
}

/// Writes a file, whole or not at all: beside it first, then moved into place. What is no plain file, such as a pipe
/// or `/dev/null`, is written as it is.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), Trouble> {
    let is_special = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
    let written = if is_special {
        std::fs::write(path, contents)
    } else {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".partial");
        std::fs::write(&beside, contents)
            .and_then(|()| std::fs::rename(&beside, path))
            .inspect_err(|_| {
                // The partial file is of no use to anyone; that it may not exist is fine.
                let _removed = std::fs::remove_file(&beside);
            })
    };
    written.map_err(|error| {
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
