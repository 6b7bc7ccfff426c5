//! Errors and faults.

use std::fmt;

use thiserror::Error;

/// Where an instruction stands: in the source, if the PTX says so (`.loc`), and in the PTX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// The file and its line.
    pub source: Option<String>,
    /// The line of the PTX, counted from 1.
    pub line: usize,
    /// The statement there.
    pub text: String,
}

impl fmt::Display for Spot {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, line, text } = self;
        match source {
            Some(source) => write!(to, "{source} (line {line} of the PTX, `{text}`)"),
            None => write!(to, "line {line}, `{text}`"),
        }
    }
}

/// Why a text cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// No kernel of that name.
    #[error("the PTX has no kernel `{0}`")]
    NoKernel(String),
    /// A line that is not understood; lines are counted from 1.
    #[error("{spot}: {problem}")]
    Line {
        /// Where.
        spot: Spot,
        /// The error.
        problem: String,
    },
}

/// Why a launch did not end well.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// The launch does not fit the kernel.
    #[error("{0}")]
    Launch(String),
    /// A thread did something forbidden.
    #[error("block {block}, thread {thread}, {spot}: {problem}")]
    Thread {
        /// Its block.
        block: u32,
        /// The thread's number in its block.
        thread: u32,
        /// Where.
        spot: Spot,
        /// The error.
        problem: String,
    },
    /// A copy failed when it landed.
    #[error("a copy that block {block} asked for: {problem}")]
    Copy {
        /// The block.
        block: u32,
        /// The error.
        problem: String,
    },
    /// No thread can make progress.
    #[error("nothing goes on: {0}")]
    Deadlock(String),
}

impl Fault {
    /// Whether two accesses to memory race.
    pub fn is_race(&self) -> bool {
        match self {
            Self::Thread { problem, .. } | Self::Copy { problem, .. } => problem.contains("race: "),
            Self::Launch(_) | Self::Deadlock(_) => false,
        }
    }
}

/// An error message without its location.
pub(crate) type Problem = String;
