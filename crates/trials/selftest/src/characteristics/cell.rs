//! Comparisons of one truth on one machine, decided by every rule.

use gauntlet_stats::{Criteria, Decision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::effect::Effect;
use super::rule::{Rule, rivals};
use super::tally::Tally;
use super::trial::Trial;

/// Many comparisons of one truth on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Cell {
    /// A kind of noise, or this machine.
    pub machine: String,
    /// The injected effect.
    pub effect: Effect,
    /// The mean number of pairs of processes that the lab measured before it decided or reached its limit.
    pub pairs: f64,
    /// The mean time that this took, in seconds; simulated ones on a synthetic machine.
    pub seconds: f64,
    /// The tally of each rule; the lab's own first.
    pub rules: Vec<Tally>,
}

impl Cell {
    /// Counts the lab's decision in each trial, and the rivals' decisions on its calls.
    pub fn new(machine: &str, effect: Effect, trials: &[Judged], criteria: &Criteria) -> Self {
        let pairs: usize = trials.iter().map(|trial| trial.pairs).sum();
        let own: Vec<Decision> = trials.iter().map(|trial| trial.decision).collect();
        let mut rules = vec![Tally::new(Rule::Gauntlet, &own, effect, criteria)];
        let planned: Option<Vec<Decision>> = trials.iter().map(|trial| trial.planned).collect();
        rules.extend(planned.map(|planned| Tally::new(Rule::Planned, &planned, effect, criteria)));
        for (place, rule) in Rule::RIVALS.into_iter().enumerate() {
            let said: Vec<Decision> = trials.iter().map(|trial| trial.rivals[place]).collect();
            rules.push(Tally::new(rule, &said, effect, criteria));
        }
        Self {
            machine: machine.to_owned(),
            effect,
            pairs: pairs as f64 / trials.len() as f64,
            seconds: trials.iter().map(|trial| trial.seconds).sum::<f64>() / trials.len() as f64,
            rules,
        }
    }

    /// The tally of a rule.
    pub fn tally(&self, rule: Rule) -> Option<&Tally> {
        self.rules.iter().find(|tally| tally.rule == rule)
    }
}

/// A trial with the decisions of every rule, without its calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    decision: Decision,
    planned: Option<Decision>,
    pairs: usize,
    seconds: f64,
    rivals: [Decision; Rule::RIVALS.len()],
}

impl Judged {
    /// Applies the rival rules.
    pub fn new(trial: &Trial, criteria: &Criteria) -> Self {
        Self {
            decision: trial.decision,
            planned: trial.planned,
            pairs: trial.pairs,
            seconds: trial.seconds,
            rivals: rivals(&trial.calls, criteria, trial.seed),
        }
    }
}
