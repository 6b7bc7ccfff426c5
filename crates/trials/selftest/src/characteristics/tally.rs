//! The decisions of one rule over many comparisons with the same truth.

use gauntlet_stats::{Criteria, Decision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::effect::Effect;
use super::rule::Rule;
use super::share::Share;

/// A rule's decisions for a known truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Tally {
    /// The rule.
    pub rule: Rule,
    /// The number of comparisons.
    pub comparisons: usize,
    /// How often each decision occurred.
    pub decisions: Decisions,
    /// Adoptions although the true speed-up is below the target; `None` where it is above.
    pub false_adoption: Option<Share>,
    /// Regression verdicts although the truth is above −ε; `None` where it is below.
    pub false_regression: Option<Share>,
    /// The power: the share of correct decisions (see [`Effect::is_found_by`]). `None` where there is no difference and
    /// the rule cannot state that.
    pub found: Option<Share>,
    /// Comparisons without a verdict.
    pub inconclusive: Share,
}

/// How often each decision occurred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Decisions {
    /// Adopt.
    pub adopt: usize,
    /// Marginal.
    pub marginal: usize,
    /// Valid negative.
    pub valid_negative: usize,
    /// Regression.
    pub regression: usize,
    /// Inconclusive.
    pub inconclusive: usize,
}

impl Tally {
    /// Counts a rule's decisions.
    pub fn new(rule: Rule, decisions: &[Decision], effect: Effect, criteria: &Criteria) -> Self {
        let share = |of: &dyn Fn(Decision) -> bool| {
            Share::new(
                decisions.iter().filter(|decision| of(**decision)).count(),
                decisions.len(),
            )
        };
        Self {
            rule,
            comparisons: decisions.len(),
            decisions: Decisions::count(decisions),
            false_adoption: effect
                .forbids_adoption(criteria)
                .then(|| share(&|decision| decision == Decision::Adopt)),
            false_regression: effect
                .forbids_regression(criteria)
                .then(|| share(&|decision| decision == Decision::Regression)),
            found: (rule == Rule::Gauntlet || !effect.is_found_by(Decision::ValidNegative, criteria))
                .then(|| share(&|decision| effect.is_found_by(decision, criteria))),
            inconclusive: share(&|decision| decision == Decision::Inconclusive),
        }
    }
}

impl Decisions {
    fn count(decisions: &[Decision]) -> Self {
        let mut counts = Self::default();
        for decision in decisions {
            *match decision {
                Decision::Adopt => &mut counts.adopt,
                Decision::Marginal => &mut counts.marginal,
                Decision::ValidNegative => &mut counts.valid_negative,
                Decision::Regression => &mut counts.regression,
                Decision::Inconclusive => &mut counts.inconclusive,
            } += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use Decision::{Adopt, Inconclusive, Marginal, Regression, ValidNegative};

    use super::*;

    const SAID: [Decision; 8] = [
        Adopt,
        Marginal,
        ValidNegative,
        ValidNegative,
        Regression,
        Regression,
        Regression,
        Inconclusive,
    ];

    fn tally(rule: Rule, effect: Effect) -> Tally {
        Tally::new(rule, &SAID, effect, &Criteria::default())
    }

    #[test]
    fn what_counts_as_false_and_as_found_follows_from_the_truth() {
        let counts = |effect| {
            let Tally {
                false_adoption,
                false_regression,
                found,
                inconclusive,
                ..
            } = tally(Rule::Gauntlet, effect);
            let count = |share: Option<Share>| share.map(|share| share.count);
            (
                count(false_adoption),
                count(false_regression),
                count(found),
                inconclusive.count,
            )
        };
        assert_eq!(counts(Effect::NONE), (Some(1), Some(3), Some(2), 1));
        assert_eq!(counts(Effect::SLOWER), (Some(1), None, Some(3), 1));
        assert_eq!(counts(Effect::FASTER), (None, Some(3), Some(2), 1));
    }

    #[test]
    fn rivals_cannot_find_that_nothing_changed() {
        assert_eq!(tally(Rule::Welch, Effect::NONE).found, None);
        assert_eq!(tally(Rule::Welch, Effect::SLOWER).found.unwrap().count, 3);
    }

    #[test]
    fn decisions_are_counted() {
        let expected = Decisions {
            adopt: 1,
            marginal: 1,
            valid_negative: 2,
            regression: 3,
            inconclusive: 1,
        };
        assert_eq!(tally(Rule::Gauntlet, Effect::NONE).decisions, expected);
    }
}
