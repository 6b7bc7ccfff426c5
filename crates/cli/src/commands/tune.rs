//! `gauntlet tune`.

use std::path::Path;

use gauntlet_cuda::plan::plan;
use gauntlet_device::Device;
use gauntlet_executor::protocol::Description;
use gauntlet_lab::Workshop;
use gauntlet_lab::tuning::{TunedCase, Tuning, table, tune as tune_suite};
use gauntlet_problem::Problem;
use gauntlet_schedule::Schedule;
use jiff::Timestamp;
use serde_json::json;

use crate::arguments::{Measured, MeasuredExecutor, Tune, TuneExecutor};
use crate::calibrations::Calibrations;
use crate::commands::bench::chosen;
use crate::commands::cuda::{Place, environment_with};
use crate::commands::devices;
use crate::commands::run::version;
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
    let (device, workshop, gpu) = place(arguments)?;
    let device = calibrations.apply(device)?;
    let baseline = schedule_text::read(&arguments.baseline, &Schedule::baseline())?;
    if arguments.executor == TuneExecutor::Cpu && device.calibration.is_none() {
        say(
            "note: this machine is not calibrated, so that the model can hardly tell schedules apart; run `gauntlet calibrate` first\n",
        );
    }
    let tuning = Tuning {
        suite: &suite,
        device: &device,
        workshop: workshop.as_ref(),
        baseline,
        builds: &builds(arguments.executor, &device),
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
            "predicted": arguments.executor == TuneExecutor::Model, "environment": environment_with(gpu.as_ref()), "cases": cases,
        });
        sink::write_json(path, &result)?;
    }
    Ok(Exit::Done)
}

/// What is tuned for, and what measures there, if anything does.
fn place(arguments: &Tune) -> Result<(Device, Option<Workshop>, Option<Description>), Trouble> {
    let executor = match (arguments.executor, arguments.device.as_deref()) {
        (TuneExecutor::Model, Some(name)) => return Ok((devices::find(name)?, None, None)),
        (TuneExecutor::Model, None) => {
            return Err(Trouble::bad_input(
                "`--executor model` without a device",
                "name one with --device; `gauntlet devices` lists them",
            ));
        }
        (TuneExecutor::Cpu, _) => MeasuredExecutor::Cpu,
        (TuneExecutor::Cuda, _) => MeasuredExecutor::Cuda,
    };
    let place = Place::of(&Measured {
        executor,
        device: arguments.device.clone(),
    })?;
    Ok((place.device, Some(place.workshop), place.gpu))
}

/// Whether an executor has a kernel for a schedule that the device accepts: a GPU's kernels know fewer words together
/// than its instructions allow.
fn builds(executor: TuneExecutor, device: &Device) -> impl Fn(&Problem, &Schedule) -> bool + Sync {
    let processors = device.processors.get() as u32;
    move |problem, schedule| executor != TuneExecutor::Cuda || plan(problem, schedule, processors).is_ok()
}

fn executor(arguments: &Tune) -> &'static str {
    match arguments.executor {
        TuneExecutor::Cpu => "cpu",
        TuneExecutor::Cuda => "cuda",
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
