//! The cost of bringing operands to the matrix unit.

use gauntlet_device::Arch;
use gauntlet_operations::Packing;
use gauntlet_operations::resources::{
    by_mma_sync, converts_beforehand, is_unified, multiplied_bytes, multiplied_value_bytes,
    operands_made_ready, weights,
};
use gauntlet_operations::{Attention, GroupedGemm, Operation};

use super::{Setting, Transfer};
use crate::gpu::assumed;
use crate::gpu::work::{Kind, PACKED};

/// Bytes of an fp16 value.
const HALF: f64 = 2.0;
/// Bytes that one instruction of a warp copies, 16 a lane.
const WARP_COPY: f64 = 512.0;
/// Rows of an `mma.sync`, all of one warp.
const WARP_ROWS: f64 = 16.0;

/// The reads of an operand by one multiprocessor.
#[derive(Debug, Clone, Copy, Default)]
struct Read {
    bytes: f64,
    /// Multiprocessors that share the reading.
    shared_by: f64,
    from_memory: f64,
    boxes: f64,
}

/// Both operands of a step: by bulk copy, and by the threads.
pub(super) fn of_a_step(kind: &Kind, setting: &Setting) -> [Transfer; 2] {
    transfers(&reads(kind, setting), kind, setting)
}

/// Bytes that a step writes to shared memory and, for conversion, reads and writes again.
pub(super) fn shared_bytes(kind: &Kind, setting: &Setting) -> f64 {
    let copied: f64 = reads(kind, setting).iter().map(|read| read.bytes).sum();
    let [kept, stored] = values(kind, setting);
    let [packed, multiplied] = value_bytes(setting);
    copied + kept * packed + stored * (packed + multiplied)
}

fn reads(kind: &Kind, setting: &Setting) -> [Read; 2] {
    match setting.problem.operation() {
        Operation::GroupedGemm(gemm) => gemm_reads(kind, gemm, setting),
        Operation::Attention(attention) => {
            let bytes = 2.0 * kind.depth * attention.head_size as f64 * copied_bytes(attention, setting);
            let keys_and_values = Read {
                bytes,
                shared_by: setting.bundle.rows as f64,
                from_memory: kind.columns_from_memory,
                boxes: 2.0 * boxes(bytes / 2.0, setting),
            };
            [keys_and_values, Read::default()]
        }
    }
}

/// The queries of a tile; nothing for a GEMM.
pub(super) fn queries(kind: &Kind, setting: &Setting) -> [Transfer; 2] {
    match setting.problem.operation() {
        Operation::GroupedGemm(_) => [Transfer::default(); 2],
        Operation::Attention(attention) => {
            let bytes = kind.rows * attention.head_size as f64 * copied_bytes(attention, setting);
            let bytes = bytes / setting.bundle.pair as f64;
            let read = Read {
                bytes,
                shared_by: 1.0,
                from_memory: 1.0,
                boxes: boxes(bytes, setting),
            };
            transfers(&[read], kind, setting)
        }
    }
}

/// Cycles to convert a step's operands in registers, and into shared memory.
pub(super) fn conversion(kind: &Kind, setting: &Setting) -> [f64; 2] {
    if setting.ideal.conversion {
        return [0.0; 2];
    }
    let [kept, stored] = values(kind, setting);
    let through_shared = setting.machine.conversion_through_shared;
    if let Some(rate) = through_shared.filter(|_| is_by_way_of_shared(setting)) {
        return [kept, stored].map(|values| values / rate);
    }
    let rate = match setting.problem.operation() {
        Operation::GroupedGemm(_) => match setting.schedule.packing {
            Packing::Canonical => setting.machine.conversion_rate,
            Packing::Fragments | Packing::Steps => setting.machine.conversion_rate * assumed::REPACKED,
        },
        Operation::Attention(_) => assumed::CONVERTED_E4M3,
    };
    [
        kept / rate,
        stored / rate + stored * value_bytes(setting)[1] / setting.machine.shared_rate,
    ]
}

/// Whether a block converts weights, like its tokens, from shared memory to shared memory: `wgmma` on tokens as rows.
fn is_by_way_of_shared(setting: &Setting) -> bool {
    matches!(setting.problem.operation(), Operation::GroupedGemm(_))
        && setting.machine.arch == Arch::Sm90a
        && !setting.schedule.swap_ab
}

/// Bytes per value as copied, and as multiplied; for attention those of V, which is converted if any operand is.
fn value_bytes(setting: &Setting) -> [f64; 2] {
    match setting.problem.operation() {
        Operation::GroupedGemm(_) => [PACKED, HALF],
        Operation::Attention(attention) => {
            let multiplied = multiplied_value_bytes(setting.schedule, attention, setting.machine.arch);
            [attention.format.bytes(), multiplied].map(|bytes| bytes as f64)
        }
    }
}

/// Values that a step converts in registers, and into shared memory. `wgmma` takes rows from registers and columns from
/// shared memory: tokens converted beforehand, or attention's keys and values after the block has converted them.
/// `mma.sync` takes both from registers. The unified kernel converts weights alone.
fn values(kind: &Kind, setting: &Setting) -> [f64; 2] {
    let (m, n) = (setting.schedule.tile.m as f64, setting.schedule.tile.n as f64);
    match (setting.problem.operation(), setting.machine.arch) {
        (_, Arch::Sm100a | Arch::Cpu) => [0.0; 2],
        // A warp of the unified kernel has its rows to itself, and tokens were converted beforehand.
        (Operation::GroupedGemm(gemm), arch) if is_unified(setting.schedule, arch) => {
            [sets(gemm, setting).0 * m * kind.depth, 0.0]
        }
        (Operation::GroupedGemm(gemm), Arch::Sm90a) => {
            let (row_sets, column_sets) = sets(gemm, setting);
            [row_sets * m * kind.depth, column_sets * n * kind.depth]
        }
        (Operation::GroupedGemm(gemm), Arch::Sm80 | Arch::Sm89) => {
            let (row_sets, column_sets) = sets(gemm, setting);
            let values = (row_sets * m + column_sets * n) * kind.depth;
            [values * assumed::FRAGMENT_COPIES, 0.0]
        }
        (Operation::Attention(attention), Arch::Sm90a) if !by_mma_sync(setting.schedule, Arch::Sm90a) => {
            let operands = operands_made_ready(setting.schedule, attention) as f64;
            [0.0, operands * kind.depth * attention.head_size as f64]
        }
        (Operation::Attention(attention), arch) => {
            let wider = attention.format.bytes() < multiplied_bytes(setting.schedule, attention);
            let values = if by_mma_sync(setting.schedule, arch) && wider {
                2.0 * kind.depth * attention.head_size as f64
            } else {
                0.0
            };
            [values * fragment_copies(setting), 0.0]
        }
    }
}

/// Matrices on the row and on the column side of a tile.
pub(super) fn sets(gemm: &GroupedGemm, setting: &Setting) -> (f64, f64) {
    let weights = weights(gemm) as f64;
    if setting.schedule.swap_ab {
        (weights, 1.0)
    } else {
        (1.0, weights)
    }
}

/// Bytes of an operand of attention as copied: operands converted beforehand are fp16.
fn copied_bytes(attention: &Attention, setting: &Setting) -> f64 {
    if converts_beforehand(
        setting.schedule,
        setting.problem.operation(),
        setting.machine.arch,
    ) {
        HALF
    } else {
        attention.format.bytes() as f64
    }
}

/// How often the warps of `mma.sync` convert a step's keys and values and read them from shared memory: on sm_90a each
/// warp owns its rows and reads all keys and values.
pub(super) fn fragment_copies(setting: &Setting) -> f64 {
    match setting.machine.arch {
        Arch::Sm90a => (setting.schedule.tile.m as f64 / WARP_ROWS).max(1.0),
        Arch::Sm80 | Arch::Sm89 | Arch::Sm100a | Arch::Cpu => assumed::FRAGMENT_COPIES,
    }
}

fn gemm_reads(kind: &Kind, gemm: &GroupedGemm, setting: &Setting) -> [Read; 2] {
    let (row_sets, column_sets) = sets(gemm, setting);
    let pair = setting.bundle.pair as f64;
    let fp16 = converts_beforehand(
        setting.schedule,
        setting.problem.operation(),
        setting.machine.arch,
    );
    let rows = row_sets * kind.rows * kind.depth / pair;
    let columns = column_sets * kind.columns * kind.depth / pair;
    let column_bytes = columns * if fp16 { HALF } else { PACKED };
    [
        Read {
            bytes: rows * PACKED,
            shared_by: setting.bundle.columns as f64,
            from_memory: kind.rows_from_memory,
            boxes: row_sets * boxes(rows * PACKED / row_sets, setting) + row_sets,
        },
        Read {
            bytes: column_bytes,
            shared_by: setting.bundle.rows as f64,
            // Converted just before, so they are in the cache.
            from_memory: if fp16 { 0.0 } else { kind.columns_from_memory },
            boxes: column_sets * boxes(column_bytes / column_sets, setting)
                + if fp16 { 0.0 } else { column_sets },
        },
    ]
}

fn boxes(bytes: f64, setting: &Setting) -> f64 {
    (bytes / setting.machine.box_bytes).ceil().max(1.0)
}

fn transfers(reads: &[Read], kind: &Kind, setting: &Setting) -> [Transfer; 2] {
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
