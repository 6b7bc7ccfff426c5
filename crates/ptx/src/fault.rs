//! What goes wrong.

use thiserror::Error;

/// Why a text cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// No kernel of that name.
    #[error("the PTX has no kernel `{0}`")]
    NoKernel(String),
    /// Something that is not understood; lines are counted from 1.
    #[error("line {line}: `{text}`: {problem}")]
    Line {
        /// Which line.
        line: usize,
        /// The statement.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Why a launch did not end well.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// A launch that the kernel does not fit.
    #[error("{0}")]
    Launch(String),
    /// A thread did what it must not.
    #[error("block {block}, thread {thread}, line {line}, `{text}`: {problem}")]
    Thread {
        /// Its block.
        block: u32,
        /// Its number in the block.
        thread: u32,
        /// The line of the PTX.
        line: usize,
        /// The statement there.
        text: String,
        /// What is wrong.
        problem: String,
    },
    /// A copy failed when it was made.
    #[error("a copy that block {block} asked for: {problem}")]
    Copy {
        /// The block.
        block: u32,
        /// What is wrong.
        problem: String,
    },
    /// Nobody can go on.
    #[error("nothing goes on: {0}")]
    Deadlock(String),
}

/// What is wrong, before it is known where.
pub(crate) type Problem = String;
