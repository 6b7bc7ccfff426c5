//! `gauntlet time`.

use std::collections::BTreeMap;

use gauntlet_judge::Comparison;
use gauntlet_report::{CaseTime, dim, paragraph, timed};
use gauntlet_stats::median;
use gauntlet_task::Suite;
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{Setup, Time};
use crate::commands::contest::Contest;
use crate::documents::Document;
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::progress::Progress;
use crate::requirement::soundness;
use crate::sink;

/// Most pairs of processes that a kernel is timed in: with itself, so that a pair gives the times of two processes.
const PAIRS: usize = 6;

/// The times of a kernel.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Timed {
    /// The kernel.
    pub kernel: String,
    /// The task.
    pub task: String,
    /// What is special about the task, or was not honoured of it.
    pub notes: Vec<String>,
    /// The times of each case.
    pub cases: Vec<Times>,
    /// The version of the program.
    pub version: String,
    /// What the figures depend on.
    pub environment: BTreeMap<String, String>,
}

/// The times of a case.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Times {
    /// The case.
    pub case: String,
    /// The median of the processes, in seconds.
    pub time: f64,
    /// The typical call of each process, in seconds.
    pub processes: Vec<f64>,
    /// Arithmetic operations of a call, where they are known.
    pub flops: Option<u64>,
    /// Bytes that a call moves at least; 0 if they are not known.
    pub bytes: u64,
}

impl Times {
    fn shown(&self) -> CaseTime<'_> {
        CaseTime {
            name: &self.case,
            processes: &self.processes,
            flops: self.flops,
            bytes: self.bytes,
        }
    }
}

impl Document for Timed {
    const NAME: &'static str = "times";
    const VERSION: u32 = 1;
}

/// Times a kernel.
pub fn time(arguments: &Time) -> Result<Exit, CliError> {
    arguments.json.check()?;
    let setup = Setup {
        budget: arguments.budget,
        pairs: Some(PAIRS),
        warm: arguments.warm,
        scope: arguments.scope,
        ..Setup::alone(
            arguments.task.clone(),
            arguments.cases.clone(),
            arguments.measured.clone(),
        )
    };
    let text = gauntlet_entrants::read(&arguments.kernel)?;
    let contest = Contest::of(&setup, [text.clone(), text])?;
    let _hold = contest.hold()?;
    let progress = Progress::new();
    let report = contest.compared(&progress)?;
    drop(progress);
    let cases = report
        .comparison
        .iter()
        .flat_map(|found| times(found, &contest.suite))
        .collect();
    let found = Timed {
        kernel: report.candidate.text.clone(),
        task: report.task.clone(),
        notes: report.notes.clone(),
        cases,
        version: report.version.clone(),
        environment: report.environment.clone(),
    };
    // Of a kernel and itself it matters only whether it is right.
    if report.comparison.is_none() {
        let why = format!(
            "{} {}: {}",
            found.kernel,
            report.verdict.sentence(),
            report.reason
        );
        sink::print(paragraph("", &why, 2, terminal_width()).trim_end())?;
        return Ok(Exit::from(soundness(report.verdict)));
    }
    arguments.json.deliver(&found, || sink::print(shown(&found)))?;
    Ok(Exit::Done)
}

fn times(comparison: &Comparison, suite: &Suite) -> Vec<Times> {
    let of_case = |found: &gauntlet_judge::CaseTimes| {
        let mut by_process: BTreeMap<usize, [Vec<f64>; 2]> = BTreeMap::new();
        for block in &found.blocks {
            let [one, other] = by_process.entry(block.process).or_default();
            one.extend(&block.baseline);
            other.extend(&block.candidate);
        }
        let processes: Vec<f64> = by_process
            .into_values()
            .flatten()
            .map(|calls| median(&calls))
            .collect();
        let sizes = suite
            .benchmark
            .iter()
            .find(|case| case.name == found.case)
            .map(|case| &case.sizes);
        Times {
            case: found.case.clone(),
            time: median(&processes),
            processes,
            flops: sizes.and_then(|sizes| sizes.flops()),
            bytes: sizes.map_or(0, |sizes| sizes.bytes()),
        }
    };
    comparison.cases.iter().map(of_case).collect()
}

fn shown(found: &Timed) -> String {
    let cases: Vec<CaseTime> = found.cases.iter().map(Times::shown).collect();
    let notes: String = found
        .notes
        .iter()
        .map(|note| format!("\n  note: {note}"))
        .collect();
    format!(
        "{} {}{notes}\n\n{}",
        found.kernel,
        dim(format!("on {}", found.task)),
        timed(&cases, terminal_width())
    )
}
