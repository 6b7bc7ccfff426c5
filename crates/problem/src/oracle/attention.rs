//! The oracle of attention.

use rayon::prelude::*;

use super::product::{Matrix, add_product_plain, add_product_transposed};
use super::{Coverage, Grid, pieces};
use crate::{Attention, AttentionInputs, HeadTensor, Sequence};

/// Queries of a unit of work.
const TILE: usize = 128;

/// One sequence and head.
struct Head {
    sequence: Sequence,
    /// Rows of Q and of K (and V) where it starts.
    query_row: usize,
    key_row: usize,
    /// Places in the scales of Q and of K (and V).
    query_scale: usize,
    key_scale: usize,
}

/// The grids of each sequence and head.
pub(super) fn grids(attention: &Attention, inputs: &AttentionInputs, coverage: Coverage) -> Vec<Vec<Grid>> {
    let heads = heads(attention);
    let compute = |(part, head): (usize, &Head)| {
        let tiles = pieces(coverage.rows(part, head.sequence.queries), TILE);
        tiles
            .into_par_iter()
            .map(|rows| grid(attention, inputs, head, rows))
            .collect()
    };
    heads.par_iter().enumerate().map(compute).collect()
}

fn heads(attention: &Attention) -> Vec<Head> {
    let starts = attention
        .first_query_rows()
        .into_iter()
        .zip(attention.first_key_rows());
    let sequences = attention.sequences.iter().zip(starts).enumerate();
    sequences
        .flat_map(|(place, (&sequence, (query_row, key_row)))| {
            (0..attention.heads).map(move |head| Head {
                sequence,
                query_row: query_row + head * sequence.queries,
                key_row: key_row + attention.kv_head(head) * sequence.keys,
                query_scale: place * attention.heads + head,
                key_scale: place * attention.kv_heads + attention.kv_head(head),
            })
        })
        .collect()
}

fn grid(attention: &Attention, inputs: &AttentionInputs, head: &Head, rows: Vec<usize>) -> Grid {
    let (size, keys) = (attention.head_size, head.sequence.keys);
    let positions = |tensor, row: usize, scale| scaled(tensor, row * size, keys * size, scale);
    let key = positions(&inputs.key, head.key_row, head.key_scale);
    let value = positions(&inputs.value, head.key_row, head.key_scale);
    let query: Vec<f64> = rows
        .iter()
        .flat_map(|&row| {
            scaled(
                &inputs.query,
                (head.query_row + row) * size,
                size,
                head.query_scale,
            )
        })
        .collect();

    let mut weights = vec![0.0; rows.len() * keys];
    add_product_transposed(
        &mut weights,
        &Matrix {
            values: &query,
            rows: rows.len(),
            columns: size,
        },
        &Matrix {
            values: &key,
            rows: keys,
            columns: size,
        },
    );
    if keys > 0 {
        for (&row, weights) in rows.iter().zip(weights.chunks_exact_mut(keys)) {
            softmax(weights, attention.visible_keys(head.sequence, row), size);
        }
    }
    let mut values = vec![0.0; rows.len() * size];
    add_product_plain(
        &mut values,
        &Matrix {
            values: &weights,
            rows: rows.len(),
            columns: keys,
        },
        &Matrix {
            values: &value,
            rows: keys,
            columns: size,
        },
    );
    Grid {
        rows,
        columns: (0..size).collect(),
        values,
    }
}

/// Elements with their head's scale, exact.
fn scaled(tensor: &HeadTensor, start: usize, count: usize, scale: usize) -> Vec<f64> {
    let scale = f64::from(tensor.scales[scale]);
    tensor
        .dequantise(start..start + count)
        .map(|element| f64::from(element) * scale)
        .collect()
}

/// Turns a row of products into weights: those of the first `visible` keys add up to 1, the others are 0.
fn softmax(row: &mut [f64], visible: usize, head_size: usize) {
    let (seen, hidden) = row.split_at_mut(visible);
    hidden.fill(0.0);
    let largest = seen.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let scale = 1.0 / (head_size as f64).sqrt();
    seen.iter_mut()
        .for_each(|score| *score = ((*score - largest) * scale).exp());
    let sum: f64 = seen.iter().sum();
    seen.iter_mut().for_each(|weight| *weight /= sum);
}
