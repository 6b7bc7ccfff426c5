//! Divides attention into tiles.

use std::ops::Range;

use gauntlet_problems::{Attention, AttentionFormat, AttentionInputs, HeadTensor, Output, Sequence};
use gauntlet_problems::{Epilogue, Lookup};

use crate::attention::panels::HeadRows;
use crate::attention::tiles;
use crate::attention::work::{AttentionState, AttentionWork};
use crate::epilogue::Writer;
use crate::error::{BuildError, RunError, expect_equal, wrong_family};
use crate::family::{Operands, Plan, Setting, last_begun, limit_tiles, share};
use crate::memory::{AlignedBuffer, Disjoint, OutOfMemory};
use crate::simd::{Instructions, SIDE, Tiles};

/// Everything about an attention that depends on shapes only.
#[derive(Debug)]
pub(crate) struct AttentionPlan {
    pub instructions: Instructions,
    /// The tile unit, if the plan uses it.
    pub unit: Option<Tiles>,
    pub problem: Attention,
    pub epilogue: Epilogue,
    pub swapped: bool,
    pub split: usize,
    /// Queries per tile.
    pub queries: usize,
    /// Keys per step.
    pub keys: usize,
    /// Queries per panel.
    pub query_width: usize,
    /// Keys per panel, and head values per panel of V.
    pub key_width: usize,
    sequences: Vec<Place>,
    /// The number of tiles; slices count separately.
    pub tiles: usize,
    table: Option<Vec<AttentionTile>>,
}

/// One sequence's position among tiles and operands.
#[derive(Debug)]
struct Place {
    lengths: Sequence,
    /// Tiles before this sequence.
    first_tile: usize,
    blocks: usize,
    /// Query rows of all heads before this sequence.
    query_rows: usize,
    /// Key rows of all key heads before this sequence.
    key_rows: usize,
    /// Scales of Q, and of K and of V, before this sequence.
    query_scales: usize,
    key_scales: usize,
}

/// A block of queries of one head, or one slice of it along the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttentionTile {
    /// Its number; slices count separately.
    pub index: usize,
    pub sequence: usize,
    pub head: usize,
    /// The first query.
    pub query: usize,
    pub slice: usize,
}

impl AttentionPlan {
    /// Divides `problem` into tiles as the schedule says.
    pub fn new(problem: &Attention, setting: &Setting<'_>) -> Result<Self, BuildError> {
        let Setting {
            instructions,
            schedule,
            ..
        } = *setting;
        let head_size = problem.head_size;
        if !head_size.is_multiple_of(8) {
            return Err(BuildError::HeadSize { found: head_size });
        }
        if schedule.tile.k != head_size {
            return Err(BuildError::TileHead {
                found: schedule.tile.k,
                head_size,
            });
        }
        // No buffer need be larger than the longest sequence, even if the tile is.
        let longest =
            |length: fn(&Sequence) -> usize| problem.sequences.iter().map(length).max().unwrap_or(0).max(1);
        let (rows, columns) = (instructions.rows(), instructions.columns());
        let tile = schedule.tile;
        let (queries, keys) = if schedule.swap_ab {
            (tile.n, tile.m)
        } else {
            (tile.m, tile.n)
        };
        // The tile unit always takes keys as rows; swap-AB then only decides which side of the tile is which.
        let unit = instructions.tiles().filter(|_| tiles::suit(problem, keys));
        let swapped = schedule.swap_ab || unit.is_some();
        let (query_width, key_width) = if swapped { (columns, rows) } else { (rows, columns) };
        let longest_keys = longest(|sequence| sequence.keys);
        let longest_keys = match unit {
            // Rounded up to whole chunks, so that there is room for the last one.
            Some(_) => longest_keys.next_multiple_of(SIDE),
            None => longest_keys,
        };
        let mut plan = Self {
            instructions,
            unit,
            problem: problem.clone(),
            epilogue: schedule.epilogue,
            swapped,
            split: schedule.split_k,
            queries: queries.min(longest(|sequence| sequence.queries)),
            keys: keys.min(longest_keys),
            query_width,
            key_width,
            sequences: Vec::with_capacity(problem.sequences.len()),
            tiles: 0,
            table: None,
        };
        let starts = problem
            .first_query_rows()
            .into_iter()
            .zip(problem.first_key_rows());
        let scales = problem
            .first_query_scales()
            .into_iter()
            .zip(problem.first_key_scales());
        for ((lengths, (query_rows, key_rows)), (query_scales, key_scales)) in
            problem.sequences.iter().zip(starts).zip(scales)
        {
            let blocks = lengths.queries.div_ceil(plan.queries);
            let tiles = blocks.saturating_mul(problem.heads).saturating_mul(plan.split);
            plan.sequences.push(Place {
                lengths: *lengths,
                first_tile: plan.tiles,
                blocks,
                query_rows,
                key_rows,
                query_scales,
                key_scales,
            });
            plan.tiles = plan.tiles.saturating_add(tiles);
            limit_tiles(plan.tiles)?;
        }
        if schedule.lookup == Lookup::Precomputed {
            plan.table = Some((0..plan.tiles).map(|index| plan.search(index)).collect());
        }
        Ok(plan)
    }

    /// Finds a tile: in the table, or by a search among the sequences.
    pub fn find(&self, index: usize) -> AttentionTile {
        match &self.table {
            Some(table) => table[index],
            None => self.search(index),
        }
    }

    fn search(&self, index: usize) -> AttentionTile {
        let sequence = last_begun(&self.sequences, |place| place.first_tile, index);
        let within = index - self.sequences[sequence].first_tile;
        let (block, slice) = (within / self.split, within % self.split);
        let blocks = self.sequences[sequence].blocks;
        AttentionTile {
            index,
            sequence,
            head: block / blocks,
            query: block % blocks * self.queries,
            slice,
        }
    }

    /// The queries of a tile.
    pub fn tile_queries(&self, tile: &AttentionTile) -> Range<usize> {
        tile.query
            ..self.sequences[tile.sequence]
                .lengths
                .queries
                .min(tile.query + self.queries)
    }

    /// The first element of a tile's head in Q, and in the output.
    pub fn query_start(&self, tile: &AttentionTile) -> usize {
        let place = &self.sequences[tile.sequence];
        (place.query_rows + tile.head * place.lengths.queries) * self.problem.head_size
    }

    /// The queries of a tile's head.
    pub fn queries_of<'i>(&self, tile: &AttentionTile, query: &'i HeadTensor) -> HeadRows<'i> {
        let place = &self.sequences[tile.sequence];
        let count = self.problem.scaling.count(place.lengths.queries);
        let first = place.query_scales + tile.head * count;
        HeadRows::new(
            self.instructions,
            query,
            self.query_start(tile),
            self.problem.head_size,
            first..first + count,
            self.problem.scaling,
        )
    }

    /// The keys, or values, of a tile's key head.
    pub fn keys_of<'i>(&self, tile: &AttentionTile, tensor: &'i HeadTensor) -> HeadRows<'i> {
        let place = &self.sequences[tile.sequence];
        let head = self.problem.kv_head(tile.head);
        let count = self.problem.scaling.count(place.lengths.keys);
        let first = place.key_scales + head * count;
        HeadRows::new(
            self.instructions,
            tensor,
            (place.key_rows + head * place.lengths.keys) * self.problem.head_size,
            self.problem.head_size,
            first..first + count,
            self.problem.scaling,
        )
    }

    /// The number of keys, from the first, that `query` sees.
    pub fn visible(&self, tile: &AttentionTile, query: usize) -> usize {
        let lengths = self.sequences[tile.sequence].lengths;
        // The padding lanes of a panel come after the last query.
        self.problem.visible_keys(lengths, query).min(lengths.keys)
    }

    /// The number of keys, from the first, that any query of the tile sees.
    fn visible_to_tile(&self, tile: &AttentionTile) -> usize {
        self.visible(tile, self.tile_queries(tile).end - 1)
    }

    /// The steps along the keys of a tile's slice.
    pub fn slice_steps(&self, tile: &AttentionTile) -> Range<usize> {
        share(
            self.visible_to_tile(tile).div_ceil(self.keys),
            tile.slice,
            self.split,
        )
    }

    /// The keys of one step; none for an empty slice, which still has one step.
    pub fn step_keys(&self, tile: &AttentionTile, step: usize) -> Range<usize> {
        let steps = self.slice_steps(tile);
        if steps.is_empty() {
            return 0..0;
        }
        let start = (steps.start + step) * self.keys;
        start..self.visible_to_tile(tile).min(start + self.keys)
    }

    /// Query panels of a full tile.
    pub fn query_panels(&self) -> usize {
        self.queries.div_ceil(self.query_width)
    }

    /// Key panels of a full step.
    pub fn key_panels(&self) -> usize {
        self.keys.div_ceil(self.key_width)
    }

    /// Panels of V's columns.
    pub fn value_panels(&self) -> usize {
        self.problem.head_size.div_ceil(self.key_width)
    }

    /// The number of f32 values of one step's K in a slot; V follows it.
    pub fn key_values(&self) -> usize {
        self.key_panels() * self.key_width * self.problem.head_size
    }

    /// f32 values of a tile's output sums.
    pub fn output_values(&self) -> usize {
        self.query_panels() * self.query_width * self.value_panels() * self.key_width
    }

    /// The number of f32 values kept for one slice of a tile: output sums, then one maximum and one sum per query.
    pub fn part_values(&self) -> usize {
        self.output_values() + 2 * self.query_panels() * self.query_width
    }

    fn partial_values(&self) -> usize {
        if self.split == 1 {
            0
        } else {
            self.tiles.saturating_mul(self.part_values())
        }
    }

    /// The operands, if they and the output match this problem.
    fn check<'i>(&self, operands: Operands<'i>, output: &Output) -> Result<&'i AttentionInputs, RunError> {
        let Operands::Attention(inputs) = operands else {
            return Err(wrong_family("grouped GEMM", "attention"));
        };
        let Attention {
            head_size, format, ..
        } = self.problem;
        let (queries, keys) = (self.problem.query_rows(), self.problem.key_rows());
        let check = |name: &str, tensor: &HeadTensor, scales: usize, rows: usize| {
            let bytes = rows * head_size * AttentionFormat::bytes(format);
            expect_equal(|| format!("format of {name}"), tensor.format, format)?;
            expect_equal(|| format!("bytes of {name}"), tensor.bytes.len(), bytes)?;
            expect_equal(|| format!("scales of {name}"), tensor.scales.len(), scales)
        };
        check("Q", &inputs.query, self.problem.query_scales(), queries)?;
        check("K", &inputs.key, self.problem.key_scales(), keys)?;
        check("V", &inputs.value, self.problem.key_scales(), keys)?;
        let bytes = queries * head_size * self.problem.output.bytes();
        expect_equal(|| "output format".into(), output.format, self.problem.output)?;
        expect_equal(|| "output bytes".into(), output.bytes.len(), bytes)?;
        Ok(inputs)
    }
}

impl Plan for AttentionPlan {
    type Shared = AlignedBuffer;
    type State = AttentionState;
    type Work<'a> = AttentionWork<'a>;

    fn tiles(&self) -> usize {
        self.tiles
    }

    fn costs(&self) -> Vec<u64> {
        let cost = |index| {
            let tile = self.find(index);
            let steps = self.slice_steps(&tile).len();
            let step = self.tile_queries(&tile).len() * 2 * self.problem.head_size;
            (step as u64).saturating_mul((steps * self.keys) as u64)
        };
        (0..self.tiles).map(cost).collect()
    }

    fn register_block(&self) -> ([usize; 2], usize) {
        let instructions = self.instructions;
        (
            [instructions.rows(), instructions.columns()],
            instructions.accumulators(),
        )
    }

    fn panel_values(&self) -> usize {
        self.key_values() + self.value_panels() * self.key_width * self.keys
    }

    fn workspace_bytes(&self) -> (usize, usize) {
        (
            self.partial_values().saturating_mul(size_of::<f32>()),
            AttentionState::bytes(self),
        )
    }

    fn allocate_shared(&self) -> Result<AlignedBuffer, OutOfMemory> {
        AlignedBuffer::zeroed(self.partial_values())
    }

    fn allocate_state(&self) -> Result<AttentionState, OutOfMemory> {
        AttentionState::allocate(self)
    }

    fn work<'a>(
        &'a self,
        shared: &'a mut AlignedBuffer,
        operands: Operands<'a>,
        output: &'a mut Output,
    ) -> Result<AttentionWork<'a>, RunError> {
        let inputs = self.check(operands, output)?;
        Ok(AttentionWork {
            plan: self,
            inputs,
            partials: Disjoint::new(shared.values_mut()),
            writer: Writer::new(
                self.instructions,
                self.epilogue,
                self.problem.output,
                &mut output.bytes,
            ),
        })
    }
}
