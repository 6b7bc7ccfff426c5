//! `--cheats`.

use std::collections::BTreeMap;

use gauntlet_cli::documents::{Document, Versioned};
use gauntlet_cli::error::{CliError, terminal_width};
use gauntlet_cli::exit::Exit;
use gauntlet_cli::progress::Progress;
use gauntlet_cli::{MeasuredExecutor, environment, sink, this_program};
use gauntlet_report::{Column, table};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Arguments, check_names, tested};
use crate::cheats::{self, CheatReport, Kind, On, Outcome, Quiet, Settings, TrialError};

/// The result of `gauntlet selftest --cheats`.
#[derive(Serialize, JsonSchema)]
pub struct Tried {
    /// What the result depends on: processor, system, SIMD path.
    environment: BTreeMap<String, String>,
    /// How busy the machine was before.
    quiet: Quiet,
    /// Whether another program competed for the processors on purpose.
    contested: bool,
    /// The outcome of each cheat and of each honest candidate.
    cheats: Vec<CheatReport>,
}

impl Document for Tried {
    const NAME: &'static str = "cheats";
    const VERSION: u32 = 1;
}

/// Measures how quiet the machine is, tries every cheat of the corpus, and prints which gate caught it.
pub fn cheats(all: &Arguments) -> Result<Exit, CliError> {
    let arguments = &all.selftest;
    let json = arguments.json.as_deref();
    json.into_iter().try_for_each(sink::check)?;
    let kernels = arguments.device.map(|device| match device {
        MeasuredExecutor::Cpu => On::Cpu,
        MeasuredExecutor::Cuda => On::Cuda,
    });
    let corpus = kernels.map_or_else(cheats::corpus, cheats::corpus_of_kernels);
    let known: Vec<&str> = corpus.iter().map(|cheat| cheat.name).collect();
    check_names(&arguments.only, &known)?;
    let settings = Settings {
        program: match kernels {
            Some(_) => all.gauntlet()?,
            None => this_program()?,
        },
        kinds: Kind::ALL.to_vec(),
        names: arguments.only.clone(),
        kernels,
    };
    let executor = arguments.device.unwrap_or(MeasuredExecutor::Cpu);
    let (quiet, reports) = tested(arguments, executor, || {
        let progress = Progress::new();
        Ok(cheats::run(&settings, &mut |report| {
            progress.show(&format!("{}: {}", report.name, outcome(report.outcome)));
        })?)
    })?;
    let result = Tried {
        environment: environment(),
        quiet,
        contested: arguments.contested,
        cheats: reports,
    };
    sink::deliver(json, &Versioned::of(&result), || {
        sink::print(listed(&result.cheats))?;
        sink::print(summed_up(&result.cheats, &result.quiet))
    })?;
    let failed = result.cheats.iter().any(|report| report.outcome.is_failure());
    Ok(if failed { Exit::NotReached } else { Exit::Done })
}

fn listed(reports: &[CheatReport]) -> String {
    let head = [
        ("candidate", Column::Whole),
        ("what it does", Column::Words),
        ("outcome", Column::Whole),
        ("gate", Column::Whole),
        ("verdict", Column::Whole),
    ];
    let rows = reports.iter().map(|report| {
        vec![
            report.name.to_owned(),
            report.story.to_owned(),
            outcome(report.outcome).to_owned(),
            report.gate.clone().unwrap_or_default(),
            report.verdict.to_string(),
        ]
    });
    table(&head, rows.collect(), 0, terminal_width())
}

/// The number of cheats, the time, how quiet the machine was, and the cheats with an unexpected outcome.
fn summed_up(reports: &[CheatReport], quiet: &Quiet) -> String {
    let defended = || reports.iter().filter(|report| report.kind != Kind::Undefended);
    let count = |wanted| defended().filter(|report| report.outcome == wanted).count();
    let cheats = reports
        .iter()
        .filter(|report| !matches!(report.kind, Kind::Honest | Kind::Undefended))
        .count();
    let seconds: f64 = reports.iter().map(|report| report.seconds).sum();
    let mut text = format!(
        "\nBefore the trials {quiet}.\n{} of {cheats} cheats caught, {} honest candidates measured, in {seconds:.0} s",
        count(Outcome::Caught),
        count(Outcome::Measured),
    );
    for report in reports {
        if let Some(fault) = &report.fault {
            text.push_str(&format!(
                "\n{}, {}: {fault}; the reason given: {}",
                report.name,
                outcome(report.outcome),
                report.reason
            ));
        }
    }
    text
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Caught => "caught",
        Outcome::Stopped => "stopped otherwise",
        Outcome::GainedNothing => "gained nothing",
        Outcome::Missed => "MISSED",
        Outcome::Unheld => "not held here",
        Outcome::Undefended => "undefended",
        Outcome::Measured => "measured",
        Outcome::Unjudged => "not judged",
        Outcome::Wronged => "WRONGED",
    }
}

impl From<TrialError> for CliError {
    fn from(error: TrialError) -> Self {
        match error {
            TrialError::Unplayed { source, .. } => (*source).into(),
            other => Self::broken(other.to_string()),
        }
    }
}
