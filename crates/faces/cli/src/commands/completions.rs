//! `gauntlet completions`.

use std::io::Write;

use clap::CommandFactory;

use crate::arguments::{Arguments, Completions};
use crate::error::CliError;
use crate::exit::Exit;
use crate::sink;

/// Prints completions for a shell.
pub fn completions(arguments: &Completions) -> Result<Exit, CliError> {
    // Into memory first: the generator panics when a write fails.
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Arguments::command(),
        "gauntlet",
        &mut script,
    );
    sink::heard(std::io::stdout().write_all(&script))?;
    Ok(Exit::Done)
}
