//! Parameters in the form used on the command line.

use std::path::{Path, PathBuf};

use gauntlet_judge::Candidate;
use gauntlet_parameters::{Parameters, Table};

use crate::error::CliError;

/// Reads `builtin` (or `baseline`), a TOML file, or parameters such as `stages=2, order=dynamic`, on top of `base`. The
/// table defines the parameters.
pub fn read(text: &str, base: &Parameters, table: &Table) -> Result<Parameters, CliError> {
    if ["baseline", "builtin"].contains(&text.trim()) {
        return Ok(base.clone());
    }
    let path = Path::new(text);
    let change = if path.extension().is_some_and(|ending| ending == "toml") {
        let source = gauntlet_tournament::Source::<Parameters>::read(path, "schedule")?;
        source.value
    } else {
        words(text).map_err(|message| {
            CliError::bad_input(
                format!("`{text}` is not a set of parameters: {message}"),
                "write them as 'stages=2, order=dynamic'; `gauntlet schedules` explains them",
            )
        })?
    };
    table.check(&change).map_err(|error| {
        CliError::bad_input(
            format!("`{text}`: {error}"),
            "`gauntlet schedules --suite SUITE` explains the parameters",
        )
    })?;
    Ok(base.changed(&change))
}

/// The prefix of the name of a dispatch table.
const DISPATCH: &str = "dispatch:";

/// The prefix of a worker's program.
const COMMAND: &str = "command:";

/// Reads a kernel: any form accepted by [`read`]; `dispatch:FILE`, a table with the parameters of each case, where
/// cases without a near entry use `base`; or `command: PROGRAM ARGUMENTS`, a worker.
pub fn candidate(name: &str, text: &str, base: &Parameters, table: &Table) -> Result<Candidate, CliError> {
    let mut candidate = Candidate::new(name, table.complete(base));
    if let Some(command) = text.trim().strip_prefix(COMMAND) {
        candidate.command = Some(program(command)?);
    } else if let Some(file) = text.strip_prefix(DISPATCH) {
        let found = gauntlet_families::load_dispatch(Path::new(file)).map_err(|error| {
            CliError::bad_input(
                error.to_string(),
                "name a table that `gauntlet tune --output FILE` has written",
            )
        })?;
        candidate.dispatch = Some(found);
    } else {
        candidate.schedule = table.complete(&read(text, base, table)?);
    }
    Ok(candidate)
}

/// A program with its arguments. Existing files among them are made absolute, because a worker runs in its own folder.
fn program(command: &str) -> Result<Vec<PathBuf>, CliError> {
    let parts = shlex::split(command)
        .filter(|parts| !parts.is_empty())
        .ok_or_else(|| {
            CliError::bad_input(
                format!("`{command}` is not a program with arguments"),
                "write it as for a shell, such as 'command: python3 worker.py'; quotes must be closed",
            )
        })?;
    let absolute = |part: String| match Path::new(&part).exists() {
        true => std::path::absolute(&part).unwrap_or_else(|_| part.into()),
        false => PathBuf::from(part),
    };
    Ok(parts.into_iter().map(absolute).collect())
}

/// Names with values, separated by commas or spaces.
fn words(text: &str) -> Result<Parameters, String> {
    if !text.contains('=') {
        return Err("it names no parameter with a value".to_owned());
    }
    Parameters::parse(text)
}
