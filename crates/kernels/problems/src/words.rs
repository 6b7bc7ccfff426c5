//! The types of a schedule's parameters.

use std::fmt;

use gauntlet_parameters::{Domain, LARGEST, Value};

use crate::field::{Field, choice, numbers};

/// The block of output that is computed as one unit of work. For attention: `m` queries, `n` keys a step, `k` the head
/// size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

impl Field for Tile {
    fn domain() -> Domain {
        Domain::Numbers {
            names: &["m", "n", "k"],
            least: 1,
            most: LARGEST,
            example: &[128, 128, 256],
        }
    }

    fn to_value(&self) -> Value {
        <[usize; 3]>::from(*self).into()
    }

    fn from_value(value: &Value) -> Option<Self> {
        numbers(value).map(<Self as From<[usize; 3]>>::from)
    }
}

/// Blocks that share loads, along rows and columns of tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

impl Field for Cluster {
    fn domain() -> Domain {
        Domain::Numbers {
            names: &["m", "n"],
            least: 1,
            most: LARGEST,
            example: &[2, 1],
        }
    }

    fn to_value(&self) -> Value {
        <[usize; 2]>::from(*self).into()
    }

    fn from_value(value: &Value) -> Option<Self> {
        numbers(value).map(<Self as From<[usize; 2]>>::from)
    }
}

choice! {
    /// How results leave the multiplier.
    pub enum Epilogue {
        /// From accumulators straight to memory: each thread stores its own elements, and tails are predicated.
        Direct = "direct",
        /// Through a staging buffer, then whole rows at once (bulk store on GPUs, streaming stores on the CPU).
        Staged = "staged",
    }
}

choice! {
    /// Which threads load and which multiply.
    pub enum Roles {
        /// Every thread loads and multiplies.
        Unified = "unified",
        /// Some threads only load (on the CPU: dequantise panels), the others only multiply.
        Specialised = "specialised",
    }
}

choice! {
    /// In which order tiles are computed, and how they are shared out.
    pub enum Order {
        /// One block a tile, wave by wave.
        PerTile = "per-tile",
        /// Persistent blocks, each with a fixed share of the tiles in group order.
        Static = "static",
        /// Persistent blocks, each with a fixed share of the tiles sorted by falling cost.
        Sorted = "sorted",
        /// Persistent blocks that take the next tile from a counter.
        Dynamic = "dynamic",
    }
}

choice! {
    /// How a tile finds its group.
    pub enum Lookup {
        /// Each tile walks the groups from the first.
        Linear = "linear",
        /// A table made beforehand.
        Precomputed = "precomputed",
    }
}

choice! {
    /// When tables and buffers that depend only on sizes are made.
    pub enum Setup {
        /// In every call, as a framework without a plan does.
        PerCall = "per-call",
        /// Once, when the sizes are known.
        Once = "once",
    }
}

choice! {
    /// How a GEMM's weights are laid out in memory.
    pub enum Packing {
        /// Row by row, as NVFP4 tensors are.
        Canonical = "canonical",
        /// Repacked once beforehand: values that one thread multiplies together are adjacent, with their bits in the
        /// order in which they are converted. Takes as many bytes, of rows padded to a multiple of 16.
        Fragments = "fragments",
        /// Repacked once beforehand for tokens of 16 bits as the caller has them: what one thread multiplies in each step of
        /// 16 values of the depth is adjacent. Takes as many bytes, of rows padded as before.
        Steps = "steps",
    }
}

choice! {
    /// Where the tensor maps of a GEMM's groups are made.
    pub enum Maps {
        /// By the host, for every group: one table that all blocks read.
        Prebuilt = "prebuilt",
        /// By each block, when it goes on to another group: the host makes the maps of one group, of which the block changes
        /// addresses, sizes and strides in a copy of its own.
        PerBlock = "per-block",
    }
}

choice! {
    /// Where attention keeps scores and probabilities between its two products.
    pub enum Scores {
        /// In registers: the softmax is fused and online, step by step.
        Registers = "registers",
        /// In shared memory, where the probabilities overwrite the scores.
        InPlace = "in-place",
        /// In shared memory, with a separate buffer for the probabilities.
        Separate = "separate",
    }
}

choice! {
    /// What multiplies attention's probabilities by its values.
    pub enum Values {
        /// The matrix unit.
        Matrix = "matrix",
        /// Ordinary fused multiply-adds.
        Scalar = "scalar",
    }
}

choice! {
    /// How attention's rows are laid out in shared memory.
    pub enum Layout {
        /// 16-byte pieces of a row are exchanged by exclusive or with the row's number, so that no two lanes of a read
        /// share a bank.
        Swizzled = "swizzled",
        /// As in global memory.
        Plain = "plain",
    }
}

choice! {
    /// How attention computes exponentials.
    pub enum Exponential {
        /// By the special-function unit (`ex2.approx`).
        Hardware = "hardware",
        /// Some by a polynomial in fused multiply-adds, the others by the special-function unit.
        Polynomial = "polynomial",
        /// By a table of 32 powers in a warp's registers, one entry a lane, with linear interpolation.
        Table = "table",
    }
}

choice! {
    /// In which number format attention's operands are multiplied.
    pub enum Arithmetic {
        /// In 16 bits: e4m3 is converted to fp16, exactly; bf16 is multiplied as it is.
        Fp16 = "fp16",
        /// e4m3 is multiplied as it is where that is fastest. The specialised kernel of sm_90a does so for queries and
        /// keys only, and converts values to fp16; other kernels do so for both products, with probabilities scaled by
        /// 2⁸ and rounded to e4m3.
        Fp8 = "fp8",
    }
}
