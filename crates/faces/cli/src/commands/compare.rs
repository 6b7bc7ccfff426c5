//! `gauntlet compare`.

use gauntlet_judge::Observer;

use crate::arguments::Compare;
use crate::commands::contest::Contest;
use crate::commands::{more, resume, samples, several};
use crate::error::CliError;
use crate::exit::Exit;
use crate::progress::Progress;

/// Compares two kernels on this machine's CPU or GPU, or the measurements of another program.
pub fn compare(arguments: &Compare) -> Result<Exit, CliError> {
    if let Some(pairs) = arguments.more {
        return more::more(arguments, pairs);
    }
    // The command line names a candidate unless it names files of measurements.
    let Some(candidate) = arguments.candidate.as_ref().filter(|_| !arguments.samples) else {
        return samples::compare(arguments);
    };
    let texts = [
        gauntlet_entrants::read(&arguments.baseline)?,
        gauntlet_entrants::read(candidate)?,
    ];
    arguments.contest.files.check()?;
    if !arguments.others.is_empty() {
        return several::compare(arguments, texts);
    }
    let contest = Contest::of(&arguments.contest.setup, texts)?;
    if arguments.contest.dry_run {
        return contest.only_read();
    }
    let progress = || -> Box<dyn Observer> { Box::new(Progress::new()) };
    resume::measured(&contest, &arguments.contest, progress, Contest::compared)
}
