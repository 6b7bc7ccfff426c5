//! Flaws that a tile program may have.

use gauntlet_parameters::named;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A flaw of a tile program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

named! {
    /// Kinds of flaw.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum FlawKind {
        /// Warps wait for events that never happen.
        Deadlock = "deadlock",
        /// A slot is read before all of its data have been written.
        ReadBeforeFull = "read before full",
        /// A slot is written, or a copy into it started, before all readers are done with the old data.
        WrittenBeforeEmpty = "written before empty",
        /// No product ever overlaps a copy, although there are stages for it: each wait includes the copy just started.
        NothingOverlaps = "nothing overlaps",
        /// A wait counts groups of copies, but one of them was not committed.
        MissingCommit = "missing commit",
        /// Not all warps that a barrier waits for reach it, because it is inside a condition.
        DivergentBarrier = "divergent barrier",
        /// Sums are used, or stored, before the products are done.
        UnfinishedProducts = "unfinished products",
        /// Results are written into the staging buffer while it is still being read out.
        StagingOverwritten = "staging overwritten",
        /// The block ends while an engine still reads or writes its memory.
        LeftUnderWay = "left under way",
    }
}

impl FlawKind {
    /// Whether results may depend on timing. The other kinds hang the kernel or make it slow.
    pub fn is_race(self) -> bool {
        !matches!(
            self,
            Self::Deadlock | Self::DivergentBarrier | Self::NothingOverlaps
        )
    }
}
