//! `gauntlet suites`.

use gauntlet_entrants::{find_task, find_task_with};
use gauntlet_python_task::Options;
use gauntlet_task::{Case, Suite};

use crate::arguments::{JsonFile, Suites};
use crate::error::CliError;
use crate::exit::Exit;
use crate::listing;
use crate::sink;

/// Lists suites, or shows one.
pub fn suites(arguments: &Suites) -> Result<Exit, CliError> {
    match &arguments.suite {
        Some(name) => {
            let options = Options {
                lists_only: true,
                ..Options::default()
            };
            show(&find_task_with(name, &options)?, &arguments.json)?;
        }
        None => list(&arguments.json)?,
    }
    Ok(Exit::Done)
}

fn list(json: &JsonFile) -> Result<(), CliError> {
    let suites = gauntlet_families::suite_names()
        .into_iter()
        .map(find_task)
        .collect::<Result<Vec<_>, _>>()?;
    json.check()?;
    json.deliver_list(&suites, || tell_list(&suites))
}

fn tell_list(suites: &[Suite]) -> Result<(), CliError> {
    let rows = suites.iter().map(|suite| {
        let counts = (
            suite.correctness.len().to_string(),
            suite.benchmark.len().to_string(),
        );
        vec![suite.name.clone(), counts.0, counts.1, suite.description.clone()]
    });
    let head = ["suite", "correctness", "benchmark", "what it is"];
    listing::print(&head, rows)?;
    sink::line(format_args!(
        "`gauntlet suites NAME` shows the cases; a file of the same form makes a suite of your own."
    ))?;
    Ok(())
}

fn show(suite: &Suite, json: &JsonFile) -> Result<(), CliError> {
    json.check()?;
    json.deliver(suite, || tell(suite))
}

fn tell(suite: &Suite) -> Result<(), CliError> {
    sink::line(format_args!("{} — {}", suite.name, suite.description))?;
    let row = |use_of: &str, case: &Case| {
        vec![
            use_of.to_owned(),
            case.name.clone(),
            case.sizes.to_string(),
            case.sizes
                .flops()
                .map_or_else(|| "–".to_owned(), |flops| format!("{:.3}", flops as f64 / 1e9)),
            match case.sizes.bytes() {
                0 => "–".to_owned(),
                bytes => format!("{:.1}", bytes as f64 / 1e6),
            },
        ]
    };
    let rows = suite
        .correctness
        .iter()
        .map(|case| row("correctness", case))
        .chain(suite.benchmark.iter().map(|case| row("benchmark", case)));
    let head = ["for", "case", "problem", "GFLOP", "MB"];
    listing::print(&head, rows)?;
    tell_notes(suite)
}

/// Prints the notes of a suite.
pub fn tell_notes(suite: &Suite) -> Result<(), CliError> {
    for note in &suite.notes {
        sink::line(format_args!("note: {note}"))?;
    }
    Ok(())
}
