//! What a multiprocessor's asynchronous units do: copy engine, matrix unit, and the ways in which blocks meet.

use serde::{Deserialize, Serialize};

use crate::{Bandwidth, ByteRate, Bytes, Cycles, Figure, OperationRate, Ratio, Time};

/// Latencies and rates of the units of one streaming multiprocessor. What is not known of a device is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Pipeline {
    /// Bulk tensor copies from memory to shared memory.
    pub copy: Option<BulkCopy>,
    /// Matrix products.
    pub products: Option<Products>,
    /// Reads from tensor memory to registers.
    pub tensor_memory_read: Option<Figure<ByteRate>>,
    /// Of a counter in memory that blocks increment, to and fro.
    pub counter: Option<Figure<Time>>,
    /// Of a barrier of a small cluster.
    pub cluster_barrier: Option<Figure<Time>>,
    /// NVFP4 values that are converted to fp16 in registers.
    pub conversion: Option<Figure<OperationRate>>,
    /// The same where a kernel reads one operand from shared memory and writes it there for the matrix unit, and takes the
    /// other from there to registers.
    pub conversion_through_shared: Option<Figure<OperationRate>>,
    /// From a signal at a barrier in shared memory to the next instruction of whoever waits there.
    pub hand_over: Option<Figure<Cycles>>,
    /// Barriers of whole blocks.
    pub block_barrier: Option<BlockBarrier>,
    /// Results on their way to memory.
    pub stores: Option<Stores>,
}

/// The engine that copies whole boxes of a tensor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BulkCopy {
    /// From the instruction to the arrival of the first bytes, from memory.
    pub latency: Figure<Time>,
    /// The same from the second-level cache.
    pub l2_latency: Figure<Time>,
    /// Into one multiprocessor, one copy after another.
    pub rate: Figure<Bandwidth>,
    /// Bytes over the time that each more of them delays the end of a single copy, where that differs from `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_rate: Option<Figure<Bandwidth>>,
    /// The most that one instruction copies.
    #[serde(rename = "box")]
    pub largest: Figure<Bytes>,
    /// From one copy to the next of a thread that waits for a slot, arms its barrier and starts one copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue: Option<Figure<Cycles>>,
    /// How much longer a copy takes while the matrix unit works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside_products: Option<Figure<Ratio>>,
}

/// The matrix unit beside its rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Products {
    /// From the start of an instruction to its result, beyond the time for which it occupies the unit.
    pub latency: Figure<Cycles>,
    /// The same of an instruction that spans two multiprocessors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair_latency: Option<Figure<Cycles>>,
    /// What a batch of instructions costs beside them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Figure<Cycles>>,
}

/// A barrier at which all threads of a block meet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BlockBarrier {
    /// Of four warps.
    pub four_warps: Figure<Cycles>,
    /// What each four warps more add to it.
    pub further_four: Figure<Cycles>,
}

/// What one multiprocessor writes of results of two bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stores {
    /// From registers, each 32-byte sector in halves, while the others write nothing.
    pub halves: Figure<ByteRate>,
    /// The same while all multiprocessors write.
    pub halves_together: Figure<ByteRate>,
    /// Whole rows from shared memory by bulk copies.
    pub rows: Figure<ByteRate>,
}
