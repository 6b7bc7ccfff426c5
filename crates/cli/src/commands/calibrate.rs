//! `gauntlet calibrate`.

use std::path::Path;

use gauntlet_device::Device;
use gauntlet_executor::{Limits, Patience};
use gauntlet_lab::{Thoroughness, Workshop};

use crate::arguments::{Calibrate, MeasuredExecutor};
use crate::calibrations::Calibrations;
use crate::commands::run::{cpu_worker, version};
use crate::exit::Exit;
use crate::machine::Hold;
use crate::progress::{Line, Progress};
use crate::sink;
use crate::trouble::{Trouble, terminal_width};

/// Worker processes: an odd number, so that the median is one of them.
const QUICK_PROCESSES: usize = 3;
const PROCESSES: usize = 5;

/// Measures what this machine's primitives cost, and keeps it.
pub fn calibrate(arguments: &Calibrate) -> Result<Exit, Trouble> {
    let device = Device::host();
    let calibrations = Calibrations::of(&arguments.calibration);
    calibrations.check(&device)?;
    let workshop = Workshop::new(cpu_worker(None)?, Patience::default(), Limits::default())?;
    let thoroughness = Thoroughness {
        processes: if arguments.quick {
            QUICK_PROCESSES
        } else {
            PROCESSES
        },
        quick: arguments.quick,
    };
    let calibration = {
        let _hold = Hold::take(MeasuredExecutor::Cpu);
        let line = Line(Progress::new());
        gauntlet_lab::calibrate(&workshop, &device, thoroughness, &version(), &line)?
    };
    let kept = calibrations.keep(&device, &calibration);
    let to_stdout = arguments.json.then_some(Path::new("-"));
    let told = sink::deliver(to_stdout, &calibration, || {
        sink::print(gauntlet_report::calibration(&calibration, terminal_width()))
    });
    sink::both(
        told,
        kept.and_then(|file| match to_stdout {
            Some(_) => Ok(()),
            None => sink::print(format_args!(
                "Kept in {}. `gauntlet validate` measures how well the model does with it.",
                file.display()
            )),
        }),
    )?;
    Ok(Exit::Done)
}
