//! Attention on sequences whose lengths are in the device's memory, by the unified kernel: a call is one launch or two that do not
//! depend on them, so a captured one serves any lengths up to those planned for.

use bytemuck::{Pod, Zeroable};
use gauntlet_problems::resources::FEW_QUERIES;
use gauntlet_problems::{Attention, AttentionFormat, OutputFormat, Scaling, Schedule, Sequence};

use super::automatic::{MAX_PARTS, PART_STEPS, STEP_KEYS, roomy};
use super::unified::UnifiedPlan;
use super::{Work, check_heads};
use crate::plan::{Addresses, Launch, Memory, Pass, Plan, PlanError, Target, Variant, Weights};

/// Sizes and formats of attention on sequences of several lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RaggedShape {
    /// Sequences.
    pub batch: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads, which divide `heads`.
    pub kv_heads: usize,
    /// Values of a head and position: a multiple of 16, up to 256.
    pub head_size: usize,
    /// Most query positions of a sequence; those beyond may be left out.
    pub most_queries: usize,
    /// Most key positions of a sequence: they decide into how many parts keys are split, and nothing else.
    pub most_keys: usize,
    /// Whether query i of a sequence sees only the keys up to `i + keys - queries`.
    pub causal: bool,
    /// The format of Q, K and V.
    pub format: AttentionFormat,
    /// Per tensor or, for `[batch, heads]` scales, per head.
    pub scaling: Scaling,
    /// The format of the result.
    pub output: OutputFormat,
}

/// Where the lengths of sequences and their positions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RaggedPlaces {
    /// The address of `batch + 1` `i32`: each sequence's first position in Q, and the end of the last.
    pub query_begins: u64,
    /// Where keys and values are.
    pub keys: KeyPlaces,
    /// Bytes from a position of Q to the next, and from a head to the next.
    pub query: Strides,
    /// Of K.
    pub key: Strides,
    /// Of V.
    pub value: Strides,
}

/// How keys and values lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlaces {
    /// Sequence after sequence: the address of `batch + 1` `i32`, as those of queries, and that of `batch` `i32`, how many of the
    /// positions of each count, or 0 if all do.
    Ragged {
        /// Each sequence's first position.
        begins: u64,
        /// Positions that count.
        counts: u64,
    },
    /// In pages of `1 << page_shift` positions.
    Paged {
        /// The address of `batch` `i32`: positions of each sequence.
        counts: u64,
        /// The address of `[batch, pages_a_sequence]` `i32`: its pages in their order.
        pages: u64,
        /// Entries of a sequence in that table.
        pages_a_sequence: u32,
        /// The logarithm of the positions of a page.
        page_shift: u32,
    },
}

/// Bytes from one to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Strides {
    /// From a page to the next.
    pub page: u64,
    /// From a position to the next.
    pub position: u64,
    /// From a head to the next.
    pub head: u64,
}

impl Strides {
    /// Of nothing.
    pub const NONE: Self = Self {
        page: 0,
        position: 0,
        head: 0,
    };
}

/// What the kernel's parameter has behind that of all attention kernels; the other half is `kernels/attention.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Tail {
    query_begins: u64,
    key_begins: u64,
    key_counts: u64,
    pages: u64,
    query: Strides,
    key: Strides,
    value: Strides,
    pages_a_sequence: u32,
    page_shift: u32,
    tiles_a_set: u32,
    batch: u32,
    rows_above: u32,
    rows_to: u32,
}

/// A shape that was planned.
#[derive(Debug)]
pub struct RaggedPlan {
    batch: usize,
    main: Part,
    rest: Option<Part>,
}

/// The sequences of one launch.
#[derive(Debug)]
struct Part {
    work: Work,
    variant: Variant,
    schedule: Schedule,
    /// They have more rows than the first and at most the second: a row is a query of one of the heads that share keys.
    rows: [u32; 2],
    /// Tiles of the heads of a sequence that share keys.
    tiles_a_set: usize,
    blocks: usize,
    workspace_bytes: usize,
    counter_bytes: usize,
}

impl RaggedPlan {
    /// Plans it for a GPU.
    ///
    /// # Errors
    /// If a size is invalid, or no kernel takes it.
    pub fn new(shape: &RaggedShape, target: Target) -> Result<Self, PlanError> {
        let target = target.for_common_kernels();
        // The longest sequence stands for all.
        let longest = Attention {
            sequences: vec![Sequence {
                queries: shape.most_queries,
                keys: shape.most_keys.max(1),
            }],
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            head_size: shape.head_size,
            causal: shape.causal,
            format: shape.format,
            scaling: shape.scaling,
            output: shape.output,
        };
        gauntlet_problems::Operation::Attention(longest.clone()).validate()?;
        check_heads(shape.head_size)?;
        if longest.has_block_scales() {
            return Err(PlanError::word(
                "scaling",
                shape.scaling,
                "positions of ragged sequences have no blocks with scales of their own",
                "choose per-tensor or per-head",
            ));
        }
        let shared = shape.heads / shape.kv_heads;
        let rows = shape.most_queries * shared;
        // Of several sequences some may be decoded while others have many queries.
        let (main, rest) = match (rows <= FEW_QUERIES, shared <= FEW_QUERIES && shape.batch > 1) {
            (true, _) => (shared_out(shape, &longest, target, u32::MAX)?, None),
            (_, true) => (
                shared_out(shape, &longest, target, FEW_QUERIES as u32)?,
                Some(by_number(shape, &longest, target, FEW_QUERIES as u32)?),
            ),
            _ => (by_number(shape, &longest, target, 0)?, None),
        };
        Ok(Self {
            batch: shape.batch,
            main,
            rest,
        })
    }

    /// One call of it.
    pub fn call(&self, places: RaggedPlaces) -> RaggedCall<'_> {
        RaggedCall { plan: self, places }
    }

    /// The schedule of the unified kernel for the sequences with the most queries.
    pub fn schedule(&self) -> &Schedule {
        &self.rest.as_ref().unwrap_or(&self.main).schedule
    }
}

/// Sequences of few rows, at most `rows`: blocks take equal shares of the steps of all of their tiles.
fn shared_out(
    shape: &RaggedShape,
    longest: &Attention,
    target: Target,
    rows: u32,
) -> Result<Part, PlanError> {
    let mut schedule = roomy(longest, target, FEW_QUERIES);
    // Wherever a block's share ends within a tile.
    schedule.split_k = 2;
    let mut few = longest.clone();
    few.sequences[0].queries = few.sequences[0].queries.min(FEW_QUERIES);
    let (work, variant) = unified(&few, &schedule, target)?;
    let tiles = shape.batch * shape.kv_heads;
    let resident = target.blocks_with(variant.shared_bytes as usize).clamp(1, 2);
    let steps = tiles.saturating_mul(shape.most_keys.div_ceil(STEP_KEYS));
    let blocks = (resident * target.processors as usize)
        .min(tiles.saturating_mul(MAX_PARTS[0]))
        .min((steps / PART_STEPS).max(1));
    Ok(Part {
        rows: [0, rows],
        tiles_a_set: 1,
        blocks: if tiles == 0 { 0 } else { blocks },
        workspace_bytes: PARTS_A_BLOCK * blocks * work.parts.bytes,
        counter_bytes: tiles * size_of::<u32>(),
        schedule,
        work,
        variant,
    })
}

/// Sequences of more than `above` rows: a block finds its tile, and its part of the tile's keys, by its number.
fn by_number(
    shape: &RaggedShape,
    longest: &Attention,
    target: Target,
    above: u32,
) -> Result<Part, PlanError> {
    let rows = shape.most_queries * (shape.heads / shape.kv_heads);
    let size = if rows <= 64 || shape.head_size > 128 {
        64
    } else {
        128
    };
    let tiles_a_set = rows.div_ceil(size);
    let tiles = tiles_a_set * shape.kv_heads * shape.batch;
    let most_parts = (shape.most_keys / (STEP_KEYS * PART_STEPS)).max(1);
    let parts = (target.processors as usize / tiles.max(1)).clamp(1, most_parts);
    let mut schedule = roomy(longest, target, size);
    schedule.split_k = parts.min(MAX_PARTS[1]);
    super::check_tiles(tiles.saturating_mul(schedule.split_k))?;
    let (work, variant) = unified(longest, &schedule, target)?;
    let parts = work.parts;
    Ok(Part {
        rows: [above, u32::MAX],
        tiles_a_set,
        blocks: tiles * schedule.split_k,
        workspace_bytes: tiles * parts.count * parts.bytes,
        counter_bytes: tiles * parts.counters * size_of::<u32>(),
        schedule,
        work,
        variant,
    })
}

fn unified(longest: &Attention, schedule: &Schedule, target: Target) -> Result<(Work, Variant), PlanError> {
    let UnifiedPlan { work, mut variant } = UnifiedPlan::new(longest, schedule, target)?;
    let defines = &mut variant.defines;
    defines.extend([("RAGGED", "1".to_owned()), ("PACKED", "1".to_owned())]);
    Ok((work, variant))
}

/// Tiles that a block shares with others at most: the first and the last of its share.
const PARTS_A_BLOCK: usize = 2;

/// A planned shape with the places of a call's lengths and operands. Their addresses are those of position 0, or of the first
/// page.
#[derive(Debug)]
pub struct RaggedCall<'a> {
    plan: &'a RaggedPlan,
    places: RaggedPlaces,
}

impl Plan for RaggedCall<'_> {
    fn variant(&self) -> &Variant {
        &self.plan.main.variant
    }

    fn rest(&self) -> Option<&Variant> {
        self.plan.rest.as_ref().map(|part| &part.variant)
    }

    fn memory(&self, _: &[Weights]) -> Memory {
        let sum = |of: fn(&Part) -> usize| of(&self.plan.main) + self.plan.rest.as_ref().map_or(0, of);
        Memory {
            workspace_bytes: sum(|part| part.workspace_bytes),
            counter_bytes: sum(|part| part.counter_bytes),
            ..Memory::default()
        }
    }

    fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        let main = &self.plan.main;
        let mut launches = self.launch(Pass::Main, main, addresses);
        if let Some(rest) = &self.plan.rest {
            let behind = Addresses {
                workspace: addresses.workspace + main.workspace_bytes as u64,
                counters: addresses.counters + main.counter_bytes as u64,
                ..*addresses
            };
            launches.extend(self.launch(Pass::Rest, rest, &behind));
        }
        launches
    }
}

impl RaggedCall<'_> {
    fn launch(&self, pass: Pass, part: &Part, addresses: &Addresses) -> Vec<Launch> {
        let places = &self.places;
        let (key_begins, key_counts, pages, [pages_a_sequence, page_shift]) = match places.keys {
            KeyPlaces::Ragged { begins, counts } => (begins, counts, 0, [0, 0]),
            KeyPlaces::Paged {
                counts,
                pages,
                pages_a_sequence,
                page_shift,
            } => (0, counts, pages, [pages_a_sequence, page_shift]),
        };
        let tail = Tail {
            query_begins: places.query_begins,
            key_begins,
            key_counts,
            pages,
            query: places.query,
            key: places.key,
            value: places.value,
            pages_a_sequence,
            page_shift,
            tiles_a_set: part.tiles_a_set as u32,
            batch: self.plan.batch as u32,
            rows_above: part.rows[0],
            rows_to: part.rows[1],
        };
        let mut launches = match part.blocks {
            0 => Vec::new(),
            blocks => part.work.launch(addresses, blocks, 1),
        };
        for launch in &mut launches {
            launch.pass = pass;
            launch.parameter.extend_from_slice(bytemuck::bytes_of(&tail));
        }
        launches
    }
}

#[cfg(test)]
mod tests;
