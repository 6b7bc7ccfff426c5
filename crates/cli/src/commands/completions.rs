//! `gauntlet completions`.

use clap::CommandFactory;

use crate::arguments::{Arguments, Completions};
use crate::exit::Exit;
use crate::trouble::Trouble;

/// Prints completions for a shell.
pub fn completions(arguments: &Completions) -> Result<Exit, Trouble> {
    clap_complete::generate(
        arguments.shell,
        &mut Arguments::command(),
        "gauntlet",
        &mut std::io::stdout(),
    );
    Ok(Exit::Done)
}
