//! The asynchronous units of a multiprocessor (copy engine, matrix unit), and the ways to synchronise blocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ByteRate, Bytes, Cycles, Figure, OperationRate, Ratio, Time};

/// Latencies and rates of the units of one streaming multiprocessor. Figures that are not known for a device are
/// absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Pipeline {
    /// Bulk tensor copies from memory to shared memory.
    pub copy: Option<BulkCopy>,
    /// Matrix products.
    pub products: Option<Products>,
    /// Reads from tensor memory to registers.
    pub tensor_memory_read: Option<Figure<ByteRate>>,
    /// One round trip to a counter in memory that blocks increment.
    pub counter: Option<Figure<Time>>,
    /// A barrier of a small cluster.
    pub cluster_barrier: Option<Figure<Time>>,
    /// NVFP4 values converted to fp16 in registers.
    pub conversion: Option<Figure<OperationRate>>,
    /// The same for a kernel that reads one operand from shared memory and writes it back there for the matrix unit,
    /// and reads the other from there to registers.
    pub conversion_through_shared: Option<Figure<OperationRate>>,
    /// From a signal at a barrier in shared memory to the next instruction of the warps that wait at it.
    pub hand_over: Option<Figure<Cycles>>,
    /// Barriers across whole blocks.
    pub block_barrier: Option<BlockBarrier>,
    /// Stores of results to memory.
    pub stores: Option<Stores>,
}

/// The engine that copies whole boxes of a tensor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BulkCopy {
    /// From the instruction to the arrival of the first bytes, from memory.
    pub latency: Figure<Time>,
    /// The same from the second-level cache.
    pub l2_latency: Figure<Time>,
    /// Into one multiprocessor, one copy after another. Per clock, because the path from the second-level cache into
    /// shared memory runs at the clock of the multiprocessors: under load, at a lower clock, it moves fewer bytes a
    /// second.
    pub rate: Figure<ByteRate>,
    /// The rate after the first bytes of a single copy, if it differs from `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_rate: Option<Figure<ByteRate>>,
    /// The most that one instruction copies.
    #[serde(rename = "box")]
    pub largest: Figure<Bytes>,
    /// The interval between copies of a thread that waits for a slot, arms its barrier and starts one copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue: Option<Figure<Cycles>>,
    /// How much longer a copy takes while the matrix unit works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside_products: Option<Figure<Ratio>>,
}

/// Latencies of the matrix unit; its rates are in [`Gpu`](crate::Gpu).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Products {
    /// From the start of an instruction to its result, beyond the time for which it occupies the unit.
    pub latency: Figure<Cycles>,
    /// The same for an instruction that spans two multiprocessors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair_latency: Option<Figure<Cycles>>,
    /// The fixed cost of a batch of instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Figure<Cycles>>,
}

/// A barrier at which all threads of a block meet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BlockBarrier {
    /// The time of four warps.
    pub four_warps: Figure<Cycles>,
    /// The additional time of each further four warps.
    pub further_four: Figure<Cycles>,
}

/// How fast one multiprocessor writes results of two bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stores {
    /// From registers, each 32-byte sector in two halves, while the other multiprocessors do not write.
    pub halves: Figure<ByteRate>,
    /// The same while all multiprocessors write.
    pub halves_together: Figure<ByteRate>,
    /// Whole rows from shared memory by bulk copies.
    pub rows: Figure<ByteRate>,
}
