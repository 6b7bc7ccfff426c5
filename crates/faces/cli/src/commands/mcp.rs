//! `gauntlet mcp`.

use std::path::Path;

use gauntlet_mcp::{Setup, serve};

use crate::arguments::McpArguments;
use crate::commands::queue::folder;
use crate::commands::run::{this_program, version};
use crate::error::CliError;
use crate::exit::Exit;

/// Serves the judge on standard input and output until the client goes.
pub fn mcp(arguments: &McpArguments) -> Result<Exit, CliError> {
    let in_full = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let ledger = in_full(&arguments.ledger.path);
    let setup = Setup {
        queue: folder(arguments.queue.as_deref(), &ledger),
        rounds: arguments.round.iter().map(|path| in_full(path)).collect(),
        works: !arguments.no_work,
        client: arguments.client.clone(),
        program: this_program()?,
        version: version(),
        ledger,
    };
    if let Some(missing) = setup.rounds.iter().find(|path| !path.is_file()) {
        return Err(CliError::bad_input(
            format!("there is no round {}", missing.display()),
            "name the file of a round whose `pitches` names a folder",
        ));
    }
    enter(&arguments.folder)?;
    serve(setup)?;
    Ok(Exit::Done)
}

/// Makes a folder the current one, since names of tasks and kernels are paths in it.
pub fn enter(folder: &Path) -> Result<(), CliError> {
    std::env::set_current_dir(folder).map_err(|error| {
        CliError::bad_input(
            format!("{} cannot be entered: {error}", folder.display()),
            "name the folder of your tasks and kernels",
        )
    })
}
