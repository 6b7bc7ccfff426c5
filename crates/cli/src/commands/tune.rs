//! `gauntlet tune`.

use std::path::Path;

use gauntlet_device::Device;
use gauntlet_executor::{Limits, Patience};
use gauntlet_lab::Workshop;
use gauntlet_lab::tuning::{TunedCase, Tuning, table, tune as tune_suite};
use gauntlet_schedule::Schedule;
use jiff::Timestamp;
use serde_json::json;

use crate::arguments::{Tune, TuneExecutor};
use crate::calibrations::Calibrations;
use crate::commands::bench::chosen;
use crate::commands::devices;
use crate::commands::run::{cpu_worker, environment, version};
use crate::exit::Exit;
use crate::progress::Progress;
use crate::schedule_text;
use crate::sink;
use crate::trouble::{Trouble, say, terminal_width};

/// Finds the fastest schedule of each problem of a suite and writes them down.
pub fn tune(arguments: &Tune, calibrations: &Calibrations) -> Result<Exit, Trouble> {
    arguments
        .json
        .iter()
        .chain([&arguments.output])
        .try_for_each(|path| sink::check(path))?;
    let suite = chosen(&arguments.suite, &arguments.cases)?;
    let device = calibrations.apply(device(arguments)?)?;
    let baseline = schedule_text::read(&arguments.baseline, &Schedule::baseline())?;
    let workshop = match arguments.executor {
        TuneExecutor::Model => None,
        TuneExecutor::Cpu => Some(Workshop::new(
            cpu_worker(None)?,
            Patience::default(),
            Limits::default(),
        )?),
    };
    if workshop.is_some() && device.calibration.is_none() {
        say(
            "note: this machine is not calibrated, so that the model can hardly tell schedules apart; run `gauntlet calibrate` first\n",
        );
    }
    let tuning = Tuning {
        suite: &suite,
        device: &device,
        workshop: workshop.as_ref(),
        baseline,
        keep: arguments.keep.into(),
        budget: arguments.budget.unsigned_abs(),
    };
    let mut so_far: Vec<TunedCase> = Vec::new();
    let mut unwritten = None;
    let progress = Progress::new();
    let cases = tune_suite(&tuning, &progress, |decided| {
        so_far.push(decided.clone());
        // Written after each case, so that an interruption loses only the case at hand.
        unwritten = write(arguments, &so_far, &device).err();
        progress.tell(&gauntlet_report::tuned_case(decided, terminal_width()));
        Ok(())
    });
    drop(progress);
    let cases = cases?;
    if let Some(trouble) = unwritten {
        return Err(trouble);
    }
    let to_stdout = arguments.json.as_deref().is_some_and(sink::is_stdout);
    if !to_stdout {
        sink::print(gauntlet_report::tuning(&cases, terminal_width()))?;
        sink::print(format_args!("Written to {}.", arguments.output.display()))?;
    }
    if let Some(path) = &arguments.json {
        let result = json!({
            "suite": suite.name, "device": device.name, "executor": executor(arguments), "version": version(),
            "predicted": arguments.executor == TuneExecutor::Model, "environment": environment(), "cases": cases,
        });
        sink::write_json(path, &result)?;
    }
    Ok(Exit::Done)
}

fn device(arguments: &Tune) -> Result<Device, Trouble> {
    match (arguments.executor, arguments.device.as_deref()) {
        (TuneExecutor::Model, Some(name)) => devices::find(name),
        (TuneExecutor::Model, None) => Err(Trouble::bad_input(
            "`--executor model` without a device",
            "name one with --device; `gauntlet devices` lists them",
        )),
        (TuneExecutor::Cpu, None | Some("host")) => Ok(Device::host()),
        (TuneExecutor::Cpu, Some(name)) => Err(Trouble::bad_input(
            format!("`{name}` cannot be measured here: the cpu executor runs on this machine"),
            "leave --device out, or add --executor model for what the model expects of it",
        )),
    }
}

fn executor(arguments: &Tune) -> &'static str {
    match arguments.executor {
        TuneExecutor::Cpu => "cpu",
        TuneExecutor::Model => "model",
    }
}

fn write(arguments: &Tune, cases: &[TunedCase], device: &Device) -> Result<(), Trouble> {
    let made = Timestamp::now().to_string();
    let table = table(cases, &device.name, executor(arguments), &version(), &made);
    let text = table
        .to_toml()
        .map_err(|error| Trouble::broken(error.to_string()))?;
    sink::write(Path::new(&arguments.output), text.as_bytes())
}
