//! `gauntlet compare --more`: pairs are added to a comparison that ended undecided.
//!
//! The file holds the whole comparison, so it is named in place of kernels and task. It is replaced, so that a finished run
//! cannot be left out of the verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gauntlet_judge::{ComparisonReport, Conditions, Kept, Observations, Observer, Regime, Scope};

use crate::arguments::{Compare, MAX_PAIRS, Measured, MeasuredExecutor, RegimeName, ScopeName, Setup};
use crate::commands::contest::{Contest, deliver};
use crate::commands::cuda::{GPU_NEIGHBOURS, GPU_UUID};
use crate::commands::report;
use crate::commands::run::{HOST, JOB, version};
use crate::documents::Versioned;
use crate::error::CliError;
use crate::exit::Exit;
use crate::in_process::undisturbed;
use crate::interrupt;
use crate::machine::Hold;
use crate::progress::Progress;
use crate::recording::Recorder;
use crate::sink;

/// Adds pairs to the comparison in a file.
pub fn more(arguments: &Compare, pairs: usize) -> Result<Exit, CliError> {
    arguments.contest.files.check()?;
    let file = Path::new(&arguments.baseline);
    interrupt::keeps(format!("{} is as it was", file.display()));
    let sources = report::comparison(file)?.kept.map(|kept| kept.conditions.files);
    let recording = &arguments.contest.recording;
    let recorder = Recorder::open(
        &recording.ledger,
        recording.no_ledger,
        sources.unwrap_or_default(),
    )?;
    let progress = Progress::new();
    let report = added(file, pairs, &progress)?;
    drop(progress);
    deliver(&report, &arguments.contest, Some(file), &recorder)
}

/// The same without telling anybody. If a kernel failed meanwhile, there is nothing to add, and the file stays as it was.
pub fn added(file: &Path, pairs: usize, observer: &dyn Observer) -> Result<ComparisonReport, CliError> {
    let before = report::comparison(file)?;
    let kept = undecided(file, &before)?;
    sink::check(file)?;
    // First, since files may change while another program has the machine.
    let _hold = Hold::take(if kept.conditions.on_gpu {
        MeasuredExecutor::Cuda
    } else {
        MeasuredExecutor::Cpu
    })?;
    if report::comparison(file)? != before {
        return Err(CliError::bad_input(
            format!("{} changed while this waited for the machine", file.display()),
            "add the pairs to what it holds now",
        ));
    }
    let texts = [
        gauntlet_entrants::read(&before.baseline.text)?,
        gauntlet_entrants::read(&before.candidate.text)?,
    ];
    let contest = Contest::of(&setup_of(&kept.conditions), texts)?;
    let changes = changes(&before, &kept.conditions, &contest);
    if !changes.is_empty() {
        return Err(CliError::bad_input(
            format!(
                "{} was measured under different conditions, so its times cannot be combined with new ones: {}",
                file.display(),
                changes.join("; ")
            ),
            "restore them, or compare anew",
        ));
    }
    let requests = interrupt::requests();
    let report = contest.going_on(&before, Some(pairs), observer);
    undisturbed(requests)?;
    let report = report?;
    if report.comparison.is_some() {
        sink::write_json(file, &Versioned::of(&report))?;
    }
    Ok(report)
}

/// What was kept of a result, if pairs may be added.
fn undecided<'r>(file: &Path, report: &'r ComparisonReport) -> Result<&'r Kept, CliError> {
    let file = file.display();
    let refused = |why: String, remedy: &str| Err(CliError::bad_input(why, remedy));
    let (Some(comparison), Some(kept)) = (&report.comparison, &report.kept) else {
        return refused(
            format!(
                "{file} holds no pairs that more could be added to ({}: {})",
                report.verdict, report.reason
            ),
            "compare two kernels with `--json FILE`; results of other programs and of versions before `--more` hold too little",
        );
    };
    if !comparison.is_open() {
        return refused(
            format!(
                "{file} is decided, and more pairs may not change that: {}, {}",
                report.verdict, report.reason
            ),
            "`gauntlet report` shows it; a new comparison stands for itself",
        );
    }
    if !kept.conditions.measurement.open_ended {
        return refused(
            format!(
                "{file} was measured with --pairs, whose looks share all of the error, so that none is left for more"
            ),
            "compare anew, without --pairs or with more of them",
        );
    }
    if !kept.observations.belong_to(comparison) {
        return refused(
            format!("the data kept in {file} does not match its pairs: it was changed after it was written"),
            "compare anew",
        );
    }
    Ok(kept)
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    // Only a null byte cannot be quoted, and no path has one.
    shlex::try_quote(&text).map_or(text.clone(), String::from)
}

/// What measures under these conditions.
fn setup_of(conditions: &Conditions) -> Setup {
    let measurement = &conditions.measurement;
    Setup {
        task: Some(conditions.task.clone()),
        cases: conditions.chosen.clone(),
        measured: Measured {
            executor: Some(if conditions.on_gpu {
                MeasuredExecutor::Cuda
            } else {
                MeasuredExecutor::Cpu
            }),
            device: conditions.device.clone(),
        },
        budget: measurement.budget,
        pairs: None,
        warm: measurement.warm,
        regime: match measurement.regime {
            Regime::Isolated => RegimeName::Isolated,
            Regime::Sustained => RegimeName::Sustained,
        },
        scope: match measurement.scope {
            Scope::Device => ScopeName::Device,
            Scope::Call => ScopeName::Call,
        },
        activity: measurement.activity,
        quick: !measurement.trust.is_watched(),
    }
}

/// Where the driver found a card, which says nothing about the card.
const PLACE_OF_A_CARD: [&str; 2] = ["gpu-pci-bus", "GAUNTLET_GPU"];

/// What differs between two environments, but for the names of places: a card keeps its speed in another slot, and a machine under
/// another name. Another card is another machine, whatever slot it is in.
pub fn changed_surroundings(was: &BTreeMap<String, String>, is: &BTreeMap<String, String>) -> Vec<String> {
    let same_card = was.contains_key(GPU_UUID) && was.get(GPU_UUID) == is.get(GPU_UUID);
    differences(was, is)
        .filter(|(name, ..)| ![HOST, JOB, GPU_NEIGHBOURS].contains(name))
        .filter(|(name, ..)| !(same_card && PLACE_OF_A_CARD.contains(name)))
        .map(|(name, was, is)| format!("{name} was {was} and is {is}"))
        .collect()
}

/// What differs from the conditions of a result, each in a few words.
pub fn changes(before: &ComparisonReport, was: &Conditions, contest: &Contest) -> Vec<String> {
    let is = &contest.conditions;
    let mut changes = Vec::new();
    if before.version != version() {
        changes.push(format!("gauntlet was {} and is {}", before.version, version()));
    }
    changes.extend(changed_surroundings(&before.environment, &contest.environment()));
    for (file, was, is) in differences(&was.files, &is.files) {
        changes.push(match (was, is) {
            ("absent", _) => format!("{file} is new"),
            (_, "absent") => format!("{file} is gone"),
            _ => format!("{file} has changed"),
        });
    }
    for (same, what) in [
        (
            was.program == is.program && !is.program.is_empty(),
            "the program is another build, or cannot be read",
        ),
        (was.cases == is.cases, "the cases of the task have changed"),
        (
            was.measurement == is.measurement,
            "the plan of the measurement has changed",
        ),
        (
            before.criteria == contest.setting.criteria,
            "the criteria have changed",
        ),
    ] {
        if !same {
            changes.push(what.to_owned());
        }
    }
    changes
}

/// The names that two maps give different values, with both values.
fn differences<'m>(
    was: &'m BTreeMap<String, String>,
    is: &'m BTreeMap<String, String>,
) -> impl Iterator<Item = (&'m str, &'m str, &'m str)> {
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let value = |map: &'m BTreeMap<String, String>, name| map.get(name).map_or("absent", String::as_str);
    let both = names
        .into_iter()
        .map(move |name| (name.as_str(), value(was, name), value(is, name)));
    both.filter(|(_, was, is)| was != is)
}

/// When which pairs were measured, if not all in one go.
pub fn batches(observations: &Observations) -> Option<String> {
    let batches = &observations.batches;
    let each = batches
        .iter()
        .map(|batch| format!("{} from {}", batch.pairs, batch.began.strftime("%F %T UTC")));
    let said = format!(
        "the pairs were measured in {} parts: {}",
        batches.len(),
        each.collect::<Vec<_>>().join(", ")
    );
    (batches.len() > 1).then_some(said)
}

/// Tells how pairs are added to a comparison if it is undecided. `file` holds it, unless it is standard output.
pub fn tell(report: &ComparisonReport, file: Option<&Path>) -> Result<(), CliError> {
    let file = file.filter(|file| !sink::is_stdout(file));
    let (Some(comparison), Some(kept)) = (&report.comparison, &report.kept) else {
        return Ok(());
    };
    if !comparison.is_open() || !kept.conditions.measurement.open_ended {
        return Ok(());
    }
    let pairs = kept.observations.pairs();
    let needed = comparison.needed_pairs().filter(|needed| *needed > pairs);
    let enough = needed.unwrap_or_else(|| kept.conditions.measurement.next_look(pairs));
    let more = (enough - pairs).min(MAX_PAIRS);
    sink::print(match file {
        Some(file) => format!(
            "`gauntlet compare --more {more} {}` adds pairs to this comparison.",
            quoted(file)
        ),
        None => format!(
            "This result was not saved. With --json FILE, `gauntlet compare --more {more} FILE` adds pairs to it."
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn the_same_card_in_another_slot_is_the_same_and_another_card_in_the_same_slot_is_not() {
        let was = environment(&[("gpu-uuid", "GPU-a"), ("gpu-pci-bus", "0000:01"), ("host", "n1")]);
        let moved = environment(&[
            ("gpu-uuid", "GPU-a"),
            ("gpu-pci-bus", "0000:02"),
            ("GAUNTLET_GPU", "1"),
            ("host", "n2"),
            ("job", "Slurm 7"),
            (GPU_NEIGHBOURS, "3 of 7 computed when this began"),
        ]);
        assert_eq!(changed_surroundings(&was, &moved), Vec::<String>::new());
        let other = environment(&[("gpu-uuid", "GPU-b"), ("gpu-pci-bus", "0000:01"), ("host", "n1")]);
        assert_eq!(
            changed_surroundings(&was, &other),
            ["gpu-uuid was GPU-a and is GPU-b"]
        );
        let unknown = environment(&[("gpu-pci-bus", "0000:02"), ("host", "n1")]);
        assert_eq!(
            changed_surroundings(&was, &unknown).len(),
            2,
            "of a card without a name its slot is all that is known"
        );
    }
}
