//! The true difference between the two sides, and which verdicts on it are wrong.

use std::fmt;

use gauntlet_stats::{Criteria, Decision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The slow-down of one side, as a fraction: a positive effect slows the baseline, so that the candidate is the faster
/// one; a negative effect slows the candidate; 0 compares a thing with itself.
///
/// A gain is produced by slowing the baseline, because a kernel cannot be made faster on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Effect(f64);

impl Effect {
    /// No difference (A/A).
    pub const NONE: Self = Self(0.0);

    /// The injected effects: none, slow-downs from undetectable to obvious, and gains worth adopting.
    pub const INJECTED: [Self; 7] = [
        Self::NONE,
        Self(-0.005),
        Self(-0.01),
        Self::SLOWER,
        Self(0.01),
        Self(0.03),
        Self::FASTER,
    ];

    /// The slow-down that has to be found.
    pub const SLOWER: Self = Self(-0.05);

    /// The gain that has to be found.
    pub const FASTER: Self = Self(0.05);

    /// A candidate that is this fraction faster; slower if it is negative.
    pub const fn of(fraction: f64) -> Self {
        Self(fraction)
    }

    /// The fraction by which the baseline's calls take longer.
    pub fn on_baseline(self) -> f64 {
        self.0.max(0.0)
    }

    /// The fraction by which the candidate's calls take longer.
    pub fn on_candidate(self) -> f64 {
        (-self.0).max(0.0)
    }

    /// The true log speed-up of the candidate.
    pub fn log_speedup(self) -> f64 {
        self.on_baseline().ln_1p() - self.on_candidate().ln_1p()
    }

    /// Whether an adoption would be wrong: the true speed-up is below the target.
    pub fn forbids_adoption(self, criteria: &Criteria) -> bool {
        self.log_speedup() < criteria.log_target()
    }

    /// Whether the verdict *regression* would be wrong: the truth is above −ε.
    pub fn forbids_regression(self, criteria: &Criteria) -> bool {
        self.log_speedup() > criteria.log_practically_zero().0
    }

    /// Whether a decision finds the effect: a regression for a slow-down beyond ε, an adoption or *marginal* for a gain
    /// beyond it, and a valid negative for an effect that is practically zero.
    pub fn is_found_by(self, decision: Decision, criteria: &Criteria) -> bool {
        let (least_zero, greatest_zero) = criteria.log_practically_zero();
        let truth = self.log_speedup();
        match decision {
            Decision::Adopt | Decision::Marginal => truth >= greatest_zero,
            Decision::Regression => truth <= least_zero,
            Decision::ValidNegative => least_zero < truth && truth < greatest_zero,
            Decision::Inconclusive => false,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounds away binary noise below a millionth of a percent.
        let percent = (self.0.abs() * 1e8).round() / 1e6;
        match self.0 {
            slower if slower < 0.0 => write!(formatter, "{percent} % slower"),
            faster if faster > 0.0 => write!(formatter, "{percent} % faster"),
            _ => formatter.write_str("the same"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowing_one_arm_down_mirrors_slowing_the_other() {
        assert!((Effect::SLOWER.log_speedup() + 1.05f64.ln()).abs() < 1e-15);
        assert_eq!(Effect::FASTER.log_speedup(), -Effect::SLOWER.log_speedup());
        assert_eq!(
            (Effect::FASTER.on_baseline(), Effect::FASTER.on_candidate()),
            (0.05, 0.0)
        );
        assert_eq!(Effect::NONE.log_speedup(), 0.0);
    }

    #[test]
    fn what_finds_an_effect_and_what_is_wrong_about_it() {
        use Decision::{Adopt, Inconclusive, Marginal, Regression, ValidNegative};
        let criteria = Criteria::default();
        let found = |effect: Effect| {
            [Adopt, Marginal, ValidNegative, Regression, Inconclusive]
                .into_iter()
                .filter(|decision| effect.is_found_by(*decision, &criteria))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(Effect::NONE), [ValidNegative]);
        assert_eq!(found(Effect(-0.005)), [ValidNegative]);
        // 1 % longer is 0.99 % slower, which is just within ε = 1 %.
        assert_eq!(found(Effect(-0.01)), [ValidNegative]);
        assert_eq!(found(Effect(-0.02)), [Regression]);
        assert_eq!(found(Effect::FASTER), [Adopt, Marginal]);
        let forbidden = |effect: Effect| {
            (
                effect.forbids_adoption(&criteria),
                effect.forbids_regression(&criteria),
            )
        };
        assert_eq!(forbidden(Effect::NONE), (true, true));
        assert_eq!(forbidden(Effect::SLOWER), (true, false));
        assert_eq!(forbidden(Effect::FASTER), (false, true));
    }

    #[test]
    fn effects_read_as_people_say_them() {
        let texts: Vec<String> = Effect::INJECTED.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "the same",
                "0.5 % slower",
                "1 % slower",
                "5 % slower",
                "1 % faster",
                "3 % faster",
                "5 % faster"
            ]
        );
    }
}
