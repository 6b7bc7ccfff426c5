//! `gauntlet tune`.

mod kernel;
pub mod replay;

use std::collections::BTreeMap;

use gauntlet_device::{Accuracy, Device, on_record};
use gauntlet_judge::{Measurement, Workshop};
use gauntlet_kernels_cuda::plan::{Target, plan};
use gauntlet_parameters::Parameters;
use gauntlet_problems::Schedule;
use gauntlet_task::{Sizes, Suite};
use gauntlet_tuning::{KernelSpace, TunedCase, Tuning, table, tune as tune_suite};
use gauntlet_worker::protocol::Description;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use self::kernel::TunedKernel;
use crate::arguments::{Measured, MeasuredExecutor, Tune, TuneExecutor};
use crate::commands::contest::chosen;
use crate::commands::cuda::{Place, environment_with};
use crate::commands::devices;
use crate::commands::more::changed_surroundings;
use crate::commands::run::version;
use crate::documents::{Document, Versioned};
use crate::error::{CliError, say_line, terminal_width};
use crate::exit::Exit;
use crate::interrupt;
use crate::machine::Hold;
use crate::progress::Progress;
use crate::recording::{Found, Recorder, tell_record};
use crate::sink;

/// The result of `gauntlet tune`.
#[derive(Serialize, JsonSchema)]
pub struct Tuned {
    /// The suite.
    suite: String,
    /// The device that the schedules were chosen for.
    device: String,
    /// What ran the schedules: `cpu`, `cuda` or `model`.
    executor: &'static str,
    /// The version of the program.
    version: String,
    /// Whether the model chose and nothing ran.
    predicted: bool,
    /// What the times depend on: processor, system, driver.
    environment: BTreeMap<String, String>,
    /// Each case with its fastest schedule.
    cases: Vec<TunedCase>,
    /// Whether it was interrupted before all cases were tuned (`--resume` tunes the others).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
}

impl Document for Tuned {
    const NAME: &'static str = "tuning";
    const VERSION: u32 = 1;
}

/// Finds the fastest schedule of each problem of a suite and writes a dispatch table.
pub fn tune(arguments: &Tune) -> Result<Exit, CliError> {
    if let Some(file) = &arguments.replay.file {
        let evaluations = arguments.evaluations.into();
        return replay::replay(file, &arguments.replay, evaluations, arguments.json.as_deref());
    }
    arguments
        .json
        .iter()
        .chain([&arguments.output])
        .try_for_each(|path| sink::check(path))?;
    let suite = chosen(&arguments.suite, &arguments.cases)?;
    let kernel = arguments
        .kernel
        .as_deref()
        .map(|text| TunedKernel::open(text, &suite, arguments.executor))
        .transpose()?;
    let (given, parameters) = match &kernel {
        Some(kernel) => (kernel.given.clone(), kernel.own.table().clone()),
        None => (Parameters::new(), suite.parameters()),
    };
    let baseline = gauntlet_entrants::read_parameters(&arguments.baseline, &given, &parameters)?;
    let (device, workshop, gpu) = place(arguments)?;
    let own = kernel.as_ref().map(|kernel| {
        let candidate = |point: &Parameters| kernel.at(point);
        let points = |sizes: &Sizes| kernel.own.points(sizes);
        (candidate, points)
    });
    let accuracy = Accuracy::of_all(
        &device,
        suite.benchmark.iter().map(|case| case.sizes.task().name()),
    );
    if kernel.is_none() && arguments.executor == TuneExecutor::Cpu {
        say_line(format_args!(
            "note: there is no model of CPUs: schedules with the fewest changes from the default are measured, --keep of them"
        ));
    } else if kernel.is_none() && !accuracy.is_some_and(|accuracy| accuracy.suffices()) {
        let advice = match arguments.executor {
            TuneExecutor::Model => "take the table for a guess, and measure before using it",
            TuneExecutor::Cpu | TuneExecutor::Cuda => {
                "its order chooses what is measured, so measure more of it with --keep"
            }
        };
        say_line(format_args!("note: {}; {advice}", on_record(accuracy.as_ref())));
    }
    if arguments.quick {
        say_line(format_args!("note: quick pairs are not watched for cheats"));
    }
    let text = kernel.as_ref().map(|kernel| kernel.text.clone());
    let sources = gauntlet_entrants::digests(
        &arguments.suite,
        &suite,
        text.as_slice(),
        arguments.device.as_deref(),
    );
    let mut recorder = Recorder::open(&arguments.ledger, arguments.no_ledger, sources)?;
    let before = match arguments.resume {
        true => tuned_before(&mut recorder, &suite, &environment_with(gpu.as_ref()))?,
        false => Vec::new(),
    };
    let tuning = Tuning {
        suite: &suite,
        device: &device,
        workshop: workshop.as_ref(),
        baseline,
        tuned: &before,
        builds: &builds(arguments.executor, &device),
        kernel: own.as_ref().map(|(candidate, points)| KernelSpace {
            table: &parameters,
            candidate,
            points,
            seed: arguments.seed,
            evaluations: arguments.evaluations.into(),
        }),
        keep: arguments.keep.into(),
        measurement: match arguments.quick {
            true => Measurement::quick(),
            false => Measurement::default(),
        },
        budget: arguments.budget.unsigned_abs(),
    };
    let mut so_far: Vec<TunedCase> = before.clone();
    let output = &arguments.output;
    let mut unwritten = Ok(None);
    let measure = || {
        let _hold = measured(arguments.executor).map(Hold::take).transpose()?;
        let progress = Progress::new();
        let cases = tune_suite(&tuning, &progress, |decided| {
            so_far.push(decided.clone());
            // Written after each case, so that a kill loses only the current case. If writing fails now, it is tried again after the
            // next case.
            unwritten = toml(arguments, &so_far, &device)
                .map(|text| sink::put(output, text.as_bytes()).is_err().then_some(text));
            if let Ok(None) = unwritten {
                interrupt::keeps(format!("the cases decided so far are in {}", output.display()));
            }
            progress.tell(&gauntlet_report::tuned_case(decided, terminal_width()));
            Ok(())
        });
        cases.map_err(CliError::from)
    };
    let cases = interrupt::keeping(measure, |cases| !cases.is_empty());
    let written = unwritten.and_then(|text| text.map_or(Ok(()), |text| sink::write(output, text.as_bytes())));
    let is_written = written.is_ok();
    let delivered = cases.and_then(|cases| {
        let Some(cases) = cases else {
            return Ok(Exit::Interrupted);
        };
        let result = Tuned {
            interrupted: cases.len() < suite.benchmark.len(),
            suite: suite.name.clone(),
            device: device.name.clone(),
            executor: executor(arguments),
            version: version(),
            predicted: arguments.executor == TuneExecutor::Model,
            environment: environment_with(gpu.as_ref()),
            cases,
        };
        let recorded = recorder.record(found(&result, arguments, &recorder), &result);
        let delivered = sink::deliver(arguments.json.as_deref(), &Versioned::of(&result), || {
            sink::print(gauntlet_report::tuning(&result.cases, terminal_width()))?;
            if is_written {
                sink::line(format_args!("Written to {}.", output.display()))?;
            }
            tell_record(&recorded)
        });
        let has_record = matches!(recorded, Ok(Some(_)));
        sink::both(delivered, recorded.map(drop))?;
        if !result.interrupted {
            return Ok(Exit::Done);
        }
        say_line(format_args!(
            "interrupted: {} of {} cases are tuned{}",
            result.cases.len(),
            suite.benchmark.len(),
            if has_record {
                "; the same with --resume tunes the others"
            } else {
                ""
            }
        ));
        Ok(Exit::Interrupted)
    });
    match delivered {
        Ok(exit) => written.map(|()| exit),
        Err(error) => sink::both(written, Err(error)).map(|()| Exit::Broken),
    }
}

/// The cases that were tuned before the same command was interrupted.
fn tuned_before(
    recorder: &mut Recorder,
    suite: &Suite,
    environment: &BTreeMap<String, String>,
) -> Result<Vec<TunedCase>, CliError> {
    let found = recorder.interrupted()?;
    // Times of another machine say nothing of this one.
    let was: Option<BTreeMap<String, String>> = found
        .as_ref()
        .and_then(|found| serde_json::from_value(found.document["environment"].clone()).ok());
    let changes = was.map(|was| changed_surroundings(&was, environment));
    if let Some(changes) = changes.filter(|changes| !changes.is_empty()) {
        recorder.begin_anew();
        say_line(format_args!(
            "note: what was interrupted was tuned elsewhere, so this begins anew: {}",
            changes.join("; ")
        ));
        return Ok(Vec::new());
    }
    let written = found
        .iter()
        .flat_map(|found| found.document["cases"].as_array().into_iter().flatten());
    let recalled = written.filter_map(|one| {
        let case = suite
            .benchmark
            .iter()
            .find(|case| one["case"] == case.name.as_str())?;
        TunedCase::recalled(one, case)
    });
    let recalled: Vec<TunedCase> = recalled.collect();
    say_line(match recalled.len() {
        0 => "note: nothing of this tuning was interrupted; it begins".to_owned(),
        known => format!("Going on after {known} cases."),
    });
    Ok(recalled)
}

/// What the record says of a tuning.
fn found(result: &Tuned, arguments: &Tune, recorder: &Recorder) -> Found {
    let text = arguments.kernel.as_ref().unwrap_or(&arguments.baseline);
    Found {
        task: result.suite.clone(),
        kernels: vec![recorder.kernel(text)],
        verdict: None,
        reason: format!("cases tuned: {}", result.cases.len()),
        speedup: None,
        interrupted: result.interrupted,
    }
}

/// The device to tune for, and the workers that measure, if any.
fn place(arguments: &Tune) -> Result<(Device, Option<Workshop>, Option<Description>), CliError> {
    let Some(executor) = measured(arguments.executor) else {
        let Some(name) = arguments.device.as_deref() else {
            return Err(CliError::bad_input(
                "`--executor model` without a device",
                "name one with --device; `gauntlet devices` lists them",
            ));
        };
        return Ok((devices::find(name)?, None, None));
    };
    let place = Place::of(&Measured {
        executor: Some(executor),
        device: arguments.device.clone(),
    })?;
    Ok((place.device, Some(place.workshop), place.gpu))
}

/// The executor that measures, if any.
fn measured(executor: TuneExecutor) -> Option<MeasuredExecutor> {
    match executor {
        TuneExecutor::Cpu => Some(MeasuredExecutor::Cpu),
        TuneExecutor::Cuda => Some(MeasuredExecutor::Cuda),
        TuneExecutor::Model => None,
    }
}

/// Whether an executor has a kernel for a schedule that the device accepts: the built-in GPU kernels support fewer
/// combinations of parameters than the GPU's instructions allow.
fn builds(executor: TuneExecutor, device: &Device) -> impl Fn(&Sizes, &Parameters) -> bool + Sync {
    let target = Target::of(device);
    move |sizes, parameters| {
        let schedule = Schedule::among(parameters).ok();
        let has_plan = |operation| {
            let of = schedule.as_ref().zip(target);
            of.is_some_and(|(schedule, target)| plan(operation, schedule, target).is_ok())
        };
        executor != TuneExecutor::Cuda || gauntlet_tiled_family::operation(sizes).is_some_and(has_plan)
    }
}

fn executor(arguments: &Tune) -> &'static str {
    match arguments.executor {
        TuneExecutor::Cpu => "cpu",
        TuneExecutor::Cuda => "cuda",
        TuneExecutor::Model => "model",
    }
}

/// The dispatch table of the cases so far.
fn toml(arguments: &Tune, cases: &[TunedCase], device: &Device) -> Result<String, CliError> {
    let made = Timestamp::now().to_string();
    let table = table(cases, &device.name, executor(arguments), &version(), &made);
    table
        .to_toml()
        .map_err(|error| CliError::broken(error.to_string()))
}
