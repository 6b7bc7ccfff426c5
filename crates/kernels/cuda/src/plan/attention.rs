//! Attention's kernels: `unified`, where all warps do the same work (the staircase); `specialised`, where one warp
//! loads and warp groups multiply; and `resident`, for sequences short enough that all keys fit in shared memory
//! together.

mod abi;
mod automatic;
pub mod ragged;
pub mod resident;
pub mod specialised;
pub mod unified;

use crate::plan::error::require;
use std::collections::BTreeMap;

use gauntlet_problems::resources::{HeadSets, most_visible, multiplied_head};
use gauntlet_problems::{Arithmetic, Cluster, Exponential, Layout, Maps, Order, Packing, Roles, Schedule};
use gauntlet_problems::{Attention, AttentionFormat, Scaling, Sequence as Lengths};

pub use abi::{FirstScales, Sequence, Tile};
pub use automatic::automatic;
use resident::ResidentPlan;
use specialised::SpecialisedPlan;
use unified::UnifiedPlan;

use super::groups::{check_tiles, within};
use super::variant::output_define;
use super::{
    Addresses, Element, HeadMatrices, HeadShape, Launch, Map, MappedOperands, Memory, OPERANDS, Pass, Plan,
    PlanError, Source, Target,
};

/// Head sizes that the kernels with roles take; the unified one takes multiples of [`HEAD_STEP`] up to [`MAX_HEAD`].
const HEAD_SIZES: [usize; 2] = [64, 128];
const HEAD_STEP: usize = 16;
const MAX_HEAD: usize = 256;

/// Most bytes of shared memory of a block of compute capability 9.0 (CUDA C++ Programming Guide, technical
/// specifications).
const SHARED_BYTES: usize = 227 << 10;

/// Plans a valid problem. With roles, a tile with the queries of one warp group selects the resident kernel.
///
/// # Errors
/// If no kernel supports a value of the schedule, or a size exceeds the kernels' integer ranges.
pub(super) fn plan(
    attention: &Attention,
    schedule: &Schedule,
    target: Target,
) -> Result<Box<dyn Plan>, PlanError> {
    check_heads(attention.head_size)?;
    check_words(attention, schedule)?;
    let source = match (schedule.roles, schedule.tile.m) {
        (Roles::Unified, _) => Source::AttentionUnified,
        (Roles::Specialised, resident::ROWS) => Source::AttentionResident,
        (Roles::Specialised, _) => Source::AttentionSpecialised,
    };
    source.check(schedule, target.arch)?;
    if source != Source::AttentionUnified && !HEAD_SIZES.contains(&attention.head_size) {
        let why = format!(
            "attention kernels with roles take heads of 64 or 128, not {}",
            attention.head_size
        );
        return Err(PlanError::word("roles", schedule.roles, why, "choose unified"));
    }
    match source {
        Source::AttentionUnified => Ok(Box::new(UnifiedPlan::new(attention, schedule, target)?)),
        Source::AttentionResident => Ok(Box::new(ResidentPlan::new(attention, schedule)?)),
        _ => {
            check_alone(schedule)?;
            Ok(Box::new(SpecialisedPlan::new(
                attention,
                schedule,
                target.processors,
            )?))
        }
    }
}

/// Checks the parameters that all kernels support alike.
fn check_words(attention: &Attention, schedule: &Schedule) -> Result<(), PlanError> {
    if schedule.arithmetic == Arithmetic::Fp8 && attention.format != AttentionFormat::E4m3 {
        return Err(PlanError::word(
            "arithmetic",
            schedule.arithmetic,
            format!("operands in {} cannot be multiplied as e4m3", attention.format),
            "choose fp16",
        ));
    }
    require! {
        "swap-ab": schedule.swap_ab, false, "attention has no weights to exchange with tokens";
        "packing": schedule.packing, Packing::Canonical, "attention has no weights to repack";
        "maps": schedule.maps, Maps::Prebuilt, "attention's tensor maps do not depend on the tile";
        "tile.k": schedule.tile.k, attention.head_size, "a step is as deep as a head";
    }
    Ok(())
}

/// Blocks of the specialised kernel do not wait for one another, and its rows are swizzled.
fn check_alone(schedule: &Schedule) -> Result<(), PlanError> {
    let why = "with roles only the blocks of tiles of 64 queries are a cluster";
    require! {
        "cluster": schedule.cluster, Cluster { m: 1, n: 1 }, why;
    }
    let why = "wgmma reads these rows swizzled from shared memory";
    PlanError::unless("layout", schedule.layout, Layout::Swizzled, why)
}

/// A tile's keys are one part at least.
fn check_split(schedule: &Schedule) -> Result<(), PlanError> {
    if schedule.split_k > 0 {
        return Ok(());
    }
    Err(PlanError::word(
        "split-k",
        0,
        "a tile's keys are one part at least",
        "choose 1 or more",
    ))
}

/// Heads that no kernel here takes are refused by name.
fn check_heads(size: usize) -> Result<(), PlanError> {
    if size == 0 || size > MAX_HEAD || !size.is_multiple_of(HEAD_STEP) {
        return Err(PlanError::HeadSize { size });
    }
    Ok(())
}

/// Rows of a tile that a warp has: those of `mma.sync.m16n8k16`, and a quarter of those of `wgmma` (PTX ISA).
const WARP_ROWS: usize = 16;

/// The common part of attention plans: the sequences, and the tiles in the order in which blocks take them.
#[derive(Debug, Clone)]
struct Work {
    attention: Attention,
    sequences: Vec<Sequence>,
    tiles: Vec<Tile>,
    /// The first scales of each sequence; empty unless blocks have scales of their own.
    first_scales: Vec<FirstScales>,
    /// Of each tile's keys.
    parts: Parts,
    /// Query heads whose queries are the rows of one head of `attention`, where a plan has [packed](packed) them.
    row_heads: usize,
    /// Positions of Q, K and V that a tensor map's box has, in kernels that copy by tensor maps.
    box_rows: Option<[usize; OPERANDS]>,
}

/// How the keys of a tile are split over blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parts {
    count: usize,
    /// Bytes that a part leaves in the workspace.
    bytes: usize,
    /// Counters of arrived parts, of a tile.
    counters: usize,
}

impl Parts {
    /// All keys together.
    const ONE: Self = Self {
        count: 1,
        bytes: 0,
        counters: 0,
    };

    /// Blocks merge whole rows: `BlockParts` in `kernels/attention_parts.cuh`.
    fn of_blocks(attention: &Attention, rows: usize, count: usize) -> Self {
        Self::several(count, rows * (attention.head_size + 2), 1)
    }

    /// Warps merge their own sixteen rows, of which each of 32 lanes has two statistics: `WarpParts` there.
    fn of_warps(attention: &Attention, rows: usize, count: usize) -> Self {
        let warps = rows / WARP_ROWS;
        Self::several(count, warps * 32 * (multiplied_head(attention) / 2 + 4), warps)
    }

    fn several(count: usize, floats: usize, counters: usize) -> Self {
        match count {
            ..=1 => Self::ONE,
            _ => Self {
                count,
                bytes: floats * size_of::<f32>(),
                counters,
            },
        }
    }
}

impl Work {
    /// Cuts the rows of each set of heads into tiles of `rows`.
    fn new(
        attention: &Attention,
        schedule: &Schedule,
        rows: usize,
        sets: HeadSets,
        parts: Parts,
    ) -> Result<Self, PlanError> {
        let most = i32::MAX as usize;
        within("the rows of Q", attention.query_rows(), most)?;
        within("the rows of K", attention.key_rows(), most)?;
        let tiles = |lengths: &Lengths| {
            let of_a_set = (lengths.queries * sets.heads).div_ceil(rows);
            of_a_set.saturating_mul(sets.count).saturating_mul(parts.count)
        };
        check_tiles(
            attention
                .sequences
                .iter()
                .map(tiles)
                .fold(0, usize::saturating_add),
        )?;
        Ok(Self {
            sequences: sequences(attention),
            tiles: cut(attention, schedule.order, rows, sets),
            first_scales: first_scales(attention),
            parts,
            row_heads: 1,
            box_rows: None,
            attention: attention.clone(),
        })
    }

    /// Also copies by tensor maps; `box_rows` is the number of positions in a box of Q, K and V.
    fn with_maps(self, box_rows: [usize; OPERANDS]) -> Self {
        Self {
            box_rows: Some(box_rows),
            ..self
        }
    }

    /// The definitions that every kernel has.
    fn defines(&self, schedule: &Schedule) -> BTreeMap<&'static str, String> {
        let format = match self.attention.format {
            AttentionFormat::F16 => 0,
            AttentionFormat::Bf16 => 1,
            AttentionFormat::E4m3 => 2,
            AttentionFormat::Int8 => 3,
        };
        let exponential = match schedule.exponential {
            Exponential::Hardware => 0,
            Exponential::Polynomial => 1,
            Exponential::Table => 2,
        };
        let numbers = [
            ("HEAD", self.attention.head_size),
            ("FORMAT", format),
            ("SCALING", usize::from(self.attention.has_block_scales())),
            ("OUTPUT", output_define(self.attention.output)),
            ("CAUSAL", usize::from(self.attention.causal)),
            ("EXPONENTIAL", exponential),
            ("OVERLAP", 1),
            ("RAGGED", 0),
        ];
        numbers
            .into_iter()
            .map(|(name, value)| (name, value.to_string()))
            .collect()
    }

    /// Whether all sequences have the same lengths, so that a tile's place follows from its number.
    fn is_uniform(&self) -> bool {
        let same = |pair: &[Lengths]| pair[0] == pair[1];
        self.attention.sequences.windows(2).all(same)
    }

    /// Bytes of a row of Q, K or V.
    fn row_bytes(&self) -> usize {
        self.attention.head_size * self.attention.format.bytes()
    }

    /// Tables, and three maps a sequence where there are several; those of a single one come with the launch.
    fn memory(&self) -> Memory {
        let mut tables = bytemuck::cast_slice(&self.sequences).to_vec();
        tables.extend_from_slice(bytemuck::cast_slice(&self.tiles));
        tables.extend_from_slice(bytemuck::cast_slice(&self.first_scales));
        let tiles = self.tiles.len();
        Memory {
            tables,
            maps: match self.box_rows {
                Some(box_rows) if !self.is_uniform() => self.maps(box_rows),
                _ => Vec::new(),
            },
            workspace_bytes: tiles * self.parts.count * self.parts.bytes,
            counter_bytes: tiles * self.parts.counters * size_of::<u32>(),
        }
    }

    /// The maps of sequences of unequal lengths.
    fn maps(&self, box_rows: [usize; OPERANDS]) -> Vec<Map> {
        let sequences = self.sequences.iter().enumerate();
        let maps = |(group, sequence): (usize, &Sequence)| {
            let first = [sequence.query_row, sequence.key_row, sequence.key_row];
            let offsets = first.map(|row| u64::from(row) * self.row_bytes() as u64);
            self.head_shape(sequence, box_rows).maps(group, offsets)
        };
        sequences.flat_map(maps).collect()
    }

    fn head_shape(&self, sequence: &Sequence, box_rows: [usize; OPERANDS]) -> HeadShape {
        let attention = &self.attention;
        let (queries, keys) = (sequence.queries as usize, sequence.keys as usize);
        HeadShape {
            element: match attention.format {
                AttentionFormat::E4m3 | AttentionFormat::Int8 => Element::Byte,
                AttentionFormat::F16 | AttentionFormat::Bf16 => Element::Half,
            },
            head_size: attention.head_size,
            positions: [queries, keys, keys],
            heads: [attention.heads, attention.kv_heads, attention.kv_heads],
            box_rows,
        }
    }

    /// Q, K and V of a single sequence, if the kernel copies by tensor maps.
    fn mapped(&self, addresses: &Addresses) -> Option<MappedOperands> {
        let box_rows = self.box_rows.filter(|_| self.is_uniform())?;
        Some(MappedOperands::Heads(HeadMatrices {
            shape: self.head_shape(&self.sequences[0], box_rows),
            addresses: addresses.operands,
        }))
    }

    /// The launch of `grid` blocks.
    fn launch(&self, addresses: &Addresses, grid: usize, cluster: usize) -> Vec<Launch> {
        if self.tiles.is_empty() {
            return Vec::new();
        }
        let first = self.sequences[0];
        let uniform = self.is_uniform();
        let tiles = addresses.tables + size_of_val(self.sequences.as_slice()) as u64;
        let parameter = abi::Parameter {
            operands: addresses.operands,
            scales: addresses.scales,
            output: addresses.output,
            sequences: addresses.tables,
            tiles,
            maps: addresses.maps,
            counters: addresses.counters,
            workspace: addresses.workspace,
            tile_count: self.tiles.len() as u32,
            heads: self.attention.heads as u32,
            kv_heads: self.attention.kv_heads as u32,
            scale: std::f32::consts::LOG2_E / (self.attention.head_size as f32).sqrt()
                * addresses.factors[0]
                * addresses.factors[1],
            queries: if uniform { first.queries } else { 0 },
            keys: if uniform { first.keys } else { 0 },
            first_scales: tiles + size_of_val(self.tiles.as_slice()) as u64,
            parts: self.parts.count as u32,
            scale_step: u32::from(self.attention.scaling != Scaling::PerTensor),
            value_scale: addresses.factors[2],
            row_heads: self.row_heads as u32,
        };
        vec![Launch {
            pass: Pass::Main,
            grid: grid as u32,
            cluster: cluster as u32,
            parameter: bytemuck::bytes_of(&parameter).to_vec(),
            mapped: self.mapped(addresses),
        }]
    }
}

/// Each `count` query heads that share a key head as one head with the queries of all: they lie one after another.
fn packed(attention: &Attention, count: usize) -> Attention {
    let mut packed = attention.clone();
    packed.heads /= count;
    for lengths in &mut packed.sequences {
        lengths.queries *= count;
    }
    packed
}

/// Equal sequences joined into one with the heads of all. They are contiguous, so rows and scales keep their places,
/// and three maps suffice.
fn joined(attention: &Attention) -> Attention {
    let mut joined = attention.clone();
    let count = attention.sequences.len();
    if let Some(first) = attention.sequences.first()
        && attention.sequences.iter().all(|other| other == first)
    {
        joined.sequences.truncate(1);
        joined.heads *= count;
        joined.kv_heads *= count;
    }
    joined
}

fn sequences(attention: &Attention) -> Vec<Sequence> {
    let starts = attention
        .first_query_rows()
        .into_iter()
        .zip(attention.first_key_rows());
    let sequences = attention.sequences.iter().zip(starts);
    sequences
        .map(|(lengths, (query_row, key_row))| Sequence {
            query_row: query_row as u32,
            key_row: key_row as u32,
            queries: lengths.queries as u32,
            keys: lengths.keys as u32,
        })
        .collect()
}

fn first_scales(attention: &Attention) -> Vec<FirstScales> {
    if !attention.has_block_scales() {
        return Vec::new();
    }
    let starts = attention
        .first_query_scales()
        .into_iter()
        .zip(attention.first_key_scales());
    starts
        .map(|(query, key)| FirstScales {
            query: query as u32,
            key: key as u32,
        })
        .collect()
}

/// Whether the costliest tiles come first.
fn is_sorted(order: Order) -> bool {
    matches!(order, Order::Sorted | Order::Dynamic)
}

/// The tiles, one set of heads after another; sorted and dynamic orders begin with the tiles that see the most keys.
fn cut(attention: &Attention, order: Order, rows: usize, sets: HeadSets) -> Vec<Tile> {
    let mut tiles = Vec::new();
    for (sequence, lengths) in attention.sequences.iter().enumerate() {
        let of_a_set = lengths.queries * sets.heads;
        for head in 0..sets.count {
            tiles.extend((0..of_a_set).step_by(rows).map(|query| Tile {
                sequence: sequence as u32,
                head: head as u32,
                query: query as u32,
                queries: rows.min(of_a_set - query) as u32,
            }));
        }
    }
    if is_sorted(order) {
        let seen = |tile: &Tile| {
            let lengths = attention.sequences[tile.sequence as usize];
            let first = tile.query as usize;
            most_visible(attention, lengths, first..first + tile.queries as usize)
        };
        tiles.sort_by_key(|tile| std::cmp::Reverse(seen(tile)));
    }
    tiles
}

#[cfg(test)]
mod tests;
