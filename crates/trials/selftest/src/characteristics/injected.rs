//! The effect that was really injected, measured on the spot in the process of a slowed worker.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gauntlet_judge::{Candidate, JudgeError, Setting, Workshop, traced};
use gauntlet_parameters::Parameters;
use gauntlet_stats::median;
use gauntlet_worker::protocol::{Failure, FailureKind};
use gauntlet_worker::{Limits, Timeouts, WorkerCommand};
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

    /// Writes it for [`measure`](Self::measure); returns the bytes of the file.
    pub fn write(self, path: &Path) -> Result<u64, Failure> {
        let broken = |message: String| Failure {
            kind: FailureKind::Broken,
            message,
        };
        let text = serde_json::to_vec(&self).map_err(|error| broken(error.to_string()))?;
        std::fs::write(path, &text).map_err(|error| broken(format!("{}: {error}", path.display())))?;
        Ok(text.len() as u64)
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
        setting: &Setting,
        worker: &WorkerCommand,
        effect: Effect,
    ) -> Result<Option<Self>, JudgeError> {
        let Some(case) = setting.benchmark_cases.first() else {
            return Ok(None);
        };
        let share = effect.on_baseline().max(effect.on_candidate());
        let mut slowed = worker.clone();
        slowed.arguments.extend(slowed_by(share));
        let workshop = Workshop::new(slowed, Timeouts::default(), Limits::default())?;
        traced(&workshop, &case.sizes, &Parameters::new(), &setting.device).map(Some)
    }
}

/// The arguments that slow a worker down.
fn slowed_by(share: f64) -> [OsString; 2] {
    ["--slowed-by".into(), share.to_string().into()]
}

/// A side whose calls take longer by a fraction. A side that is not slowed down runs in the same wrapper, with a
/// fraction of 0, so that both sides differ in the delay and in nothing else.
pub fn slowed(name: &str, worker: &WorkerCommand, by: f64) -> Candidate {
    let arguments = worker.arguments.iter().map(PathBuf::from);
    let command = std::iter::once(worker.program.clone())
        .chain(arguments)
        .chain(slowed_by(by).map(PathBuf::from))
        .collect();
    Candidate {
        command: Some(command),
        ..Candidate::new(name, Parameters::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_error_by_hand() {
        // Median 0.02, both values 0.01 away from it.
        let found = Injected::of(&[0.01, 0.03], 8);
        assert!((found.log_slowdown - 0.02).abs() < 1e-12);
        let error = MEDIAN_OVER_MEAN * MAD_TO_DEVIATION * 0.01 / 2.0_f64.sqrt();
        assert!((found.standard_error - error).abs() < 1e-12, "{found:?}");
        assert_eq!(found.calls, 32);
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
