//! A lone call of one side.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comparison::slot::Slot;

/// What a lone call took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LoneCall {
    /// Seconds by the worker's report.
    pub reported: f64,
    /// Seconds by the coordinator's clock, with messages.
    pub elapsed: f64,
    /// Whether the coordinator clocked the call by itself, and not the whole exchange.
    pub is_stepped: bool,
}

impl LoneCall {
    /// The only call of a slot.
    pub fn of(slot: &Slot) -> Self {
        Self {
            reported: slot.sum,
            elapsed: slot.elapsed(),
            is_stepped: slot.is_stepped(),
        }
    }
}
