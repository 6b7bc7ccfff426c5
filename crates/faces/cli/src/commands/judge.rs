//! `gauntlet judge`.

use gauntlet_judge::{KernelText, Observer};

use crate::arguments::{Judge, Setup};
use crate::commands::contest::{Contest, own_baseline, task_of};
use crate::commands::resume;
use crate::error::CliError;
use crate::exit::Exit;
use crate::progress::Progress;

/// Examines a kernel by all gates.
pub fn judge(arguments: &Judge) -> Result<Exit, CliError> {
    arguments.contest.files.check()?;
    let texts = kernels(
        &arguments.candidate,
        arguments.baseline.as_deref(),
        &arguments.contest.setup,
    )?;
    let contest = Contest::of(&arguments.contest.setup, texts)?;
    if arguments.contest.dry_run {
        return contest.only_read();
    }
    let progress = || -> Box<dyn Observer> { Box::new(Progress::telling_findings_on(&contest.arms[1].name)) };
    resume::measured(&contest, &arguments.contest, progress, Contest::judged)
}

/// The baseline and the candidate, read. A baseline that is not named is the task's own.
pub fn kernels(candidate: &str, baseline: Option<&str>, setup: &Setup) -> Result<[KernelText; 2], CliError> {
    let candidate = gauntlet_entrants::read(candidate)?;
    let baseline = match baseline {
        Some(text) => gauntlet_entrants::read(text)?,
        None => gauntlet_entrants::read(&own_baseline(task_of(setup, &[&candidate])?))?,
    };
    Ok([baseline, candidate])
}
