//! `gauntlet ledger`.

use std::path::Path;

use gauntlet_judge::ledger::{Entry, Ledger, LedgerError, RecordKind, RunId, RunSummary, Verification};
use gauntlet_tournament::forecast::{Answer, Forecasts, prospects};

use crate::arguments::{LedgerArguments, LedgerCommand};
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::listing;
use crate::sink::{self, write_json};

/// Reads the ledger.
pub fn ledger(arguments: &LedgerArguments) -> Result<Exit, CliError> {
    let ledger = Ledger::open_read_only(&arguments.file.path)?;
    match &arguments.command {
        LedgerCommand::List { json: true } => write_json(Path::new("-"), &ledger.runs()?)?,
        LedgerCommand::List { json: false } => list(&ledger)?,
        LedgerCommand::Show { what } => show(&ledger, what)?,
        LedgerCommand::Export { run } => {
            let run = run.as_ref().map(RunId::new);
            match ledger.export(std::io::stdout().lock(), run.as_ref()) {
                Err(LedgerError::Export { source }) => sink::heard(Err(source))?,
                exported => exported?,
            }
        }
        LedgerCommand::Forecasters { json } => forecasters(&ledger, *json)?,
        LedgerCommand::Next { run, json } => next(&ledger, run.as_deref(), *json)?,
        LedgerCommand::Verify => return verify(&ledger),
    }
    Ok(Exit::Done)
}

fn list(ledger: &Ledger) -> Result<(), CliError> {
    let runs = ledger.runs()?;
    let rows = runs.iter().map(|run| {
        let state = if run.ended.is_some() {
            "done"
        } else {
            "cut short or running"
        };
        vec![
            run.id.to_string(),
            run.start.file.clone(),
            match run.predicted {
                0 => run.verdicts.to_string(),
                predicted => format!("{} ({predicted} predicted)", run.verdicts),
            },
            run.findings.to_string(),
            state.to_owned(),
        ]
    });
    listing::print(&["run", "file", "verdicts", "findings", "state"], rows)?;
    Ok(())
}

fn show(ledger: &Ledger, what: &str) -> Result<(), CliError> {
    if let Ok(number) = what.parse() {
        return match ledger.record(number)? {
            Some(entry) => write_json(Path::new("-"), &entry),
            None => Err(CliError::bad_input(
                format!("the ledger has no record {number}"),
                "`gauntlet ledger show RUN` lists a run's records with their numbers",
            )),
        };
    }
    let entries = ledger.records(&RunId::new(what))?;
    let rows = entries.iter().map(row);
    let head = ["record", "at", "kind", "where", "reason"];
    listing::print(&head, rows)?;
    Ok(())
}

fn row(entry: &Entry) -> Vec<String> {
    let record = &entry.record;
    let place: Vec<&str> = [&record.round, &record.pitch, &record.gate]
        .into_iter()
        .filter_map(|name| name.as_deref())
        .collect();
    let said = ["reason", "notice", "adopted", "file"]
        .iter()
        .find_map(|key| record.body.get(key)?.as_str());
    let predicted = record.kind == RecordKind::Verdict && record.body["predicted"] == true;
    let mark = if predicted { "predicted: " } else { "" };
    vec![
        entry.sequence.to_string(),
        entry.at.strftime("%H:%M:%S").to_string(),
        record.kind.name().to_owned(),
        place.join(" / "),
        format!("{mark}{}", said.unwrap_or_default())
            .chars()
            .take(MOST_CHARACTERS)
            .collect(),
    ]
}

/// The maximum length of a reason in a list; `gauntlet ledger show NUMBER` prints it in full.
const MOST_CHARACTERS: usize = 120;

fn forecasters(ledger: &Ledger, json: bool) -> Result<(), CliError> {
    let forecasters = Forecasts::of_entries(&ledger.verdicts()?).forecasters();
    if json {
        return write_json(Path::new("-"), &forecasters);
    }
    sink::print(gauntlet_report::forecasters(&forecasters, terminal_width()))
}

fn next(ledger: &Ledger, run: Option<&str>, json: bool) -> Result<(), CliError> {
    let runs = ledger.runs()?;
    let wanted = |summary: &&RunSummary| run.is_none_or(|run| summary.id.as_str() == run);
    let Some(run) = runs.iter().find(wanted).map(|summary| &summary.id) else {
        return Err(CliError::bad_input(
            format!("the ledger has no run {}", run.unwrap_or("yet")),
            "`gauntlet ledger list` lists its runs; `gauntlet run ROUND` plays one",
        ));
    };
    let verdicts = ledger.verdicts()?;
    let answers: Vec<_> = verdicts.iter().filter_map(Answer::of_entry).collect();
    let open = prospects(&answers, run, &Forecasts::of_entries(&verdicts));
    if json {
        return write_json(Path::new("-"), &open);
    }
    if open.is_empty() {
        return sink::print(format_args!("Run {run} left nothing open."));
    }
    sink::print(gauntlet_report::prospects(&open, terminal_width()))
}

fn verify(ledger: &Ledger) -> Result<Exit, CliError> {
    Ok(match ledger.verify()? {
        Verification::Intact { records, head } => {
            sink::print(format_args!(
                "{records} records, all as they were written; the chain ends in {head}"
            ))?;
            Exit::Done
        }
        Verification::Broken { sequence, breach } => {
            sink::print(format_args!("broken at record {sequence}: {breach}"))?;
            Exit::NotReached
        }
    })
}
