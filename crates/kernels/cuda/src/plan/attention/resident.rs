//! The resident kernel: all keys are in shared memory together, split over the two warp groups of each block of a
//! cluster. There is no loop over steps, so a call on short sequences costs little more than its latencies.

use crate::plan::error::require;
use gauntlet_problems::resources::HeadSets;
use gauntlet_problems::{Arithmetic, Cluster, Epilogue, Layout, Order, Schedule, Scores, Values};
use gauntlet_problems::{Attention, AttentionFormat, OutputFormat};

use super::{Parts, SHARED_BYTES, Work, joined};
use crate::plan::variant::most_registers;
use crate::plan::{Addresses, Launch, Memory, Plan, PlanError, Source, Variant, Weights};

/// Queries of a tile: the rows of `wgmma` (PTX ISA).
pub(super) const ROWS: usize = 64;
/// Warp groups of a block, and their threads.
const GROUPS: usize = 2;
const THREADS: usize = GROUPS * 128;
/// Keys of a warp group that there are products for.
const KEYS: [usize; 3] = [64, 128, 256];
/// Blocks of a cluster: each owns whole slots of 16 of a tile's rows.
const SPLITS: [usize; 3] = [1, 2, 4];
/// Runs into which the weights of a warp group are divided.
const RUNS: [usize; 3] = [1, 2, 4];
/// Bytes for barriers.
const BARRIER_BYTES: usize = 64;
/// Bytes of a row's largest score and sum of weights.
const STATISTICS_BYTES: usize = 8;
/// Minimum shared memory of a block, so that two do not fit a multiprocessor. Where two fit, a call that may begin
/// before the previous one has ended takes 1.1 µs more (H200, 1×8×512×64), because its blocks wait beside those that
/// still work.
const ALONE_BYTES: usize = 114 << 10;

/// A problem for the resident kernel.
#[derive(Debug)]
pub struct ResidentPlan {
    work: Work,
    variant: Variant,
    split: usize,
}

impl ResidentPlan {
    /// Plans a valid problem.
    ///
    /// # Errors
    /// If the kernel does not support a value of the schedule, or a size exceeds its integer ranges.
    pub fn new(attention: &Attention, schedule: &Schedule) -> Result<Self, PlanError> {
        check_words(attention, schedule)?;
        let joined = joined(attention);
        let work = Work::new(&joined, schedule, ROWS, HeadSets::alone(&joined), Parts::ONE)?;
        check_keys(attention, schedule)?;
        Ok(Self {
            variant: variant(&work, schedule)?,
            work: work.with_maps([ROWS, schedule.tile.n, schedule.tile.n]),
            split: schedule.split_k,
        })
    }
}

impl Plan for ResidentPlan {
    fn variant(&self) -> &Variant {
        &self.variant
    }

    fn memory(&self, _: &[Weights]) -> Memory {
        self.work.memory()
    }

    fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        let grid = self.work.tiles.len() * self.split;
        self.work.launch(addresses, grid, self.split)
    }
}

/// Whether e4m3 operands are multiplied as they are.
fn is_fp8(attention: &Attention, schedule: &Schedule) -> bool {
    attention.format == AttentionFormat::E4m3 && schedule.arithmetic == Arithmetic::Fp8
}

/// Whether blocks exchange partial results in fp16. This saves a twentieth of a call against fp32 (H200, 1×8×512×64)
/// and is exact enough for an fp16 result: a part that provides the whole row already has the digits of the result.
/// Values of bf16 may exceed the range of fp16, and so may parts that are multiplied by the scales of their blocks.
fn partials_in_fp16(attention: &Attention) -> bool {
    attention.output == OutputFormat::F16
        && attention.format != AttentionFormat::Bf16
        && !attention.has_block_scales()
}

fn variant(work: &Work, schedule: &Schedule) -> Result<Variant, PlanError> {
    let attention = &work.attention;
    let shared_bytes = shared_bytes(attention, schedule);
    if shared_bytes > SHARED_BYTES {
        return Err(PlanError::word(
            "tile.n",
            schedule.tile.n,
            format!("a block would take {shared_bytes} B of shared memory, and has {SHARED_BYTES}"),
            "choose fewer keys and a larger split-k",
        ));
    }
    let tiles_of_a_head = match work.sequences.as_slice() {
        [only] => (only.queries as usize).div_ceil(ROWS),
        _ => 1,
    };
    let mut defines = work.defines(schedule);
    let numbers = [
        ("KEYS", schedule.tile.n),
        ("SPLIT", schedule.split_k),
        ("ARITHMETIC", usize::from(is_fp8(attention, schedule))),
        ("PARTIALS", usize::from(partials_in_fp16(attention))),
        ("UNIFORM", usize::from(work.sequences.len() == 1)),
        ("TILES", tiles_of_a_head.max(1)),
        ("RUNS", schedule.stages),
    ];
    defines.extend(numbers.map(|(name, value)| (name, value.to_string())));
    Ok(Variant {
        source: Source::AttentionResident,
        defines,
        threads: THREADS as u32,
        shared_bytes: shared_bytes.max(ALONE_BYTES) as u32,
        registers: most_registers(THREADS),
    })
}

/// Bytes of shared memory; `kernels/attention_resident.cu` has the same layout.
fn shared_bytes(attention: &Attention, schedule: &Schedule) -> usize {
    let (head, keys) = (attention.head_size, GROUPS * schedule.tile.n);
    let row = head * attention.format.bytes();
    let converted = match (attention.format, is_fp8(attention, schedule)) {
        (AttentionFormat::E4m3 | AttentionFormat::Int8, true) => keys * head,
        (AttentionFormat::E4m3 | AttentionFormat::Int8, false) => 2 * keys * 2 * head,
        (AttentionFormat::F16 | AttentionFormat::Bf16, _) => 0,
    };
    // Each of the parts of the keys has a share of the tile's rows in each block.
    let partial = if partials_in_fp16(attention) { 2 } else { 4 };
    let merged = GROUPS * ROWS * (head * partial + STATISTICS_BYTES);
    ROWS * row + 2 * keys * row + converted + merged + BARRIER_BYTES
}

fn check_words(attention: &Attention, schedule: &Schedule) -> Result<(), PlanError> {
    let one_of = |word, value: usize, choices: &[usize], why: &str| {
        if choices.contains(&value) {
            return Ok(());
        }
        let choices: Vec<_> = choices.iter().map(usize::to_string).collect();
        let remedy = format!("choose one of {}", choices.join(", "));
        Err(PlanError::word(word, value, why, remedy))
    };
    let why = "the resident kernel has products for these numbers of keys of a warp group";
    one_of("tile.n", schedule.tile.n, &KEYS, why)?;
    let why = "each block of the cluster owns whole slots of 16 of a tile's 64 rows";
    one_of("split-k", schedule.split_k, &SPLITS, why)?;
    let why = "in the resident kernel stages are the equal runs of keys whose products with V begin while the next \
               run's weights are computed";
    let step = if is_fp8(attention, schedule) { 32 } else { 16 };
    let runs: Vec<_> = RUNS
        .into_iter()
        .filter(|runs| runs * step <= schedule.tile.n)
        .collect();
    one_of("stages", schedule.stages, &runs, why)?;
    let cluster = Cluster {
        m: 1,
        n: schedule.split_k,
    };
    require! {
        "cluster": schedule.cluster, cluster, "keys are split over the blocks of a cluster";
    }
    let why = "the resident kernel is built so";
    require! {
        "epilogue": schedule.epilogue, Epilogue::Direct, why;
        "order": schedule.order, Order::PerTile, why;
        "scores": schedule.scores, Scores::Registers, why;
        "values": schedule.values, Values::Matrix, why;
        "layout": schedule.layout, Layout::Swizzled, why;
    }
    Ok(())
}

/// The longest sequence must fit the cluster.
fn check_keys(attention: &Attention, schedule: &Schedule) -> Result<(), PlanError> {
    let (keys, split) = (schedule.tile.n, schedule.split_k);
    let longest = attention
        .sequences
        .iter()
        .map(|lengths| lengths.keys)
        .max()
        .unwrap_or(0);
    let held = GROUPS * split * keys;
    if longest <= held {
        return Ok(());
    }
    let fits = |split: &usize, keys: &usize| GROUPS * split * keys >= longest;
    let larger_split = SPLITS.into_iter().find(|split| fits(split, &keys));
    let larger_tile = KEYS.into_iter().find(|keys| fits(&split, keys));
    let both = || fits(&SPLITS[SPLITS.len() - 1], &KEYS[KEYS.len() - 1]);
    let remedy = match (larger_split, larger_tile) {
        (Some(split), _) => format!("choose split-k {split} with a cluster of 1×{split}"),
        (None, Some(keys)) => format!("choose tile.n {keys}"),
        (None, None) if both() => "choose a larger split-k and a larger tile.n".to_owned(),
        (None, None) => "choose tile.m 128: the specialised kernel takes sequences of any length".to_owned(),
    };
    Err(PlanError::word(
        "tile.n",
        keys,
        format!("a cluster holds {held} keys (2 × split-k × tile.n), and the longest sequence has {longest}"),
        remedy,
    ))
}

#[cfg(test)]
mod tests;
