//! `gauntlet calibrate`.

use gauntlet_device::Device;
use gauntlet_judge::{Thoroughness, Workshop};
use gauntlet_worker::Limits;

use crate::arguments::{Calibrate, MeasuredExecutor};
use crate::calibrations::Calibrations;
use crate::commands::run::{cpu_worker, version};
use crate::environment::timeouts;
use crate::error::{CliError, say_line, terminal_width};
use crate::exit::Exit;
use crate::load::{Load, REMEDY, Watch};
use crate::machine::Hold;
use crate::progress::{Line, Progress};
use crate::sink;

/// Worker processes: an odd number, so that the median is one of them.
const QUICK_PROCESSES: usize = 3;
const PROCESSES: usize = 5;

/// Measures the costs of this machine's primitives, and keeps them.
pub fn calibrate(arguments: &Calibrate) -> Result<Exit, CliError> {
    arguments.json.check()?;
    let device = Device::host();
    let calibrations = Calibrations::of(&arguments.calibration);
    calibrations.check(&device)?;
    let workshop = Workshop::new(cpu_worker(None)?, timeouts()?, Limits::default())?;
    let thoroughness = Thoroughness {
        processes: if arguments.quick {
            QUICK_PROCESSES
        } else {
            PROCESSES
        },
        quick: arguments.quick,
    };
    let (calibration, load) = {
        let _hold = Hold::take(MeasuredExecutor::Cpu)?;
        quiet(&Load::sample(), arguments.keep_anyway)?;
        let watch = Watch::start();
        let line = Line(Progress::new());
        let calibration = gauntlet_judge::calibrate(&workshop, &device, thoroughness, &version(), &line)?;
        (calibration, watch.stop())
    };
    let is_kept = arguments.keep_anyway || !load.is_busy();
    let kept = is_kept
        .then(|| calibrations.keep(&device, &calibration))
        .transpose();
    let told = arguments.json.deliver(&calibration, || {
        sink::print(gauntlet_report::calibration(&calibration, terminal_width()))
    });
    sink::both(
        told,
        kept.and_then(|file| match file {
            Some(file) if !arguments.json.is_stdout() => sink::line(format_args!(
                "Kept in {}. `gauntlet validate` measures how well the model does with it.",
                file.display()
            )),
            _ => Ok(()),
        }),
    )?;
    if is_kept {
        return Ok(Exit::Done);
    }
    Err(CliError::undecided(
        format!("not kept: while this machine was calibrated, {}", load.sentence()),
        format!("{REMEDY} and calibrate again; --keep-anyway keeps such a calibration"),
    ))
}

/// Refuses to calibrate a busy machine, unless the calibration is to be kept `anyway`.
fn quiet(load: &Load, anyway: bool) -> Result<(), CliError> {
    if !load.is_busy() {
        return Ok(());
    }
    let found = format!("this machine is busy: within a second, {}", load.sentence());
    if anyway {
        say_line(format_args!("note: {found}; the calibration measures them too"));
        return Ok(());
    }
    Err(CliError::undecided(
        format!("{found}; a calibration made now would measure them too, so none is made"),
        format!("{REMEDY}; --keep-anyway calibrates all the same and keeps the result"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_calibrated_only_on_request() {
        let load = |share| Load {
            other_processes: Some(share),
            processors: 2,
            load_averages: None,
        };
        assert!(quiet(&load(0.02), false).is_ok());
        assert!(quiet(&load(0.97), true).is_ok());
        let refused = quiet(&load(0.97), false).unwrap_err();
        assert!(refused.to_string().contains("97 %"), "{refused}");
        assert_eq!(refused.tell(), Exit::Undecided);
    }
}
