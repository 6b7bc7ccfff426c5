//! `gauntlet compare`.

use gauntlet_judge::gates::Right;
use gauntlet_judge::session::examine_both;
use gauntlet_judge::{Observer, Verdict};
use gauntlet_stats::Arm;

use crate::arguments::Compare;
use crate::commands::contest::{Contest, Found};
use crate::commands::{more, samples};
use crate::error::CliError;
use crate::exit::Exit;
use crate::kernel_text;
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
        kernel_text::read(&arguments.baseline)?,
        kernel_text::read(candidate)?,
    ];
    let contest = Contest::of(&arguments.contest, texts)?;
    let _hold = contest.hold()?;
    let progress = Progress::new();
    let found = Found {
        findings: Vec::new(),
        ..examined(&contest, &progress)?
    };
    drop(progress);
    contest.conclude(found)
}

/// Examines whether both kernels are correct, because the speed of an incorrect one is irrelevant, and compares them.
pub fn examined(contest: &Contest, observer: &dyn Observer) -> Result<Found, CliError> {
    let examinations = contest
        .arms
        .each_ref()
        .map(|arm| contest.examination(arm, observer));
    let findings = examine_both(&Right, examinations)?;
    for (side, finding) in [Arm::Baseline, Arm::Candidate].into_iter().zip(findings) {
        if let Some((verdict, finding)) = finding.and_then(|finding| Some((finding.stops()?, finding))) {
            return Ok(Found::stopped(side, verdict, finding));
        }
    }
    let candidate = &contest.arms[1];
    let mut compared = contest.examination(candidate, observer);
    let (finding, observations) = contest.faster(&mut compared, observer)?;
    Ok(Found {
        side: Arm::Candidate,
        verdict: finding.stops().unwrap_or(Verdict::Adopt),
        reason: finding.reason.clone(),
        findings: vec![finding],
        comparison: compared.comparison,
        observations,
    })
}
