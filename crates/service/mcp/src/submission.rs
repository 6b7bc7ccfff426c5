//! What is queued of a judgement: its words, and the files that they name as they are now.

use std::ffi::OsString;

use gauntlet_queue::{Judgement, JudgementKind, Submission};
use gauntlet_worker::Program;

use crate::{child, places};

/// A judgement of files in the current folder, with their contents. A process of its own reads task and kernels first, so that a wrong
/// name is refused now and not by the ticket.
///
/// # Errors
/// If a name is wrong, or a file lies outside of the folder, is too large or cannot be read.
pub fn submission(program: &Program, client: &str, mut judgement: Judgement) -> Result<Submission, String> {
    let files = places::sources(&mut judgement)?;
    try_names(program, &judgement)?;
    let here = std::env::current_dir().unwrap_or_default();
    Ok(Submission {
        files,
        // Some tasks are called after their folder.
        folder: here.file_name().map(|name| name.to_string_lossy().into_owned()),
        ..Submission::new(client, judgement)
    })
}

fn try_names(program: &Program, judgement: &Judgement) -> Result<(), String> {
    let mut tried = judgement.clone();
    match tried.command {
        JudgementKind::Check => {
            let kernel = tried.kernels.first().cloned().unwrap_or_default();
            // Compiled and interpreted without a GPU, which a comparison would need.
            if kernel.contains(".cu:") {
                return Ok(());
            }
            tried = Judgement::compare(&tried.task, &kernel, &kernel);
        }
        // They have no dry run.
        JudgementKind::Tune | JudgementKind::Errand => return Ok(()),
        JudgementKind::Compare | JudgementKind::Judge => {}
    }
    let mut arguments: Vec<OsString> = tried.arguments().map_err(|error| error.to_string())?;
    arguments.insert(1, "--dry-run".into());
    let ran =
        child::run(program, arguments).map_err(|error| format!("the judge cannot be started: {error}"))?;
    match ran.code {
        // Too slow to be read within a call, or this machine lacks the GPU that the job will have: the ticket will say.
        Some(0 | 3) | None => Ok(()),
        Some(_) => Err(ran.err.trim().to_owned()),
    }
}
