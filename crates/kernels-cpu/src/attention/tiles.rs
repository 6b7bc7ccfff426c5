//! Attention's products on the tile unit.
//!
//! Elements of e4m3 and of int8 are exact in bf16, so raw scores have no error but that of f32 sums. Weights are not, and
//! go to the unit in parts of eight bits each. Blocks of scores and of outputs lie as those of the register blocks
//! do, several of which, one below the other, are one block of the unit: masks, rescaling, slices and the epilogue are the
//! same for both.

use std::mem::swap;
use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use gauntlet_operations::{Attention, AttentionFormat, OutputFormat, Scaling};
use half::bf16;

use super::plan::{AttentionPlan, AttentionTile};
use super::work::{AttentionState, AttentionWork};
use crate::attention::panels::HeadRows;
use crate::simd::{CHUNK, Configured, LANES, Product, SIDE, Tiles};

/// Parts of a weight, of eight bits each: two where results are rounded to f16 or bf16, which hide an error of 2⁻¹⁷ of a
/// weight, else three, which hold it whole.
pub(super) fn parts(output: OutputFormat) -> usize {
    match output {
        OutputFormat::F16 | OutputFormat::Bf16 => 2,
        OutputFormat::F32 => 3,
    }
}

/// Whether the unit computes a problem, in steps of `keys` keys. Elements times a share of their head's largest scale are
/// not exact in bf16, and those of other formats only in parts or, subnormal, not at all.
pub(super) fn suit(problem: &Attention, keys: usize) -> bool {
    let exact = matches!(problem.format, AttentionFormat::E4m3 | AttentionFormat::Int8);
    exact
        && problem.scaling != Scaling::PerBlock
        && problem.head_size.is_multiple_of(SIDE)
        && keys.is_multiple_of(SIDE)
}

/// f32 values that a thread needs for scores and for weights: the scores of two query panels, of which one is made while
/// the other is used, and the weights of two chunks likewise.
pub(super) fn lengths(plan: &AttentionPlan) -> (usize, usize) {
    (2 * plan.keys * SIDE, 2 * parts(plan.problem.output) * CHUNK)
}

/// Widens the rows of each 32 of `range`, zeros beyond the last, and has them packed.
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
        // One scale a head, which is its own share unless negative or zero.
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
    /// The tile unit and the vector units work side by side if each finds something to do among the few hundred
    /// instructions that a processor looks at: so while a chunk's exponentials are computed, so are a block of the next
    /// panel's scores and the outputs by the chunk before.
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
            // The only step of a slice that has nothing to do.
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
    /// Whether there are no outputs yet.
    is_first: bool,
    queries: &'a [u32],
    keys: &'a [u32],
    values: &'a [u32],
}

impl Products<'_> {
    /// Steps of the products that belong to one chunk of one panel.
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

    /// Multiplies the outputs of earlier steps.
    fn rescale(&self, panel: usize, outputs: &mut [f32], factors: &[f32; LANES]) {
        let values = SIDE * self.plan.problem.head_size;
        if !self.is_first && factors.iter().any(|factor| *factor != 1.0) {
            self.plan
                .scale_lanes(&mut outputs[panel * values..][..values], factors);
        }
    }

    /// Outputs of a panel by the weights of one chunk of keys.
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
