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
    let report = TournamentReport::of_run(&run, &ledger.records(&run.id)?, &ledger.verdicts()?);
    report
        .map(|report| Found::Run(Box::new(report)))
        .map_err(CliError::of_input)
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
    let runs = ledger.runs()?;
    let remedy = "`gauntlet ledger list` lists the runs; a file of `--json` can be named too";
    let named = |run: &&RunSummary| {
        run.id.as_str() == text || text == LATEST || (!text.is_empty() && run.id.as_str().starts_with(text))
    };
    let mut matching = runs.iter().filter(named);
    let place = ledger.path().display();
    match (matching.next(), matching.next()) {
        (None, _) if runs.is_empty() => Err(CliError::bad_input(
            format!("the ledger {place} holds no run yet"),
            "`gauntlet run ROUND` plays one and keeps it there",
        )),
        (None, _) => Err(CliError::bad_input(
            format!("the ledger {place} has no run `{text}`, and there is no such file"),
            remedy,
        )),
        // The newest comes first.
        (Some(run), _) if text == LATEST => Ok(run.clone()),
        (Some(run), None) => Ok(run.clone()),
        (Some(run), Some(other)) => Err(CliError::bad_input(
            format!(
                "`{text}` begins the names of several runs, among them {} and {}",
                run.id, other.id
            ),
            "give more of the name",
        )),
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
