//! A grouped GEMM cut into tiles.

use std::ops::Range;

use gauntlet_problem::{Form, GemmShape, GroupInputs, GroupedGemm, Inputs, Output, OutputFormat};
use gauntlet_schedule::{Epilogue, Lookup};

use crate::epilogue::Writer;
use crate::error::{BuildError, RunError, expect_equal, wrong_family};
use crate::family::{Plan, Setting, limit_tiles, share};
use crate::gemm::work::{GemmState, GemmWork};
use crate::memory::{AlignedBuffer, Disjoint, OutOfMemory};
use crate::simd::Instructions;

/// Everything about a grouped GEMM that depends on shapes only.
#[derive(Debug)]
pub(crate) struct GemmPlan {
    pub instructions: Instructions,
    pub form: Form,
    pub format: OutputFormat,
    pub epilogue: Epilogue,
    pub swapped: bool,
    pub split: usize,
    pub groups: Vec<Group>,
    /// Rows of A in a tile and lanes of its panels.
    pub tokens: Side,
    /// Rows of B in a tile and lanes of its panels.
    pub weights: Side,
    /// Depth of one stage.
    pub depth: usize,
    /// Tiles, slices counted apart.
    pub tiles: usize,
    table: Option<Vec<GemmTile>>,
    /// Panels of A, over all groups.
    pub pieces: Vec<Piece>,
    resident_values: usize,
}

/// One operand's side of a tile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side {
    /// Rows of the operand in a tile.
    pub extent: usize,
    /// Rows of the operand in a panel.
    pub width: usize,
}

impl Side {
    /// Panels of `rows` rows.
    pub fn panels(&self, rows: usize) -> usize {
        rows.div_ceil(self.width)
    }

    /// The rows of block `block` out of `total`.
    pub fn block(&self, block: usize, total: usize) -> Range<usize> {
        block * self.extent..total.min((block + 1) * self.extent)
    }

    /// Rows of a full block, padding included.
    fn padded(&self) -> usize {
        self.extent.next_multiple_of(self.width)
    }
}

/// One group's place among tiles, resident panels and outputs.
#[derive(Debug)]
pub(crate) struct Group {
    pub shape: GemmShape,
    tiles: usize,
    token_blocks: usize,
    steps: usize,
    /// The first value of its resident panels.
    pub resident: usize,
    /// Its first element in the output.
    pub output: usize,
}

/// One panel of A.
#[derive(Debug)]
pub(crate) struct Piece {
    pub group: usize,
    pub rows: Range<usize>,
    /// Its first value.
    pub start: usize,
}

/// A tile, or one slice of it along K.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GemmTile {
    /// Its number, slices counted apart.
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
    /// Cuts `problem` as the schedule says.
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
        // No buffer need be larger than the largest group, however large the tile.
        let largest =
            |size: fn(&GemmShape) -> usize| problem.groups.iter().map(size).max().unwrap_or(0).max(1);
        let (rows, columns) = (instructions.rows(), instructions.columns());
        let (tile, swapped) = (schedule.tile, schedule.swap_ab);
        let ((tokens, token_width), (weights, weight_width)) = if swapped {
            ((tile.n, columns), (tile.m, rows))
        } else {
            ((tile.m, rows), (tile.n, columns))
        };
        let mut plan = Self {
            instructions,
            form: problem.form,
            format: problem.output,
            epilogue: schedule.epilogue,
            swapped,
            split: schedule.split_k,
            groups: Vec::with_capacity(problem.groups.len()),
            tokens: Side {
                extent: tokens.min(largest(|shape| shape.m)),
                width: token_width,
            },
            weights: Side {
                extent: weights.min(largest(|shape| shape.n)),
                width: weight_width,
            },
            depth: tile.k.min(largest(|shape| shape.k).next_multiple_of(16)),
            tiles: 0,
            table: None,
            pieces: Vec::new(),
            resident_values: 0,
        };
        for shape in &problem.groups {
            plan.add(shape)?;
        }
        if schedule.lookup == Lookup::Precomputed {
            plan.table = Some((0..plan.tiles).map(|index| plan.walk(index)).collect());
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
        self.groups.push(Group {
            shape: *shape,
            tiles,
            token_blocks,
            steps: shape.k.div_ceil(self.depth),
            resident: self.resident_values,
            output,
        });
        self.tiles = self.tiles.saturating_add(tiles);
        limit_tiles(self.tiles)?;
        limit_tiles(self.tokens.panels(shape.m).saturating_add(self.pieces.len()))?;
        for block in 0..token_blocks {
            let rows = self.tokens.block(block, shape.m);
            for first in rows.clone().step_by(self.tokens.width) {
                let rows = first..rows.end.min(first + self.tokens.width);
                self.pieces.push(Piece {
                    group: self.groups.len() - 1,
                    rows,
                    start: self.resident_values,
                });
                self.resident_values = self
                    .resident_values
                    .saturating_add(self.tokens.width.saturating_mul(shape.k));
            }
        }
        Ok(())
    }

    /// Products computed side by side.
    pub fn products(&self) -> usize {
        match self.form {
            Form::Plain => 1,
            Form::Swiglu => 2,
        }
    }

    /// f32 values of the accumulators of one product of a tile.
    pub fn sums(&self) -> usize {
        self.tokens.padded().saturating_mul(self.weights.padded())
    }

    /// f32 values of one product's panels in a slot.
    pub fn product_panel(&self) -> usize {
        self.weights.padded().saturating_mul(self.depth)
    }

    /// Where the resident panels of a token block of `group` start.
    pub fn resident_start(&self, group: &Group, token_block: usize) -> usize {
        group.resident + token_block * self.tokens.padded() * group.shape.k
    }

    /// Finds a tile: in the table, or by walking the groups.
    pub fn find(&self, index: usize) -> GemmTile {
        match &self.table {
            Some(table) => table[index],
            None => self.walk(index),
        }
    }

    fn walk(&self, index: usize) -> GemmTile {
        let (mut group, mut within) = (0, index);
        while within >= self.groups[group].tiles {
            within -= self.groups[group].tiles;
            group += 1;
        }
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

    /// The depth range of one step; empty in the only step of a slice that has nothing to do.
    pub fn step_depth(&self, tile: &GemmTile, step: usize) -> Range<usize> {
        let steps = self.slice_steps(tile);
        if steps.is_empty() {
            return 0..0;
        }
        let start = (steps.start + step) * self.depth;
        start..self.groups[tile.group].shape.k.min(start + self.depth)
    }

    /// The operands, if they and the output are of this problem.
    fn check<'i>(&self, inputs: &'i Inputs, output: &Output) -> Result<&'i [GroupInputs], RunError> {
        let Inputs::GroupedGemm(inputs) = inputs else {
            return Err(wrong_family("attention", "grouped GEMM"));
        };
        expect_equal(|| "number of groups".into(), inputs.len(), self.groups.len())?;
        for (index, (inputs, group)) in inputs.iter().zip(&self.groups).enumerate() {
            let GemmShape { m, n, k } = group.shape;
            let shape = |tensor: &gauntlet_formats::Nvfp4Tensor| [tensor.rows(), tensor.columns()];
            expect_equal(|| format!("group {index}: shape of A"), shape(&inputs.a), [m, k])?;
            expect_equal(|| format!("group {index}: shape of B"), shape(&inputs.b), [n, k])?;
            let second = (self.form == Form::Swiglu).then_some([n, k]);
            expect_equal(
                || format!("group {index}: shape of B2"),
                inputs.b2.as_ref().map(shape),
                second,
            )?;
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
        )?;
        Ok(inputs)
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

    fn panel_values(&self) -> usize {
        self.product_panel().saturating_mul(self.products())
    }

    fn workspace_bytes(&self) -> (usize, usize) {
        let shared = self
            .resident_values
            .saturating_add(self.partial_values())
            .saturating_mul(size_of::<f32>());
        let state = GemmState::bytes(self);
        (shared, state)
    }

    fn allocate_shared(&self) -> Result<GemmShared, OutOfMemory> {
        Ok(GemmShared {
            resident: AlignedBuffer::zeroed(self.resident_values)?,
            partials: AlignedBuffer::zeroed(self.partial_values())?,
        })
    }

    fn allocate_state(&self) -> Result<GemmState, OutOfMemory> {
        GemmState::allocate(self)
    }

    fn work<'a>(
        &'a self,
        shared: &'a mut GemmShared,
        inputs: &'a Inputs,
        output: &'a mut Output,
    ) -> Result<GemmWork<'a>, RunError> {
        let inputs = self.check(inputs, output)?;
        Ok(GemmWork {
            plan: self,
            inputs,
            resident: Disjoint::new(shared.resident.values_mut()),
            partials: Disjoint::new(shared.partials.values_mut()),
            writer: Writer::new(self.instructions, self.epilogue, self.format, &mut output.bytes),
        })
    }
}

impl GemmPlan {
    /// f32 values of the parts of all split tiles.
    fn partial_values(&self) -> usize {
        let part = self.sums().saturating_mul(self.products());
        if self.split == 1 {
            0
        } else {
            self.tiles.saturating_mul(part)
        }
    }
}
