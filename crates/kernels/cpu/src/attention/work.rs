//! The work of one attention call.

use std::ops::Range;

use gauntlet_problems::AttentionInputs;

use crate::attention::outputs::merge;
use crate::attention::panels::HeadRows;
use crate::attention::plan::{AttentionPlan, AttentionTile};
use crate::attention::tiles;
use crate::driver::TileWork;
use crate::epilogue::{Finish, Places, Sums, Target, Writer};
use crate::memory::{AlignedBuffer, Disjoint, OutOfMemory};
use crate::simd::{LANES, SoftmaxLanes};

/// Plan, memory and operands of one call.
#[derive(Debug)]
pub(crate) struct AttentionWork<'a> {
    pub plan: &'a AttentionPlan,
    pub inputs: &'a AttentionInputs,
    /// Unfinished results of split tiles: written by `finish`, read by `reduce`.
    pub partials: Disjoint<'a, f32>,
    pub writer: Writer<'a>,
}

/// One thread's memory.
#[derive(Debug)]
pub(crate) struct AttentionState {
    /// Panels of Q.
    pub(super) queries: AlignedBuffer,
    /// Blocks of raw scores: of one query panel, or of all panels for the tile unit.
    pub(super) scores: AlignedBuffer,
    /// The scores transposed to k-major order, or the weights in the layout of the tile unit; empty if the product's
    /// layout is used directly.
    pub(super) turned: AlignedBuffer,
    /// Register blocks of the output's sums.
    pub(super) outputs: AlignedBuffer,
    /// One entry per query panel.
    pub(super) lanes: Vec<SoftmaxLanes>,
    /// One entry per query.
    row_scales: Vec<f64>,
    /// Dequantised rows that are about to be packed.
    pub(super) rows: AlignedBuffer,
    staging: Vec<u8>,
}

impl AttentionState {
    /// Bytes of one thread's memory.
    pub fn bytes(plan: &AttentionPlan) -> usize {
        let values = Self::lengths(plan)
            .into_iter()
            .fold(0_usize, usize::saturating_add);
        values
            .saturating_mul(size_of::<f32>())
            .saturating_add(Self::staging_bytes(plan))
    }

    /// Makes one thread's memory.
    pub fn allocate(plan: &AttentionPlan) -> Result<Self, OutOfMemory> {
        let [queries, scores, turned, outputs, rows] = Self::lengths(plan).map(AlignedBuffer::zeroed);
        // The vectors are never longer than the query panels and output sums, which have just been allocated.
        Ok(Self {
            queries: queries?,
            scores: scores?,
            turned: turned?,
            outputs: outputs?,
            rows: rows?,
            lanes: vec![SoftmaxLanes::EMPTY; plan.query_panels()],
            row_scales: vec![0.0; plan.queries],
            staging: vec![0; Self::staging_bytes(plan)],
        })
    }

    /// The numbers of f32 values of queries, scores, turned, outputs and rows.
    fn lengths(plan: &AttentionPlan) -> [usize; 5] {
        let queries = plan.query_panels() * plan.query_width;
        let (scores, turned) = match plan.unit {
            Some(_) => tiles::lengths(plan),
            None => {
                let scores = plan.query_width * plan.key_panels() * plan.key_width;
                (scores, if plan.swapped { 0 } else { scores })
            }
        };
        let size = plan.problem.head_size;
        [queries * size, scores, turned, plan.output_values(), LANES * size]
    }

    fn staging_bytes(plan: &AttentionPlan) -> usize {
        let size = plan.problem.head_size;
        Writer::staging_bytes(plan.epilogue, plan.problem.output, plan.queries, size)
    }
}

impl<'a> AttentionWork<'a> {
    pub(super) fn queries(&self, tile: &AttentionTile) -> HeadRows<'a> {
        self.plan.queries_of(tile, &self.inputs.query)
    }

    pub(super) fn keys(&self, tile: &AttentionTile) -> HeadRows<'a> {
        self.plan.keys_of(tile, &self.inputs.key)
    }

    pub(super) fn values(&self, tile: &AttentionTile) -> HeadRows<'a> {
        self.plan.keys_of(tile, &self.inputs.value)
    }

    /// The factor that remains to be applied to raw scores: the scales of Q and K, and 1/√d. It is kept away from 0 and
    /// ∞, where it would turn −∞ or 0 into NaN. It is never negative, so the largest raw score is the largest score.
    pub(super) fn softmax_scale(&self, tile: &AttentionTile) -> f32 {
        let (query, key) = (self.queries(tile).scale(), self.keys(tile).scale());
        let scale = f64::from(query) * f64::from(key) / (self.plan.problem.head_size as f64).sqrt();
        (scale as f32).clamp(f32::MIN_POSITIVE, f32::MAX)
    }

    pub(super) fn tile_query_panels(&self, tile: &AttentionTile) -> usize {
        self.plan.tile_queries(tile).len().div_ceil(self.plan.query_width)
    }

    /// Raw scores of one query panel against `keys` keys, as register blocks. Each panel is processed all the way to
    /// the output before the next one, so that its scores stay in a near cache.
    fn score(&self, query: usize, keys: usize, panels: &[f32], state: &mut AttentionState) {
        let plan = self.plan;
        let size = plan.problem.head_size;
        let queries = &state.queries.values()[query * plan.query_width * size..];
        let blocks = state
            .scores
            .values_mut()
            .chunks_exact_mut(plan.query_width * plan.key_width);
        let keys = panels
            .chunks(plan.key_width * size)
            .take(keys.div_ceil(plan.key_width));
        for (key, block) in keys.zip(blocks) {
            let (a, b) = if plan.swapped {
                (key, queries)
            } else {
                (queries, key)
            };
            plan.instructions.multiply(size, a, b, block, false);
        }
    }

    /// Transposes the blocks of a query panel to be k-major in the keys.
    fn turn(&self, keys: usize, state: &mut AttentionState) {
        let (width, columns) = (self.plan.query_width, self.plan.key_width);
        let blocks = state.scores.values().chunks_exact(width * columns);
        let turned = &mut state.turned.values_mut()[..width * keys];
        for (block, turned) in blocks.zip(turned.chunks_mut(width * columns)) {
            turn_block(block, turned, width, columns);
        }
    }

    /// Sets the scores that causality hides to −∞ in a query panel's k-major scores.
    pub(super) fn mask(&self, tile: &AttentionTile, keys: &Range<usize>, panel: usize, scores: &mut [f32]) {
        let width = self.plan.query_width;
        let first = tile.query + panel * width;
        if self.plan.visible(tile, first) >= keys.end {
            return;
        }
        for lane in 0..width {
            let visible = self.plan.visible(tile, first + lane).clamp(keys.start, keys.end);
            for key in visible - keys.start..keys.len() {
                scores[key * width + lane] = f32::NEG_INFINITY;
            }
        }
    }

    /// Multiplies probabilities by V into the output blocks of query panel `panel`.
    fn gather(
        &self,
        keys: usize,
        panel: usize,
        query_panels: usize,
        values: &[f32],
        state: &mut GatherState<'_>,
    ) {
        let plan = self.plan;
        let block = plan.query_width * plan.key_width;
        for value in 0..plan.value_panels() {
            let index = plan.output_block(panel, value, query_panels);
            let outputs = &mut state.outputs[index * block..(index + 1) * block];
            let value = &values[value * plan.key_width * plan.keys..];
            if state.accumulate {
                plan.scale_lanes(outputs, &state.lanes.rescale);
            }
            let (a, b) = if plan.swapped {
                (value, state.scores)
            } else {
                (state.scores, value)
            };
            plan.instructions.multiply(keys, a, b, outputs, state.accumulate);
        }
    }

    /// Divides by the sums of exponentials and writes the result.
    fn write(&self, tile: &AttentionTile, state: &mut AttentionState) {
        let plan = self.plan;
        let queries = plan.tile_queries(tile);
        let size = plan.problem.head_size;
        let value_scale = f64::from(self.values(tile).scale());
        let sums = state
            .lanes
            .iter()
            .flat_map(|lanes| &lanes.sum[..plan.query_width]);
        for (scale, sum) in state.row_scales.iter_mut().zip(sums) {
            *scale = if *sum == 0.0 {
                0.0
            } else {
                value_scale / f64::from(*sum)
            };
        }
        let sums = Sums {
            first: state.outputs.values(),
            second: None,
            places: Places::Blocks {
                row_panels: if plan.swapped {
                    plan.value_panels()
                } else {
                    self.tile_query_panels(tile)
                },
                swapped: plan.swapped,
            },
        };
        let target = Target {
            start: plan.query_start(tile) + queries.start * size,
            stride: size,
            rows: queries.len(),
            columns: size,
        };
        // SAFETY: each output row belongs to one tile, and each tile is written once.
        unsafe {
            self.writer.write(
                &sums,
                Finish::RowScales(&state.row_scales),
                &target,
                &mut state.staging,
            );
        }
    }

    /// The range of the partial result of tile `index`; slices count separately.
    fn partial(&self, index: usize) -> Range<usize> {
        let values = self.plan.part_values();
        index * values..(index + 1) * values
    }
}

/// The fields that [`AttentionWork::gather`] needs from a state whose scores are borrowed.
struct GatherState<'s> {
    scores: &'s [f32],
    lanes: &'s SoftmaxLanes,
    outputs: &'s mut [f32],
    accumulate: bool,
}

/// Transposes one register block, or as many of its columns as there is room for, to k-major order.
fn turn_block(block: &[f32], turned: &mut [f32], rows: usize, columns: usize) {
    for (column, lanes) in turned.chunks_exact_mut(rows).enumerate() {
        for (row, lane) in lanes.iter_mut().enumerate() {
            *lane = block[row * columns + column];
        }
    }
}

impl TileWork for AttentionWork<'_> {
    type Tile = AttentionTile;
    type State = AttentionState;

    fn resident_pieces(&self) -> usize {
        0
    }

    fn load_resident(&self, _piece: usize, _state: &mut AttentionState) {}

    fn find(&self, index: usize) -> AttentionTile {
        self.plan.find(index)
    }

    fn steps(&self, tile: &AttentionTile) -> usize {
        self.plan.slice_steps(tile).len().max(1)
    }

    fn begin(&self, tile: &AttentionTile, state: &mut AttentionState) {
        let plan = self.plan;
        let size = plan.problem.head_size;
        let width = plan.query_width;
        state.lanes.fill(SoftmaxLanes::EMPTY);
        if let Some(unit) = plan.unit {
            return self.begin_tiles(unit, tile, state);
        }
        self.queries(tile).pack_across(
            plan.tile_queries(tile),
            width,
            state.rows.values_mut(),
            state.queries.values_mut(),
            width * size,
        );
    }

    fn prepare(&self, tile: &AttentionTile, step: usize, panel: &mut [f32], state: &mut AttentionState) {
        let plan = self.plan;
        let (width, size) = (plan.key_width, plan.problem.head_size);
        let keys = plan.step_keys(tile, step);
        let (key_panels, value_panels) = panel.split_at_mut(plan.key_values());
        if let Some(unit) = plan.unit {
            return self.prepare_tiles(unit, tile, keys, (key_panels, value_panels), state);
        }
        let rows = state.rows.values_mut();
        self.keys(tile)
            .pack_across(keys.clone(), width, rows, key_panels, width * size);
        self.values(tile)
            .pack_along(keys, width, rows, value_panels, width * plan.keys);
    }

    fn prefetch(&self, tile: &AttentionTile, step: usize) {
        let keys = self.plan.step_keys(tile, step);
        self.keys(tile).prefetch(keys.clone());
        self.values(tile).prefetch(keys);
    }

    fn multiply(
        &self,
        tile: &AttentionTile,
        step: usize,
        panel: &[f32],
        _next: Option<(AttentionTile, usize)>,
        state: &mut AttentionState,
    ) {
        let plan = self.plan;
        let keys = plan.step_keys(tile, step);
        let (key_panels, value_panels) = panel.split_at(plan.key_values());
        if let Some(unit) = plan.unit {
            return self.multiply_tiles(unit, tile, (step, keys), (key_panels, value_panels), state);
        }
        let scale = self.softmax_scale(tile);
        let query_panels = self.tile_query_panels(tile);
        let width = plan.query_width;
        for query in 0..query_panels {
            self.score(query, keys.len(), key_panels, state);
            let buffer = if plan.swapped {
                &mut state.scores
            } else {
                self.turn(keys.len(), state);
                &mut state.turned
            };
            let scores = &mut buffer.values_mut()[..width * keys.len()];
            self.mask(tile, &keys, query, scores);
            let lanes = &mut state.lanes[query];
            plan.instructions.softmax(scores, width, scale, lanes);
            let outputs = state.outputs.values_mut();
            let mut gather = GatherState {
                scores,
                lanes,
                outputs,
                accumulate: step > 0,
            };
            self.gather(keys.len(), query, query_panels, value_panels, &mut gather);
        }
    }

    fn finish(&self, tile: &AttentionTile, state: &mut AttentionState) {
        let plan = self.plan;
        if plan.split == 1 {
            return self.write(tile, state);
        }
        // SAFETY: each slice of a tile has its own range, written once; no thread reads it before the pass ends.
        let part = unsafe { self.partials.part_mut(self.partial(tile.index)) };
        let (outputs, lanes) = part.split_at_mut(plan.output_values());
        outputs.copy_from_slice(state.outputs.values());
        for (lanes, part) in state
            .lanes
            .iter()
            .zip(lanes.chunks_exact_mut(2 * plan.query_width))
        {
            part[..plan.query_width].copy_from_slice(&lanes.maximum[..plan.query_width]);
            part[plan.query_width..].copy_from_slice(&lanes.sum[..plan.query_width]);
        }
    }

    fn reductions(&self) -> usize {
        if self.plan.split == 1 {
            0
        } else {
            self.plan.tiles / self.plan.split
        }
    }

    fn reduce(&self, index: usize, state: &mut AttentionState) {
        let plan = self.plan;
        let width = plan.query_width;
        let tile = plan.find(index * plan.split);
        let scale = self.softmax_scale(&tile);
        let query_panels = self.tile_query_panels(&tile);
        state.lanes.fill(SoftmaxLanes::EMPTY);
        for slice in 0..plan.split {
            // SAFETY: the slices were written in an earlier pass and are only read in this one.
            let part = unsafe { self.partials.part(self.partial(tile.index + slice)) };
            let (part_outputs, part_lanes) = part.split_at(plan.output_values());
            for (query, part) in part_lanes.chunks_exact(2 * width).take(query_panels).enumerate() {
                let (maximum, sum) = part.split_at(width);
                let factors = merge(&mut state.lanes[query], maximum, sum, scale);
                for value in 0..plan.value_panels() {
                    let block = width * plan.key_width;
                    let start = plan.output_block(query, value, query_panels) * block;
                    let outputs = &mut state.outputs.values_mut()[start..start + block];
                    let rescale = &state.lanes[query].rescale;
                    plan.add_slice(
                        outputs,
                        rescale,
                        &part_outputs[start..start + block],
                        &factors,
                        slice == 0,
                    );
                }
            }
        }
        self.write(&tile, state);
    }
}
