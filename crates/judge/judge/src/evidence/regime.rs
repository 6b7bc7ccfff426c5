//! In which state of the device calls are timed.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// In which state of the device calls are timed. A change can gain in one regime and nothing in the other, so a verdict
/// holds for one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Regime {
    /// Short requests with pauses between them: the latency of a call, at the clock that a cool device reaches.
    #[default]
    Isolated,
    /// Each timed request follows at once on a load of calls of the same side: the clock that the device's power limit and
    /// temperature leave under load.
    Sustained,
}

impl fmt::Display for Regime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Isolated => "isolated",
            Self::Sustained => "sustained",
        })
    }
}
