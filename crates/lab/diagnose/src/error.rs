//! Errors of a diagnosis.

use thiserror::Error;

/// Why times cannot be diagnosed. Measurements are counted from 0.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DiagnosisError {
    /// Nothing was measured.
    #[error("there are no times; give at least one, better four or more of different sizes")]
    NoTimes,
    /// A time that is not finite and positive.
    #[error("{seconds} s is no time; it must be finite and greater than 0")]
    NotATime {
        /// The measurement.
        measurement: usize,
        /// Its time.
        seconds: f64,
    },
    /// An invalid spread.
    #[error("a spread of {spread} is none; give the standard error as a part of the time, from 0 to 1")]
    NotASpread {
        /// The measurement.
        measurement: usize,
        /// Its spread.
        spread: f64,
    },
    /// A time that the device cannot reach.
    #[error(
        "{:.3} µs is under the roofline of {device}, {:.3} µs; check the unit of the time and the device",
        seconds * 1e6, roofline * 1e6
    )]
    UnderTheRoofline {
        /// The measurement.
        measurement: usize,
        /// Its time.
        seconds: f64,
        /// The least possible time.
        roofline: f64,
        /// The device.
        device: String,
    },
    /// A problem without work.
    #[error("there is nothing to compute; leave the problem out")]
    NoWork {
        /// The measurement.
        measurement: usize,
    },
}

impl DiagnosisError {
    /// The measurement that caused the error, counted from 0.
    pub fn measurement(&self) -> Option<usize> {
        match self {
            Self::NoTimes => None,
            Self::NotATime { measurement, .. }
            | Self::NotASpread { measurement, .. }
            | Self::UnderTheRoofline { measurement, .. }
            | Self::NoWork { measurement } => Some(*measurement),
        }
    }
}
