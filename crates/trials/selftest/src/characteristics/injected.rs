//! The effect that was really injected, measured on the spot in the process of a slowed worker.

use gauntlet_judge::{Candidate, ExaminationFailure, Readers, Setting, Workshop};
use gauntlet_parameters::Parameters;
use gauntlet_stats::{Arm, median};
use gauntlet_worker::protocol::Parameter;
use gauntlet_worker::{WorkerCommand, WorkerError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::effect::Effect;

/// The slow-down of a worker by its own measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Injected {
    /// The log ratio of slowed to plain calls: the median over pairs of requests, which bursts of other programs do not
    /// move.
    pub log_slowdown: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Calls measured, slowed and plain.
    pub calls: usize,
}

/// For normal noise: the standard deviation over the median absolute deviation, and the standard error of a median over
/// that of a mean.
const MAD_TO_DEVIATION: f64 = 1.4826;
const MEDIAN_OVER_MEAN: f64 = 1.2533;

const LOG_SLOWDOWN: &str = "log-slowdown";
const STANDARD_ERROR: &str = "standard-error";
const CALLS: &str = "calls";

impl Injected {
    /// From the log ratios of pairs of requests with `calls` calls each.
    pub fn of(log_ratios: &[f64], calls: usize) -> Self {
        let middle = median(log_ratios);
        let distances: Vec<f64> = log_ratios.iter().map(|ratio| (ratio - middle).abs()).collect();
        let deviation = MAD_TO_DEVIATION * median(&distances);
        Self {
            log_slowdown: middle,
            standard_error: MEDIAN_OVER_MEAN * deviation / (log_ratios.len().max(1) as f64).sqrt(),
            calls: 2 * calls * log_ratios.len(),
        }
    }

    /// As the answer to a request to calibrate. Costs cannot be negative there, so a slow-down below zero, which only
    /// noise can show, is split into its size and its sign.
    pub fn parameters(self) -> Vec<Parameter> {
        let parameter = |name: &str, unit: &str, value: f64| Parameter {
            name: name.to_owned(),
            unit: unit.to_owned(),
            value,
        };
        let unit = if self.log_slowdown < 0.0 { "-log" } else { "log" };
        vec![
            parameter(LOG_SLOWDOWN, unit, self.log_slowdown.abs()),
            parameter(STANDARD_ERROR, "log", self.standard_error),
            parameter(CALLS, "calls", self.calls as f64),
        ]
    }

    /// Reads the answer; `None` if it is another worker's.
    pub fn read(parameters: &[Parameter]) -> Option<Self> {
        let of = |name: &str| parameters.iter().find(|parameter| parameter.name == name);
        let slowdown = of(LOG_SLOWDOWN)?;
        let sign = if slowdown.unit == "-log" { -1.0 } else { 1.0 };
        Some(Self {
            log_slowdown: sign * slowdown.value,
            standard_error: of(STANDARD_ERROR)?.value,
            calls: of(CALLS)?.value as usize,
        })
    }

    /// The true log speed-up of the candidate of a comparison into which `effect` was injected.
    pub fn log_speedup(&self, effect: Effect) -> f64 {
        if effect.on_baseline() > 0.0 {
            self.log_slowdown
        } else {
            -self.log_slowdown
        }
    }

    /// Measures the slow-down in a fresh process, on fresh operands of the setting's first benchmark case. `None` if
    /// the setting has no case.
    pub fn measure(
        workshop: &Workshop,
        setting: &Setting,
        worker: &WorkerCommand,
        effect: Effect,
    ) -> Result<Option<Self>, ExaminationFailure> {
        let Some(case) = setting.benchmark_cases.first() else {
            return Ok(None);
        };
        let share = effect.on_baseline().max(effect.on_candidate());
        let candidate = slowed("slowed", worker, share);
        let (_, operands) = workshop.write_inputs(case, case.inputs, rand::random(), Readers::Workers)?;
        let (mut process, _) = workshop.start(Arm::Candidate, &candidate)?;
        let mut measured = || -> Result<_, WorkerError> {
            process.build(&case.sizes, &candidate.schedule)?;
            process.load(&[&operands], 1)?;
            process.prepare()?;
            process.calibrate(true)
        };
        let answer = measured().map_err(|error| ExaminationFailure::of(Arm::Candidate, error));
        // If this fails, the file is removed with the workshop's folder.
        let _removed = std::fs::remove_file(&operands);
        Ok(Self::read(&answer?))
    }
}

/// A side whose calls take longer by a fraction. A side that is not slowed down runs in the same wrapper, with a
/// fraction of 0, so that both sides differ in the delay and in nothing else.
pub fn slowed(name: &str, worker: &WorkerCommand, by: f64) -> Candidate {
    let arguments = worker.arguments.iter().map(std::path::PathBuf::from);
    let command = std::iter::once(worker.program.clone())
        .chain(arguments)
        .chain(["--slowed-by".into(), by.to_string().into()])
        .collect();
    Candidate {
        command: Some(command),
        ..Candidate::new(name, Parameters::new())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn median_and_error_by_hand_and_there_and_back() {
        // Median 0.02, both values 0.01 away from it.
        let found = Injected::of(&[0.01, 0.03], 8);
        assert!((found.log_slowdown - 0.02).abs() < 1e-12);
        let error = MEDIAN_OVER_MEAN * MAD_TO_DEVIATION * 0.01 / 2.0_f64.sqrt();
        assert!((found.standard_error - error).abs() < 1e-12, "{found:?}");
        assert_eq!(found.calls, 32);
        for injected in [found, Injected::of(&[-0.01, -0.03], 8)] {
            assert_eq!(Injected::read(&injected.parameters()), Some(injected));
        }
        assert_eq!(Injected::read(&[]), None);
    }

    #[test]
    fn a_slow_baseline_makes_a_fast_candidate() {
        let injected = Injected::of(&[0.05, 0.05], 8);
        assert_eq!(injected.log_speedup(Effect::FASTER), 0.05);
        assert_eq!(injected.log_speedup(Effect::SLOWER), -0.05);
    }

    #[test]
    fn both_sides_run_in_the_same_wrapper() {
        let worker = WorkerCommand::new("/bin/gauntlet", ["worker".into(), "cpu".into()]);
        for (by, text) in [(0.0, "0"), (0.05, "0.05")] {
            let command = slowed("baseline", &worker, by).command.unwrap();
            let expected: Vec<PathBuf> = ["/bin/gauntlet", "worker", "cpu", "--slowed-by", text]
                .map(PathBuf::from)
                .into();
            assert_eq!(command, expected);
        }
    }
}
