//! The work of one grouped GEMM call.

use std::ops::Range;

use gauntlet_formats::Nvfp4Tensor;
use gauntlet_problem::{Form, GroupInputs};

use crate::driver::TileWork;
use crate::epilogue::{Finish, Sums, Target, Writer};
use crate::gemm::plan::{GemmPlan, GemmTile};
use crate::memory::{AlignedBuffer, Disjoint, OutOfMemory};
use crate::panels::{pack_nvfp4, prefetch_nvfp4};
use crate::simd::Codes;

/// Plan, memory and operands of one call.
#[derive(Debug)]
pub(crate) struct GemmWork<'a> {
    pub plan: &'a GemmPlan,
    pub inputs: &'a [GroupInputs],
    /// Panels of A: written by `load_resident`, read by `multiply`.
    pub resident: Disjoint<'a, f32>,
    /// Sums of split tiles: written by `finish`, read by `reduce`.
    pub partials: Disjoint<'a, f32>,
    pub writer: Writer<'a>,
}

/// One thread's memory.
#[derive(Debug)]
pub(crate) struct GemmState {
    codes: Codes,
    sums: AlignedBuffer,
    staging: Vec<u8>,
}

impl GemmState {
    /// Bytes of one thread's memory, apart from the fixed size of the decoder's.
    pub fn bytes(plan: &GemmPlan) -> usize {
        let sums = plan
            .sums()
            .saturating_mul(plan.products())
            .saturating_mul(size_of::<f32>());
        sums.saturating_add(Self::staging_bytes(plan))
    }

    /// Makes one thread's memory.
    pub fn allocate(plan: &GemmPlan) -> Result<Self, OutOfMemory> {
        let sums = AlignedBuffer::zeroed(plan.sums().saturating_mul(plan.products()))?;
        // Never more than the accumulators, which have just been had.
        let staging = vec![0; Self::staging_bytes(plan)];
        Ok(Self {
            codes: Codes::new(),
            sums,
            staging,
        })
    }

    fn staging_bytes(plan: &GemmPlan) -> usize {
        Writer::staging_bytes(
            plan.epilogue,
            plan.format,
            plan.tokens.extent,
            plan.weights.extent,
        )
    }
}

impl GemmWork<'_> {
    /// The weights of `tile`, one or two tensors.
    fn weights(&self, tile: &GemmTile) -> impl Iterator<Item = &Nvfp4Tensor> {
        let inputs = &self.inputs[tile.group];
        std::iter::once(&inputs.b).chain(&inputs.b2)
    }

    fn token_rows(&self, tile: &GemmTile) -> Range<usize> {
        self.plan
            .tokens
            .block(tile.token_block, self.plan.groups[tile.group].shape.m)
    }

    fn weight_rows(&self, tile: &GemmTile) -> Range<usize> {
        self.plan
            .weights
            .block(tile.weight_block, self.plan.groups[tile.group].shape.n)
    }

    /// Panels of a tile on the row and on the column side of the register block.
    fn row_and_column_panels(&self, tile: &GemmTile) -> (usize, usize) {
        let tokens = self.plan.tokens.panels(self.token_rows(tile).len());
        let weights = self.plan.weights.panels(self.weight_rows(tile).len());
        if self.plan.swapped {
            (weights, tokens)
        } else {
            (tokens, weights)
        }
    }

    /// Scales and writes the sums of a tile.
    fn write(&self, tile: &GemmTile, state: &mut GemmState) {
        let plan = self.plan;
        let group = &plan.groups[tile.group];
        let inputs = &self.inputs[tile.group];
        let (tokens, weights) = (self.token_rows(tile), self.weight_rows(tile));
        let (first, second) = state.sums.values().split_at(plan.sums());
        let sums = Sums {
            first,
            second: (plan.form == Form::Swiglu).then_some(second),
            row_panels: self.row_and_column_panels(tile).0,
            swapped: plan.swapped,
        };
        // A product of two f32 is exact in f64.
        let scale =
            |weights: &Nvfp4Tensor| f64::from(inputs.a.tensor_scale()) * f64::from(weights.tensor_scale());
        let finish = match &inputs.b2 {
            Some(second) => Finish::Swiglu([scale(&inputs.b), scale(second)]),
            None => Finish::Scale(scale(&inputs.b)),
        };
        let target = Target {
            start: group.output + tokens.start * group.shape.n + weights.start,
            stride: group.shape.n,
            rows: tokens.len(),
            columns: weights.len(),
        };
        // SAFETY: each output element belongs to one tile, and each tile is written once.
        unsafe { self.writer.write(&sums, finish, &target, &mut state.staging) };
    }

    /// Where the sums of tile `index`, slices counted apart, are kept.
    fn partial(&self, index: usize) -> Range<usize> {
        let values = self.plan.sums() * self.plan.products();
        index * values..(index + 1) * values
    }
}

impl TileWork for GemmWork<'_> {
    type Tile = GemmTile;
    type State = GemmState;

    fn resident_pieces(&self) -> usize {
        self.plan.pieces.len()
    }

    fn load_resident(&self, piece: usize, state: &mut GemmState) {
        let plan = self.plan;
        let piece = &plan.pieces[piece];
        let tensor = &self.inputs[piece.group].a;
        let width = plan.tokens.width;
        let depth = tensor.columns();
        // SAFETY: each piece has its own range and is loaded by one thread; nothing reads before the launch ends.
        let panel = unsafe { self.resident.part_mut(piece.start..piece.start + width * depth) };
        let rows = piece.rows.clone();
        pack_nvfp4(
            &plan.instructions,
            tensor,
            rows,
            0..depth,
            width,
            &mut state.codes,
            panel,
        );
    }

    fn find(&self, index: usize) -> GemmTile {
        self.plan.find(index)
    }

    fn steps(&self, tile: &GemmTile) -> usize {
        self.plan.slice_steps(tile).len().max(1)
    }

    fn begin(&self, _tile: &GemmTile, _state: &mut GemmState) {}

    fn prepare(&self, tile: &GemmTile, step: usize, panel: &mut [f32], state: &mut GemmState) {
        let plan = self.plan;
        let depth = plan.step_depth(tile, step);
        if depth.is_empty() {
            return;
        }
        let width = plan.weights.width;
        let rows = self.weight_rows(tile);
        for (weights, panels) in self
            .weights(tile)
            .zip(panel.chunks_exact_mut(plan.product_panel()))
        {
            let starts = rows.clone().step_by(width);
            for (first, panel) in starts.zip(panels.chunks_exact_mut(width * depth.len())) {
                let rows = first..rows.end.min(first + width);
                let codes = &mut state.codes;
                pack_nvfp4(
                    &plan.instructions,
                    weights,
                    rows,
                    depth.clone(),
                    width,
                    codes,
                    panel,
                );
            }
        }
    }

    fn prefetch(&self, tile: &GemmTile, step: usize) {
        for weights in self.weights(tile) {
            prefetch_nvfp4(weights, self.weight_rows(tile), self.plan.step_depth(tile, step));
        }
    }

    fn multiply(&self, tile: &GemmTile, step: usize, panel: &[f32], state: &mut GemmState) {
        let plan = self.plan;
        let group = &plan.groups[tile.group];
        let depth = plan.step_depth(tile, step);
        let token_panel = plan.tokens.width * group.shape.k;
        let tokens_start = plan.resident_start(group, tile.token_block);
        let token_panels = plan.tokens.panels(self.token_rows(tile).len());
        // SAFETY: the resident panels were written in an earlier launch of the pool and are only read in this one.
        let tokens = unsafe {
            self.resident
                .part(tokens_start..tokens_start + token_panels * token_panel)
        };
        let token = |panel: usize| &tokens[panel * token_panel + depth.start * plan.tokens.width..];
        let weight_panel = plan.weights.width * depth.len();
        let (row_panels, column_panels) = self.row_and_column_panels(tile);
        let block = plan.instructions.rows() * plan.instructions.columns();
        let products = panel.chunks_exact(plan.product_panel());
        for (weights, sums) in products.zip(state.sums.values_mut().chunks_exact_mut(plan.sums())) {
            let weight = |panel: usize| &weights[panel * weight_panel..];
            // The column panel stays in the first-level cache while the narrower row panels pass by.
            let mut blocks = sums.chunks_exact_mut(block);
            for column in 0..column_panels {
                for (row, sums) in (0..row_panels).zip(&mut blocks) {
                    let (a, b) = if plan.swapped {
                        (weight(row), token(column))
                    } else {
                        (token(row), weight(column))
                    };
                    plan.instructions.multiply(depth.len(), a, b, sums, step > 0);
                }
            }
        }
    }

    fn finish(&self, tile: &GemmTile, state: &mut GemmState) {
        if self.plan.split == 1 {
            return self.write(tile, state);
        }
        // SAFETY: each slice of a tile has its own range, written once; nothing reads it before the launch ends.
        unsafe { self.partials.part_mut(self.partial(tile.index)) }.copy_from_slice(state.sums.values());
    }

    fn reductions(&self) -> usize {
        if self.plan.split == 1 {
            0
        } else {
            self.plan.tiles / self.plan.split
        }
    }

    fn reduce(&self, index: usize, state: &mut GemmState) {
        let split = self.plan.split;
        for slice in 0..split {
            // SAFETY: the slices were written in an earlier launch of the pool and are only read in this one.
            let part = unsafe { self.partials.part(self.partial(index * split + slice)) };
            let sums = state.sums.values_mut();
            if slice == 0 {
                sums.copy_from_slice(part);
            } else {
                sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            }
        }
        self.write(&self.plan.find(index * split), state);
    }
}
