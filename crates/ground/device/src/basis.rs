//! What the error bar of a prediction on a device rests on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Device;

/// The basis of an error bar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Published errors of similar models: nothing was measured on the device.
    #[default]
    Published,
    /// Published errors too, although the rates were measured on the device: predictions were not compared with times
    /// there.
    Calibrated,
    /// Errors that were measured on the device itself.
    Validated,
}

impl Basis {
    /// The basis of a device's estimates.
    pub fn of(device: &Device) -> Self {
        match device.calibration.as_deref() {
            None => Self::Published,
            Some(calibration) if calibration.quality.is_none() => Self::Calibrated,
            Some(_) => Self::Validated,
        }
    }

    /// An explanation of the bar in a few words.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Published => "not calibrated: bar from published models",
            Self::Calibrated => "calibrated, not validated: bar from published models",
            Self::Validated => "calibrated: bar from validation on this device",
        }
    }
}
