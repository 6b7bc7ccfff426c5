//! Abort rules: conditions, fixed by a candidate's author beforehand, under which the candidate is given up.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule and its reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AbortRule {
    /// The condition, such as `baseline.epilogue-share < 0.03`.
    pub when: Condition,
    /// Why the condition ends the candidate.
    pub why: String,
}

/// `metric < number`, `metric > number`; see [`METRICS`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Condition {
    metric: String,
    below: bool,
    bound: f64,
}

/// The metric that is a prediction of the model, not a measurement.
pub const PREDICTED_SPEEDUP: &str = "predicted.speedup";

/// The metrics that a condition may use, and the gate that determines each.
pub const METRICS: [(&str, &str); 28] = [
    (
        PREDICTED_SPEEDUP,
        "worth it: the middle of the model's prediction; counts only on devices where the model was validated",
    ),
    (
        "baseline.setup-share",
        "the baseline's profile: part of the call outside the kernel",
    ),
    (
        "baseline.load-share",
        "the baseline's profile: loading and converting operands",
    ),
    ("baseline.multiply-share", "the baseline's profile: multiplying"),
    (
        "baseline.epilogue-share",
        "the baseline's profile: storing results",
    ),
    ("baseline.wait-share", "the baseline's profile: waiting"),
    (
        "candidate.setup-share",
        "profiled: part of the call outside the kernel",
    ),
    (
        "candidate.load-share",
        "profiled: loading and converting operands",
    ),
    ("candidate.multiply-share", "profiled: multiplying"),
    ("candidate.epilogue-share", "profiled: storing results"),
    ("candidate.wait-share", "profiled: waiting"),
    (
        "baseline.tensor-pipe",
        "the baseline's profile: share of the time in which a GPU's matrix units work",
    ),
    (
        "baseline.issue-slots",
        "the baseline's profile: share of a GPU's issue slots in use",
    ),
    (
        "baseline.l2-throughput",
        "the baseline's profile: share of what a GPU's second-level cache can do",
    ),
    (
        "baseline.dram-throughput",
        "the baseline's profile: share of what a GPU's memory can do",
    ),
    (
        "baseline.occupancy",
        "the baseline's profile: share of the warps that fit a multiprocessor",
    ),
    (
        "baseline.bank-conflicts",
        "the baseline's profile: conflicts in a GPU's shared memory",
    ),
    (
        "candidate.tensor-pipe",
        "profiled: share of the time in which a GPU's matrix units work",
    ),
    (
        "candidate.issue-slots",
        "profiled: share of a GPU's issue slots in use",
    ),
    (
        "candidate.l2-throughput",
        "profiled: share of what a GPU's second-level cache can do",
    ),
    (
        "candidate.dram-throughput",
        "profiled: share of what a GPU's memory can do",
    ),
    (
        "candidate.occupancy",
        "profiled: share of the warps that fit a multiprocessor",
    ),
    (
        "candidate.bank-conflicts",
        "profiled: conflicts in a GPU's shared memory",
    ),
    ("resources.registers", "compiles: registers a thread"),
    ("resources.spills", "compiles: bytes of registers spilled"),
    ("resources.shared-memory-bytes", "compiles: shared memory a block"),
    (
        "resources.panel-bytes",
        "compiles: dequantised panels a thread (cpu)",
    ),
    ("resources.workspace-bytes", "compiles: all scratch memory"),
];

/// What a candidate's author fixed beforehand. Baselines have none.
#[derive(Debug, Clone, Copy)]
pub struct Proposal<'a> {
    /// When to give the candidate up.
    pub abort: &'a [AbortRule],
    /// The median of the speed-up, in the author's view: as likely to be exceeded as not.
    pub claim: f64,
}

/// Figures determined so far, by the names of [`METRICS`].
pub type Metrics = BTreeMap<String, f64>;

impl TryFrom<String> for Condition {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (separator, below) = if text.contains('<') {
            ('<', true)
        } else {
            ('>', false)
        };
        let Some((metric, bound)) = text.split_once(separator) else {
            return Err(format!(
                "`{text}` is not a condition; write `metric < number` or `metric > number`"
            ));
        };
        let metric = metric.trim();
        if !METRICS.iter().any(|(known, _)| *known == metric) {
            let known: Vec<_> = METRICS.iter().map(|(known, _)| *known).collect();
            return Err(format!("`{metric}` is not a metric; one of {}", known.join(", ")));
        }
        let bound: f64 = bound
            .trim()
            .parse()
            .map_err(|_| format!("`{}` is not a number", bound.trim()))?;
        if !bound.is_finite() {
            return Err(format!("`{text}`: the bound must be finite"));
        }
        Ok(Self {
            metric: metric.to_owned(),
            below,
            bound,
        })
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> Self {
        condition.to_string()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} {} {}",
            self.metric,
            if self.below { '<' } else { '>' },
            self.bound
        )
    }
}

impl Condition {
    /// The metric that the condition uses, one of [`METRICS`].
    pub fn metric(&self) -> &str {
        &self.metric
    }

    /// Whether the condition holds; none while its metric is not known.
    fn holds(&self, metrics: &Metrics) -> Option<bool> {
        let value = *metrics.get(&self.metric)?;
        Some(if self.below {
            value < self.bound
        } else {
            value > self.bound
        })
    }
}

impl AbortRule {
    /// Whether the condition is about the model's prediction.
    pub fn asks_the_model(&self) -> bool {
        self.when.metric == PREDICTED_SPEEDUP
    }

    /// The first rule that is met, in words, with the value that meets it.
    pub fn first_met<'a>(rules: impl IntoIterator<Item = &'a Self>, metrics: &Metrics) -> Option<String> {
        let rule = rules
            .into_iter()
            .find(|rule| rule.when.holds(metrics) == Some(true))?;
        let value = metrics.get(&rule.when.metric)?;
        Some(format!(
            "{} is {value:.3}, and the candidate is to be given up when {}: {}",
            rule.when.metric, rule.when, rule.why
        ))
    }

    /// The rules whose metric could not be determined.
    pub fn unanswered<'a>(rules: impl IntoIterator<Item = &'a Self>, metrics: &Metrics) -> Vec<&'a Self> {
        rules
            .into_iter()
            .filter(|rule| rule.when.holds(metrics).is_none())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(when: &str) -> Result<AbortRule, String> {
        Ok(AbortRule {
            when: Condition::try_from(when.to_owned())?,
            why: "too small".to_owned(),
        })
    }

    #[test]
    fn a_rule_is_met_only_by_a_known_value() {
        let rules = [rule("baseline.epilogue-share < 0.03").unwrap()];
        assert_eq!(AbortRule::first_met(&rules, &Metrics::new()), None);
        assert_eq!(AbortRule::unanswered(&rules, &Metrics::new()).len(), 1);
        let share = |value| Metrics::from([("baseline.epilogue-share".to_owned(), value)]);
        assert_eq!(AbortRule::first_met(&rules, &share(0.03)), None);
        let met = AbortRule::first_met(&rules, &share(0.029)).unwrap();
        assert!(met.contains("0.029") && met.contains("too small"), "{met}");
    }

    #[test]
    fn a_malformed_condition_says_what_is_known() {
        assert!(
            rule("epilogue < 0.03")
                .unwrap_err()
                .contains("baseline.epilogue-share")
        );
        assert!(
            rule("baseline.load-share = 1")
                .unwrap_err()
                .contains("metric < number")
        );
        assert!(
            rule("baseline.load-share < much")
                .unwrap_err()
                .contains("`much` is not a number")
        );
    }
}
