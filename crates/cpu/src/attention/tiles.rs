//! Attention's products on the tile unit.
//!
//! Elements of e4m3 and of int8 are exact in bf16, so raw scores have no error but that of f32 sums. Weights are not, and
//! go to the unit in parts of eight bits each. Blocks of scores and of outputs lie as those of the register blocks
//! do, several of which, one below the other, are one block of the unit: masks, rescaling, slices and the epilogue are the
//! same for both.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use gauntlet_problem::{Attention, AttentionFormat, OutputFormat, Scaling};

use super::plan::AttentionTile;
use super::work::{AttentionState, AttentionWork};
use crate::panels::HeadRows;
use crate::simd::{CHUNK, SIDE, Tiles};

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

/// Dequantises the rows of each 32 of `rows`, zeros beyond the last, and has them packed.
fn each_panel(
    rows: &HeadRows<'_>,
    range: Range<usize>,
    scratch: &mut [f32],
    mut pack: impl FnMut(usize, &[f32]),
) {
    let size = scratch.len() / SIDE;
    for (panel, first) in range.clone().step_by(SIDE).enumerate() {
        let count = SIDE.min(range.end - first);
        let (full, empty) = scratch.split_at_mut(count * size);
        for (row, values) in (first..).zip(full.chunks_exact_mut(size)) {
            rows.dequantise(row, values);
        }
        empty.fill(0.0);
        pack(panel, scratch);
    }
}

impl AttentionWork<'_> {
    pub(super) fn begin_tiles(&self, unit: Tiles, tile: &AttentionTile, state: &mut AttentionState) {
        let size = self.plan.problem.head_size;
        let panels: &mut [u32] = cast_slice_mut(state.queries.values_mut());
        let scratch = &mut state.rows.values_mut()[..SIDE * size];
        each_panel(
            &self.queries(tile),
            self.plan.tile_queries(tile),
            scratch,
            |panel, values| {
                unit.pack_columns(values, size, &mut panels[panel * SIDE * size / 2..]);
            },
        );
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
        let scratch = &mut state.rows.values_mut()[..SIDE * size];
        let key_panels: &mut [u32] = cast_slice_mut(key_panels);
        each_panel(&self.keys(tile), keys.clone(), scratch, |panel, values| {
            unit.pack_rows(values, size, &mut key_panels[panel * SIDE * size / 2..]);
        });
        let value_panels: &mut [u32] = cast_slice_mut(value_panels);
        let stride = self.value_stride();
        each_panel(&self.values(tile), keys, scratch, |chunk, values| {
            unit.pack_depths(values, size, chunk, stride, value_panels);
        });
    }

    /// Words from one panel of 32 rows of Vᵀ to the next.
    fn value_stride(&self) -> usize {
        self.plan.keys / SIDE * CHUNK
    }

    /// Scores, weights and outputs of step `step`, one query panel after another.
    pub(super) fn multiply_tiles(
        &self,
        unit: Tiles,
        tile: &AttentionTile,
        (step, keys): (usize, Range<usize>),
        (key_panels, value_panels): (&[f32], &[f32]),
        state: &mut AttentionState,
    ) {
        let plan = self.plan;
        let size = plan.problem.head_size;
        let chunks = keys.len().div_ceil(SIDE);
        let parts = parts(plan.problem.output);
        let (key_panels, value_panels): (&[u32], &[u32]) = (cast_slice(key_panels), cast_slice(value_panels));
        let queries: &[u32] = cast_slice(state.queries.values());
        let weights: &mut [u32] = cast_slice_mut(state.turned.values_mut());
        let scores = &mut state.scores.values_mut()[..chunks * SIDE * SIDE];
        let outputs = state.outputs.values_mut().chunks_exact_mut(SIDE * size);
        let scale = self.softmax_scale(tile);
        let configured = unit.configure();
        for (panel, outputs) in (0..self.tile_query_panels(tile)).zip(outputs) {
            let query = &queries[panel * SIDE * size / 2..];
            for (block, key) in scores
                .chunks_exact_mut(SIDE * SIDE)
                .zip(key_panels.chunks_exact(SIDE * size / 2))
            {
                configured.multiply(size / SIDE, 1, key, query, block, false);
            }
            let scores = &mut scores[..keys.len() * SIDE];
            self.mask(tile, &keys, panel, scores);
            let lanes = &mut state.lanes[panel];
            unit.softmax(scores, scale, lanes, parts, weights);
            for (block, value) in outputs
                .chunks_exact_mut(SIDE * SIDE)
                .zip(value_panels.chunks_exact(self.value_stride()))
            {
                if step > 0 {
                    plan.scale_lanes(block, &lanes.rescale);
                }
                configured.multiply(chunks, parts, value, weights, block, step > 0);
            }
        }
    }
}
