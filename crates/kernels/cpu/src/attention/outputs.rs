//! The output sums of a tile: the layout of their blocks, and how sums of steps and slices are combined.

use crate::attention::plan::AttentionPlan;
use crate::simd::{LANES, SoftmaxLanes};

impl AttentionPlan {
    /// The index of the output block for a query panel and a panel of V.
    pub fn output_block(&self, query_panel: usize, value_panel: usize, query_panels: usize) -> usize {
        if self.swapped {
            query_panel * self.value_panels() + value_panel
        } else {
            value_panel * query_panels + query_panel
        }
    }

    /// Multiplies each query of an output block by its factor.
    pub fn scale_lanes(&self, block: &mut [f32], factors: &[f32; LANES]) {
        let columns = self.instructions.columns();
        for (row, values) in block.chunks_exact_mut(columns).enumerate() {
            if self.swapped {
                values
                    .iter_mut()
                    .zip(factors)
                    .for_each(|(value, factor)| *value *= factor);
            } else {
                values.iter_mut().for_each(|value| *value *= factors[row]);
            }
        }
    }

    /// `outputs = outputs · rescale + part · factors`, with each query's own factors; the first slice overwrites
    /// `outputs`.
    pub fn add_slice(
        &self,
        outputs: &mut [f32],
        rescale: &[f32; LANES],
        part: &[f32],
        factors: &[f32; LANES],
        first: bool,
    ) {
        let columns = self.instructions.columns();
        for (index, (output, part)) in outputs.iter_mut().zip(part).enumerate() {
            let lane = if self.swapped {
                index % columns
            } else {
                index / columns
            };
            let before = if first { 0.0 } else { *output * rescale[lane] };
            *output = before + part * factors[lane];
        }
    }
}

/// Merges the maxima and sums of one more slice into `lanes`, and returns the factors for the slice's outputs.
pub(crate) fn merge(lanes: &mut SoftmaxLanes, maximum: &[f32], sum: &[f32], scale: f32) -> [f32; LANES] {
    let mut factors = [0.0; LANES];
    for (lane, (maximum, sum)) in maximum.iter().zip(sum).enumerate() {
        let largest = lanes.maximum[lane].max(*maximum);
        let reference = if largest == f32::NEG_INFINITY {
            0.0
        } else {
            largest
        };
        lanes.rescale[lane] = ((lanes.maximum[lane] - reference) * scale).exp();
        factors[lane] = ((maximum - reference) * scale).exp();
        lanes.sum[lane] = lanes.sum[lane] * lanes.rescale[lane] + sum * factors[lane];
        lanes.maximum[lane] = largest;
    }
    factors
}
