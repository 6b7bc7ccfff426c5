//! The work of one grouped GEMM call.

use std::ops::Range;

use gauntlet_nvfp4::Nvfp4Tensor;
use gauntlet_problems::Form;

use crate::driver::TileWork;
use crate::epilogue::{Finish, Places, Sums, Target, Writer};
use crate::gemm::operands::{GemmOperands, TokenRows, Weights};
use crate::gemm::plan::{GemmPlan, GemmTile, Piece};
use crate::memory::{AlignedBuffer, Disjoint, OutOfMemory};
use crate::simd::{Ahead, Dots, Operand, Panels, Rows, prefetch};

/// Plan, memory and operands of one call.
#[derive(Debug)]
pub(crate) struct GemmWork<'a> {
    pub plan: &'a GemmPlan,
    pub operands: &'a [GemmOperands<'a>],
    /// Panels of A: written by `load_resident`, read by `multiply`.
    pub resident: Disjoint<'a, f32>,
    /// Sums of split tiles: written by `finish`, read by `reduce`.
    pub partials: Disjoint<'a, f32>,
    pub writer: Writer<'a>,
}

/// One thread's memory.
#[derive(Debug)]
pub(crate) struct GemmState {
    sums: AlignedBuffer,
    staging: Vec<u8>,
}

impl GemmState {
    /// Bytes of one thread's memory.
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
        // Never larger than the accumulators, which have just been allocated.
        let staging = vec![0; Self::staging_bytes(plan)];
        Ok(Self { sums, staging })
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
    /// The weights of `tile`: one tensor, or two in the dual form.
    fn weights(&self, tile: &GemmTile) -> impl Iterator<Item = Weights<'_>> {
        let operands = &self.operands[tile.group];
        std::iter::once(operands.b).chain(operands.b2)
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

    /// The codes of the weights that one product packs in a step.
    fn ahead(&self, tile: &GemmTile, step: usize, product: usize) -> Ahead {
        let (rows, depth) = (self.weight_rows(tile), self.plan.step_depth(tile, step));
        match self.weights(tile).nth(product) {
            Some(Weights::Tensor(tensor)) if !rows.is_empty() => {
                let row = tensor.columns() / 2;
                let start = rows.start * row;
                Ahead::of(
                    &tensor.packed()[start + depth.start / 2..start + depth.end / 2],
                    row,
                )
            }
            _ => Ahead::NONE,
        }
    }

    /// Scales and writes the sums of a tile.
    fn write(&self, tile: &GemmTile, state: &mut GemmState) {
        let plan = self.plan;
        let group = &plan.groups[tile.group];
        let operands = &self.operands[tile.group];
        let (tokens, weights) = (self.token_rows(tile), self.weight_rows(tile));
        let (first, second) = state.sums.values().split_at(plan.sums());
        let sums = Sums {
            first,
            second: (plan.form == Form::Swiglu).then_some(second),
            places: Places::Rows {
                stride: plan.weights.extent,
            },
        };
        // A product of two f32 is exact in f64.
        let scale =
            |weights: Weights<'_>| f64::from(operands.a.tensor_scale()) * f64::from(weights.tensor_scale());
        let finish = match operands.b2 {
            Some(second) => Finish::Swiglu([scale(operands.b), scale(second)]),
            None => Finish::Scale(scale(operands.b)),
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

    /// The range of the partial sums of tile `index`; slices count separately.
    fn partial(&self, index: usize) -> Range<usize> {
        let values = self.plan.sums() * self.plan.products();
        index * values..(index + 1) * values
    }
}

/// The operands of one step of a tile.
struct Part<'a> {
    plan: &'a GemmPlan,
    /// The packed tokens of the tile, over all of K.
    tokens: &'a [f32],
    /// Words per token panel.
    token_panel: usize,
    token_rows: Range<usize>,
    weight_rows: Range<usize>,
    depth: Range<usize>,
    /// The step's number, counted along all of K.
    along: usize,
    /// Whether to add to existing sums.
    accumulate: bool,
    /// Codes of the weights that are packed next.
    ahead: Ahead,
}

impl Part<'_> {
    /// The packed tokens from this step on, of a panel and those after it.
    fn tokens(&self, panel: usize) -> &[f32] {
        &self.tokens[panel * self.token_panel + self.plan.token_step(self.along)..]
    }

    /// Multiplies one panel of tokens by weights straight from their codes.
    fn multiply_codes(&self, dots: &Dots, weights: &Nvfp4Tensor, sums: &mut [f32]) {
        let strides = [1, self.plan.weights.extent];
        let rows = Rows {
            tensor: weights,
            rows: self.weight_rows.clone(),
            columns: self.depth.clone(),
        };
        let tokens = self.token_rows.len();
        dots.multiply_codes(&rows, tokens, self.tokens(0), sums, strides, self.accumulate);
    }

    /// Each panel of columns stays in the first-level cache while all row panels, which are narrower, are streamed.
    fn multiply_panels(&self, weights: &[f32], sums: &mut [f32]) {
        let plan = self.plan;
        let chunks = plan.blocks.chunks(self.depth.len());
        let stride = plan.weights.extent;
        let mut multiply = |panels: Panels<'_>, first: usize, strides| {
            plan.blocks
                .multiply(&panels, &mut sums[first..], strides, self.accumulate);
        };
        match plan.tokens.operand {
            Operand::Rows => {
                for panel in 0..plan.weights.panels(self.weight_rows.len()) {
                    let columns = plan.weights.panel(&self.weight_rows, panel).len();
                    let panels = Panels {
                        chunks,
                        counts: [self.token_rows.len(), columns],
                        rows: self.tokens(0),
                        apart: self.token_panel,
                        columns: &weights[panel * plan.weight_panel()..],
                        ahead: Ahead::NONE,
                    };
                    multiply(panels, panel * plan.weights.width, [stride, 1]);
                }
            }
            Operand::Columns => {
                let count = plan.tokens.panels(self.token_rows.len());
                for panel in 0..count {
                    let columns = plan.tokens.panel(&self.token_rows, panel).len();
                    let panels = Panels {
                        chunks,
                        counts: [self.weight_rows.len(), columns],
                        rows: weights,
                        apart: plan.weight_panel(),
                        columns: self.tokens(panel),
                        ahead: self.ahead.part(panel, count),
                    };
                    multiply(panels, panel * plan.tokens.width * stride, [1, stride]);
                }
            }
        }
    }
}

impl TileWork for GemmWork<'_> {
    type Tile = GemmTile;
    type State = GemmState;

    fn resident_pieces(&self) -> usize {
        self.plan.pieces.len()
    }

    fn load_resident(&self, piece: usize, _state: &mut GemmState) {
        let plan = self.plan;
        let Piece { group, rows, start } = &plan.pieces[piece];
        let words = plan.groups[*group].token_panel;
        // SAFETY: each piece has its own range and is loaded by one thread; no thread reads it before the pass ends.
        let panel = unsafe { self.resident.part_mut(*start..start + words) };
        for step in 0..plan.groups[*group].steps {
            let (operand, depth) = (plan.tokens.operand, plan.depth_of(*group, step));
            let panel = &mut panel[plan.token_step(step)..];
            match self.operands[*group].a {
                TokenRows::Nvfp4(tensor) => plan.blocks.pack(operand, tensor, rows.clone(), depth, panel),
                TokenRows::Floats(floats) => {
                    let rows = rows.clone().map(|row| floats.row(row, &depth));
                    plan.blocks.pack_floats(operand, floats.format(), rows, panel);
                }
            }
        }
    }

    fn find(&self, index: usize) -> GemmTile {
        self.plan.find(index)
    }

    fn steps(&self, tile: &GemmTile) -> usize {
        self.plan.slice_steps(tile).len().max(1)
    }

    fn begin(&self, _tile: &GemmTile, _state: &mut GemmState) {}

    fn prepare(&self, tile: &GemmTile, step: usize, panel: &mut [f32], _state: &mut GemmState) {
        let plan = self.plan;
        if plan.unpacked.is_some() {
            return;
        }
        let depth = plan.step_depth(tile, step);
        let rows = self.weight_rows(tile);
        let products = panel.chunks_exact_mut(plan.product_panels());
        for (weights, panels) in self.weights(tile).zip(products) {
            if let Weights::Tensor(tensor) = weights {
                plan.pack_weights(tensor, &rows, depth.clone(), panels);
            }
        }
    }

    fn prefetch(&self, tile: &GemmTile, step: usize) {
        let depth = self.plan.step_depth(tile, step);
        for weights in self.weights(tile) {
            let Weights::Tensor(tensor) = weights else {
                continue;
            };
            for row in self.weight_rows(tile) {
                let first = row * tensor.columns() / 2;
                prefetch(&tensor.packed()[first + depth.start / 2..first + depth.end / 2]);
            }
        }
    }

    fn multiply(
        &self,
        tile: &GemmTile,
        step: usize,
        panel: &[f32],
        next: Option<(GemmTile, usize)>,
        state: &mut GemmState,
    ) {
        let plan = self.plan;
        let depth = plan.step_depth(tile, step);
        if depth.is_empty() {
            // An empty slice still has one step; its sums are zero.
            state.sums.values_mut().fill(0.0);
            return;
        }
        let group = &plan.groups[tile.group];
        let token_rows = self.token_rows(tile);
        let panels = plan.tokens.panels(token_rows.len()) * group.token_panel;
        let start = plan.resident_start(group, tile.token_block);
        let along = plan.slice_steps(tile).start + step;
        let mut part = Part {
            plan,
            // SAFETY: the resident panels were written in an earlier pass and are only read in this one.
            tokens: unsafe { self.resident.part(start..start + panels) },
            token_panel: group.token_panel,
            token_rows,
            weight_rows: self.weight_rows(tile),
            depth,
            along,
            accumulate: step > 0,
            ahead: Ahead::NONE,
        };
        let size = plan.product_panels();
        let sums = state.sums.values_mut().chunks_exact_mut(plan.sums());
        for (product, (weights, sums)) in self.weights(tile).zip(sums).enumerate() {
            part.ahead = next.map_or(Ahead::NONE, |(tile, step)| self.ahead(&tile, step, product));
            match (weights, plan.unpacked) {
                (Weights::Tensor(tensor), Some(dots)) => part.multiply_codes(dots, tensor, sums),
                (Weights::Tensor(_), None) => part.multiply_panels(&panel[product * size..], sums),
                (Weights::Packed(packed), _) => {
                    part.multiply_panels(packed.panels(tile.weight_block, along, size), sums);
                }
            }
        }
    }

    fn finish(&self, tile: &GemmTile, state: &mut GemmState) {
        if self.plan.split == 1 {
            return self.write(tile, state);
        }
        // SAFETY: each slice of a tile has its own range, written once; nothing reads it before the pass ends.
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
            // SAFETY: the slices were written in an earlier pass and are only read in this one.
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
