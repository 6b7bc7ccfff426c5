//! The vocabulary: every word, what it accepts, and what it does on a GPU and on a CPU.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::choice::names;
use crate::read::{LARGEST, suggestion};
use crate::{
    Arithmetic, Epilogue, Exponential, Layout, Lookup, Order, Packing, Roles, Schedule, Scores, Setup, Values,
};

/// A word of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// [`Schedule::tile`].
    Tile,
    /// [`Schedule::stages`].
    Stages,
    /// [`Schedule::epilogue`].
    Epilogue,
    /// [`Schedule::roles`].
    Roles,
    /// [`Schedule::order`].
    Order,
    /// [`Schedule::lookup`].
    Lookup,
    /// [`Schedule::setup`].
    Setup,
    /// [`Schedule::swap_ab`].
    SwapAb,
    /// [`Schedule::split_k`].
    SplitK,
    /// [`Schedule::cluster`].
    Cluster,
    /// [`Schedule::packing`].
    Packing,
    /// [`Schedule::scores`].
    Scores,
    /// [`Schedule::values`].
    Values,
    /// [`Schedule::layout`].
    Layout,
    /// [`Schedule::exponential`].
    Exponential,
    /// [`Schedule::arithmetic`].
    Arithmetic,
}

/// What a word accepts and means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Meaning {
    /// The word.
    pub word: Word,
    /// What it accepts.
    pub accepts: String,
    /// What it does on a GPU.
    pub on_gpu: &'static str,
    /// What it does on a CPU.
    pub on_cpu: &'static str,
}

/// The whole vocabulary, in the order of [`Word::ALL`].
pub fn words() -> Vec<Meaning> {
    Word::ALL
        .iter()
        .map(|&word| {
            let (on_gpu, on_cpu) = word.meaning();
            Meaning {
                word,
                accepts: word.accepts(),
                on_gpu,
                on_cpu,
            }
        })
        .collect()
}

impl Word {
    /// Every word, in the order in which a schedule is written.
    pub const ALL: [Self; 16] = [
        Self::Tile,
        Self::Stages,
        Self::Epilogue,
        Self::Roles,
        Self::Order,
        Self::Lookup,
        Self::Setup,
        Self::SwapAb,
        Self::SplitK,
        Self::Cluster,
        Self::Packing,
        Self::Scores,
        Self::Values,
        Self::Layout,
        Self::Exponential,
        Self::Arithmetic,
    ];

    /// The words that say how attention's kernels compute; other problems and the CPU take the baseline's values only.
    pub const OF_ATTENTION: [Self; 5] = [
        Self::Scores,
        Self::Values,
        Self::Layout,
        Self::Exponential,
        Self::Arithmetic,
    ];

    /// The word in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tile => "tile",
            Self::Stages => "stages",
            Self::Epilogue => "epilogue",
            Self::Roles => "roles",
            Self::Order => "order",
            Self::Lookup => "lookup",
            Self::Setup => "setup",
            Self::SwapAb => "swap-ab",
            Self::SplitK => "split-k",
            Self::Cluster => "cluster",
            Self::Packing => "packing",
            Self::Scores => "scores",
            Self::Values => "values",
            Self::Layout => "layout",
            Self::Exponential => "exponential",
            Self::Arithmetic => "arithmetic",
        }
    }

    /// The values the word accepts.
    pub fn accepts(self) -> String {
        match self {
            Self::Tile => format!("three whole numbers from 1 to {LARGEST}, as in [128, 128, 256]"),
            Self::Stages | Self::SplitK => format!("a whole number from 1 to {LARGEST}"),
            Self::Cluster => format!("two whole numbers from 1 to {LARGEST}, as in [2, 1]"),
            Self::SwapAb => "`true` or `false`".to_owned(),
            Self::Epilogue => names::<Epilogue>(),
            Self::Roles => names::<Roles>(),
            Self::Order => names::<Order>(),
            Self::Lookup => names::<Lookup>(),
            Self::Setup => names::<Setup>(),
            Self::Packing => names::<Packing>(),
            Self::Scores => names::<Scores>(),
            Self::Values => names::<Values>(),
            Self::Layout => names::<Layout>(),
            Self::Exponential => names::<Exponential>(),
            Self::Arithmetic => names::<Arithmetic>(),
        }
    }

    /// The value the word has in a schedule.
    pub fn value(self, schedule: &Schedule) -> String {
        match self {
            Self::Tile => schedule.tile.to_string(),
            Self::Stages => schedule.stages.to_string(),
            Self::Epilogue => schedule.epilogue.to_string(),
            Self::Roles => schedule.roles.to_string(),
            Self::Order => schedule.order.to_string(),
            Self::Lookup => schedule.lookup.to_string(),
            Self::Setup => schedule.setup.to_string(),
            Self::SwapAb => schedule.swap_ab.to_string(),
            Self::SplitK => schedule.split_k.to_string(),
            Self::Cluster => schedule.cluster.to_string(),
            Self::Packing => schedule.packing.to_string(),
            Self::Scores => schedule.scores.to_string(),
            Self::Values => schedule.values.to_string(),
            Self::Layout => schedule.layout.to_string(),
            Self::Exponential => schedule.exponential.to_string(),
            Self::Arithmetic => schedule.arithmetic.to_string(),
        }
    }

    fn meaning(self) -> (&'static str, &'static str) {
        match self {
            Self::Tile => (
                "rows, columns and depth one block computes; attention: queries, keys a step, head size",
                "the same as cache blocks; the depth is that of one dequantised panel",
            ),
            Self::Stages => (
                "operand buffers in shared memory: 1 loads, then multiplies; more load ahead",
                "dequantised panels prepared ahead",
            ),
            Self::Epilogue => (
                "direct: accumulators to memory; staged: through shared memory, then whole rows at once",
                "direct: stores from registers; staged: through a buffer, then streaming stores",
            ),
            Self::Roles => (
                "specialised: some warps only load, the others only multiply",
                "specialised: some threads only dequantise panels, the others only multiply",
            ),
            Self::Order => (
                "per-tile: a block each; static, sorted, dynamic: persistent blocks with a fixed share, a fixed \
                 share of tiles by falling cost, or a counter",
                "per-tile: a task each; static, sorted, dynamic: as on a GPU, with threads for blocks",
            ),
            Self::Lookup => (
                "linear: each tile walks the groups; precomputed: a table",
                "linear: each tile walks the groups; precomputed: a table",
            ),
            Self::Setup => (
                "per-call: tables, tensor maps and buffers made in every call; once: when the problem is loaded",
                "per-call: tables and buffers made in every call; once: when the problem is loaded",
            ),
            Self::SwapAb => (
                "weights take the row side of the tile, tokens the column side, which may be narrow",
                "weights take the row side of the tile, tokens the column side",
            ),
            Self::SplitK => (
                "blocks that share one tile's depth (of attention its keys); partial sums added in a fixed order",
                "tasks that share one tile's depth; partial sums added in a fixed order",
            ),
            Self::Cluster => ("blocks along rows and columns that share loads", "only 1×1"),
            Self::Packing => (
                "weights in memory: canonical: row by row; fragments: repacked once, what a thread multiplies together and \
                 its bits in the order in which they are converted",
                "only canonical",
            ),
            Self::Scores => (
                "where attention's scores lie between its products: registers; in-place: shared memory, where the \
                 weights overwrite them; separate: shared memory, with a buffer for the weights",
                "only registers",
            ),
            Self::Values => (
                "what multiplies attention's weights by its values: matrix: the matrix unit; scalar: fused \
                 multiply-adds",
                "only matrix",
            ),
            Self::Layout => (
                "attention's rows in shared memory: swizzled: 16-byte pieces exchanged so that lanes hit different \
                 banks; plain: as in memory",
                "only swizzled",
            ),
            Self::Exponential => (
                "attention's exponentials: hardware: the special-function unit; polynomial: a share by fused \
                 multiply-adds; table: 32 powers, one a lane, and straight lines between them",
                "only hardware",
            ),
            Self::Arithmetic => (
                "what attention multiplies: fp16: e4m3 converted exactly, bf16 as it is; fp8: e4m3 as it is, and \
                 weights rounded to e4m3 but where scores alone are multiplied so",
                "only fp16",
            ),
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::ALL
            .into_iter()
            .find(|word| word.name() == text)
            .ok_or_else(|| {
                let known = Self::ALL.iter().map(|word| word.name());
                let list: Vec<_> = known.clone().map(|name| format!("`{name}`")).collect();
                D::Error::custom(format!(
                    "a schedule has no word `{text}`{}; its words are {}",
                    suggestion(&text, known),
                    list.join(", ")
                ))
            })
    }
}
