//! Where results are written.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use serde::Serialize;

use crate::trouble::Trouble;

/// Prints text and a line's end on standard output, without colours where they are not wanted.
pub fn print(text: impl Display) -> Result<(), Trouble> {
    let mut output = anstream::stdout().lock();
    heard(writeln!(output, "{text}").and_then(|()| output.flush()))
}

/// What came of writing on standard output. A reader who went away, as `head` does, has seen enough: no trouble.
pub fn heard(written: io::Result<()>) -> Result<(), Trouble> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Trouble::broken(format!(
            "standard output cannot be written: {error}; check where it leads"
        ))),
        _ => Ok(()),
    }
}

/// Writes a result as JSON where that is wanted, and tells it to people unless standard output is taken by that.
/// Neither keeps the other from being done.
pub fn deliver(
    json: Option<&Path>,
    result: &impl Serialize,
    tell: impl FnOnce() -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let written = json.map_or(Ok(()), |path| write_json(path, result));
    let told = if json.is_some_and(is_stdout) {
        Ok(())
    } else {
        tell()
    };
    both(written, told)
}

/// Two things that were done whatever became of the other; where both failed, the first is told here.
pub fn both(one: Result<(), Trouble>, other: Result<(), Trouble>) -> Result<(), Trouble> {
    match (one, other) {
        (Err(one), Err(other)) => {
            one.tell();
            Err(other)
        }
        (one, other) => one.and(other),
    }
}

/// Writes a value as JSON to a file, or to standard output for `-`.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Trouble> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| Trouble::broken(error.to_string()))?;
    text.push(b'\n');
    if is_stdout(path) {
        return heard(io::stdout().write_all(&text));
    }
    write(path, &text)
}

/// Refuses a file that could not be written in the end, before anything that takes time. Leaves everything as it is.
pub fn check(path: &Path) -> Result<(), Trouble> {
    if is_stdout(path) {
        return Ok(());
    }
    check_in(folder_of(path), path)
}

/// The same of a file whose folders are made when it is written.
pub fn check_with_folders(path: &Path) -> Result<(), Trouble> {
    let mut folder = folder_of(path);
    while !folder.exists() {
        folder = folder_of(folder);
    }
    check_in(folder, path)
}

fn check_in(folder: &Path, path: &Path) -> Result<(), Trouble> {
    let refuse = |why: String, remedy: &str| {
        Err(Trouble::bad_input(
            format!("{} cannot be written: {why}", path.display()),
            remedy,
        ))
    };
    let folder_named = folder.display();
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => return refuse("it is a folder".to_owned(), "give a file"),
        // A pipe is not opened before there is something to be written: its reader would take that for all.
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
    // What is written is written beside it first, see `put`.
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

/// Writes a file, see [`put`]. What cannot be written there is kept elsewhere, and the error says where.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), Trouble> {
    put(path, contents).map_err(|error| {
        let kept = match keep(path, contents) {
            Ok(place) => format!("is in {}", place.display()),
            Err(_) if io::stdout().write_all(contents).is_ok() => "is on standard output".to_owned(),
            Err(_) => "is lost, for nothing else can be written either".to_owned(),
        };
        Trouble::broken(format!(
            "{} cannot be written: {error}; what it was to hold {kept}",
            path.display()
        ))
        .with_remedy("check that its folder exists and can be written, and that the disk has room")
    })
}

/// Writes a file, whole or not at all: beside it first, then moved into place. What is no plain file, such as a pipe
/// or `/dev/null`, is written as it is.
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
            // The partial file is of no use to anyone; that it may not exist is fine.
            let _removed = std::fs::remove_file(&beside);
        })
}

/// Keeps what took minutes to find in the folder for temporary files, under a name with the same ending.
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
fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}
