//! `gauntlet compare` with more than one candidate.

use std::time::Instant;

use gauntlet_judge::{ComparisonReport, KernelText};
use gauntlet_report::several;
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{self, Compare};
use crate::commands::contest::{Contest, concluded};
use crate::documents::Document;
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::progress::Progress;
use crate::sink;

/// Comparisons of several candidates with one baseline. Their intervals hold for all of them together: each has its share of
/// the error, as Bonferroni's inequality asks.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Comparisons {
    /// One for each candidate, in the order of the command line.
    pub comparisons: Vec<ComparisonReport>,
}

impl Document for Comparisons {
    const NAME: &'static str = "comparisons";
    const VERSION: u32 = 1;
}

/// Compares each candidate with the baseline, and shows them in one table.
pub fn compare(arguments: &Compare, [baseline, candidate]: [KernelText; 2]) -> Result<Exit, CliError> {
    let files = &arguments.contest.files;
    if let Some(option) = files.beside_json() {
        return Err(CliError::bad_input(
            format!(
                "{option} shows one comparison, and {} were asked for",
                1 + arguments.others.len()
            ),
            "leave it out, or compare one candidate at a time; --json holds all of them",
        ));
    }
    let mut candidates = vec![candidate];
    for text in &arguments.others {
        candidates.push(gauntlet_entrants::read(text)?);
    }
    let count = candidates.len();
    let mut left = arguments.contest.setup.budget;
    let mut comparisons = Vec::new();
    for (index, candidate) in candidates.into_iter().enumerate() {
        let mut contest = Contest::of(&arguments.contest.setup, [baseline.clone(), candidate])?;
        let criteria = &mut contest.setting.criteria;
        criteria.confidence = 1.0 - (1.0 - criteria.confidence) / count as f64;
        contest.setting.measurement.budget = left / i32::try_from(count - index).unwrap_or(i32::MAX);
        let recorder = contest.recorder(&arguments.contest.recording)?;
        let _hold = contest.hold()?;
        let progress = Progress::new();
        let began = Instant::now();
        let report = contest.compared(&progress)?;
        recorder.record_comparison(&report)?;
        comparisons.push(report);
        let took = SignedDuration::try_from(began.elapsed()).unwrap_or(left);
        left = left.saturating_sub(took).max(SignedDuration::from_secs(1));
    }
    let found = Comparisons { comparisons };
    files.deliver_json(&found, || {
        sink::print(several(&found.comparisons, terminal_width()).trim_end())
    })?;
    let arguments::Contest {
        require,
        require_quick,
        ..
    } = &arguments.contest;
    let exits: Vec<Exit> = found
        .comparisons
        .iter()
        .map(|report| concluded(report, *require, *require_quick))
        .collect();
    let worst = [Exit::NotReached, Exit::Undecided];
    Ok(worst
        .into_iter()
        .find(|exit| exits.contains(exit))
        .unwrap_or(Exit::Done))
}
