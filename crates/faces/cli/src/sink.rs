//! Writes results to files and standard output.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gauntlet_report::{printed, visible, visible_lines};
use nix::unistd::{AccessFlags, access};
use serde::Serialize;

use crate::error::CliError;

/// Prints text and a newline on standard output, without colours if they are not wanted.
pub fn print(text: impl Display) -> Result<(), CliError> {
    let mut output = anstream::stdout().lock();
    let text = text.to_string();
    heard(writeln!(output, "{}", printed(&text)).and_then(|()| output.flush()))
}

/// Prints one line on standard output, whatever it holds.
pub fn line(text: impl Display) -> Result<(), CliError> {
    print(visible(&text.to_string()))
}

/// Prints a message on standard output, its further lines indented.
pub fn message(text: impl Display) -> Result<(), CliError> {
    print(visible_lines(text.to_string().trim_end()).replace('\n', "\n    "))
}

/// Converts the result of writing on standard output. A reader that closes the pipe early, as `head` does, is not an
/// error.
pub fn heard(written: io::Result<()>) -> Result<(), CliError> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::broken(format!(
            "standard output cannot be written: {error}; check where it leads"
        ))),
        _ => Ok(()),
    }
}

/// Writes a result as JSON if requested, and prints the report unless the JSON goes to standard output. A failure of
/// one does not prevent the other.
pub fn deliver(
    json: Option<&Path>,
    result: &impl Serialize,
    tell: impl FnOnce() -> Result<(), CliError>,
) -> Result<(), CliError> {
    let written = json.map_or(Ok(()), |path| write_json(path, result));
    let told = if json.is_some_and(is_stdout) {
        Ok(())
    } else {
        tell()
    };
    both(written, told)
}

/// Combines the results of two independent operations; if both failed, the first error is printed here.
pub fn both(one: Result<(), CliError>, other: Result<(), CliError>) -> Result<(), CliError> {
    match (one, other) {
        (Err(one), Err(other)) => {
            one.tell();
            Err(other)
        }
        (one, other) => one.and(other),
    }
}

/// Writes a value as JSON to a file, or to standard output for `-`.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), CliError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| CliError::broken(error.to_string()))?;
    text.push(b'\n');
    write(path, &text)
}

/// Refuses early, before long work, a file that could not be written at the end. Changes nothing.
pub fn check(path: &Path) -> Result<(), CliError> {
    if is_stdout(path) {
        return Ok(());
    }
    let folder = folder_of(path);
    let refuse = |why: String, remedy: &str| {
        Err(CliError::bad_input(
            format!("{} cannot be written: {why}", path.display()),
            remedy,
        ))
    };
    let folder_named = folder.display();
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => return refuse("it is a folder".to_owned(), "give a file"),
        // A pipe is not opened before there is output: its reader would see the end of the input.
        Ok(found) if !found.is_file() => {
            return access(path, AccessFlags::W_OK)
                .or_else(|error| refuse(error.desc().to_lowercase(), "give another file"));
        }
        _ if !folder.is_dir() => {
            return refuse(
                format!("there is no folder {folder_named}"),
                "give a file in a folder that exists",
            );
        }
        _ => {}
    }
    // The file is first written beside its place, see `put`.
    match tempfile::tempfile_in(folder) {
        Ok(_) => Ok(()),
        Err(error) => refuse(
            format!("nothing can be made in {folder_named} ({})", error.kind()),
            "make the folder writable, or give a file in another one",
        ),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => Path::new("/"),
    }
}

/// Writes a file, see [`put`], or to standard output for `-`. If that fails, the contents are kept elsewhere, and the error says where.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), CliError> {
    if is_stdout(path) {
        return heard(io::stdout().write_all(contents));
    }
    put(path, contents).map_err(|error| {
        let kept = match keep(path, contents) {
            Ok(place) => format!("is in {}", place.display()),
            Err(_) if io::stdout().write_all(contents).is_ok() => "is on standard output".to_owned(),
            Err(_) => "is lost, for nothing else can be written either".to_owned(),
        };
        CliError::broken(format!(
            "{} cannot be written: {error}; what it was to hold {kept}",
            path.display()
        ))
        .with_remedy("check that its folder exists and can be written, and that the disk has room")
    })
}

/// Writes a file atomically: beside its place first, then moved there. A target that is not a regular file, such as a
/// pipe or `/dev/null`, is written directly.
pub fn put(path: &Path, contents: &[u8]) -> io::Result<()> {
    let is_special = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
    if is_special {
        return std::fs::write(path, contents);
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".partial");
    std::fs::write(&beside, contents)
        .and_then(|()| std::fs::rename(&beside, path))
        .inspect_err(|_| {
            // The partial file is useless, and it may not exist.
            let _removed = std::fs::remove_file(&beside);
        })
}

/// Keeps results of minutes of work in the folder for temporary files, under a name with the same ending.
fn keep(path: &Path, contents: &[u8]) -> io::Result<PathBuf> {
    let ending = path
        .extension()
        .map_or_else(String::new, |ending| format!(".{}", ending.to_string_lossy()));
    let mut file = tempfile::Builder::new()
        .prefix("gauntlet-kept-")
        .suffix(&ending)
        .tempfile()?;
    file.write_all(contents)?;
    Ok(file.keep().map_err(|error| error.error)?.1)
}

/// Whether a path means standard output.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}
