//! `gauntlet validate`.

use std::collections::BTreeMap;
use std::path::Path;

use gauntlet_device::Device;
use gauntlet_kernels_cuda::plan::{Target, plan};
use gauntlet_simulate::MissingFigure;
use gauntlet_tuning::validation::{GOALS, Plan, Shape, Validation, check, grid, measure};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::{MeasuredExecutor, Validate};
use crate::commands::cuda::{Place, environment_with};
use crate::commands::devices;
use crate::commands::run::version;
use crate::documents::{Document, Versioned};
use crate::error::{CliError, say_line, terminal_width};
use crate::exit::Exit;
use crate::load::{Load, REMEDY, Watch};
use crate::machine::Hold;
use crate::progress::{Line, Progress};
use crate::sink;

/// Worker processes: an odd number, so that the median is one of them.
const QUICK_PROCESSES: usize = 3;
const PROCESSES: usize = 7;

/// Slots of each point in a process.
const VISITS: usize = 2;

/// The maximum memory for operands, even if the caches are large.
const MAX_OPERAND_BYTES: f64 = (1_u64 << 30) as f64;

/// The result of `gauntlet validate`.
#[derive(Serialize, JsonSchema)]
pub struct Validated {
    /// The version of the program.
    version: String,
    /// When the model was compared with the times.
    date: Timestamp,
    /// The origin of the times, if they were measured earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Origin>,
    /// What the times depend on: processor, system, driver.
    environment: BTreeMap<String, String>,
    /// The load by other processes during the measurement; none for earlier times.
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<Load>,
    /// Predicted and measured times, and the errors of the predictions.
    validation: Validation,
}

impl Document for Validated {
    const NAME: &'static str = "validation";
    const VERSION: u32 = 2;
}

/// The program or person that measured, and the date.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Origin {
    /// The version of the program that measured.
    version: String,
    /// When it measured.
    date: Timestamp,
}

/// The part of such a file that is read again.
#[derive(Deserialize)]
struct Earlier {
    version: String,
    date: Timestamp,
    measured: Option<Origin>,
    environment: BTreeMap<String, String>,
    validation: Validation,
}

/// Compares the model with times on a grid, measured now or earlier.
pub fn validate(arguments: &Validate) -> Result<Exit, CliError> {
    arguments.json.iter().try_for_each(|path| sink::check(path))?;
    let found = match &arguments.from {
        Some(path) => again(path, arguments)?,
        None => measured_now(arguments)?,
    };
    sink::deliver(arguments.json.as_deref(), &Versioned::of(&found), || {
        sink::print(gauntlet_report::validation(&found.validation, terminal_width()))
    })?;
    let busy = found.load.as_ref().filter(|load| load.is_busy());
    if let Some(load) = busy {
        say_line(format_args!(
            "note: while it was measured, {}, so the errors are theirs too; {REMEDY}",
            load.sentence()
        ));
    }
    let is_reached = GOALS.iter().all(|goal| goal.is_reached(&found.validation.model));
    Ok(match (arguments.require_goals && !is_reached, busy) {
        (false, _) => Exit::Done,
        (true, None) => Exit::NotReached,
        (true, Some(_)) => Exit::Undecided,
    })
}

/// Compares the current model with times that were measured earlier.
fn again(path: &Path, arguments: &Validate) -> Result<Validated, CliError> {
    let file = path.display();
    on_a_gpu(arguments)?;
    let Some(name) = arguments.measured.device.as_deref() else {
        return Err(CliError::bad_input(
            "--from without the device that its times were measured on",
            "add --device with the GPU of the file, such as h200",
        ));
    };
    let device = devices::find(name)?;
    let text = std::fs::read_to_string(path).map_err(|error| {
        CliError::bad_input(
            format!("{file} cannot be read: {error}"),
            "name a file that `gauntlet validate --json` wrote",
        )
    })?;
    let not_ours = |why: String| {
        CliError::bad_input(
            format!("{file} holds no validation of {name}: {why}"),
            "name a file that `gauntlet validate --executor cuda --json` wrote for this device",
        )
    };
    let earlier: Earlier = serde_json::from_str(&text).map_err(|error| not_ours(error.to_string()))?;
    let shapes = grid(&device);
    let measured = earlier
        .validation
        .measured(&shapes)
        .map_err(|shape| not_ours(format!("there is no shape `{shape}`")))?;
    let validation = Validation::of(&shapes, &measured, &device).map_err(missing)?;
    let origin = earlier.measured.unwrap_or(Origin {
        version: earlier.version,
        date: earlier.date,
    });
    Ok(Validated {
        version: version(),
        date: Timestamp::now(),
        measured: Some(origin),
        environment: earlier.environment,
        load: None,
        validation,
    })
}

fn measured_now(arguments: &Validate) -> Result<Validated, CliError> {
    on_a_gpu(arguments)?;
    let date = Timestamp::now();
    let Place {
        device,
        workshop,
        gpu,
    } = Place::of(&arguments.measured)?;
    let shapes = shapes(&device);
    check(&shapes, &device).map_err(missing)?;
    let plan = Plan {
        processes: if arguments.quick {
            QUICK_PROCESSES
        } else {
            PROCESSES
        },
        visits: VISITS,
        operand_bytes: operand_bytes(&device),
    };
    let (measured, load) = {
        let _hold = Hold::take(arguments.measured.executor())?;
        let before = Load::sample();
        if before.is_busy() {
            say_line(format_args!(
                "note: this machine is busy: within a second, {}; {REMEDY}",
                before.sentence()
            ));
        }
        let watch = Watch::start();
        let line = Line(Progress::new());
        let measured = measure(&workshop, &shapes, plan, &line)?;
        (measured, watch.stop())
    };
    let validation = Validation::of(&shapes, &measured, &device).map_err(missing)?;
    Ok(Validated {
        version: version(),
        date,
        measured: None,
        environment: environment_with(gpu.as_ref()),
        load: Some(load),
        validation,
    })
}

/// Refuses a CPU, which has no model.
fn on_a_gpu(arguments: &Validate) -> Result<(), CliError> {
    match arguments.measured.executor() {
        MeasuredExecutor::Cuda => Ok(()),
        MeasuredExecutor::Cpu => Err(CliError::bad_input(
            "there is no model of CPUs to validate",
            "add --executor cuda and --device with the GPU, such as h200",
        )),
    }
}

fn missing(figure: MissingFigure) -> CliError {
    CliError::bad_input(
        figure.to_string(),
        "put the figure into the device's file: scripts/gpu-parameters measures it",
    )
}

/// The grid, without schedules that a GPU's instructions allow but its kernels do not support.
fn shapes(device: &Device) -> Vec<Shape> {
    let mut shapes = grid(device);
    if let Some(target) = Target::of(device) {
        for Shape {
            operation, schedules, ..
        } in &mut shapes
        {
            schedules.retain(|schedule| plan(operation, schedule, target).is_ok());
        }
        shapes.retain(|shape| !shape.schedules.is_empty());
    }
    shapes
}

/// Twice the second-level cache, as in comparisons of candidates.
fn operand_bytes(device: &Device) -> u64 {
    let cache = device.memory.l2_size.as_ref();
    cache.map_or(MAX_OPERAND_BYTES, |cache| {
        (2.0 * cache.get()).min(MAX_OPERAND_BYTES)
    }) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_know_every_schedule_of_the_grid() {
        let device = Device::builtin("h200").unwrap();
        let points = |shapes: &[Shape]| shapes.iter().map(|shape| shape.schedules.len()).sum::<usize>();
        assert_eq!(points(&shapes(&device)), points(&grid(&device)));
    }
}
