//! `gauntlet ledger`.

use std::path::Path;

use gauntlet_judge::ledger::{
    Entry, Index, Judged, Ledger, LedgerError, Record, RecordKind, RunSummary, Sources, Verification, Wanted,
};
use gauntlet_tournament::Message;
use gauntlet_tournament::forecast::{Answer, Forecasts, prospects};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use crate::arguments::{JsonFile, LedgerArguments, LedgerCommand, WantedVerdicts};
use crate::commands::repeat;
use crate::commands::report::{LATEST, run_of, tournament_of};
use crate::documents::{Document, Versioned};
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::listing;
use crate::sink::{self, write_json};

/// Reads the ledger.
pub fn ledger(arguments: &LedgerArguments) -> Result<Exit, CliError> {
    if let LedgerCommand::Import { other } = &arguments.command {
        return import(&arguments.file.path, other);
    }
    let ledger = Ledger::open_read_only(&arguments.file.path)?;
    match &arguments.command {
        LedgerCommand::List { newest, json } => {
            let runs = ledger.newest_runs(newest.most())?;
            json.deliver_list(&runs, || list(&runs))?;
        }
        LedgerCommand::Verdicts(wanted) => verdicts(&ledger, wanted)?,
        LedgerCommand::Repeat { run, into } => return repeat::repeat(&ledger, run, into),
        LedgerCommand::Show { what, json } => show(&ledger, what, json)?,
        LedgerCommand::Export { run } => {
            let run = run.as_deref().map(|run| run_of(&ledger, run)).transpose()?;
            match ledger.export(std::io::stdout().lock(), run.as_ref().map(|run| &run.id)) {
                Err(LedgerError::Export { source }) => sink::heard(Err(source))?,
                exported => exported?,
            }
        }
        LedgerCommand::Forecasters { json } => forecasters(&ledger, json)?,
        LedgerCommand::Next { run, json } => next(&ledger, run.as_deref(), json)?,
        LedgerCommand::Verify => return verify(&ledger),
        LedgerCommand::Import { .. } => {}
    }
    Ok(Exit::Done)
}

fn list(runs: &[RunSummary]) -> Result<(), CliError> {
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

/// The result of `gauntlet ledger show RUN`.
#[derive(Serialize, JsonSchema)]
pub struct Shown {
    /// The run.
    run: RunSummary,
    /// All its records, in the order in which they were stored.
    records: Vec<Entry>,
}

impl Document for Shown {
    const NAME: &'static str = "ledger-run";
    const VERSION: u32 = 1;
}

fn show(ledger: &Ledger, what: &str, json: &JsonFile) -> Result<(), CliError> {
    json.check()?;
    let record = what
        .parse()
        .ok()
        .map(|number| ledger.record(number))
        .transpose()?;
    if let Some(entry) = record.flatten() {
        let place = json.path.as_deref().unwrap_or(Path::new("-"));
        return write_json(place, &Versioned::of(&entry));
    }
    let run = run_of(ledger, what)?;
    let records = ledger.records(&run.id)?;
    let shown = Shown { run, records };
    json.deliver(&shown, || tell(&shown))
}

fn tell(Shown { run, records }: &Shown) -> Result<(), CliError> {
    let start = &run.start;
    let state = run.ended.map_or("cut short or running".to_owned(), |ended| {
        format!("ended {ended}")
    });
    sink::line(format_args!(
        "run      {} · started {} · {state}",
        run.id, run.started
    ))?;
    sink::line(format_args!("file     {}", start.file))?;
    sink::line(format_args!("digest   {}", start.digest))?;
    sink::line(format_args!("gauntlet {}", start.version))?;
    for (name, value) in start.environment.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        sink::line(format_args!("{name}: {value}"))?;
    }
    sink::print("")?;
    listing::print(
        &["record", "at", "kind", "where", "what"],
        records.iter().map(row),
    )?;
    sink::line(format_args!(
        "`gauntlet ledger show NUMBER` prints a record whole; `gauntlet report {}` shows the run as a report.",
        run.id
    ))
}

fn row(entry: &Entry) -> Vec<String> {
    let record = &entry.record;
    let place: Vec<&str> = [&record.round, &record.pitch, &record.gate]
        .into_iter()
        .filter_map(|name| name.as_deref())
        .collect();
    vec![
        entry.sequence.to_string(),
        entry.at.strftime("%H:%M:%S").to_string(),
        record.kind.name().to_owned(),
        place.join(" / "),
        said(record),
    ]
}

/// What a record says, in a line.
fn said(record: &Record) -> String {
    let body = &record.body;
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    match record.kind {
        RecordKind::Verdict => {
            let mark = if body["predicted"] == true {
                "predicted: "
            } else {
                ""
            };
            let verdict = text("verdict").unwrap_or_default().replace('-', " ");
            format!("{mark}{verdict}: {}", text("reason").unwrap_or_default())
        }
        RecordKind::Finding => {
            let outcome = match &body["outcome"] {
                Value::String(outcome) => outcome.clone(),
                stopped => stopped["stop"].as_str().unwrap_or_default().replace('-', " "),
            };
            format!("{outcome}: {}", text("reason").unwrap_or_default())
        }
        RecordKind::RoundEnded => {
            text("adopted").map_or("nothing adopted".to_owned(), |name| format!("adopted {name}"))
        }
        RecordKind::RoundStarted => {
            text("digest").map_or_else(String::new, |digest| format!("fixed as {digest}"))
        }
        RecordKind::Ranking => {
            let standings = body["standings"].as_array().into_iter().flatten();
            standings
                .filter_map(|one| one["pitch"].as_str())
                .collect::<Vec<_>>()
                .join(", ")
        }
        RecordKind::Judgement => {
            let mark = if body["interrupted"] == true {
                "interrupted: "
            } else {
                ""
            };
            let verdict =
                text("verdict").map_or_else(String::new, |verdict| verdict.replace('-', " ") + ": ");
            format!("{mark}{verdict}{}", text("reason").unwrap_or_default())
        }
        RecordKind::Imported => format!(
            "records {} to {} of the ledger {}",
            body["from"],
            body["to"],
            text("origin").unwrap_or_default()
        ),
        RecordKind::RunStarted => text("file").unwrap_or_default().to_owned(),
        RecordKind::RunEnded => body["rounds"]
            .as_u64()
            .map_or_else(String::new, |rounds| format!("rounds: {rounds}")),
        RecordKind::Notice => text("notice").unwrap_or_default().to_owned(),
        RecordKind::Message => {
            let message = Message::deserialize(body);
            message.map_or_else(|_| String::new(), |message| gauntlet_report::sentence(&message))
        }
    }
}

fn forecasters(ledger: &Ledger, json: &JsonFile) -> Result<(), CliError> {
    let forecasters = Forecasts::of_entries(&ledger.verdicts()?).forecasters();
    json.deliver(&forecasters, || {
        sink::print(gauntlet_report::forecasters(&forecasters, terminal_width()))
    })
}

fn next(ledger: &Ledger, run: Option<&str>, json: &JsonFile) -> Result<(), CliError> {
    let run = &tournament_of(ledger, run.unwrap_or(LATEST))?.id;
    let verdicts = ledger.verdicts()?;
    let answers: Vec<_> = verdicts.iter().filter_map(Answer::of_entry).collect();
    let open = prospects(&answers, run, &Forecasts::of_entries(&verdicts));
    json.deliver_list(&open, || match open.is_empty() {
        true => sink::line(format_args!("Run {run} left nothing open.")),
        false => sink::print(gauntlet_report::prospects(&open, terminal_width())),
    })
}

fn verify(ledger: &Ledger) -> Result<Exit, CliError> {
    let own = [(None, ledger.verify()?)];
    let imported = ledger.verify_imported()?;
    let imported = imported.into_iter().map(|(origin, found)| (Some(origin), found));
    let mut exit = Exit::Done;
    for (origin, found) in own.into_iter().chain(imported) {
        let of = origin.map_or_else(String::new, |origin| {
            format!("imported from {}: ", &origin[..8.min(origin.len())])
        });
        match found {
            Verification::Intact { records, head } => sink::line(format_args!(
                "{of}{records} records, all as they were written; the chain ends in {head}"
            ))?,
            Verification::Broken { sequence, breach } => {
                sink::line(format_args!("{of}broken at record {sequence}: {breach}"))?;
                exit = Exit::NotReached;
            }
        }
    }
    Ok(exit)
}

fn verdicts(ledger: &Ledger, wanted: &WantedVerdicts) -> Result<(), CliError> {
    let found = Index::of(ledger)?.verdicts(&Wanted {
        task: wanted.task.clone(),
        kernel: wanted.kernel.clone(),
        client: wanted.client.clone(),
        in_history: false,
        newest: Some(wanted.newest.most()),
    })?;
    wanted.json.deliver_list(&found, || {
        let columns = ["run", "at", "task", "kernel", "digest", "verdict", "speed-up"];
        listing::print(&columns, found.iter().map(told))
    })
}

fn told(one: &Judged) -> Vec<String> {
    let or_nothing = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".to_owned());
    let mark = match (one.interrupted, one.predicted) {
        (true, _) => "interrupted: ",
        (false, true) => "predicted: ",
        (false, false) => "",
    };
    vec![
        one.run.to_string(),
        one.at.strftime("%F %H:%M").to_string(),
        or_nothing(&one.task),
        or_nothing(&one.kernel),
        one.kernel_digest
            .as_deref()
            .map_or("–", |digest| &digest[..8.min(digest.len())])
            .to_owned(),
        format!("{mark}{}", or_nothing(&one.verdict).replace('-', " ")),
        one.speedup.map_or_else(
            || "–".to_owned(),
            |speedup| {
                let [estimate, lower, upper] =
                    [speedup.estimate, speedup.lower, speedup.upper].map(|one| 100.0 * one);
                format!("{estimate:+.1} % [{lower:+.1} … {upper:+.1}]").replace('-', "−")
            },
        ),
    ]
}

fn import(ledger: &Path, other: &Path) -> Result<Exit, CliError> {
    let other = Ledger::open_read_only(other)?;
    let ledger = Ledger::open(ledger)?;
    let imported = ledger.import(&other)?;
    Sources::beside(ledger.path())
        .add(&Sources::beside(other.path()))
        .map_err(|error| {
            CliError::broken(format!(
                "the sources beside {} were not all copied: {error}",
                other.path().display()
            ))
            .with_remedy("see that both folders can be read and written, and import it again")
        })?;
    for one in &imported {
        sink::line(format_args!(
            "{} records of the ledger that begins with {}; its chain goes on apart, and ends in {}",
            one.to - one.from + 1,
            one.origin,
            one.head
        ))?;
    }
    if imported.is_empty() {
        sink::line(format_args!(
            "{} holds nothing that {} does not hold.",
            other.path().display(),
            ledger.path().display()
        ))?;
    }
    Ok(Exit::Done)
}
