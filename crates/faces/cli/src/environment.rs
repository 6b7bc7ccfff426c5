//! What the environment must be for workers to start: paths that their protocol can carry, and a limit that can be read.

use std::path::Path;

use gauntlet_worker::Timeouts;

use crate::error::CliError;

/// How long to wait for workers, after a look at the folders whose paths they are sent.
///
/// # Errors
/// If a path is not UTF-8, or a limit is no number of seconds.
pub fn timeouts() -> Result<Timeouts, CliError> {
    let current = std::env::current_dir().unwrap_or_default();
    told_apart("the current folder", &current, "go to another folder")?;
    let temporary = std::env::temp_dir();
    told_apart(
        "the folder for temporary files",
        &temporary,
        "name another folder by TMPDIR",
    )?;
    Timeouts::of_environment()
        .map_err(|error| CliError::bad_input(error, "give a positive number of seconds, such as 900"))
}

/// Refuses a path that is not UTF-8: requests to workers are JSON.
fn told_apart(what: &str, path: &Path, remedy: &str) -> Result<(), CliError> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => Err(CliError::bad_input(
            format!(
                "{what}, {}, has a path that is not UTF-8, which workers cannot be sent",
                path.display()
            ),
            remedy,
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_path_that_is_not_utf_8_is_refused() {
        assert!(told_apart("the folder", Path::new("/tmp/grün"), "").is_ok());
        let odd = Path::new(OsStr::from_bytes(b"/tmp/bad\xff\xfe"));
        let error = told_apart("the folder", odd, "go").unwrap_err();
        assert!(format!("{error:?}").contains("BadInput"), "{error:?}");
    }
}
