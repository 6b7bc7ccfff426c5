//! `gauntlet suites`.

use std::path::Path;

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
            show(&find_with(name, &options)?, &arguments.json)?;
        }
        None => list(&arguments.json)?,
    }
    Ok(Exit::Done)
}

/// A suite by name or file, or the suite of a task in Python.
pub fn find(name: &str) -> Result<Suite, CliError> {
    find_with(name, &Options::default())
}

/// The same; the options say which cases of a task in Python are wanted, and what stands in for its reference.
pub fn find_with(name: &str, options: &Options) -> Result<Suite, CliError> {
    if gauntlet_python_task::is_task(Path::new(name)) {
        return Ok(gauntlet_python_task::open(Path::new(name), options)?);
    }
    let found = if name.ends_with(".toml") {
        gauntlet_families::load_suite(Path::new(name))
    } else {
        gauntlet_families::suite(name)
    };
    Ok(found.map_err(|error| {
        gauntlet_tournament::FileError::of_suite(error, |message, remedy| {
            gauntlet_tournament::FileError::whole(Path::new(name), message, remedy)
        })
    })?)
}

fn list(json: &JsonFile) -> Result<(), CliError> {
    let suites = gauntlet_families::suite_names()
        .into_iter()
        .map(find)
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
