//! `gauntlet schedules`.

use std::path::Path;

use gauntlet_schedule::{Schedule, check, words};

use crate::arguments::Schedules;
use crate::commands::{devices, suites};
use crate::exit::Exit;
use crate::listing;
use crate::schedule_text;
use crate::sink::{self, write_json};
use crate::trouble::Trouble;

/// Explains the words of a schedule, or checks some against a device.
pub fn schedules(arguments: &Schedules) -> Result<Exit, Trouble> {
    match &arguments.schedule {
        Some(text) => verify(text, arguments),
        None => explain(arguments.json),
    }
}

fn explain(json: bool) -> Result<Exit, Trouble> {
    let words = words();
    if json {
        write_json(Path::new("-"), &words)?;
        return Ok(Exit::Done);
    }
    let baseline = Schedule::baseline();
    let rows = words.iter().map(|meaning| {
        vec![
            meaning.word.name().to_owned(),
            meaning.accepts.clone(),
            meaning.word.value(&baseline),
            meaning.on_gpu.to_owned(),
            meaning.on_cpu.to_owned(),
        ]
    });
    let head = ["word", "accepts", "baseline", "on a GPU", "on a CPU"];
    listing::print(&head, rows)?;
    Ok(Exit::Done)
}

fn verify(text: &str, arguments: &Schedules) -> Result<Exit, Trouble> {
    let schedule = schedule_text::read(text, &Schedule::baseline())?;
    let device = devices::find(&arguments.device)?;
    let suite = suites::find(&arguments.suite)?;
    let mut violations = Vec::new();
    for case in &suite.benchmark {
        for violation in check(&schedule, &case.problem, &device) {
            if !violations.contains(&violation) {
                violations.push(violation);
            }
        }
    }
    if arguments.json {
        write_json(Path::new("-"), &violations)?;
    } else {
        sink::print(format_args!("{schedule}"))?;
        for violation in &violations {
            sink::print(format_args!("✗ {violation}\n  source: {}", violation.source))?;
        }
        if violations.is_empty() {
            sink::print(format_args!(
                "✓ {} accepts it on every benchmark case of {}",
                device.title, suite.name
            ))?;
        }
    }
    Ok(if violations.is_empty() {
        Exit::Done
    } else {
        Exit::NotReached
    })
}
