//! `gauntlet selftest`: the self-test is a program of its own, `gauntlet-selftest`.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::commands::run::this_program;
use crate::error::CliError;
use crate::exit::Exit;
use crate::installation::of_the_installation;

/// Becomes the self-test. `words` are those of this program, which has accepted them.
///
/// # Errors
/// If the self-test is not there or does not start.
pub fn selftest(words: &[OsString]) -> Result<Exit, CliError> {
    let this = this_program()?;
    let own = std::iter::once(this.file.into_os_string()).chain(this.arguments);
    let named = own.flat_map(|word| [OsString::from("--program"), word]);
    Err(become_it(named.chain(words.iter().skip(2).cloned())))
}

/// Becomes a worker of the self-test.
///
/// # Errors
/// As for [`selftest`].
pub fn worker(words: &[OsString]) -> Result<Exit, CliError> {
    Err(become_it(words.iter().skip(1)))
}

fn become_it(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> CliError {
    match of_the_installation("gauntlet-selftest", "gauntlet-selftest") {
        Err(error) => error,
        Ok(file) => {
            let error = Command::new(&file).args(arguments).exec();
            CliError::broken(format!("{} does not start: {error}", file.display()))
        }
    }
}
