//! Attention's products on the tile unit.
//!
//! Elements of e4m3 and int8 are exact in bf16, so raw scores have only the error of f32 sums. Softmax weights are not
//! exact in bf16; they are split into parts of eight bits each. Blocks of scores and outputs have the same layout as
//! register blocks, several of which, one below the other, form one block of the unit. Masks, rescaling, slices and the
//! epilogue are therefore the same for both.

use std::mem::swap;
use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use gauntlet_problems::{Attention, AttentionFormat, OutputFormat, Scaling};
use half::bf16;

use super::plan::{AttentionPlan, AttentionTile};
use super::work::{AttentionState, AttentionWork};
use crate::attention::panels::HeadRows;
use crate::simd::{CHUNK, Configured, LANES, Product, SIDE, Tiles};

/// The number of eight-bit parts of a weight: two if results are rounded to f16 or bf16, where an error of 2⁻¹⁷ of a
/// weight does not show; otherwise three, which represent the weight exactly.
pub(super) fn parts(output: OutputFormat) -> usize {
    match output {
        OutputFormat::F16 | OutputFormat::Bf16 => 2,
        OutputFormat::F32 => 3,
    }
}

/// Whether the unit can compute a problem in steps of `keys` keys. With several scales per head, elements times their
/// scale ratio are not exact in bf16. Other formats are exact only if split into parts, and their subnormals not at
/// all.
pub(super) fn suit(problem: &Attention, keys: usize) -> bool {
    let exact = matches!(problem.format, AttentionFormat::E4m3 | AttentionFormat::Int8);
    exact
        && problem.scaling != Scaling::PerBlock
        && problem.head_size.is_multiple_of(SIDE)
        && keys.is_multiple_of(SIDE)
}

/// The number of f32 values that a thread needs for scores and for weights: the scores of two query panels (one is
/// computed while the other is used), and likewise the weights of two chunks.
pub(super) fn lengths(plan: &AttentionPlan) -> (usize, usize) {
    (2 * plan.keys * SIDE, 2 * parts(plan.problem.output) * CHUNK)
}

/// Widens every 32 rows of `range`, zero-padded at the end, and passes them on for packing.
fn each_panel(
    unit: Tiles,
    rows: &HeadRows<'_>,
    range: Range<usize>,
    scratch: &mut [u32],
    mut pack: impl FnMut(usize, &[u32]),
) {
    let width = scratch.len() / SIDE;
    for (panel, first) in range.clone().step_by(SIDE).enumerate() {
        let last = range.end.min(first + SIDE);
        let (full, empty) = scratch.split_at_mut((last - first) * width);
        unit.widen(rows.format(), rows.bytes(first..last), full);
        // With one scale per head, the ratio is 1 unless the scale is negative or zero.
        let share = rows.share(first);
        if share != 1.0 {
            for value in cast_slice_mut::<u32, bf16>(full) {
                *value = bf16::from_f32(value.to_f32() * share);
            }
        }
        empty.fill(0);
        pack(panel, scratch);
    }
}

impl AttentionWork<'_> {
    pub(super) fn begin_tiles(&self, unit: Tiles, tile: &AttentionTile, state: &mut AttentionState) {
        let size = self.plan.problem.head_size;
        let panels: &mut [u32] = cast_slice_mut(state.queries.values_mut());
        let scratch = &mut cast_slice_mut(state.rows.values_mut())[..SIDE * size / 2];
        let queries = self.plan.tile_queries(tile);
        each_panel(unit, &self.queries(tile), queries, scratch, |panel, rows| {
            unit.pack_columns(rows, size, &mut panels[panel * SIDE * size / 2..]);
        });
    }

    /// Packs the keys and the values of one step.
    pub(super) fn prepare_tiles(
        &self,
        unit: Tiles,
        tile: &AttentionTile,
        keys: Range<usize>,
        (key_panels, value_panels): (&mut [f32], &mut [f32]),
        state: &mut AttentionState,
    ) {
        let size = self.plan.problem.head_size;
        let scratch = &mut cast_slice_mut(state.rows.values_mut())[..SIDE * size / 2];
        let key_panels: &mut [u32] = cast_slice_mut(key_panels);
        each_panel(unit, &self.keys(tile), keys.clone(), scratch, |panel, rows| {
            unit.pack_rows(rows, size, &mut key_panels[panel * SIDE * size / 2..]);
        });
        let value_panels: &mut [u32] = cast_slice_mut(value_panels);
        let stride = value_stride(self.plan);
        each_panel(unit, &self.values(tile), keys, scratch, |chunk, rows| {
            unit.pack_depths(rows, size, chunk, stride, value_panels);
        });
    }

    /// Scores, weights and outputs of step `step`.
    ///
    /// The tile unit and the vector units work in parallel only if the processor finds work for both within its window
    /// of a few hundred instructions. So while a chunk's exponentials are computed, a block of the next panel's scores
    /// and the outputs of the previous chunk are computed too.
    pub(super) fn multiply_tiles(
        &self,
        unit: Tiles,
        tile: &AttentionTile,
        (step, keys): (usize, Range<usize>),
        (key_panels, value_panels): (&[f32], &[f32]),
        state: &mut AttentionState,
    ) {
        let plan = self.plan;
        let outputs = state.outputs.values_mut();
        if keys.is_empty() {
            // An empty slice still has one step; its outputs are zero.
            return outputs.fill(0.0);
        }
        let products = Products {
            plan,
            unit: unit.configure(),
            is_first: step == 0,
            queries: cast_slice(state.queries.values()),
            keys: cast_slice(key_panels),
            values: cast_slice(value_panels),
        };
        let (query_panels, chunks) = (self.tile_query_panels(tile), keys.len().div_ceil(SIDE));
        let (parts, scale) = (parts(plan.problem.output), self.softmax_scale(tile));
        // Scores of one block, and the maxima of their queries.
        let score =
            |panel: usize, chunk: usize, block: &mut [f32; SIDE * SIDE], maxima: &mut [f32; LANES]| {
                let first = keys.start + chunk * SIDE;
                let seen = first..keys.end.min(first + SIDE);
                block[seen.len() * SIDE..].fill(f32::NEG_INFINITY);
                self.mask(tile, &seen, panel, block);
                unit.raise(block, maxima);
            };
        let (current, next) = state.scores.values_mut().split_at_mut(plan.keys * SIDE);
        let (mut current, _) = current.as_chunks_mut();
        let (mut next, _) = next.as_chunks_mut();
        let weights: &mut [u32] = cast_slice_mut(state.turned.values_mut());
        let (mut weights, mut earlier) = weights.split_at_mut(parts * CHUNK);
        let mut maxima = [f32::NEG_INFINITY; LANES];
        for (chunk, block) in current[..chunks].iter_mut().enumerate() {
            products.score(0, chunk, block).finish();
            score(0, chunk, block, &mut maxima);
        }
        let mut waiting = None;
        let steps = products.steps();
        for panel in 0..query_panels {
            let lanes = &mut state.lanes[panel];
            let exponents = unit.exponents(&maxima, scale, lanes);
            products.rescale(panel, outputs, &lanes.rescale);
            let mut sums = [0.0; LANES];
            maxima = [f32::NEG_INFINITY; LANES];
            for chunk in 0..chunks {
                let has_next = panel + 1 < query_panels;
                let products = has_next
                    .then(|| products.score(panel + 1, chunk, &mut next[chunk]))
                    .into_iter()
                    .chain(products.outputs(waiting, earlier, outputs));
                unit.weigh(
                    &current[chunk],
                    &exponents,
                    &mut sums,
                    (parts, weights),
                    products,
                    steps,
                );
                if has_next {
                    score(panel + 1, chunk, &mut next[chunk], &mut maxima);
                }
                waiting = Some((panel, chunk));
                swap(&mut weights, &mut earlier);
            }
            unit.add_sums(&sums, lanes);
            swap(&mut current, &mut next);
        }
        products
            .outputs(waiting, earlier, outputs)
            .for_each(Product::finish);
    }
}

/// Words from one panel of 32 rows of Vᵀ to the next.
fn value_stride(plan: &AttentionPlan) -> usize {
    plan.keys / SIDE * CHUNK
}

/// The products of one step.
struct Products<'a> {
    plan: &'a AttentionPlan,
    unit: Configured,
    /// Whether no outputs have been computed yet.
    is_first: bool,
    queries: &'a [u32],
    keys: &'a [u32],
    values: &'a [u32],
}

impl Products<'_> {
    /// The steps of the products that belong to one chunk of one panel.
    fn steps(&self) -> usize {
        let chunks = self.plan.problem.head_size / SIDE;
        Product::steps(chunks, 1) + chunks * Product::steps(1, parts(self.plan.problem.output))
    }

    /// Raw scores of 32 keys and the queries of a panel.
    fn score<'p>(&'p self, panel: usize, chunk: usize, block: &'p mut [f32; SIDE * SIDE]) -> Product<'p> {
        let size = self.plan.problem.head_size;
        let panel_words = SIDE * size / 2;
        let (keys, queries) = (
            &self.keys[chunk * panel_words..],
            &self.queries[panel * panel_words..],
        );
        self.unit.product((size / SIDE, 1), keys, queries, block, false)
    }

    /// Rescales the outputs of earlier steps.
    fn rescale(&self, panel: usize, outputs: &mut [f32], factors: &[f32; LANES]) {
        let values = SIDE * self.plan.problem.head_size;
        if !self.is_first && factors.iter().any(|factor| *factor != 1.0) {
            self.plan
                .scale_lanes(&mut outputs[panel * values..][..values], factors);
        }
    }

    /// Adds the outputs of one chunk of keys to those of a panel.
    fn outputs<'p>(
        &'p self,
        place: Option<(usize, usize)>,
        weights: &'p [u32],
        outputs: &'p mut [f32],
    ) -> impl Iterator<Item = Product<'p>> {
        let parts = parts(self.plan.problem.output);
        let panel_values = SIDE * self.plan.problem.head_size;
        let (panel, chunk) = place.unwrap_or_default();
        let blocks =
            place.map(|_| outputs[panel * panel_values..][..panel_values].chunks_exact_mut(SIDE * SIDE));
        let accumulate = !self.is_first || chunk > 0;
        blocks
            .into_iter()
            .flatten()
            .zip(self.values.chunks_exact(value_stride(self.plan)))
            .map(move |(block, values)| {
                self.unit
                    .product((1, parts), &values[chunk * CHUNK..], weights, block, accumulate)
            })
    }
}
