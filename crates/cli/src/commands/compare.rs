//! `gauntlet compare`.

use gauntlet_judge::gates::Right;
use gauntlet_judge::session::examine;
use gauntlet_judge::{Observer, Verdict};

use crate::arguments::Compare;
use crate::commands::contest::{Contest, Found};
use crate::error::CliError;
use crate::exit::Exit;
use crate::progress::Progress;

/// Compares two kernels on this machine's CPU or GPU.
pub fn compare(arguments: &Compare) -> Result<Exit, CliError> {
    let contest = Contest::of(&arguments.contest, [&arguments.baseline, &arguments.candidate])?;
    let _hold = contest.hold();
    let progress = Progress::new();
    let found = examined(&contest, &progress)?;
    drop(progress);
    contest.conclude(&found)
}

/// Examines whether both kernels are correct, because the speed of an incorrect one is irrelevant, and compares them.
fn examined(contest: &Contest, observer: &dyn Observer) -> Result<Found, CliError> {
    for arm in &contest.arms {
        let finding = examine(&Right, &contest.examination(arm, observer))?;
        if let Some((verdict, finding)) = finding.and_then(|finding| Some((finding.stops()?, finding))) {
            return Ok(Found {
                arm: arm.name.clone(),
                verdict,
                reason: finding.reason,
                findings: Vec::new(),
                comparison: None,
            });
        }
    }
    let candidate = &contest.arms[1];
    let mut compared = contest.examination(candidate, observer);
    let finding = contest.faster(&mut compared, observer)?;
    Ok(Found {
        arm: candidate.name.clone(),
        verdict: finding.stops().unwrap_or(Verdict::Adopt),
        reason: finding.reason,
        findings: Vec::new(),
        comparison: compared.comparison,
    })
}
