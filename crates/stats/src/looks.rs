//! Looking more than once without cheating.

use crate::Error;
use crate::criteria::check_confidence;

/// A number of looks at growing evidence, fixed before the first, and the confidence to demand at each.
///
/// The error α = 1 − confidence is spent in equal parts: each of L looks uses 1 − α/L. By Bonferroni's
/// inequality the probability that any look errs is at most α, whatever the dependence between looks, the
/// distribution of the data, or the times of looking. It is Pocock's (1977) constant level without his
/// assumption of normal increments, and an alpha-spending plan (Lan & DeMets 1983) with a linear spending
/// function whose correlations are not exploited. The price is small where it is used: for 3 looks Pocock's
/// level is 0.0221 a look, this one's 0.0167.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LookPlan {
    confidence: f64,
    looks: usize,
}

impl LookPlan {
    /// A plan of `looks` looks with the total two-sided error `1 − confidence`.
    ///
    /// # Errors
    /// A confidence outside (0.5, 1), or no look at all.
    pub fn new(confidence: f64, looks: usize) -> Result<Self, Error> {
        check_confidence(confidence)?;
        if looks == 0 {
            return Err(Error::Criterion {
                name: "looks",
                value: 0.0,
                rule: "at least one look is needed",
            });
        }
        Ok(Self { confidence, looks })
    }

    /// How many looks are planned.
    pub fn looks(&self) -> usize {
        self.looks
    }

    /// The confidence level of the interval at a look, counting from 1.
    ///
    /// # Errors
    /// A look that was not planned.
    pub fn confidence_at(&self, look: usize) -> Result<f64, Error> {
        if look == 0 || look > self.looks {
            return Err(Error::UnplannedLook {
                look,
                looks: self.looks,
            });
        }
        Ok(1.0 - (1.0 - self.confidence) / self.looks as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spent_error_adds_up() {
        for looks in [1, 3, 7] {
            let plan = LookPlan::new(0.95, looks).unwrap();
            let spent: f64 = (1..=looks)
                .map(|look| 1.0 - plan.confidence_at(look).unwrap())
                .sum();
            assert!((spent - 0.05).abs() < 1e-12);
        }
        assert_eq!(LookPlan::new(0.95, 1).unwrap().confidence_at(1).unwrap(), 0.95);
    }

    #[test]
    fn no_look_beyond_the_plan() {
        let plan = LookPlan::new(0.95, 3).unwrap();
        for look in [0, 4] {
            assert_eq!(
                plan.confidence_at(look),
                Err(Error::UnplannedLook { look, looks: 3 })
            );
        }
    }
}
