//! The accuracy of predictions on a device: recorded comparisons with measured times.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Device, ModelTest};

/// The largest mean error, as a share of the measured time, at which predictions are relied on.
pub const MAX_MEAN_ERROR: f64 = 0.15;

/// The lowest rank correlation within a shape at which predictions are relied on.
pub const MIN_RANK_CORRELATION: f64 = 0.8;

/// Errors of predictions on a device that the model was not fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Accuracy {
    /// Schedules × shapes compared.
    pub points: usize,
    /// The mean of |predicted / measured − 1|, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_error: Option<f64>,
    /// Rank correlation within a shape: the lowest and highest over the sets compared.
    pub rank_correlation: [f64; 2],
    /// Regret of the first choice: the lowest and highest over the sets compared.
    pub regret: [f64; 2],
    /// Regret of a constant rule on the same points, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regret_of_constant_rule: Option<f64>,
}

impl Accuracy {
    /// The record for a device and a family of kernels, named as its task: the test in its description. `None` if predictions have never been compared with times there.
    pub fn of(device: &Device, family: &str) -> Option<Self> {
        let test = device.model_tests.iter().find(|test| test.family == family)?;
        Some(Self::from(test))
    }

    /// The weakest record of several families; `None` if any of them has none.
    pub fn of_all<'a>(device: &Device, families: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let records: Option<Vec<_>> = families
            .into_iter()
            .map(|family| Self::of(device, family))
            .collect();
        records?
            .into_iter()
            .min_by(|one, other| one.rank_correlation[0].total_cmp(&other.rank_correlation[0]))
    }

    /// Whether predictions are accurate enough to decide anything: they rank well, their errors are small if known, and
    /// their choices are no worse than a constant rule.
    pub fn suffices(&self) -> bool {
        self.rank_correlation[0] >= MIN_RANK_CORRELATION
            && self.mean_error.is_none_or(|error| error <= MAX_MEAN_ERROR)
            && self
                .regret_of_constant_rule
                .is_none_or(|constant| self.regret[1] <= constant)
    }
}

impl From<&ModelTest> for Accuracy {
    fn from(test: &ModelTest) -> Self {
        Self {
            points: test.points,
            mean_error: test.mean_error,
            rank_correlation: test.rank_correlation,
            regret: test.regret,
            regret_of_constant_rule: test.regret_of_constant_rule,
        }
    }
}

/// A summary of the record in a few words, shown next to a prediction.
pub fn on_record(accuracy: Option<&Accuracy>) -> String {
    match accuracy {
        None => "the model is not validated on this device and decides nothing".to_owned(),
        Some(accuracy) if accuracy.suffices() => accuracy.to_string(),
        Some(accuracy) => format!("{accuracy}; too inaccurate to decide anything"),
    }
}

impl fmt::Display for Accuracy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the model was tested on {} times of this device:",
            self.points
        )?;
        if let Some(error) = self.mean_error {
            write!(formatter, " mean error {:.0} %,", error * 100.0)?;
        }
        let [low, high] = self.rank_correlation;
        let percent = |share: f64| share * 100.0;
        let [least, most] = self.regret.map(percent);
        if low == high {
            write!(formatter, " rank correlation {low:.2}")?;
        } else {
            write!(formatter, " rank correlation {low:.2} to {high:.2}")?;
        }
        if least == most {
            write!(formatter, ", its first choice {least:.1} % slower than the best")?;
        } else {
            write!(
                formatter,
                ", its first choice {least:.0} to {most:.0} % slower than the best"
            )?;
        }
        match self.regret_of_constant_rule.map(percent) {
            Some(constant) => write!(formatter, " (a constant rule: {constant:.1} %)"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_the_record_that_was_made_of_it() {
        let gemm = "grouped-gemm";
        let of = |name: &str, family: &str| Accuracy::of(&Device::builtin(name).unwrap(), family);
        let h200 = of("h200", gemm).unwrap();
        assert!(h200.suffices(), "{h200}");
        let b200 = of("b200", gemm).unwrap();
        assert!(!b200.suffices());
        assert_eq!(
            on_record(Some(&b200)),
            "the model was tested on 320 times of this device: rank correlation -0.18 to 0.16, its first choice 11 to \
             13 % slower than the best (a constant rule: 3.6 %); too inaccurate to decide anything"
        );
        assert_eq!(of("l4", gemm), None);
        // One family without a record leaves them all without one.
        let attention = "attention";
        assert_eq!(of("h200", attention), None);
        let device = Device::builtin("h200").unwrap();
        assert_eq!(Accuracy::of_all(&device, [gemm, attention]), None);
        assert_eq!(Accuracy::of_all(&device, [gemm, gemm]), Some(h200));
    }

    #[test]
    fn each_bar_counts() {
        let good = Accuracy {
            points: 100,
            mean_error: Some(0.1),
            rank_correlation: [0.85, 0.95],
            regret: [0.01, 0.03],
            regret_of_constant_rule: Some(0.036),
        };
        assert!(good.suffices());
        for worse in [
            Accuracy {
                mean_error: Some(0.26),
                ..good
            },
            Accuracy {
                rank_correlation: [0.53, 0.95],
                ..good
            },
            Accuracy {
                regret: [0.01, 0.042],
                ..good
            },
        ] {
            assert!(!worse.suffices(), "{worse}");
        }
    }
}
