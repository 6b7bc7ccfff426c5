//! `--honest`.

use std::collections::BTreeMap;

use gauntlet_cli::documents::{Document, Versioned};
use gauntlet_cli::error::{CliError, terminal_width};
use gauntlet_cli::exit::Exit;
use gauntlet_cli::progress::Progress;
use gauntlet_cli::{MeasuredExecutor, environment, sink, this_program};
use gauntlet_report::{Column, table};
use gauntlet_stats::percent_interval;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Arguments, check_names, tested};
use crate::cheats::Quiet;
use crate::honest::{self, Outcome, ResidentReport, Settings, ZooError};

/// The result of `gauntlet selftest --honest`.
#[derive(Serialize, JsonSchema)]
pub struct Accepted {
    /// What the result depends on: processor, system, SIMD path.
    environment: BTreeMap<String, String>,
    /// How busy the machine was before.
    quiet: Quiet,
    /// Whether another program competed for the processors on purpose.
    contested: bool,
    /// The outcome of each comparison of an honest worker with itself.
    honest: Vec<ResidentReport>,
}

impl Document for Accepted {
    const NAME: &'static str = "honest-workers";
    const VERSION: u32 = 1;
}

/// Compares every worker of the zoo with itself, and prints how each comparison ended.
pub fn honest(all: &Arguments) -> Result<Exit, CliError> {
    let arguments = &all.selftest;
    let known: Vec<&str> = honest::residents().iter().map(|resident| resident.name).collect();
    check_names(&arguments.only, &known)?;
    let settings = Settings {
        program: this_program()?,
        names: arguments.only.clone(),
        runs: arguments.runs,
    };
    let (quiet, reports) = tested(arguments, MeasuredExecutor::Cpu, || {
        let progress = Progress::new();
        Ok(honest::run(&settings, &mut |report| {
            let (name, run) = (report.name, report.run);
            progress.show(&format!("{name}, run {run}: {}", outcome(report.outcome)));
        })?)
    })?;
    let result = Accepted {
        environment: environment(),
        quiet,
        contested: arguments.contested,
        honest: reports,
    };
    sink::deliver(arguments.json.as_deref(), &Versioned::of(&result), || {
        sink::print(listed(&result.honest))?;
        sink::print(summed_up(&result.honest))
    })?;
    let failed = result.honest.iter().any(|report| report.outcome.is_failure());
    Ok(if failed { Exit::NotReached } else { Exit::Done })
}

fn listed(reports: &[ResidentReport]) -> String {
    let head = [
        ("worker", Column::Words),
        ("outcome", Column::Whole),
        ("over its twin", Column::Words),
        ("pairs", Column::Figures),
        ("time", Column::Figures),
    ];
    let rows = reports.iter().map(|report| {
        let interval = report.interval.as_ref();
        vec![
            report.name.to_owned(),
            outcome(report.outcome).to_owned(),
            interval.map_or("—".to_owned(), percent_interval),
            report.pairs.to_string(),
            format!("{:.0} s", report.seconds),
        ]
    });
    table(&head, rows.collect(), 0, terminal_width())
}

/// The counts, and the comparisons with an unexpected outcome.
fn summed_up(reports: &[ResidentReport]) -> String {
    let count = |wanted| reports.iter().filter(|report| report.outcome == wanted).count();
    let mut text = format!(
        "\nOf {} comparisons of honest workers with themselves: {} accused, {} adopted, {} misjudged, {} not judged",
        reports.len() - count(Outcome::LeftOut),
        count(Outcome::Accused),
        count(Outcome::Adopted),
        count(Outcome::Misjudged),
        count(Outcome::Unjudged),
    );
    for report in reports
        .iter()
        .filter(|report| report.outcome != Outcome::Measured)
    {
        text.push_str(&format!(
            "\n{}, {}: {}",
            report.name,
            outcome(report.outcome),
            report.reason
        ));
    }
    text
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Measured => "measured",
        Outcome::Unjudged => "not judged",
        Outcome::Misjudged => "misjudged",
        Outcome::Adopted => "ADOPTED",
        Outcome::Accused => "ACCUSED",
        Outcome::LeftOut => "left out",
    }
}

impl From<ZooError> for CliError {
    fn from(error: ZooError) -> Self {
        match error {
            ZooError::Judge(error) => error.into(),
            other => Self::broken(other.to_string()),
        }
    }
}
