//! The cost of bringing operands to the matrix unit.

use super::{Setting, Transfer};
use crate::gpu::assumed;
use crate::gpu::work::Kind;

/// Bytes that one instruction of a warp copies, 16 a lane.
const WARP_COPY: f64 = 512.0;

/// The reads of an operand by one multiprocessor.
#[derive(Debug, Clone, Copy, Default)]
pub struct Read {
    /// Bytes.
    pub bytes: f64,
    /// Multiprocessors that share the reading.
    pub shared_by: f64,
    /// The fraction that comes from memory rather than the second-level cache.
    pub from_memory: f64,
    /// Bulk copies.
    pub boxes: f64,
}

/// What a step converts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conversion {
    /// Values converted in registers.
    pub kept: f64,
    /// Values converted into shared memory.
    pub stored: f64,
    /// Bytes per value as copied.
    pub packed: f64,
    /// Bytes per value as multiplied.
    pub multiplied: f64,
    /// Values per cycle in registers.
    pub rate: f64,
    /// Whether values come from shared memory and go there, at a rate of its own where one is known.
    pub through_shared: bool,
}

impl Conversion {
    /// Cycles in registers, and into shared memory.
    pub(super) fn cycles(&self, setting: &Setting) -> [f64; 2] {
        if setting.ideal.conversion {
            return [0.0; 2];
        }
        let (kept, stored) = (self.kept, self.stored);
        let through_shared = setting.machine.conversion_through_shared;
        if let Some(rate) = through_shared.filter(|_| self.through_shared) {
            return [kept, stored].map(|values| values / rate);
        }
        [
            kept / self.rate,
            stored / self.rate + stored * self.multiplied / setting.machine.shared_rate,
        ]
    }
}

/// Bytes that a step writes to shared memory and, for conversion, reads and writes again.
pub(super) fn shared_bytes(reads: &[Read], conversion: &Conversion) -> f64 {
    let copied: f64 = reads.iter().map(|read| read.bytes).sum();
    let Conversion {
        kept,
        stored,
        packed,
        multiplied,
        ..
    } = conversion;
    copied + kept * packed + stored * (packed + multiplied)
}

/// The transfers by bulk copy, and by the threads.
pub(super) fn transfers(reads: &[Read], kind: &Kind, setting: &Setting) -> [Transfer; 2] {
    let machine = setting.machine;
    let ideal = setting.ideal;
    let bytes: f64 = reads.iter().map(|read| read.bytes).sum();
    let cached = reads
        .iter()
        .filter(|read| read.bytes > 0.0)
        .map(|read| read.bytes / read.shared_by)
        .sum();
    let memory = reads.iter().map(|read| read.bytes * read.from_memory).sum();
    let boxes: f64 = reads.iter().map(|read| read.boxes).sum();
    let latency = |[from_memory, from_cache]: [f64; 2]| from_cache + (from_memory - from_cache) * kind.cold;
    let warps = (bytes / WARP_COPY).ceil();
    let [first, further] = machine.bulk_issue;
    let bulk = Transfer {
        issue: first + further * (boxes - 1.0),
        occupation: bytes / machine.copy_rate,
        arrival: bytes / machine.arrival_rate,
        latency: latency(machine.copy_latency),
        cached,
        memory,
        halves: 0.0,
    };
    let threads = Transfer {
        issue: warps * assumed::ASYNCHRONOUS_ISSUE,
        occupation: bytes / assumed::CACHE_RATE,
        arrival: bytes / assumed::CACHE_RATE,
        latency: latency(machine.load_latency),
        cached,
        memory,
        halves: 0.0,
    };
    [bulk, threads].map(|transfer| {
        let shared = if ideal.contention {
            Transfer {
                cached: 0.0,
                memory: 0.0,
                ..transfer
            }
        } else {
            transfer
        };
        if ideal.copy {
            Transfer {
                cached: shared.cached,
                memory: shared.memory,
                ..Transfer::default()
            }
        } else {
            shared
        }
    })
}
