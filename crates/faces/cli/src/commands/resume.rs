//! Comparisons that were interrupted: what is kept of them, and how they go on.

use std::path::Path;

use gauntlet_judge::{ComparisonReport, Observer};

use crate::arguments;
use crate::commands::contest::{Contest, deliver};
use crate::commands::{more, report};
use crate::documents::Versioned;
use crate::error::{CliError, say_line};
use crate::exit::Exit;
use crate::interrupt;
use crate::recording::Recorder;
use crate::sink;

/// Measures two kernels, or goes on with what was interrupted, and delivers what was found, or what there is of it after an
/// interrupt. `measure` is for a comparison that begins.
pub fn measured(
    contest: &Contest,
    arguments: &arguments::Contest,
    observer: impl FnOnce() -> Box<dyn Observer>,
    measure: impl FnOnce(&Contest, &dyn Observer) -> Result<ComparisonReport, CliError>,
) -> Result<Exit, CliError> {
    let mut recorder = contest.recorder(&arguments.recording)?;
    let before = match arguments.resume {
        true => interrupted(&mut recorder, arguments.files.json.as_deref(), contest)?,
        false => None,
    };
    let found = interrupt::keeping(
        || {
            let _hold = contest.hold()?;
            let observer = observer();
            match &before {
                Some(before) => contest.going_on(before, None, &*observer),
                None => measure(contest, &*observer),
            }
        },
        |found| found.comparison.is_some(),
    )?;
    match found {
        None => Ok(Exit::Interrupted),
        Some(found) if found.is_interrupted() => keep(&found, arguments, &recorder),
        Some(found) => deliver(&found, arguments, None, &recorder),
    }
}

/// What was found of the same kernels under the same conditions before it was interrupted, by the ledger or by the file of `--json`.
fn interrupted(
    recorder: &mut Recorder,
    file: Option<&Path>,
    contest: &Contest,
) -> Result<Option<ComparisonReport>, CliError> {
    let recorded = recorder.interrupted()?.map(|found| found.document);
    let recorded = recorded.and_then(|document| serde_json::from_value(document).ok());
    let written = || report::comparison(file.filter(|file| file.is_file())?).ok();
    let found: Option<ComparisonReport> = recorded.or_else(written).filter(ComparisonReport::is_interrupted);
    let Some(found) = found else {
        recorder.begin_anew();
        say_line("note: nothing of these kernels was interrupted; a new comparison begins");
        return Ok(None);
    };
    let differences = differences(&found, contest);
    if !differences.is_empty() {
        recorder.begin_anew();
        say_line(format_args!(
            "note: what was interrupted was measured under other conditions ({}); a new comparison begins",
            differences.join("; ")
        ));
        return Ok(None);
    }
    let pairs = found.kept.as_ref().map_or(0, |kept| kept.observations.pairs());
    say_line(format_args!("Going on after {pairs} pairs of processes."));
    interrupt::keeps(format!(
        "the {pairs} pairs of processes of before are kept where they were"
    ));
    Ok(Some(found))
}

/// What keeps a comparison from going on with what was found.
fn differences(found: &ComparisonReport, contest: &Contest) -> Vec<String> {
    let Some(kept) = &found.kept else {
        return vec!["no pairs are kept of it".to_owned()];
    };
    let mut differences = more::changes(found, &kept.conditions, contest);
    let [baseline, candidate] = contest.texts.each_ref().map(ToString::to_string);
    let are_the_same = found.baseline.text == baseline && found.candidate.text == candidate;
    if differences.is_empty() && !(are_the_same && kept.conditions == contest.conditions) {
        differences.push("kernels, task or cases are others".to_owned());
    }
    differences
}

/// Writes what there is, and says where. Only forms that can be read again are written: nothing is decided that could be shown.
fn keep(
    found: &ComparisonReport,
    arguments: &arguments::Contest,
    recorder: &Recorder,
) -> Result<Exit, CliError> {
    let json = arguments.files.json.as_deref();
    let written = json.map_or(Ok(()), |path| sink::write_json(path, &Versioned::of(found)));
    let recorded = recorder.record_comparison(found);
    let mut places: Vec<String> = Vec::new();
    if let (Ok(()), Some(path)) = (&written, json) {
        places.push(match sink::is_stdout(path) {
            true => "standard output".to_owned(),
            false => path.display().to_string(),
        });
    }
    if let Ok(Some((ledger, run))) = &recorded {
        places.push(format!("{} as run {run}", ledger.display()));
    }
    say_line(match places.is_empty() {
        true => format!("{}; neither a ledger nor --json keeps them", found.reason),
        false => format!(
            "{}, which are kept in {}; the same with --resume goes on with them",
            found.reason,
            places.join(" and in ")
        ),
    });
    sink::both(written, recorded.map(drop))?;
    Ok(Exit::Interrupted)
}
