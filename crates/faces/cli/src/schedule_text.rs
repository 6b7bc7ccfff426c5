//! Parameters in the form used on the command line.

use std::path::Path;

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

/// Names with values, separated by commas or spaces.
fn words(text: &str) -> Result<Parameters, String> {
    if !text.contains('=') {
        return Err("it names no parameter with a value".to_owned());
    }
    Parameters::parse(text)
}
