//! `gauntlet judge`.

use gauntlet_judge::{Finding, KernelText, Narrowing, Observer};

use crate::arguments::{Judge, Setup};
use crate::commands::contest::{Contest, deliver, own_baseline, task_of};
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::kernel_text;
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
    let _hold = contest.hold()?;
    let telling = Telling {
        progress: Progress::new(),
        of: &contest.arms[1].name,
    };
    let report = contest.judged(&telling)?;
    drop(telling);
    deliver(&report, &arguments.contest, None)
}

/// The baseline and the candidate, read. A baseline that is not named is the task's own.
pub fn kernels(candidate: &str, baseline: Option<&str>, setup: &Setup) -> Result<[KernelText; 2], CliError> {
    let candidate = kernel_text::read(candidate)?;
    let baseline = match baseline {
        Some(text) => kernel_text::read(text)?,
        None => kernel_text::read(&own_baseline(task_of(setup, &[&candidate])?))?,
    };
    Ok([baseline, candidate])
}

/// Shows progress, and tells each finding of the candidate as it comes.
struct Telling<'a> {
    progress: Progress,
    of: &'a str,
}

impl Observer for Telling<'_> {
    fn gate_begins(&self, candidate: &str, gate: &str) {
        self.progress.gate_begins(candidate, gate);
    }

    fn compares(&self, candidate: &str) {
        self.progress.compares(candidate);
    }

    fn progress(&self, message: &str) {
        self.progress.progress(message);
    }

    fn narrows(&self, narrowing: &Narrowing) {
        self.progress.narrows(narrowing);
    }

    fn gate_ends(&self, candidate: &str, finding: &Finding) {
        self.progress.gate_ends(candidate, finding);
        if candidate == self.of {
            self.progress
                .tell(&gauntlet_report::finding(finding, terminal_width()));
        }
    }

    fn notice(&self, message: &str) {
        self.progress.notice(message);
    }
}
