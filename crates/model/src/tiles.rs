//! The tiles of a problem in classes of equals.

use gauntlet_problem::{Attention, GroupedGemm, Problem};
use gauntlet_schedule::resources::weights;
use gauntlet_schedule::{Schedule, Tile};

/// Tiles that cost the same and follow one another.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Class {
    /// How many.
    pub(crate) count: usize,
    /// Steps along the summed dimension, each.
    pub(crate) steps: usize,
    /// Floating-point operations of the products with padding, each.
    pub(crate) flops: f64,
    /// Exponentials with padding, each.
    pub(crate) exponentials: f64,
}

/// The tiles in the order in which groups, or sequences, follow one another.
pub(crate) fn classes(problem: &Problem, schedule: &Schedule) -> Vec<Class> {
    match problem {
        Problem::GroupedGemm(gemm) => gemm_classes(gemm, schedule),
        Problem::Attention(attention) => attention_classes(attention, schedule),
    }
}

fn gemm_classes(gemm: &GroupedGemm, schedule: &Schedule) -> Vec<Class> {
    let Tile { m, n, k } = schedule.tile;
    gemm.groups
        .iter()
        .map(|shape| {
            let (rows, columns) = if schedule.swap_ab {
                (shape.n, shape.m)
            } else {
                (shape.m, shape.n)
            };
            let steps = shape.k.div_ceil(k).div_ceil(schedule.split_k);
            Class {
                count: rows.div_ceil(m) * columns.div_ceil(n) * schedule.split_k,
                steps,
                flops: 2.0 * weights(gemm) as f64 * (m * n) as f64 * (steps * k) as f64,
                exponentials: 0.0,
            }
        })
        .filter(|class| class.count > 0)
        .collect()
}

fn attention_classes(attention: &Attention, schedule: &Schedule) -> Vec<Class> {
    let Tile { m, n, .. } = schedule.tile;
    let mut classes: Vec<Class> = Vec::new();
    for sequence in &attention.sequences {
        for block in 0..sequence.queries.div_ceil(m) {
            let last = ((block + 1) * m).min(sequence.queries);
            let visible = if attention.causal {
                (sequence.keys + last).saturating_sub(sequence.queries)
            } else {
                sequence.keys
            };
            let steps = visible.div_ceil(n).div_ceil(schedule.split_k);
            let pairs = (m * n) as f64 * steps as f64;
            let class = Class {
                count: attention.heads * schedule.split_k,
                steps,
                flops: 4.0 * attention.head_size as f64 * pairs,
                exponentials: pairs,
            };
            match classes.last_mut() {
                Some(previous) if previous.steps == steps => previous.count += class.count,
                _ => classes.push(class),
            }
        }
    }
    classes
}
