//! Rounding to a result's format.

use crate::OutputFormat;

impl OutputFormat {
    /// `value` rounded once to this format, to nearest, ties to even; over the range, to infinity.
    pub fn round(self, value: f64) -> f32 {
        self.data_type().round(value) as f32
    }
}
