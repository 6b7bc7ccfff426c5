//! `gauntlet job`.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gauntlet_judge::ledger::Ledger;
use gauntlet_queue::{Blobs, Job, QueueError, Ticket, run_job};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

use crate::arguments::JobArguments;
use crate::commands::run::this_program;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;

/// Runs a ticket once and publishes what is found.
pub fn job(arguments: &JobArguments) -> Result<Exit, CliError> {
    let ticket = Ticket::read(&arguments.ticket)?;
    let blobs = match &arguments.blobs {
        Some(folder) => folder.clone(),
        None => beside(&arguments.ticket),
    };
    let ledger = ledger();
    // A ledger that this machine cannot write is no fault of the ticket's, whose only result would say so.
    if let Some(path) = &ledger {
        Ledger::open(path).map_err(|error| CliError::broken(format!("nothing was run: {error}")))?;
    }
    let end = run_job(&Job {
        ticket: &ticket,
        blobs: &Blobs::in_folder(blobs),
        out: &std::path::absolute(&arguments.out).unwrap_or_else(|_| arguments.out.clone()),
        program: &this_program()?,
        prepare: &|command| prepare(command, ledger.as_deref()),
        started: &interrupt::forward_to,
    })?;
    let place = arguments.out.join(format!("{}.json", ticket.id));
    match end.reason {
        Some(reason) => anstream::eprintln!("nothing was published: {reason}"),
        None if end.was_known => anstream::eprintln!("{} was published before", place.display()),
        None => anstream::eprintln!("published as {}", place.display()),
    }
    Ok(match end.exit {
        0 => Exit::Done,
        1 => Exit::NotReached,
        2 => Exit::BadInput,
        4 => Exit::Undecided,
        130 => Exit::Interrupted,
        _ => Exit::Broken,
    })
}

/// The folder `blobs` beside the folder of a ticket's file.
fn beside(ticket: &Path) -> PathBuf {
    let path = std::path::absolute(ticket).unwrap_or_else(|_| ticket.to_owned());
    let folder = path.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    folder.join("blobs")
}

/// Where the command that judges leaves its record, in full: it runs in a folder of the ticket's, which is removed. None if the usual
/// place cannot be written, which is no reason to fail.
fn ledger() -> Option<PathBuf> {
    let named = std::env::var_os("GAUNTLET_LEDGER").map(PathBuf::from);
    let usual = || {
        let usual = Path::new(".gauntlet");
        std::fs::create_dir_all(usual).ok()?;
        Some(usual.join("ledger.sqlite"))
    };
    let path = named.or_else(usual)?;
    Some(std::path::absolute(&path).unwrap_or(path))
}

fn prepare(command: &mut Command, ledger: Option<&Path>) {
    command.envs(ledger.map(|ledger| ("GAUNTLET_LEDGER", ledger)));
    // A job that is killed takes its command with it, which would hold the machine until its budget is spent.
    // SAFETY: between fork and exec this calls prctl alone, which allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| set_pdeathsig(Signal::SIGTERM).map_err(io::Error::from));
    }
}

impl From<QueueError> for CliError {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::Storage { .. } => Self::broken(error.to_string()),
            QueueError::Files { ref path, ref source } => {
                let message = format!("{}: {source}", path.display());
                Self::of_place(
                    source,
                    message,
                    "check that the folder exists and can be written, and that the disk has room",
                )
            }
            QueueError::NoTicket { .. }
            | QueueError::UnknownTicket(_)
            | QueueError::Judgement(_)
            | QueueError::NoBlob { .. }
            | QueueError::KeyTaken(_)
            | QueueError::Full { .. } => Self::of_input(error),
        }
    }
}
