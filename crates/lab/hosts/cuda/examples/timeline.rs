//! Records what the roles of each block do during a call, on a Hopper GPU.
//!
//! `cargo run --release -p gauntlet-host-cuda --example timeline -- --case NAME --schedule NAME [--json FILE]`
//!
//! The names are the same as for `benchmark`. A table of the roles goes to standard output; the file opens in Perfetto
//! and Chrome, or is a picture if its name ends in `.svg`.

#[path = "benchmark/cases.rs"]
mod cases;
#[expect(dead_code, reason = "a timeline describes nothing of the machine but its GPU")]
#[path = "support/machine.rs"]
mod machine;
#[path = "benchmark/schedules.rs"]
mod schedules;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use gauntlet_families::operations;
use gauntlet_host_cuda::timeline;
use gauntlet_report::{duration, timeline_picture, timeline_roles, trace};
use gauntlet_task::InputKind;

/// The most copies of the operands that calls rotate over before the traced one; otherwise as many as take twice the
/// level-2 cache.
const MOST_COPIES: usize = 64;

/// Columns of the table.
const WIDTH: usize = 140;

/// Records what the roles of each block do during a call.
#[derive(Parser)]
struct Arguments {
    /// A case, such as group-gemm/case-1
    #[arg(long, value_name = "NAME")]
    case: String,
    /// A step of the staircase, `automatic`, or a schedule as TOML, given inline or as a file
    #[arg(long, value_name = "NAME", default_value = schedules::AUTOMATIC)]
    schedule: String,
    /// Where to write the timeline, as a trace or (`.svg`) as a picture
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let [case] = &cases::named(std::slice::from_ref(&arguments.case))?[..] else {
        return Err(format!("`{}` is more than one case", arguments.case).into());
    };
    let engine = machine::engine()?;
    let device = engine.device();
    let step = schedules::named(&arguments.schedule, &case.problem, device.target()?)?;
    let bytes = case.problem.bytes().max(1) as usize;
    let copies = (2 * device.l2_bytes).div_ceil(bytes).clamp(2, MOST_COPIES);
    let inputs = [operations::generate(&case.problem, InputKind::Wide, 1)];
    let operands = engine.load(&case.problem, &inputs, copies)?;
    let timeline = timeline(&engine.trace(&case.problem, &step.schedule, &operands)?);
    let title = format!("{} on {}: {}", case.name, device.name, duration(timeline.seconds));
    // `anstream` omits styles if the output is not a terminal.
    anstream::println!(
        "{title}\n{}\n\n{}",
        step.schedule,
        timeline_roles(&timeline, WIDTH)
    );
    let Some(path) = &arguments.json else {
        return Ok(());
    };
    let text = match path.extension().is_some_and(|ending| ending == "svg") {
        true => timeline_picture(&timeline, &title, &step.schedule.to_string()),
        false => serde_json::to_string(&trace(&timeline, &format!("{title}; {}", step.schedule)))?,
    };
    std::fs::write(path, text)
        .map_err(|error| format!("{} cannot be written: {error}", path.display()).into())
}
