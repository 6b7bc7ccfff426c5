//! Comparisons of one truth on one machine: what every rule made of them.

use gauntlet_stats::{Criteria, Decision};
use serde::{Deserialize, Serialize};

use super::effect::Effect;
use super::rule::{Rule, rivals};
use super::tally::Tally;
use super::trial::Trial;

/// Many comparisons of one truth on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cell {
    /// A kind of noise, or this machine.
    pub machine: String,
    /// What was injected.
    pub effect: Effect,
    /// The mean number of pairs of processes that the lab measured before it decided or had to end.
    pub pairs: f64,
    /// What each rule decided; the lab's own first.
    pub rules: Vec<Tally>,
}

impl Cell {
    /// Counts what the lab decided in each trial, and what the rivals say to its calls.
    pub fn new(machine: &str, effect: Effect, trials: &[Judged], criteria: &Criteria) -> Self {
        let pairs: usize = trials.iter().map(|trial| trial.pairs).sum();
        let own: Vec<Decision> = trials.iter().map(|trial| trial.decision).collect();
        let mut rules = vec![Tally::new(Rule::Gauntlet, &own, effect, criteria)];
        for (place, rule) in Rule::RIVALS.into_iter().enumerate() {
            let said: Vec<Decision> = trials.iter().map(|trial| trial.rivals[place]).collect();
            rules.push(Tally::new(rule, &said, effect, criteria));
        }
        Self {
            machine: machine.to_owned(),
            effect,
            pairs: pairs as f64 / trials.len() as f64,
            rules,
        }
    }

    /// What a rule decided.
    pub fn tally(&self, rule: Rule) -> Option<&Tally> {
        self.rules.iter().find(|tally| tally.rule == rule)
    }
}

/// A trial with what every rule says to it, its calls forgotten.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    decision: Decision,
    pairs: usize,
    rivals: [Decision; Rule::RIVALS.len()],
}

impl Judged {
    /// Asks the rivals.
    pub fn new(trial: &Trial, criteria: &Criteria) -> Self {
        Self {
            decision: trial.decision,
            pairs: trial.pairs,
            rivals: rivals(&trial.calls, criteria, trial.seed),
        }
    }
}
