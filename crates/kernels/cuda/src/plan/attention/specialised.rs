//! The specialised kernel: one warp copies, warp groups of 64 queries each multiply; operands in 8 bits are converted by three
//! more warps, all of them or the values alone.

use crate::plan::error::require;
use gauntlet_device::Arch;
use gauntlet_problems::resources::{HeadSets, MAX_SPECIALISED_STAGES, WarpGroups, head_sets, warp_groups};
use gauntlet_problems::{Arithmetic, Epilogue, Order, Schedule, Scores, Values};
use gauntlet_problems::{Attention, AttentionFormat};

use super::{Parts, SHARED_BYTES, WARP_ROWS, Work, check_split, is_sorted, joined, packed};
use crate::plan::variant::most_registers;
use crate::plan::{Addresses, Launch, Memory, Pass, Plan, PlanError, Source, Variant, Weights};

/// Queries of a warp group: the rows of `wgmma` (PTX ISA).
const ROWS: usize = 64;
/// Threads of a warp group.
const GROUP_THREADS: usize = 128;
/// Keys of a step that there are products for.
const KEYS: [usize; 2] = [64, 128];
/// Stages of copied rows that are not converted yet.
const RAW_STAGES: usize = 3;
/// Bytes for barriers.
const BARRIER_BYTES: usize = 1024;
/// Threads of a group that merges parts, and head elements that it has of a warp's rows: eight for each of four lanes' fours.
const MERGING_THREADS: usize = 128;
const MERGED_ELEMENTS: usize = 32;
/// Groups of a block that share out more parts than a thread reads at once.
const MERGING_GROUPS: usize = 4;
const FEW_PARTS: usize = 8;

/// A problem for the specialised kernel.
#[derive(Debug)]
pub struct SpecialisedPlan {
    work: Work,
    variant: Variant,
    grid: usize,
    /// What merges the parts of keys, if they are split, and its blocks.
    merging: Option<(Variant, usize)>,
}

/// How operands reach the matrix unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As they were copied.
    Copied,
    /// Converted from 8 bits to fp16.
    Converted,
    /// Queries and keys as e4m3, values converted.
    Eights,
}

impl SpecialisedPlan {
    /// Plans a valid problem.
    ///
    /// # Errors
    /// If the kernel does not support a value of the schedule, or a size exceeds its integer ranges.
    pub fn new(attention: &Attention, schedule: &Schedule, processors: u32) -> Result<Self, PlanError> {
        let way = way(attention, schedule);
        check_words(attention, schedule)?;
        let (queries, keys) = (schedule.tile.m, schedule.tile.n);
        let parts = Parts::of_warps(attention, queries, schedule.split_k);
        let row_heads = head_sets(schedule, attention, Arch::Sm90a).heads;
        let joined = joined(&packed(attention, row_heads));
        let work = Work {
            row_heads,
            ..Work::new(&joined, schedule, queries, HeadSets::alone(&joined), parts)?
        };
        check_shared_bytes(shared_bytes(&work, schedule, way), schedule)?;
        let units = work.tiles.len() * parts.count;
        let grid = match schedule.order {
            Order::PerTile => units,
            Order::Static | Order::Sorted | Order::Dynamic => units.min(processors as usize),
        };
        let variant = variant(&work, schedule, way);
        let merging = (parts.count > 1).then(|| {
            let slices = queries / WARP_ROWS * attention.head_size / MERGED_ELEMENTS;
            (merging(&variant, parts.count), work.tiles.len() * slices)
        });
        Ok(Self {
            variant,
            merging,
            work: work.with_maps([queries, keys, keys]),
            grid,
        })
    }
}

impl Plan for SpecialisedPlan {
    fn variant(&self) -> &Variant {
        &self.variant
    }

    fn memory(&self, _: &[Weights]) -> Memory {
        self.work.memory()
    }

    fn merging(&self) -> Option<&Variant> {
        self.merging.as_ref().map(|(variant, _)| variant)
    }

    fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        let mut launches = self.work.launch(addresses, self.grid, 1);
        if let (Some((_, grid)), [main]) = (&self.merging, launches.as_slice()) {
            let merging = Launch {
                pass: Pass::Merging,
                grid: *grid as u32,
                cluster: 1,
                parameter: main.parameter.clone(),
                mapped: None,
            };
            launches.push(merging);
        }
        launches
    }
}

/// The kernel that merges what this one leaves.
fn merging(main: &Variant, parts: usize) -> Variant {
    let groups = if parts > FEW_PARTS { MERGING_GROUPS } else { 1 };
    let mut defines = main.defines.clone();
    defines.insert("GROUPS", groups.to_string());
    let threads = groups * MERGING_THREADS;
    Variant {
        source: Source::AttentionMerge,
        defines,
        threads: threads as u32,
        shared_bytes: 0,
        registers: most_registers(threads),
    }
}

fn way(attention: &Attention, schedule: &Schedule) -> Way {
    match (attention.format, schedule.arithmetic) {
        (AttentionFormat::E4m3, Arithmetic::Fp8) => Way::Eights,
        (AttentionFormat::E4m3 | AttentionFormat::Int8, _) => Way::Converted,
        _ => Way::Copied,
    }
}

fn variant(work: &Work, schedule: &Schedule, way: Way) -> Variant {
    let groups = warp_groups(schedule, &work.attention);
    let shared_bytes = shared_bytes(work, schedule, way);
    let mut defines = work.defines(schedule);
    let numbers = [
        ("CONSUMERS", groups.count),
        ("PARTS", groups.parts),
        ("KEYS", schedule.tile.n),
        ("STAGES", schedule.stages),
        ("ARITHMETIC", usize::from(way == Way::Eights)),
        ("SHARED", shared_bytes),
        ("UNIFORM", usize::from(work.is_uniform())),
        (
            "DESCENDING",
            usize::from(work.attention.causal && is_sorted(schedule.order)),
        ),
        ("FEW", usize::from(has_few_queries(&work.attention))),
        ("PACKED", usize::from(work.row_heads > 1)),
        ("SPLIT", usize::from(schedule.split_k > 1)),
    ];
    defines.extend(numbers.map(|(name, value)| (name, value.to_string())));
    let threads = (groups.count + 1) * GROUP_THREADS;
    Variant {
        source: Source::AttentionSpecialised,
        defines,
        threads: threads as u32,
        shared_bytes: shared_bytes as u32,
        registers: most_registers(threads),
    }
}

/// Whether a sequence has so few rows that the rounding errors of their weights do not cancel. Kernels for such
/// sequences round more carefully; other kernels skip this work.
fn has_few_queries(attention: &Attention) -> bool {
    attention.sequences.iter().any(|lengths| lengths.queries < ROWS)
}

/// Bytes of shared memory; `kernels/attention_specialised_ring.cuh` has the same layout.
fn shared_bytes(work: &Work, schedule: &Schedule, way: Way) -> usize {
    let (head, row) = (work.attention.head_size, work.row_bytes());
    // Bytes of a key's element and of a value's with it.
    let (multiplied, raw) = match way {
        Way::Copied => (4, 0),
        Way::Converted => (4, RAW_STAGES),
        Way::Eights => (3, RAW_STAGES),
    };
    let (queries, keys) = (schedule.tile.m, schedule.tile.n);
    let stage = keys * head * multiplied;
    let merged = match warp_groups(schedule, &work.attention).parts {
        1 => 0,
        _ => queries / ROWS * GROUP_THREADS * size_of::<f32>() * (head / 2 + 4),
    };
    queries * row + schedule.stages * stage + raw * keys * row + merged + BARRIER_BYTES
}

/// Checked here because the driver would refuse the launch with a less helpful message.
fn check_shared_bytes(bytes: usize, schedule: &Schedule) -> Result<(), PlanError> {
    if bytes <= SHARED_BYTES {
        return Ok(());
    }
    Err(PlanError::word(
        "stages",
        schedule.stages,
        format!("a block would take {bytes} B of shared memory, and has {SHARED_BYTES}"),
        "choose 2, or fewer queries a tile",
    ))
}

fn check_words(attention: &Attention, schedule: &Schedule) -> Result<(), PlanError> {
    let tile = schedule.tile;
    if ![2 * ROWS, 3 * ROWS, 4 * ROWS].contains(&tile.m) {
        return Err(PlanError::word(
            "tile.m",
            tile.m,
            "two to four warp groups multiply, of 64 queries each",
            "choose 128, 192 or 256",
        ));
    }
    let WarpGroups { count, most, .. } = warp_groups(schedule, attention);
    if count > most {
        return Err(PlanError::word(
            "tile.m",
            tile.m,
            format!(
                "registers are there for {most} warp groups of 64 queries, with heads of {} multiplied in {}",
                attention.head_size, schedule.arithmetic
            ),
            format!("choose {}", most * ROWS),
        ));
    }
    if !KEYS.contains(&tile.n) {
        return Err(PlanError::word(
            "tile.n",
            tile.n,
            "the specialised kernel takes 64 or 128 keys a step",
            "choose 128",
        ));
    }
    check_split(schedule)?;
    if schedule.stages < 2 {
        return Err(PlanError::word(
            "stages",
            schedule.stages,
            "the next step's scores begin before this step's values are done",
            "choose 2 or more",
        ));
    }
    if schedule.stages > MAX_SPECIALISED_STAGES {
        return Err(PlanError::word(
            "stages",
            schedule.stages,
            format!("a word has bits for {MAX_SPECIALISED_STAGES} stages of K and of V, and one for tiles"),
            format!("choose 2 to {MAX_SPECIALISED_STAGES}"),
        ));
    }
    let why = "the specialised kernel is built so";
    require! {
        "epilogue": schedule.epilogue, Epilogue::Direct, why;
        "scores": schedule.scores, Scores::Registers, why;
        "values": schedule.values, Values::Matrix, why;
    }
    if schedule.order == Order::Dynamic {
        return Err(PlanError::word(
            "order",
            schedule.order,
            "the specialised kernel has no counter of tiles",
            "choose sorted",
        ));
    }
    Ok(())
}
