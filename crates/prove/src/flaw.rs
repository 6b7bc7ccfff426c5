//! What may be wrong with a tile program.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is wrong with a tile program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flaw {
    /// What kind of thing.
    pub kind: FlawKind,
    /// What happens, in a sentence.
    pub sentence: String,
    /// The steps of each tile of the smallest block in which it happens.
    pub tiles: Vec<usize>,
    /// How it comes to happen, event by event, in as few moves of warps as possible; the last is `sentence`.
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
    /// Warps wait for what will never be.
    Deadlock,
    /// A slot is read before everything that belongs there has been written.
    ReadBeforeFull,
    /// A slot is written, or a copy into it started, before everyone is done with what lies there.
    WrittenBeforeEmpty,
    /// No product ever runs beside a copy, though there are stages for it: each wait asks for the copy just started.
    NothingOverlaps,
    /// A wait counts groups of copies that are not all there, because one was not committed.
    MissingCommit,
    /// Not all warps that a barrier waits for come to it, because it stands under a condition.
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

    /// Whether results may depend on who is faster. The others stop the kernel, or make it slow.
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
