//! `gauntlet man`.

use clap::CommandFactory;

use crate::arguments::{Arguments, Man};
use crate::error::CliError;
use crate::exit::Exit;
use crate::sink;

/// Writes a man page for each command.
pub fn man(arguments: &Man) -> Result<Exit, CliError> {
    let folder = &arguments.folder;
    let written =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Arguments::command(), folder));
    written.map_err(|error| {
        CliError::bad_input(
            format!("man pages cannot be written to {}: {error}", folder.display()),
            "name a folder that can be written",
        )
    })?;
    sink::line(format_args!("{}", folder.join("gauntlet.1").display()))?;
    Ok(Exit::Done)
}
