//! `gauntlet ledger`.

use std::path::Path;

use gauntlet_lab::ledger::{Entry, Ledger, RunId, Verification};

use crate::arguments::{LedgerArguments, LedgerCommand};
use crate::exit::Exit;
use crate::listing;
use crate::sink::{self, write_json};
use crate::trouble::Trouble;

/// Reads the ledger.
pub fn ledger(arguments: &LedgerArguments, path: &Path) -> Result<Exit, Trouble> {
    let ledger = Ledger::open_read_only(path)?;
    match &arguments.command {
        LedgerCommand::List { json: true } => write_json(Path::new("-"), &ledger.runs()?)?,
        LedgerCommand::List { json: false } => list(&ledger)?,
        LedgerCommand::Show { what } => show(&ledger, what)?,
        LedgerCommand::Export { run } => {
            let run = run.as_ref().map(RunId::new);
            ledger.export(std::io::stdout().lock(), run.as_ref())?;
        }
        LedgerCommand::Verify => return verify(&ledger),
    }
    Ok(Exit::Done)
}

fn list(ledger: &Ledger) -> Result<(), Trouble> {
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
            run.verdicts.to_string(),
            run.findings.to_string(),
            state.to_owned(),
        ]
    });
    listing::print(&["run", "file", "verdicts", "findings", "state"], rows)?;
    Ok(())
}

fn show(ledger: &Ledger, what: &str) -> Result<(), Trouble> {
    if let Ok(number) = what.parse() {
        return match ledger.record(number)? {
            Some(entry) => write_json(Path::new("-"), &entry),
            None => Err(Trouble::bad_input(
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
    vec![
        entry.sequence.to_string(),
        entry.at.strftime("%H:%M:%S").to_string(),
        record.kind.name().to_owned(),
        place.join(" / "),
        said.unwrap_or_default().chars().take(MOST_CHARACTERS).collect(),
    ]
}

/// Of a reason in a list; `gauntlet ledger show NUMBER` prints it whole.
const MOST_CHARACTERS: usize = 120;

fn verify(ledger: &Ledger) -> Result<Exit, Trouble> {
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
