//! `gauntlet report`: a result that was found earlier, shown again.

use std::path::Path;

use gauntlet_judge::ComparisonReport;
use gauntlet_judge::ledger::{Ledger, RunSummary};
use gauntlet_report::Detail;
use gauntlet_tournament::TournamentReport;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::arguments::Report;
use crate::documents::{Document, Kind};
use crate::error::CliError;
use crate::exit::Exit;

/// The name that means the last run of the ledger.
pub const LATEST: &str = "latest";

/// A result that can be shown.
enum Found {
    Comparison(Box<ComparisonReport>),
    Run(Box<TournamentReport>),
}

/// Shows a run of the ledger, or a result in a file.
pub fn report(arguments: &Report) -> Result<Exit, CliError> {
    let files = &arguments.files;
    files.check()?;
    let detail = if arguments.samples {
        Detail::Samples
    } else {
        Detail::Findings
    };
    let nothing_after = || Ok(());
    match found(arguments)? {
        Found::Comparison(report) => files.deliver(&*report, detail, nothing_after)?,
        Found::Run(report) => files.deliver(&*report, detail, nothing_after)?,
    }
    Ok(Exit::Done)
}

fn found(arguments: &Report) -> Result<Found, CliError> {
    let path = Path::new(&arguments.run);
    // Runs are called by their date, so that no name of a run ends as a file does.
    if path.is_file() || path.extension().is_some_and(|ending| ending == "json") {
        return of_file(path);
    }
    let ledger = Ledger::open_read_only(&arguments.ledger.path)?;
    let run = run_of(&ledger, &arguments.run)?;
    if let Some(judgement) = ledger.judgement(&run.id)? {
        return of_judgement(&run, judgement.document);
    }
    let report = TournamentReport::of_run(&run, &ledger.records(&run.id)?, &ledger.verdicts()?);
    report
        .map(|report| Found::Run(Box::new(report)))
        .map_err(CliError::of_input)
}

/// What a command that judges found.
fn of_judgement(run: &RunSummary, document: Value) -> Result<Found, CliError> {
    let kind = Kind::of::<ComparisonReport>();
    if document["schema"].as_str().and_then(Kind::read) != Some(kind) {
        return Err(CliError::bad_input(
            format!(
                "run {} is `gauntlet {}`, of which there is no report",
                run.id, run.start.file
            ),
            format!("`gauntlet ledger show {} --json` prints what it found", run.id),
        ));
    }
    serde_json::from_value(document)
        .map(|report| Found::Comparison(Box::new(report)))
        .map_err(|error| CliError::broken(format!("run {} is not a whole {kind}: {error}", run.id)))
}

/// The result of `compare` or `judge` in a file.
pub fn comparison(path: &Path) -> Result<ComparisonReport, CliError> {
    match of_file(path)? {
        Found::Comparison(report) => Ok(*report),
        Found::Run(_) => Err(CliError::bad_input(
            format!("{} is the result of `gauntlet run`", path.display()),
            "name a file that `--json` of `compare` or `judge` wrote",
        )),
    }
}

/// The run of a ledger that a text names: its id, the beginning of its id, or `latest`.
pub fn run_of(ledger: &Ledger, text: &str) -> Result<RunSummary, CliError> {
    let place = ledger.path().display();
    let named = match text {
        LATEST => ledger.newest_runs(1)?.into_iter().map(|run| run.id).collect(),
        "" => Vec::new(),
        _ => ledger.runs_named(text)?,
    };
    match &named[..] {
        [run] => Ok(ledger.run(run)?),
        [run, ..] if run.as_str() == text => Ok(ledger.run(run)?),
        [] if ledger.newest_runs(1)?.is_empty() => Err(CliError::bad_input(
            format!("the ledger {place} holds no run yet"),
            "`gauntlet run ROUND` plays one and keeps it there, and `gauntlet compare` what it finds",
        )),
        [] => Err(CliError::bad_input(
            format!("the ledger {place} has no run `{text}`, and there is no such file"),
            "`gauntlet ledger list` lists the runs; a file of `--json` can be named too",
        )),
        [run, other, ..] => Err(CliError::bad_input(
            format!("`{text}` begins the names of several runs, among them {run} and {other}"),
            "give more of the name",
        )),
    }
}

/// The same of a round or a tournament, for which `latest` means the last one of these.
pub fn tournament_of(ledger: &Ledger, text: &str) -> Result<RunSummary, CliError> {
    match ledger.newest_tournament()?.filter(|_| text == LATEST) {
        Some(run) => Ok(ledger.run(&run)?),
        None => run_of(ledger, text),
    }
}

/// A result that `compare`, `judge` or `run` wrote.
fn of_file(path: &Path) -> Result<Found, CliError> {
    let place = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        CliError::bad_input(
            format!("{place} cannot be read: {error}"),
            "name a file that `--json` of `compare`, `judge` or `run` wrote, or a run of the ledger",
        )
    })?;
    let value: Value = serde_json::from_str(&text).map_err(|error| {
        CliError::bad_input(
            format!("{place}:{}: not JSON: {error}", error.line()),
            "name a file that `--json` of `compare`, `judge` or `run` wrote",
        )
    })?;
    let kind = value["schema"].as_str().and_then(Kind::read);
    let [comparison, run] = [Kind::of::<ComparisonReport>(), Kind::of::<TournamentReport>()];
    match kind {
        Some(kind) if kind == comparison => Ok(Found::Comparison(Box::new(read(path, &text)?))),
        Some(kind) if kind == run => Ok(Found::Run(Box::new(read(path, &text)?))),
        Some(kind) => Err(CliError::bad_input(
            format!(
                "{place} is a document of the kind {kind}, and this program reads {comparison} and {run}"
            ),
            "name the result of `compare`, `judge` or `run` of this version of gauntlet",
        )),
        None => Err(CliError::bad_input(
            format!(
                "{place} does not say what it is: its field `schema` is missing or is none of gauntlet's"
            ),
            format!(
                "name the result of `compare`, `judge` or `run` of this version of gauntlet ({comparison}, {run}); \
                 `gauntlet compare --samples` reads the measurements of other programs"
            ),
        )),
    }
}

fn read<D: Document + DeserializeOwned>(path: &Path, text: &str) -> Result<D, CliError> {
    serde_json::from_str(text).map_err(|error| {
        CliError::bad_input(
            format!(
                "{}:{}: not a whole {}: {error}",
                path.display(),
                error.line(),
                Kind::of::<D>()
            ),
            "the file was changed or cut after it was written; write it again",
        )
    })
}
