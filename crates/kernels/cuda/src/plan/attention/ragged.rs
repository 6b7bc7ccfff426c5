//! Attention on sequences whose lengths are in the device's memory, by the unified kernel: a call is one launch that does not
//! depend on them, so a captured one serves any lengths up to those planned for.

use bytemuck::{Pod, Zeroable};
use gauntlet_problems::resources::FEW_QUERIES;
use gauntlet_problems::{Attention, AttentionFormat, OutputFormat, Scaling, Schedule, Sequence};

use super::automatic::{MAX_PARTS, PART_STEPS, STEP_KEYS, roomy};
use super::check_heads;
use super::unified::UnifiedPlan;
use crate::plan::{Addresses, Launch, Memory, Plan, PlanError, Target, Variant, Weights};

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
    /// Most query positions of a sequence; those beyond are not computed.
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
    reserved: u32,
}

/// A shape that was planned.
#[derive(Debug)]
pub struct RaggedPlan {
    unified: UnifiedPlan,
    schedule: Schedule,
    /// Tiles of the heads of a sequence that share keys, and of all sequences.
    tiles_a_set: usize,
    tiles: usize,
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
        let rows = shape.most_queries * (shape.heads / shape.kv_heads);
        let most = if shape.head_size > 128 { 64 } else { 128 };
        let sizes = [FEW_QUERIES, 64, most];
        let size = sizes.into_iter().find(|&size| rows <= size).unwrap_or(most);
        let tiles_a_set = rows.div_ceil(size);
        let tiles = tiles_a_set * shape.kv_heads * shape.batch;
        let most_parts = (shape.most_keys / (STEP_KEYS * PART_STEPS)).max(1);
        let parts = (target.processors as usize / tiles.max(1)).clamp(1, most_parts);
        let mut schedule = roomy(&longest, target, size);
        schedule.split_k = parts.min(MAX_PARTS[usize::from(size > FEW_QUERIES)]);
        let mut unified = UnifiedPlan::new(&longest, &schedule, target)?;
        let defines = &mut unified.variant.defines;
        defines.extend([("RAGGED", "1".to_owned()), ("PACKED", "1".to_owned())]);
        super::check_tiles(tiles.saturating_mul(schedule.split_k))?;
        Ok(Self {
            unified,
            schedule,
            tiles_a_set,
            tiles,
        })
    }

    /// One call of it.
    pub fn call(&self, places: RaggedPlaces) -> RaggedCall<'_> {
        RaggedCall { plan: self, places }
    }

    /// The schedule of the unified kernel.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }
}

/// A planned shape with the places of a call's lengths and operands. Their addresses are those of position 0, or of the first
/// page.
#[derive(Debug)]
pub struct RaggedCall<'a> {
    plan: &'a RaggedPlan,
    places: RaggedPlaces,
}

impl Plan for RaggedCall<'_> {
    fn variant(&self) -> &Variant {
        &self.plan.unified.variant
    }

    fn memory(&self, _: &[Weights]) -> Memory {
        let parts = self.plan.unified.work.parts;
        Memory {
            workspace_bytes: self.plan.tiles * parts.count * parts.bytes,
            counter_bytes: self.plan.tiles * parts.counters * size_of::<u32>(),
            ..Memory::default()
        }
    }

    fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        let grid = self.plan.tiles * self.plan.schedule.split_k;
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
            tiles_a_set: self.plan.tiles_a_set as u32,
            reserved: 0,
        };
        let mut launches = match grid {
            0 => Vec::new(),
            _ => self.plan.unified.work.launch(addresses, grid, 1),
        };
        for launch in &mut launches {
            launch.parameter.extend_from_slice(bytemuck::bytes_of(&tail));
        }
        launches
    }
}
