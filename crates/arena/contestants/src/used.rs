//! What questions have cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one question, or all of a participant's, has cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Used {
    /// Lines of a program; answers and uses of tools of a model.
    pub turns: u32,
    /// Tokens that a model has read.
    pub tokens_in: u64,
    /// Tokens that a model has written.
    pub tokens_out: u64,
    /// Seconds for which an answer was awaited, without the time that tools took, without the time for which a program had no processor,
    /// and without pauses after faults of a provider.
    pub wall: f64,
    /// Uses of `check` and `quick`.
    pub checks: u32,
    /// Money, if the file says what a token costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<f64>,
}

impl Used {
    /// Tokens in both directions.
    pub fn tokens(&self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }

    /// What came to it since an earlier state.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            turns: self.turns - earlier.turns,
            tokens_in: self.tokens_in - earlier.tokens_in,
            tokens_out: self.tokens_out - earlier.tokens_out,
            wall: self.wall - earlier.wall,
            checks: self.checks - earlier.checks,
            money: self.money.map(|money| money - earlier.money.unwrap_or(0.0)),
        }
    }

    /// Adds what another question has cost.
    pub fn add(&mut self, other: &Self) {
        self.turns = self.turns.saturating_add(other.turns);
        self.tokens_in = self.tokens_in.saturating_add(other.tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(other.tokens_out);
        self.wall += other.wall;
        self.checks = self.checks.saturating_add(other.checks);
        if let Some(money) = other.money {
            *self.money.get_or_insert_default() += money;
        }
    }
}
