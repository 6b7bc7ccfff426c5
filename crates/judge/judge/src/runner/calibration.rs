//! Calibration: measures the costs of an executor's primitives on this machine, over several fresh worker processes.

use std::collections::BTreeMap;

use gauntlet_device::Device;
use gauntlet_device::calibration::{Calibration, Machine, Parameter, REVISION};
use jiff::Timestamp;

use crate::evidence::JudgeError;
use crate::observer::Observer;
use crate::runner::workshop::Workshop;

/// How thoroughly to calibrate.
#[derive(Debug, Clone, Copy)]
pub struct Thoroughness {
    /// Number of worker processes: the placement of memory differs between processes.
    pub processes: usize,
    /// Whether each process takes only a few samples.
    pub quick: bool,
}

/// Measures the costs that the model of the workshop's executor reads.
///
/// # Errors
/// If a worker fails, or has nothing to calibrate.
pub fn calibrate(
    workshop: &Workshop,
    device: &Device,
    thoroughness: Thoroughness,
    version: &str,
    observer: &dyn Observer,
) -> Result<Calibration, JudgeError> {
    let mut found: BTreeMap<String, (String, Vec<f64>)> = BTreeMap::new();
    let mut details = BTreeMap::new();
    for process in 0..thoroughness.processes {
        observer.progress(&format!(
            "calibrating, process {} of {}",
            process + 1,
            thoroughness.processes
        ));
        let (mut worker, description) = workshop.start_default().map_err(JudgeError::Executor)?;
        details = description.details;
        for parameter in worker.calibrate(thoroughness.quick)? {
            let (_, values) = found
                .entry(parameter.name)
                .or_insert_with(|| (parameter.unit, Vec::new()));
            values.push(parameter.value);
        }
    }
    let threads = details.remove("threads").and_then(|threads| threads.parse().ok());
    Ok(Calibration {
        device: device.name.clone(),
        revision: REVISION,
        date: Timestamp::now(),
        machine: Machine {
            processor: device.processor().to_owned(),
            threads: threads.unwrap_or(device.processors.get() as usize),
            details,
            version: version.to_owned(),
        },
        quality: None,
        parameters: found
            .into_iter()
            .map(|(name, (unit, values))| (name, parameter(unit, &values)))
            .collect(),
    })
}

fn parameter(unit: String, values: &[f64]) -> Parameter {
    Parameter {
        value: gauntlet_stats::median(values),
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(0.0, f64::max),
        unit,
        samples: values.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_the_median_of_its_processes_with_their_spread() {
        let found = parameter("ns/value".to_owned(), &[3.0, 1.0, 2.0]);
        assert_eq!(
            (found.value, found.low, found.high, found.samples),
            (2.0, 1.0, 3.0, 3)
        );
    }
}
