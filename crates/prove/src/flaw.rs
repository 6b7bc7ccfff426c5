//! Flaws that a tile program may have.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A flaw of a tile program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flaw {
    /// The kind of flaw.
    pub kind: FlawKind,
    /// A one-sentence description.
    pub sentence: String,
    /// The steps of each tile of the smallest block in which it happens.
    pub tiles: Vec<usize>,
    /// The events that lead to it, in as few warp moves as possible; the last one is `sentence`.
    pub interleaving: Vec<String>,
}

impl fmt::Display for Flaw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.kind, self.sentence)
    }
}

/// Kinds of flaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlawKind {
    /// Warps wait for events that never happen.
    Deadlock,
    /// A slot is read before all of its data have been written.
    ReadBeforeFull,
    /// A slot is written, or a copy into it started, before all readers are done with the old data.
    WrittenBeforeEmpty,
    /// No product ever overlaps a copy, although there are stages for it: each wait includes the copy just started.
    NothingOverlaps,
    /// A wait counts groups of copies, but one of them was not committed.
    MissingCommit,
    /// Not all warps that a barrier waits for reach it, because it is inside a condition.
    DivergentBarrier,
    /// Sums are used, or stored, before the products are done.
    UnfinishedProducts,
    /// Results are written into the staging buffer while it is still being read out.
    StagingOverwritten,
    /// The block ends while an engine still reads or writes its memory.
    LeftUnderWay,
}

impl FlawKind {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Deadlock,
        Self::ReadBeforeFull,
        Self::WrittenBeforeEmpty,
        Self::NothingOverlaps,
        Self::MissingCommit,
        Self::DivergentBarrier,
        Self::UnfinishedProducts,
        Self::StagingOverwritten,
        Self::LeftUnderWay,
    ];

    /// Whether results may depend on timing. The other kinds hang the kernel or make it slow.
    pub fn is_race(self) -> bool {
        !matches!(
            self,
            Self::Deadlock | Self::DivergentBarrier | Self::NothingOverlaps
        )
    }
}

impl fmt::Display for FlawKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Deadlock => "deadlock",
            Self::ReadBeforeFull => "read before full",
            Self::WrittenBeforeEmpty => "written before empty",
            Self::NothingOverlaps => "nothing overlaps",
            Self::MissingCommit => "missing commit",
            Self::DivergentBarrier => "divergent barrier",
            Self::UnfinishedProducts => "unfinished products",
            Self::StagingOverwritten => "staging overwritten",
            Self::LeftUnderWay => "left under way",
        })
    }
}
