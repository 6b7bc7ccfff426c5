//! `gauntlet judge`.

use gauntlet_judge::gates::Right;
use gauntlet_judge::session::{GATES, conclude, examine};
use gauntlet_judge::{Finding, Observer};
use gauntlet_stats::Arm;

use crate::arguments::Judge;
use crate::commands::contest::{Contest, Found, own_baseline, task_of};
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::kernel_text;
use crate::progress::Progress;

/// Examines a kernel by all gates.
pub fn judge(arguments: &Judge) -> Result<Exit, CliError> {
    let candidate = kernel_text::read(&arguments.candidate)?;
    let baseline = match &arguments.baseline {
        Some(text) => kernel_text::read(text)?,
        None => kernel_text::read(&own_baseline(task_of(&arguments.contest, &[&candidate])?))?,
    };
    let contest = Contest::of(&arguments.contest, [baseline, candidate])?;
    let _hold = contest.hold()?;
    let progress = Progress::new();
    let found = judged(&contest, &progress)?;
    drop(progress);
    contest.conclude(found)
}

/// Shows that the baseline is right, and takes the candidate through all gates.
fn judged(contest: &Contest, progress: &Progress) -> Result<Found, CliError> {
    let [baseline, candidate] = &contest.arms;
    let observer: &dyn Observer = progress;
    let finding = examine(&Right, &contest.examination(baseline, observer))?;
    if let Some((verdict, finding)) = finding.and_then(|finding| Some((finding.stops()?, finding))) {
        return Ok(Found::stopped(Arm::Baseline, verdict, finding));
    }
    let tell = |finding: &Finding| progress.tell(&gauntlet_report::finding(finding, terminal_width()));
    let mut examination = contest.examination(candidate, observer);
    let mut observations = None;
    for gate in GATES {
        let finding = match examine(gate, &examination)? {
            Some(finding) => finding,
            None => {
                let (finding, seen) = contest.faster(&mut examination, observer)?;
                observations = seen;
                finding
            }
        };
        tell(&finding);
        let stops = finding.stops().is_some();
        examination.add(finding);
        if stops {
            break;
        }
    }
    let (verdict, reason) = conclude(&examination.findings);
    Ok(Found {
        side: Arm::Candidate,
        verdict,
        reason,
        comparison: examination.comparison.take(),
        findings: examination.findings,
        observations,
    })
}
