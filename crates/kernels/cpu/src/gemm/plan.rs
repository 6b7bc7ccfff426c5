//! A grouped GEMM cut into tiles.

mod side;

use std::ops::Range;

use gauntlet_nvfp4::Nvfp4Tensor;
use gauntlet_problems::{Epilogue, Lookup};
use gauntlet_problems::{Form, GemmShape, GroupedGemm, Output, OutputFormat, TokenFormat};

pub(crate) use self::side::Side;
use crate::epilogue::Writer;
use crate::error::{BuildError, RunError, expect_equal, wrong_family};
use crate::family::{Operands, Plan, Setting, last_begun, limit_tiles, share};
use crate::gemm::operands::{GemmOperands, Weights};
use crate::gemm::work::{GemmState, GemmWork};
use crate::memory::{AlignedBuffer, Disjoint, OutOfMemory};
use crate::simd::{Blocks, Dots, Instructions, Operand};

/// Everything about a grouped GEMM that depends on shapes only.
#[derive(Debug)]
pub(crate) struct GemmPlan {
    pub instructions: Instructions,
    /// The multiplication loops.
    pub blocks: Blocks,
    /// The loops that multiply weights straight from their codes, if the plan uses them: each weight then meets only
    /// one panel of tokens, so packed weights would be read only once.
    pub unpacked: Option<&'static Dots>,
    pub form: Form,
    pub format: OutputFormat,
    pub token_format: TokenFormat,
    pub epilogue: Epilogue,
    pub split: usize,
    pub groups: Vec<Group>,
    /// Rows of A per tile, and how they are packed.
    pub tokens: Side,
    /// Rows of B per tile, and how they are packed.
    pub weights: Side,
    /// Depth of one stage.
    pub depth: usize,
    /// Chunks per stage.
    pub chunks: usize,
    /// The number of tiles; slices count separately.
    pub tiles: usize,
    table: Option<Vec<GemmTile>>,
    /// Panels of A, over all groups.
    pub pieces: Vec<Piece>,
    resident_words: usize,
}

/// One group's position among tiles, resident panels and outputs.
#[derive(Debug)]
pub(crate) struct Group {
    pub shape: GemmShape,
    /// Tiles before this group.
    first_tile: usize,
    token_blocks: usize,
    /// Steps along K.
    pub steps: usize,
    /// Words of a whole panel of A.
    pub token_panel: usize,
    /// The first word of the group's resident panels.
    pub resident: usize,
    /// The group's first element in the output.
    pub output: usize,
}

/// One panel of A.
#[derive(Debug)]
pub(crate) struct Piece {
    pub group: usize,
    pub rows: Range<usize>,
    /// The panel's first word.
    pub start: usize,
}

/// A tile, or one slice of it along K.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GemmTile {
    /// Its number; slices count separately.
    pub index: usize,
    pub group: usize,
    pub token_block: usize,
    pub weight_block: usize,
    pub slice: usize,
}

/// Memory that all threads share.
#[derive(Debug)]
pub(crate) struct GemmShared {
    resident: AlignedBuffer,
    partials: AlignedBuffer,
}

impl GemmPlan {
    /// Divides `problem` into tiles as the schedule says.
    pub fn new(problem: &GroupedGemm, setting: &Setting<'_>) -> Result<Self, BuildError> {
        let Setting {
            instructions,
            schedule,
            ..
        } = *setting;
        if !schedule.tile.k.is_multiple_of(16) {
            return Err(BuildError::TileDepth {
                found: schedule.tile.k,
            });
        }
        // No buffer need be larger than the largest group, even if the tile is.
        let largest =
            |size: fn(&GemmShape) -> usize| problem.groups.iter().map(size).max().unwrap_or(0).max(1);
        let (most_tokens, most_weights) = (largest(|shape| shape.m), largest(|shape| shape.n));
        let blocks = instructions.blocks(most_tokens, problem.tokens);
        let tile = schedule.tile;
        let side = |operand, extent: usize, most: usize| Side {
            extent: extent.min(most),
            operand,
            width: blocks.width(operand),
        };
        let (tokens, weights) = if schedule.swap_ab {
            (
                side(Operand::Columns, tile.n, most_tokens),
                side(Operand::Rows, tile.m, most_weights),
            )
        } else {
            (
                side(Operand::Rows, tile.m, most_tokens),
                side(Operand::Columns, tile.n, most_weights),
            )
        };
        let unpacked = match blocks {
            Blocks::Dots(dots) if schedule.swap_ab && most_tokens <= tokens.width => Some(dots),
            _ => None,
        };
        let depth = tile.k.min(largest(|shape| shape.k).next_multiple_of(16));
        let mut plan = Self {
            instructions,
            blocks,
            unpacked,
            form: problem.form,
            format: problem.output,
            token_format: problem.tokens,
            epilogue: schedule.epilogue,
            split: schedule.split_k,
            groups: Vec::with_capacity(problem.groups.len()),
            tokens,
            weights,
            depth,
            chunks: blocks.chunks(depth),
            tiles: 0,
            table: None,
            pieces: Vec::new(),
            resident_words: 0,
        };
        for shape in &problem.groups {
            plan.add(shape)?;
        }
        if schedule.lookup == Lookup::Precomputed {
            plan.table = Some((0..plan.tiles).map(|index| plan.search(index)).collect());
        }
        Ok(plan)
    }

    fn add(&mut self, shape: &GemmShape) -> Result<(), BuildError> {
        let token_blocks = shape.m.div_ceil(self.tokens.extent);
        let tiles = token_blocks
            .saturating_mul(shape.n.div_ceil(self.weights.extent))
            .saturating_mul(self.split);
        let output = self
            .groups
            .last()
            .map_or(0, |group| group.output + group.shape.m * group.shape.n);
        // Each step is padded to whole chunks.
        let (steps, last) = (shape.k.div_ceil(self.depth), shape.k % self.depth);
        let last = if last == 0 { self.depth } else { last };
        let chunks = self.chunks * steps.saturating_sub(1) + self.blocks.chunks(last);
        let token_panel = self.blocks.panel_words(self.tokens.operand, chunks);
        self.groups.push(Group {
            shape: *shape,
            first_tile: self.tiles,
            token_blocks,
            steps,
            token_panel,
            resident: self.resident_words,
            output,
        });
        self.tiles = self.tiles.saturating_add(tiles);
        limit_tiles(self.tiles)?;
        limit_tiles(self.tokens.panels(shape.m).saturating_add(self.pieces.len()))?;
        for block in 0..token_blocks {
            let rows = self.tokens.block(block, shape.m);
            for panel in 0..self.tokens.panels(rows.len()) {
                self.pieces.push(Piece {
                    group: self.groups.len() - 1,
                    rows: self.tokens.panel(&rows, panel),
                    start: self.resident_words,
                });
                self.resident_words = self.resident_words.saturating_add(token_panel);
            }
        }
        Ok(())
    }

    /// The number of products computed side by side.
    pub fn products(&self) -> usize {
        match self.form {
            Form::Plain => 1,
            Form::Swiglu => 2,
        }
    }

    /// The number of accumulators of one product of a tile: one row per token.
    pub fn sums(&self) -> usize {
        self.tokens.extent.saturating_mul(self.weights.extent)
    }

    /// Words of one panel of weights in a slot.
    pub fn weight_panel(&self) -> usize {
        self.blocks.panel_words(self.weights.operand, self.chunks)
    }

    /// Words of one product's panels in a slot.
    pub fn product_panels(&self) -> usize {
        let panels = self.weights.panels(self.weights.extent);
        self.weight_panel().saturating_mul(panels)
    }

    /// The offset of a step within a panel of A.
    pub fn token_step(&self, step: usize) -> usize {
        self.blocks.panel_words(self.tokens.operand, step * self.chunks)
    }

    /// Where the resident panels of a token block of `group` start.
    pub fn resident_start(&self, group: &Group, token_block: usize) -> usize {
        group.resident + token_block * self.tokens.panels(self.tokens.extent) * group.token_panel
    }

    /// Finds a tile: in the table, or by a search among the groups.
    pub fn find(&self, index: usize) -> GemmTile {
        match &self.table {
            Some(table) => table[index],
            None => self.search(index),
        }
    }

    fn search(&self, index: usize) -> GemmTile {
        let group = last_begun(&self.groups, |group| group.first_tile, index);
        let within = index - self.groups[group].first_tile;
        let (block, slice) = (within / self.split, within % self.split);
        let token_blocks = self.groups[group].token_blocks;
        GemmTile {
            index,
            group,
            token_block: block % token_blocks,
            weight_block: block / token_blocks,
            slice,
        }
    }

    /// The steps along K of a tile's slice.
    pub fn slice_steps(&self, tile: &GemmTile) -> Range<usize> {
        share(self.groups[tile.group].steps, tile.slice, self.split)
    }

    /// The depth range of one step of a slice; empty for an empty slice, which still has one step.
    pub fn step_depth(&self, tile: &GemmTile, step: usize) -> Range<usize> {
        let steps = self.slice_steps(tile);
        if steps.is_empty() {
            return 0..0;
        }
        self.depth_of(tile.group, steps.start + step)
    }

    /// The depth range of step `step`, counted along all of K.
    pub fn depth_of(&self, group: usize, step: usize) -> Range<usize> {
        self.depth_within(self.groups[group].shape.k, step)
    }

    /// The depth range of step `step`, counted along all of a K of size `k`.
    pub fn depth_within(&self, k: usize, step: usize) -> Range<usize> {
        let start = step * self.depth;
        start..k.min(start + self.depth)
    }

    /// Packs the given rows of weights over a depth range into the panels of a slot.
    pub fn pack_weights(
        &self,
        tensor: &Nvfp4Tensor,
        rows: &Range<usize>,
        depth: Range<usize>,
        panels: &mut [f32],
    ) {
        for (at, panel) in panels.chunks_exact_mut(self.weight_panel()).enumerate() {
            let rows = self.weights.panel(rows, at);
            self.blocks
                .pack(self.weights.operand, tensor, rows, depth.clone(), panel);
        }
    }

    /// Checks that operands and output match this problem.
    fn check(&self, operands: &[GemmOperands<'_>], output: &Output) -> Result<(), RunError> {
        expect_equal(|| "number of groups".into(), operands.len(), self.groups.len())?;
        for (index, (operands, group)) in operands.iter().zip(&self.groups).enumerate() {
            let GemmShape { m, n, k } = group.shape;
            expect_equal(
                || format!("group {index}: shape of A"),
                operands.a.shape(),
                [m, k],
            )?;
            let format = operands.a.format();
            expect_equal(
                || format!("group {index}: format of A"),
                format,
                self.token_format,
            )?;
            expect_equal(
                || format!("group {index}: shape of B"),
                operands.b.shape(),
                [n, k],
            )?;
            let second = (self.form == Form::Swiglu).then_some([n, k]);
            let found = operands.b2.as_ref().map(Weights::shape);
            expect_equal(|| format!("group {index}: shape of B2"), found, second)?;
            for weights in std::iter::once(&operands.b).chain(&operands.b2) {
                if let Weights::Packed(packed) = weights {
                    packed.check(self, || format!("group {index}"))?;
                }
            }
        }
        let elements: usize = self
            .groups
            .iter()
            .map(|group| group.shape.m * group.shape.n)
            .sum();
        expect_equal(|| "output format".into(), output.format, self.format)?;
        expect_equal(
            || "output bytes".into(),
            output.bytes.len(),
            elements * self.format.bytes(),
        )
    }
}

impl Plan for GemmPlan {
    type Shared = GemmShared;
    type State = GemmState;
    type Work<'a> = GemmWork<'a>;

    fn tiles(&self) -> usize {
        self.tiles
    }

    fn costs(&self) -> Vec<u64> {
        let cost = |index| {
            let tile = self.find(index);
            let shape = self.groups[tile.group].shape;
            let tokens = self.tokens.block(tile.token_block, shape.m).len();
            let weights = self.weights.block(tile.weight_block, shape.n).len();
            ((tokens * weights) as u64).saturating_mul((self.slice_steps(&tile).len() * self.depth) as u64)
        };
        (0..self.tiles).map(cost).collect()
    }

    fn register_block(&self) -> ([usize; 2], usize) {
        let blocks = self.blocks;
        let widths = [Operand::Rows, Operand::Columns].map(|operand| blocks.width(operand));
        (widths, blocks.accumulators())
    }

    fn panel_values(&self) -> usize {
        if self.unpacked.is_some() {
            return 0;
        }
        self.product_panels().saturating_mul(self.products())
    }

    fn workspace_bytes(&self) -> (usize, usize) {
        let shared = self
            .resident_words
            .saturating_add(self.partial_values())
            .saturating_mul(size_of::<f32>());
        let state = GemmState::bytes(self);
        (shared, state)
    }

    fn allocate_shared(&self) -> Result<GemmShared, OutOfMemory> {
        Ok(GemmShared {
            resident: AlignedBuffer::zeroed(self.resident_words)?,
            partials: AlignedBuffer::zeroed(self.partial_values())?,
        })
    }

    fn allocate_state(&self) -> Result<GemmState, OutOfMemory> {
        GemmState::allocate(self)
    }

    fn work<'a>(
        &'a self,
        shared: &'a mut GemmShared,
        operands: Operands<'a>,
        output: &'a mut Output,
    ) -> Result<GemmWork<'a>, RunError> {
        let Operands::GroupedGemm(operands) = operands else {
            return Err(wrong_family("attention", "grouped GEMM"));
        };
        self.check(operands, output)?;
        Ok(GemmWork {
            plan: self,
            operands,
            resident: Disjoint::new(shared.resident.values_mut()),
            partials: Disjoint::new(shared.partials.values_mut()),
            writer: Writer::new(self.instructions, self.epilogue, self.format, &mut output.bytes),
        })
    }
}

impl GemmPlan {
    /// The number of f32 values of the parts of all split tiles.
    fn partial_values(&self) -> usize {
        let part = self.sums().saturating_mul(self.products());
        if self.split == 1 {
            0
        } else {
            self.tiles.saturating_mul(part)
        }
    }
}
