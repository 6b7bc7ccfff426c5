//! The subject of a simulation: sizes and parameters of a task, if the model covers its kernels.

use gauntlet_device::{Arch, Device};
use gauntlet_parameters::{ParameterError, Parameters};
use gauntlet_problems::Schedule;
use gauntlet_task::{Cached, Sizes};
use thiserror::Error;

use crate::gpu;
use crate::{
    Breakdown, Estimate, HostTerm, MissingFigure, Problem, Simulation, Speedup, Timeline, break_down,
    error_bar, estimate, predicted_speedup, repeated_limit, simulate, timeline,
};

/// Sizes and parameters of a kernel that the model covers.
#[derive(Debug, Clone)]
pub struct Subject<'s> {
    problem: &'s Problem,
    schedule: Schedule,
}

/// Why no estimate is possible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoEstimate {
    /// The device's description lacks a figure.
    #[error(transparent)]
    MissingFigure(#[from] MissingFigure),
    /// The device is no GPU.
    #[error("there is no model of CPUs; only measurements tell how long kernels take on `{device}`")]
    NoModelOfDevice {
        /// The device.
        device: String,
    },
    /// The model covers no kernel of the task.
    #[error("there is no model of `{task}`; only measurements tell how long its kernels take")]
    NoModel {
        /// The task.
        task: String,
    },
    /// A parameter has a value that is not accepted.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A simulation would take minutes and more.
    #[error(
        "a simulation would follow {steps} steps of each multiprocessor, and follows at most {MAX_STEPS}; predict smaller \
         sizes, or take larger tiles"
    )]
    TooLarge {
        /// The steps.
        steps: usize,
    },
}

/// Steps of a multiprocessor that are simulated: of a tenth of a second, and far beyond calls of a second.
const MAX_STEPS: usize = 100_000;

impl<'s> Subject<'s> {
    /// These sizes under these parameters.
    ///
    /// # Errors
    /// If the model covers no kernel of the task, or a parameter has a value that is not accepted.
    pub fn of(sizes: &'s Sizes, parameters: &Parameters) -> Result<Self, NoEstimate> {
        match Problem::of(sizes) {
            Some(problem) => Ok(Self {
                problem,
                schedule: Schedule::among(parameters)?,
            }),
            None => Err(NoEstimate::NoModel {
                task: sizes.task().name().to_owned(),
            }),
        }
    }

    /// The problem.
    pub fn problem(&self) -> &Problem {
        self.problem
    }

    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Refuses CPUs, and sizes that a simulation would follow for minutes.
    fn check(&self, device: &Device) -> Result<(), NoEstimate> {
        if device.arch == Arch::Cpu {
            return Err(NoEstimate::NoModelOfDevice {
                device: device.name.clone(),
            });
        }
        match gpu::steps(self.problem, &self.schedule, device)? {
            steps if steps > MAX_STEPS => Err(NoEstimate::TooLarge { steps }),
            _ => Ok(()),
        }
    }

    /// The time of one call.
    ///
    /// # Errors
    /// As [`simulate()`]; sizes that are too large.
    pub fn simulate(&self, device: &Device, host: HostTerm) -> Result<Simulation, NoEstimate> {
        self.check(device)?;
        Ok(simulate(self.problem, &self.schedule, device, host)?)
    }

    /// The gap from the roofline to the simulated time, in parts.
    ///
    /// # Errors
    /// As [`simulate()`].
    pub fn break_down(&self, device: &Device, host: HostTerm) -> Result<Breakdown, NoEstimate> {
        self.check(device)?;
        Ok(break_down(self.problem, &self.schedule, device, host)?)
    }

    /// The timeline of the simulated call.
    ///
    /// # Errors
    /// As [`simulate()`].
    pub fn timeline(&self, device: &Device, host: HostTerm) -> Result<Timeline, NoEstimate> {
        self.check(device)?;
        Ok(timeline(self.problem, &self.schedule, device, host)?)
    }

    /// The time with its error bar.
    ///
    /// # Errors
    /// As [`estimate()`].
    pub fn estimate(&self, device: &Device) -> Result<Estimate, NoEstimate> {
        self.check(device)?;
        Ok(estimate(self.problem, &self.schedule, device)?)
    }

    /// The ends of a 90 % interval around a simulated time.
    pub fn error_bar(&self, seconds: f64, device: &Device) -> (f64, f64) {
        error_bar(seconds, self.problem, device)
    }
}

/// The time that no call can undercut: see [`repeated_limit()`]. `None` if no bound is certain, as for a task without a model.
pub fn limit_of_sizes(sizes: &Sizes, device: &Device, cached: Cached) -> Option<f64> {
    repeated_limit(Problem::of(sizes)?, device, cached)
}

/// The predicted speed-up of a candidate over several sizes: see [`predicted_speedup()`].
///
/// # Errors
/// If the model covers no kernel of a task, the device's description lacks a figure, or sizes are too large.
pub fn predicted_speedup_of_sizes(
    sizes: &[Sizes],
    baseline: &Parameters,
    candidate: &Parameters,
    device: &Device,
) -> Result<Speedup, NoEstimate> {
    let subjects: Vec<Subject> = sizes
        .iter()
        .map(|sizes| Subject::of(sizes, baseline))
        .collect::<Result<_, _>>()?;
    for (subject, sizes) in subjects.iter().zip(sizes) {
        subject.check(device)?;
        Subject::of(sizes, candidate)?.check(device)?;
    }
    let problems: Vec<Problem> = subjects.iter().map(|subject| subject.problem.clone()).collect();
    let [baseline, candidate] = [baseline, candidate].map(Schedule::among);
    Ok(predicted_speedup(&problems, &baseline?, &candidate?, device)?)
}
