//! Errors: why an engine, a kernel or a run is refused.

use gauntlet_problems::{MAX_HEAD_SIZE, OperationError};
use thiserror::Error;

use crate::memory::OutOfMemory;
use crate::simd::SimdError;

/// Why an engine cannot be made.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The requested instruction set is not available.
    #[error(transparent)]
    Simd(#[from] SimdError),
    /// Zero threads were requested.
    #[error("threads = 0: an engine needs at least 1 thread")]
    NoThreads,
    /// More threads were requested than an engine supports.
    #[error(
        "threads = {threads}: an engine takes at most {most}; there is nothing to gain from more than processors"
    )]
    TooManyThreads {
        /// Threads requested.
        threads: usize,
        /// The maximum.
        most: usize,
    },
    /// The operating system refused to start a thread.
    #[error("cannot start {threads} threads; ask for fewer")]
    Spawn {
        /// Threads requested.
        threads: usize,
        /// The operating system's error.
        source: std::io::Error,
    },
}

/// Why a schedule cannot compute a problem on this engine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BuildError {
    /// The problem's sizes are invalid.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// A schedule value that must be positive is zero.
    #[error("{word} = 0: must be at least 1")]
    Zero {
        /// The word.
        word: &'static str,
    },
    /// A stage would split a scale block.
    #[error("tile.k = {found}: on the CPU a stage holds whole scale blocks of 16 values; try {}", found.next_multiple_of(16))]
    TileDepth {
        /// `tile.k`.
        found: usize,
    },
    /// The depth of attention's tile is not the head size.
    #[error("tile.k = {found}: for attention tile.k is the head size; use {head_size}")]
    TileHead {
        /// `tile.k`.
        found: usize,
        /// Values per head.
        head_size: usize,
    },
    /// The cluster is not \[1, 1\]: a CPU has no clusters.
    #[error("cluster = [{m}, {n}]: CPU threads share no loads; use [1, 1]")]
    Cluster {
        /// Cluster size along rows.
        m: usize,
        /// Cluster size along columns.
        n: usize,
    },
    /// Specialised roles need at least two threads.
    #[error(
        "roles = specialised: needs at least 2 threads, one of them to load, and the engine has {threads}; use roles = unified or more threads"
    )]
    TooFewThreads {
        /// Threads of the engine.
        threads: usize,
    },
    /// The head size is not supported.
    #[error("head_size = {found}: the CPU computes multiples of 8 from 8 to {MAX_HEAD_SIZE}")]
    HeadSize {
        /// The head size.
        found: usize,
    },
    /// More tiles than the tables may hold.
    #[error(
        "the tile cuts the problem into {tiles} tiles, over the limit of {limit}; use a larger tile or a smaller split-k"
    )]
    TooManyTiles {
        /// The number of tiles.
        tiles: usize,
        /// The maximum.
        limit: usize,
    },
    /// The workspace is larger than the free memory.
    #[error(
        "the workspace needs {bytes} bytes, and {available} can be had; use a smaller tile, fewer stages or a smaller split-k"
    )]
    WorkspaceTooLarge {
        /// Bytes of all buffers; `usize::MAX` stands for more than can be addressed.
        bytes: usize,
        /// Bytes that are free.
        available: usize,
    },
    /// The workspace cannot be allocated.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// Why a run is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunError {
    /// An operand does not match the problem that the kernel was built for.
    #[error("{what}: {found}, but the kernel was built for {expected}; build it for this problem")]
    Mismatch {
        /// The operand and the property that differs.
        what: String,
        /// The given value.
        found: String,
        /// The problem's value.
        expected: String,
    },
    /// The plan cannot be made again (set-up per call).
    #[error(transparent)]
    Plan(BuildError),
    /// The workspace of this call cannot be allocated.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// There is no memory for the result.
    #[error("the result has {bytes} bytes, for which there is no memory; use smaller sizes")]
    Result {
        /// Its size.
        bytes: usize,
    },
    /// This process was forked, and the threads that it has to start again cannot be started.
    #[error("cannot start the {threads} threads of the engine again after a fork; make an engine with fewer")]
    Spawn {
        /// Threads of the engine.
        threads: usize,
    },
}

/// The operands belong to the other kernel family.
pub(crate) fn wrong_family(found: &str, expected: &str) -> RunError {
    RunError::Mismatch {
        what: "inputs".into(),
        found: found.into(),
        expected: expected.into(),
    }
}

/// `Ok` if `found` equals `expected`.
pub(crate) fn expect_equal<T: PartialEq + std::fmt::Debug>(
    what: impl FnOnce() -> String,
    found: T,
    expected: T,
) -> Result<(), RunError> {
    if found == expected {
        return Ok(());
    }
    Err(RunError::Mismatch {
        what: what(),
        found: format!("{found:?}"),
        expected: format!("{expected:?}"),
    })
}
