//! What counts as success, fixed before anything is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sign_flip::MIN_RESAMPLES;
use crate::{Error, LookPlan, log_speedup};

/// More would take gigabytes and add no information.
const MAX_RESAMPLES: usize = 1_000_000;

/// The criteria of a round. Speed-ups are fractions: 0.02 is 2 % faster, −0.05 is 5 % slower.
///
/// All have defaults, and a file may name only those that differ; call [`Criteria::validate`] after reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Criteria {
    /// T: a speed-up is worth adopting from here on.
    pub target: f64,
    /// ε: a speed-up between −ε and ε is practically none.
    pub practically_zero: f64,
    /// Two-sided confidence of the whole comparison, all its looks together.
    pub confidence: f64,
    /// No problem of the suite may have a lower speed-up than this.
    pub floor: f64,
    /// How many times the evidence may be looked at; fixed beforehand (see [`LookPlan`]).
    pub looks: usize,
    /// Whether it may be looked at more often than that, with the error spent accordingly.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub open_ended: bool,
    /// Random patterns of signs for the sign-flip test, where all are too many.
    pub resamples: usize,
}

impl Default for Criteria {
    fn default() -> Self {
        Self {
            target: 0.02,
            practically_zero: 0.01,
            confidence: 0.95,
            floor: -0.05,
            looks: 1,
            open_ended: false,
            resamples: 10_000,
        }
    }
}

impl Criteria {
    /// Checks each figure, alone and relative to the others.
    ///
    /// # Errors
    /// The first figure that makes no sense, with the rule it breaks.
    pub fn validate(&self) -> Result<(), Error> {
        let wrong = |name, value, rule| Err(Error::Criterion { name, value, rule });
        if !(self.practically_zero >= 0.0 && self.practically_zero < 1.0) {
            return wrong(
                "practically-zero",
                self.practically_zero,
                "must be at least 0 and less than 1",
            );
        }
        if !(self.target > self.practically_zero && self.target.is_finite()) {
            return wrong(
                "target",
                self.target,
                "must be finite and greater than practically-zero",
            );
        }
        if !(self.floor < 0.0 && self.floor > -1.0) {
            return wrong(
                "floor",
                self.floor,
                "must lie between -1 and 0, both excluded (-0.05 is usual)",
            );
        }
        if self.resamples < MIN_RESAMPLES {
            return Err(Error::TooFewResamples {
                found: self.resamples,
                least: MIN_RESAMPLES,
            });
        }
        if self.resamples > MAX_RESAMPLES {
            return wrong("resamples", self.resamples as f64, "must be at most 1000000");
        }
        self.look_plan().map(|_| ())
    }

    /// The plan of looks at this confidence.
    ///
    /// # Errors
    /// A confidence outside (0.5, 1), or no look at all.
    pub fn look_plan(&self) -> Result<LookPlan, Error> {
        LookPlan::new(self.confidence, self.looks, self.open_ended)
    }

    /// T as a log speed-up, ln(1 + T).
    pub fn log_target(&self) -> f64 {
        log_speedup(self.target)
    }

    /// The bounds of "practically zero" as log speed-ups, ln(1 − ε) and ln(1 + ε).
    pub fn log_practically_zero(&self) -> (f64, f64) {
        (
            log_speedup(-self.practically_zero),
            log_speedup(self.practically_zero),
        )
    }

    /// The floor as a log speed-up, ln(1 + floor).
    pub fn log_floor(&self) -> f64 {
        log_speedup(self.floor)
    }
}

pub(crate) fn check_confidence(value: f64) -> Result<(), Error> {
    if value > 0.5 && value < 1.0 {
        Ok(())
    } else {
        Err(Error::Confidence { value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_convert() {
        let criteria = Criteria::default();
        criteria.validate().unwrap();
        assert!((criteria.log_target() - 1.02f64.ln()).abs() < 1e-15);
        assert!((criteria.log_floor() - 0.95f64.ln()).abs() < 1e-15);
        let (lower, upper) = criteria.log_practically_zero();
        assert!((lower - 0.99f64.ln()).abs() < 1e-15 && (upper - 1.01f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn each_nonsense_is_named() {
        type Edit = fn(&mut Criteria);
        let edits: [(&str, Edit); 9] = [
            ("target", |criteria| criteria.target = 0.01),
            ("target", |criteria| criteria.target = f64::NAN),
            ("practically-zero", |criteria| criteria.practically_zero = -0.01),
            ("floor", |criteria| criteria.floor = 0.0),
            ("floor", |criteria| criteria.floor = -1.0),
            ("confidence", |criteria| criteria.confidence = 0.5),
            ("confidence", |criteria| criteria.confidence = 95.0),
            ("looks", |criteria| criteria.looks = 0),
            ("resamples", |criteria| criteria.resamples = 1 << 40),
        ];
        for (name, edit) in edits {
            let mut criteria = Criteria::default();
            edit(&mut criteria);
            let message = criteria.validate().unwrap_err().to_string();
            assert!(message.contains(&format!("{name} = ")), "{name}: {message}");
        }
        let few = Criteria {
            resamples: 100,
            ..Criteria::default()
        };
        assert!(few.validate().unwrap_err().to_string().contains("at least 200"));
    }

    #[test]
    fn files_may_be_partial_but_not_misspelt() {
        let criteria: Criteria = toml::from_str("target = 0.05").unwrap();
        assert_eq!(
            criteria,
            Criteria {
                target: 0.05,
                ..Criteria::default()
            }
        );
        assert!(toml::from_str::<Criteria>("taget = 0.05").is_err());
    }
}
