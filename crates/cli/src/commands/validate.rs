//! `gauntlet validate`.

use std::collections::BTreeMap;

use gauntlet_cuda::plan::plan;
use gauntlet_device::{Arch, Calibration, Device};
use gauntlet_lab::validation::{GOALS, Plan, Shape, Validation, check, grid, measure};
use gauntlet_model::MissingFigure;
use jiff::Timestamp;
use serde::Serialize;

use crate::arguments::Validate;
use crate::calibrations::Calibrations;
use crate::commands::cuda::{Place, environment_with};
use crate::commands::run::version;
use crate::exit::Exit;
use crate::progress::{Line, Progress};
use crate::sink;
use crate::trouble::{Trouble, terminal_width};

/// Worker processes: an odd number, so that the median is one of them.
const QUICK_PROCESSES: usize = 3;
const PROCESSES: usize = 7;

/// Slots of a point in a process.
const VISITS: usize = 2;

/// Operands take no more memory than this, however large the caches are.
const MOST_OPERAND_BYTES: f64 = (1_u64 << 30) as f64;

/// What is written as JSON.
#[derive(Serialize)]
struct Document<'a> {
    version: String,
    date: Timestamp,
    environment: BTreeMap<String, String>,
    calibration: Option<&'a Calibration>,
    validation: &'a Validation,
}

/// Measures a grid, compares the model with it, and notes in the calibration how well it did.
pub fn validate(arguments: &Validate, calibrations: &Calibrations) -> Result<Exit, Trouble> {
    arguments.json.iter().try_for_each(|path| sink::check(path))?;
    let date = Timestamp::now();
    let Place {
        device,
        workshop,
        gpu,
    } = Place::of(&arguments.measured)?;
    let device = calibrations.apply(device)?;
    let mut calibration = device.calibration.as_deref().cloned();
    if calibration.is_none() && device.arch == Arch::Cpu {
        return Err(Trouble::bad_input(
            "there is no calibration of this machine to validate",
            "run `gauntlet calibrate` first, or name its file with --calibration",
        ));
    }
    let shapes = shapes(&device);
    let missing = |error: MissingFigure| {
        let remedy = match device.arch {
            Arch::Cpu => "run `gauntlet calibrate` again",
            _ => "put the figure into the device's file: scripts/gpu-parameters measures it",
        };
        Trouble::bad_input(error.to_string(), remedy)
    };
    check(&shapes, &device).map_err(missing)?;
    let plan = Plan {
        processes: if arguments.quick {
            QUICK_PROCESSES
        } else {
            PROCESSES
        },
        visits: VISITS,
        operand_bytes: operand_bytes(&device),
        on_device: gpu.is_some(),
    };
    let measured = {
        let line = Line(Progress::new());
        measure(&workshop, &shapes, plan, &line)?
    };
    let found = Validation::of(&shapes, &measured, &device).map_err(missing)?;
    let noted = calibration
        .as_mut()
        .map(|calibration| {
            calibration.quality = Some(found.quality(date));
            calibrations.keep(&device, calibration)
        })
        .transpose()?;
    if !arguments.json.as_deref().is_some_and(sink::is_stdout) {
        sink::print(gauntlet_report::validation(&found, terminal_width()))?;
        if let Some(file) = noted {
            sink::print(format_args!("Noted in {}.", file.display()))?;
        }
    }
    if let Some(path) = &arguments.json {
        let document = Document {
            version: version(),
            date,
            environment: environment_with(gpu.as_ref()),
            calibration: calibration.as_ref(),
            validation: &found,
        };
        sink::write_json(path, &document)?;
    }
    let is_reached = GOALS.iter().all(|goal| goal.is_reached(&found.calibrated));
    if arguments.require_goals && !is_reached {
        return Ok(Exit::NotReached);
    }
    Ok(Exit::Done)
}

/// The grid, without schedules that a GPU's instructions allow and its kernels do not know.
fn shapes(device: &Device) -> Vec<Shape> {
    let mut shapes = grid(device);
    if device.arch != Arch::Cpu {
        let processors = device.processors.get() as u32;
        for Shape {
            problem, schedules, ..
        } in &mut shapes
        {
            schedules.retain(|schedule| plan(problem, schedule, processors).is_ok());
        }
        shapes.retain(|shape| !shape.schedules.is_empty());
    }
    shapes
}

/// Twice the last-level cache, as where candidates are compared.
fn operand_bytes(device: &Device) -> u64 {
    let cache = device.cpu.as_ref().and_then(|cpu| cpu.last_level_size.as_ref());
    let cache = cache.or(device.memory.l2_size.as_ref());
    cache.map_or(MOST_OPERAND_BYTES, |cache| {
        (2.0 * cache.get()).min(MOST_OPERAND_BYTES)
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
