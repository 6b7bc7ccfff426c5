//! `gauntlet serve`.

use std::path::{Path, PathBuf};

use gauntlet_http::{ServeError, Setup, TokenError, Tokens};

use crate::arguments::{ServeArguments, ServeCommand, TokenCommand};
use crate::commands::mcp::enter;
use crate::commands::queue::folder;
use crate::commands::run::{this_program, version};
use crate::error::{CliError, say_line};
use crate::exit::Exit;
use crate::{interrupt, listing, sink};

/// Serves over HTTP until it is told to end, or makes, lists or removes tokens.
pub fn serve(arguments: &ServeArguments) -> Result<Exit, CliError> {
    let ledger =
        std::path::absolute(&arguments.ledger.path).unwrap_or_else(|_| arguments.ledger.path.clone());
    let queue = folder(arguments.queue.as_deref(), &ledger);
    match &arguments.command {
        Some(ServeCommand::Token { command }) => token(&Tokens::in_folder(&queue), command),
        None => answer(arguments, queue, ledger),
    }
}

fn answer(arguments: &ServeArguments, queue: PathBuf, ledger: PathBuf) -> Result<Exit, CliError> {
    warn(arguments, &queue)?;
    let setup = Setup {
        listen: arguments.listen,
        hosts: arguments.host.clone(),
        queue,
        workplace: (!arguments.no_work).then(|| arguments.farm.workplace()),
        serves_agents: arguments.folder.is_some(),
        program: this_program()?,
        version: version(),
        ledger,
    };
    if let Some(folder) = &arguments.folder {
        enter(folder)?;
    }
    let mut told = Ok(());
    let listening = |address| told = sink::line(format_args!("listening at http://{address}"));
    let served = || Ok(gauntlet_http::serve(setup, listening, interrupt::is_requested)?);
    interrupt::keeping(served, |()| true)?;
    told?;
    say_line(format_args!(
        "ended; tickets stay in the queue, and jobs that were started go on"
    ));
    Ok(Exit::Done)
}

/// Warns of settings that the user may not have intended.
fn warn(arguments: &ServeArguments, queue: &Path) -> Result<(), CliError> {
    if !arguments.listen.ip().is_loopback() {
        say_line(format_args!(
            "{} can be reached from other machines, and tokens are sent there in the clear; let a server that encrypts listen there, and \
             this one at 127.0.0.1",
            arguments.listen
        ));
    }
    if Tokens::in_folder(queue).list()?.is_empty() {
        say_line(format_args!(
            "nobody has a token yet; `gauntlet serve token add NAME --scope submit` makes one"
        ));
    }
    Ok(())
}

fn token(tokens: &Tokens, command: &TokenCommand) -> Result<Exit, CliError> {
    match command {
        TokenCommand::Add { name, scope } => sink::line(tokens.add(name, (*scope).into())?)?,
        TokenCommand::Remove { name } => {
            tokens.remove(name)?;
            sink::line(format_args!("the token of {name} opens nothing any more"))?;
        }
        TokenCommand::List => {
            let rows = tokens.list()?;
            let rows = rows.into_iter().map(|token| {
                vec![
                    token.name,
                    token.scope.name().to_owned(),
                    token.created.strftime("%Y-%m-%d %H:%M UTC").to_string(),
                ]
            });
            listing::print(&["token of", "scope", "made"], rows)?;
        }
    }
    Ok(Exit::Done)
}

impl From<TokenError> for CliError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::File { ref path, ref source } => Self::of_place(
                source,
                format!("{}: {source}", path.display()),
                "check that the folder exists and can be written",
            ),
            TokenError::Name(_)
            | TokenError::Taken(_)
            | TokenError::Unknown(_)
            | TokenError::Damaged { .. } => Self::of_input(error),
        }
    }
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Queue(error) => error.into(),
            ServeError::Token(error) => error.into(),
            ServeError::Engine(error) => error.into(),
            ServeError::Listen { .. } => Self::of_input(error),
            ServeError::Start(_) => Self::broken(error.to_string()),
        }
    }
}
