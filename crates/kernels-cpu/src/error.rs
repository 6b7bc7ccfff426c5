//! Why an engine, a kernel or a run is refused.

use gauntlet_operations::{MAX_HEAD_SIZE, OperationError};
use thiserror::Error;

use crate::memory::OutOfMemory;
use crate::simd::SimdError;

/// Why an engine cannot be made.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The instruction set asked for is not here.
    #[error(transparent)]
    Simd(#[from] SimdError),
    /// No thread at all was asked for.
    #[error("threads = 0: an engine needs at least 1 thread")]
    NoThreads,
    /// More threads than an engine takes.
    #[error(
        "threads = {threads}: an engine takes at most {most}; there is nothing to gain from more than processors"
    )]
    TooManyThreads {
        /// Threads asked for.
        threads: usize,
        /// The most.
        most: usize,
    },
    /// The operating system gave no thread.
    #[error("cannot start {threads} threads; ask for fewer")]
    Spawn {
        /// Threads asked for.
        threads: usize,
        /// What the operating system said.
        source: std::io::Error,
    },
}

/// Why a schedule cannot compute a problem on this engine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BuildError {
    /// The sizes make no problem.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// A word that counts something is zero.
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
    /// Attention's tile does not have the head's depth.
    #[error("tile.k = {found}: for attention tile.k is the head size; use {head_size}")]
    TileHead {
        /// `tile.k`.
        found: usize,
        /// Values a head.
        head_size: usize,
    },
    /// A CPU has no clusters.
    #[error("cluster = [{m}, {n}]: CPU threads share no loads; use [1, 1]")]
    Cluster {
        /// Along rows.
        m: usize,
        /// Along columns.
        n: usize,
    },
    /// There is nobody to specialise.
    #[error(
        "roles = specialised: needs at least 2 threads, one of them to load, and the engine has {threads}; use roles = unified or more threads"
    )]
    TooFewThreads {
        /// Threads of the engine.
        threads: usize,
    },
    /// A head size outside what is supported.
    #[error("head_size = {found}: the CPU computes multiples of 8 from 8 to {MAX_HEAD_SIZE}")]
    HeadSize {
        /// The head size.
        found: usize,
    },
    /// More tiles than a table should hold.
    #[error(
        "the tile cuts the problem into {tiles} tiles, over the limit of {limit}; use a larger tile or a smaller split-k"
    )]
    TooManyTiles {
        /// Tiles.
        tiles: usize,
        /// Tiles allowed.
        limit: usize,
    },
    /// A workspace larger than the memory that is free.
    #[error(
        "the workspace needs {bytes} bytes, and {available} can be had; use a smaller tile, fewer stages or a smaller split-k"
    )]
    WorkspaceTooLarge {
        /// Bytes of all buffers; `usize::MAX` stands for more than can be addressed.
        bytes: usize,
        /// Bytes that can be had.
        available: usize,
    },
    /// The workspace cannot be had.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// Why a run is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunError {
    /// An operand is not of the problem the kernel was built for.
    #[error("{what}: {found}, but the kernel was built for {expected}; build it for this problem")]
    Mismatch {
        /// Which operand and which property of it.
        what: String,
        /// As given.
        found: String,
        /// As the problem has it.
        expected: String,
    },
    /// The plan cannot be made again (set-up per call).
    #[error(transparent)]
    Plan(BuildError),
    /// The workspace of this call cannot be had.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// Operands of the other family.
pub(crate) fn wrong_family(found: &str, expected: &str) -> RunError {
    RunError::Mismatch {
        what: "inputs".into(),
        found: found.into(),
        expected: expected.into(),
    }
}

/// `Ok` if `found` is what the problem has.
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
