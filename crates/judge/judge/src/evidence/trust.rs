//! How far the kernels of a comparison are trusted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether anything is done against a kernel that wants to deceive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// Every defence: someone else's kernel, an agent's, whatever is recorded as adopted.
    #[default]
    Watched,
    /// The user's own kernels, which are compared in seconds: right on inputs that they have not seen, in confined processes,
    /// with an interval; but no defence against a kernel that remembers, guesses, or works outside of its calls.
    Quick,
}

impl Trust {
    /// Whether every defence is up.
    pub fn is_watched(&self) -> bool {
        *self == Self::Watched
    }

    /// What a report says of a comparison; nothing of a watched one.
    pub fn sentence(self) -> Option<&'static str> {
        match self {
            Self::Watched => None,
            Self::Quick => {
                Some("quick: not watched for cheats, and operands may stay in a large cache between calls")
            }
        }
    }
}
