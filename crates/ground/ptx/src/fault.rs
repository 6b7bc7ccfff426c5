//! Errors and faults.

use thiserror::Error;

/// Why a text cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// No kernel of that name.
    #[error("the PTX has no kernel `{0}`")]
    NoKernel(String),
    /// A line that is not understood; lines are counted from 1.
    #[error("line {line}: `{text}`: {problem}")]
    Line {
        /// Which line.
        line: usize,
        /// The statement.
        text: String,
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
    #[error("block {block}, thread {thread}, line {line}, `{text}`: {problem}")]
    Thread {
        /// Its block.
        block: u32,
        /// The thread's number in its block.
        thread: u32,
        /// The line of the PTX.
        line: usize,
        /// The statement there.
        text: String,
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

/// An error message without its location.
pub(crate) type Problem = String;
