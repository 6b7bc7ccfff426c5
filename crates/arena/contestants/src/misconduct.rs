//! Questions that got no answer.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Error)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Misconduct {
    /// The program cannot be started.
    #[error("`{program}` cannot be started: {why}")]
    NotStarted {
        /// The program.
        program: String,
        /// What the system says.
        why: String,
    },
    /// The time was up before an answer came.
    #[error(
        "it gave no answer within {seconds:.0} s, which is all of its time{}",
        told(stderr)
    )]
    Silent {
        /// For how long it was waited for.
        seconds: f64,
        /// The last 4 KiB that a program wrote to standard error.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stderr: String,
    },
    /// The program ended without an answer.
    #[error("it ended without an answer ({status}){}", told(stderr))]
    Ended {
        /// How.
        status: String,
        /// The last 4 KiB that it wrote to standard error.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stderr: String,
    },
    /// It wrote more than is read.
    #[error("it wrote {what}")]
    Flooded {
        /// What was too much.
        what: String,
    },
    /// None of its answers had the right form.
    #[error(
        "it was asked three times, and its last answer was refused too: {why}{}",
        told(stderr)
    )]
    Malformed {
        /// What was wrong with the last one.
        why: String,
        /// The last 4 KiB that a program wrote to standard error.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stderr: String,
    },
    /// The model declined to answer.
    #[error("the model was asked three times and declined: {why}")]
    Refused {
        /// What it said.
        why: String,
    },
    /// A budget is used up.
    #[error("its budget of {resource} is used up")]
    Spent {
        /// Which.
        resource: Resource,
    },
    /// The provider or the way to it failed.
    #[error("{why}")]
    Environment {
        /// How, and what to do about it.
        why: String,
    },
}

/// What a participant may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Lines of a program; answers and uses of tools of a model.
    Turns,
    /// Tokens.
    Tokens,
    /// Time.
    Wall,
    /// What a model can read at once.
    Context,
}

/// Whose fault it is that there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The participant's.
    Participant,
    /// That of this machine, the network, the provider, or of the file that names it.
    Environment,
}

impl Misconduct {
    /// The same with what a program wrote to standard error, where that may say why.
    pub(crate) fn with_stderr(mut self, tail: String) -> Self {
        if let Self::Silent { stderr, .. } | Self::Malformed { stderr, .. } = &mut self {
            *stderr = tail;
        }
        self
    }

    /// Whose fault it is.
    pub fn whose(&self) -> Whose {
        match self {
            Self::NotStarted { .. } | Self::Environment { .. } => Whose::Environment,
            _ => Whose::Participant,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Turns => "turns",
            Self::Tokens => "tokens",
            Self::Wall => "time",
            Self::Context => "what the model can read at once",
        })
    }
}

fn told(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        words => format!(", and said:\n{words}"),
    }
}
