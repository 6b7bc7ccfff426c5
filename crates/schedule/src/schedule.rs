//! The words of a schedule.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::read::Numbers;
use crate::{ScheduleChange, Word};

/// How a problem is computed. Every word has a meaning on every executor; what a device cannot do is refused by
/// its constraints, never ignored.
///
/// Read from TOML, every word is optional and defaults to the [baseline](Schedule::baseline)'s.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "ScheduleChange", rename_all = "kebab-case")]
pub struct Schedule {
    /// The block of output computed as one unit of work, and the depth loaded at a time.
    pub tile: Tile,
    /// Operand buffers in flight: 1 loads, then multiplies; more load ahead.
    pub stages: usize,
    /// How results leave the multiplier.
    pub epilogue: Epilogue,
    /// Who loads and who multiplies.
    pub roles: Roles,
    /// In which order tiles are computed, and by whom.
    pub order: Order,
    /// How a tile finds its group.
    pub lookup: Lookup,
    /// When tables and buffers that depend on shapes only are made.
    pub setup: Setup,
    /// Exchange the operands: the weights take the row side (`tile.m`), the tokens the column side (`tile.n`).
    pub swap_ab: bool,
    /// Parts into which the summed dimension (K; keys for attention) is split, reduced in a fixed order. 1 = none.
    pub split_k: usize,
    /// Blocks that share loads.
    pub cluster: Cluster,
    /// In which order a GEMM's weights lie in memory.
    #[serde(skip_serializing_if = "is_default")]
    pub packing: Packing,
    /// Where attention's scores and weights lie between its two products.
    #[serde(skip_serializing_if = "is_default")]
    pub scores: Scores,
    /// What multiplies attention's weights by its values.
    #[serde(skip_serializing_if = "is_default")]
    pub values: Values,
    /// How attention's rows lie in shared memory.
    #[serde(skip_serializing_if = "is_default")]
    pub layout: Layout,
    /// How attention takes exponentials.
    #[serde(skip_serializing_if = "is_default")]
    pub exponential: Exponential,
    /// In which format attention's operands are multiplied.
    #[serde(skip_serializing_if = "is_default")]
    pub arithmetic: Arithmetic,
}

/// Whether a word has the value that files leave out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Schedule {
    /// The schedule the recorded tournament began with: one tile a block, one stage, nothing prepared.
    pub fn baseline() -> Self {
        Self {
            tile: Tile {
                m: 128,
                n: 128,
                k: 256,
            },
            stages: 1,
            epilogue: Epilogue::Direct,
            roles: Roles::Unified,
            order: Order::PerTile,
            lookup: Lookup::Linear,
            setup: Setup::PerCall,
            swap_ab: false,
            split_k: 1,
            cluster: Cluster { m: 1, n: 1 },
            packing: Packing::default(),
            scores: Scores::default(),
            values: Values::default(),
            layout: Layout::default(),
            exponential: Exponential::default(),
            arithmetic: Arithmetic::default(),
        }
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Self::baseline()
    }
}

/// One line; swap-AB, split-K and cluster appear only where they are in use, packing and how attention computes only where
/// they differ from the [baseline](Schedule::baseline).
impl fmt::Display for Schedule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "tile {} · stages {} · {} · {} · {} · {} · {}",
            self.tile, self.stages, self.epilogue, self.roles, self.order, self.lookup, self.setup
        )?;
        if self.swap_ab {
            write!(formatter, " · swap-ab")?;
        }
        if self.split_k > 1 {
            write!(formatter, " · split-k {}", self.split_k)?;
        }
        if self.cluster != (Cluster { m: 1, n: 1 }) {
            write!(formatter, " · cluster {}", self.cluster)?;
        }
        for word in [Word::Packing].into_iter().chain(Word::OF_ATTENTION) {
            let value = word.value(self);
            if value != word.value(&Self::baseline()) {
                write!(formatter, " · {word} {value}")?;
            }
        }
        Ok(())
    }
}

/// A block of work. For attention: `m` queries, `n` keys a step, `k` the head size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "[usize; 3]")]
pub struct Tile {
    /// Rows.
    pub m: usize,
    /// Columns.
    pub n: usize,
    /// Depth of one stage.
    pub k: usize,
}

impl From<[usize; 3]> for Tile {
    fn from([m, n, k]: [usize; 3]) -> Self {
        Self { m, n, k }
    }
}

impl From<Tile> for [usize; 3] {
    fn from(tile: Tile) -> Self {
        [tile.m, tile.n, tile.k]
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}×{}×{}", self.m, self.n, self.k)
    }
}

impl<'de> Deserialize<'de> for Tile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Numbers::<3>::of(Word::Tile, deserializer).map(Self::from)
    }
}

/// How results leave the multiplier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Epilogue {
    /// From accumulators straight to memory, each thread its own elements, tails predicated.
    Direct,
    /// Through a staging buffer, then whole rows at once (bulk store on GPUs, streaming stores on the CPU).
    Staged,
}

/// Who loads and who multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Roles {
    /// Everyone does everything.
    Unified,
    /// Some only load (on the CPU: dequantise panels), the others only multiply.
    Specialised,
}

/// In which order tiles are computed, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// One launch a tile, wave by wave.
    PerTile,
    /// Persistent workers, each with a fixed share in group order.
    Static,
    /// Persistent workers, a fixed share each of the tiles sorted by falling cost.
    Sorted,
    /// Persistent workers that take the next tile from a counter.
    Dynamic,
}

/// How a tile finds its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lookup {
    /// Each tile walks the groups from the first.
    Linear,
    /// A table made beforehand.
    Precomputed,
}

/// When tables and buffers that depend on shapes only are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Setup {
    /// In every call, as a framework without a plan does.
    PerCall,
    /// Once, when the problem is loaded.
    Once,
}

/// In which order a GEMM's weights lie in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Row by row, as NVFP4 tensors do.
    #[default]
    Canonical,
    /// Repacked beforehand, once: what a thread multiplies together lies together, its bits in the order in which they are
    /// converted. As many bytes, of rows filled up to a multiple of 64.
    Fragments,
}

/// Where attention's scores and weights lie between its two products.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Scores {
    /// In registers all the way: the softmax is fused and online, step by step.
    #[default]
    Registers,
    /// In shared memory, where the weights take the place of the scores.
    InPlace,
    /// In shared memory, and the weights in a buffer of their own beside them.
    Separate,
}

/// What multiplies attention's weights by its values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Values {
    /// The matrix unit.
    #[default]
    Matrix,
    /// Ordinary fused multiply-adds.
    Scalar,
}

/// How attention's rows lie in shared memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Pieces of 16 bytes exchanged within a row by exclusive or with the row's number, so that no two lanes of a read
    /// share a bank.
    #[default]
    Swizzled,
    /// As in memory.
    Plain,
}

/// How attention takes exponentials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Exponential {
    /// The unit for special functions (`ex2.approx`).
    #[default]
    Hardware,
    /// A share of them by a polynomial in fused multiply-adds, the others by hardware.
    Polynomial,
    /// A table of 32 powers in a warp's registers, an entry a lane, with a straight line between two of them.
    Table,
}

/// In which format attention's operands are multiplied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// In 16 bits: e4m3 is converted to fp16, exactly; bf16 stays as it is.
    #[default]
    Fp16,
    /// e4m3 as it is where that is fastest: everywhere, with weights scaled by 2⁸ and rounded to e4m3; but the specialised
    /// kernel of sm_90a so multiplies queries by keys alone, and values, converted, by weights in fp16.
    Fp8,
}

/// Blocks that share loads, along rows and columns of tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "[usize; 2]")]
pub struct Cluster {
    /// Along rows of tiles.
    pub m: usize,
    /// Along columns of tiles.
    pub n: usize,
}

impl From<[usize; 2]> for Cluster {
    fn from([m, n]: [usize; 2]) -> Self {
        Self { m, n }
    }
}

impl From<Cluster> for [usize; 2] {
    fn from(cluster: Cluster) -> Self {
        [cluster.m, cluster.n]
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}×{}", self.m, self.n)
    }
}

impl<'de> Deserialize<'de> for Cluster {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Numbers::<2>::of(Word::Cluster, deserializer).map(Self::from)
    }
}
