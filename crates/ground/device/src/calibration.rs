//! Local measurements: the costs of an executor's primitives on one machine, and how well the model that uses them
//! performs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Device;

/// The set of parameters that this version of the program measures and its model reads.
pub const REVISION: u32 = 5;

/// The measured costs of an executor's primitives on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Calibration {
    /// The device's name on the command line.
    pub device: String,
    /// [`REVISION`] of the program that measured it.
    pub revision: u32,
    /// When it was measured.
    pub date: Timestamp,
    /// Where it was measured.
    pub machine: Machine,
    /// The accuracy of the model that uses it, if it has been compared with measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// By name.
    pub parameters: BTreeMap<String, Parameter>,
}

/// The machine that a calibration is valid for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Machine {
    /// The processor's name; empty if the system does not report it.
    pub processor: String,
    /// Threads that were at work.
    pub threads: usize,
    /// Details that the worker chose at run time, such as the SIMD path.
    pub details: BTreeMap<String, String>,
    /// The version of the program that measured it, with its commit.
    pub version: String,
}

/// A measured cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The median over processes.
    pub value: f64,
    /// The lowest value over processes.
    pub low: f64,
    /// The highest value over processes.
    pub high: f64,
    /// The unit of the three values.
    pub unit: String,
    /// The number of processes.
    pub samples: usize,
}

/// How a model's times compare with measured ones that were not used to fit it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Quality {
    /// When it was compared.
    pub date: Timestamp,
    /// Schedules × shapes.
    pub points: usize,
    /// Shapes among them.
    pub shapes: usize,
    /// The mean of |predicted / measured − 1|.
    pub mean_error: f64,
    /// The root of the mean square of ln(measured / predicted).
    pub log_deviation: f64,
    /// The same after subtracting each shape's own mean: the deviation between schedules of one shape.
    pub log_deviation_in_shape: f64,
    /// Rank correlation (Spearman) of predicted with measured times, the mean over shapes.
    pub rank_correlation: f64,
    /// How much longer the schedule with the best prediction takes than the best of the shape, the mean over shapes.
    pub regret_of_first: f64,
    /// The same for the best of the eight schedules with the best predictions.
    pub regret_of_eight: f64,
}

/// Why a calibration cannot be read or used.
#[derive(Debug, Error)]
pub enum CalibrationError {
    /// The file cannot be read.
    #[error("calibration {} cannot be read: {source}; `gauntlet calibrate` makes one", file.display())]
    Read {
        /// The path that was tried.
        file: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a calibration.
    #[error("{} is no calibration: {message}; `gauntlet calibrate` makes one", file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// The error.
        message: String,
    },
    /// It was made for another device, machine or program.
    #[error("the calibration is of {found}, but {expected} is here; run `gauntlet calibrate` again")]
    Foreign {
        /// What it was made for.
        found: String,
        /// What it should have been made for.
        expected: String,
    },
}

impl Calibration {
    /// Reads a calibration.
    ///
    /// # Errors
    /// [`CalibrationError::Read`] or [`CalibrationError::Invalid`].
    pub fn load(file: &Path) -> Result<Self, CalibrationError> {
        let text = std::fs::read_to_string(file).map_err(|source| CalibrationError::Read {
            file: file.to_owned(),
            source,
        })?;
        let invalid = |message| CalibrationError::Invalid {
            file: file.to_owned(),
            message,
        };
        let calibration: Self = toml::from_str(&text).map_err(|error| invalid(error.message().to_owned()))?;
        match calibration
            .parameters
            .iter()
            .find(|(_, parameter)| !parameter.is_possible())
        {
            None => Ok(calibration),
            Some((name, _)) => Err(invalid(format!(
                "parameters.{name} is not a value between its low and high"
            ))),
        }
    }

    /// The calibration as the text of a file.
    ///
    /// # Errors
    /// Only if TOML cannot hold a value.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string_pretty(self)
    }

    /// The value of a parameter.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.parameters.get(name).map(|parameter| parameter.value)
    }

    /// Why it cannot be used for `device`: the found and the expected property.
    fn mismatch(&self, device: &Device) -> Option<(String, String)> {
        let processor = device.processor();
        let threads = device.processors.get();
        if self.device != device.name {
            Some((format!("`{}`", self.device), format!("`{}`", device.name)))
        } else if self.revision != REVISION {
            Some((
                format!("revision {}", self.revision),
                format!("revision {REVISION}"),
            ))
        } else if self.machine.processor != processor {
            Some((format!("`{}`", self.machine.processor), format!("`{processor}`")))
        } else if self.machine.threads as f64 != threads {
            Some((format!("{} threads", self.machine.threads), format!("{threads}")))
        } else {
            None
        }
    }
}

impl Parameter {
    fn is_possible(&self) -> bool {
        self.low >= 0.0 && self.low <= self.value && self.value <= self.high && self.high.is_finite()
    }
}

impl Device {
    /// The device with the calibrated values.
    ///
    /// # Errors
    /// [`CalibrationError::Foreign`] if it was measured on another processor, with another number of threads, or by a
    /// program with another set of parameters.
    pub fn calibrated(self, calibration: &Calibration) -> Result<Self, CalibrationError> {
        match calibration.mismatch(&self) {
            Some((found, expected)) => Err(CalibrationError::Foreign { found, expected }),
            None => Ok(Self {
                calibration: Some(Box::new(calibration.clone())),
                ..self
            }),
        }
    }

    /// The name of a CPU, which distinguishes calibrations; empty if it is not known.
    pub fn processor(&self) -> &str {
        let model = self.cpu.as_ref().and_then(|cpu| cpu.model.as_ref());
        model.map_or("", |model| &model.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(device: &Device) -> Calibration {
        let parameter = Parameter {
            value: 0.125,
            low: 0.1,
            high: 0.25,
            unit: "ns/value".to_owned(),
            samples: 3,
        };
        Calibration {
            device: device.name.clone(),
            revision: REVISION,
            date: Timestamp::UNIX_EPOCH,
            machine: Machine {
                processor: device.processor().to_owned(),
                threads: device.processors.get() as usize,
                details: BTreeMap::from([("simd".to_owned(), "avx2".to_owned())]),
                version: "0.1.0".to_owned(),
            },
            quality: None,
            parameters: BTreeMap::from([("pack.columns.value".to_owned(), parameter)]),
        }
    }

    fn written(text: &str) -> Result<Calibration, CalibrationError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("host.toml");
        std::fs::write(&file, text).unwrap();
        Calibration::load(&file)
    }

    #[test]
    fn a_file_holds_all_of_it() {
        let calibration = calibration(&Device::host());
        let text = calibration.to_toml().unwrap();
        assert_eq!(written(&text).unwrap(), calibration);
        let swapped = text.replace("high = 0.25", "high = 0.11");
        assert_ne!(swapped, text);
        let error = written(&swapped).unwrap_err().to_string();
        assert!(
            error.contains("pack.columns.value") && error.contains("gauntlet calibrate"),
            "{error}"
        );
        assert!(matches!(
            Calibration::load(Path::new("/nowhere/host.toml")),
            Err(CalibrationError::Read { .. })
        ));
    }

    #[test]
    fn what_was_measured_elsewhere_is_refused_by_name() {
        let host = Device::host();
        let good = calibration(&host);
        let calibrated = host.clone().calibrated(&good).unwrap();
        assert_eq!(calibrated.calibration.as_deref(), Some(&good));

        let refused = |change: fn(&mut Calibration)| {
            let mut other = good.clone();
            change(&mut other);
            host.clone().calibrated(&other).unwrap_err().to_string()
        };
        assert!(refused(|other| other.machine.processor = "Z80".to_owned()).contains("Z80"));
        assert!(refused(|other| other.machine.threads += 1).contains("threads"));
        assert!(refused(|other| other.revision += 1).contains("revision"));
        assert!(refused(|other| other.device = "b200".to_owned()).contains("`b200`"));
    }
}
