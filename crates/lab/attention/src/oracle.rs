//! The f64 oracle of attention, from exactly dequantised operands.

use gauntlet_problems::{Attention, AttentionInputs, HeadTensor, Sequence};
use gauntlet_task::product::{Matrix, add_product_plain, add_product_transposed};
use gauntlet_task::{Coverage, Grid, pieces};
use rayon::prelude::*;

/// Queries of a unit of work.
const TILE: usize = 128;

/// One sequence and head.
struct Head {
    sequence: Sequence,
    /// Rows of Q and of K (and V) where it starts.
    query_row: usize,
    key_row: usize,
    /// Places in the scales of Q and of K (and V) where its own begin.
    query_scale: usize,
    key_scale: usize,
}

/// The grids of each sequence and head.
pub fn grids(attention: &Attention, inputs: &AttentionInputs, coverage: Coverage) -> Vec<Vec<Grid>> {
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
    let scales = attention
        .first_query_scales()
        .into_iter()
        .zip(attention.first_key_scales());
    let scaling = attention.scaling;
    let sequences = attention.sequences.iter().zip(starts).zip(scales);
    sequences
        .flat_map(|((&sequence, (query_row, key_row)), (query_scale, key_scale))| {
            (0..attention.heads).map(move |head| Head {
                sequence,
                query_row: query_row + head * sequence.queries,
                key_row: key_row + attention.kv_head(head) * sequence.keys,
                query_scale: query_scale + head * scaling.count(sequence.queries),
                key_scale: key_scale + attention.kv_head(head) * scaling.count(sequence.keys),
            })
        })
        .collect()
}

fn grid(attention: &Attention, inputs: &AttentionInputs, head: &Head, rows: Vec<usize>) -> Grid {
    let (size, keys) = (attention.head_size, head.sequence.keys);
    let scaled = |tensor: &HeadTensor, first_row: usize, first_scale: usize, positions: &[usize]| {
        let position = |&position: &usize| {
            // Exact: an element has at most 11 significant bits, and a scale 24.
            let scale = f64::from(tensor.scales[first_scale + attention.scaling.place(position)]);
            let start = (first_row + position) * size;
            tensor
                .dequantise(start..start + size)
                .map(move |element| f64::from(element) * scale)
        };
        positions.iter().flat_map(position).collect::<Vec<f64>>()
    };
    let all: Vec<usize> = (0..keys).collect();
    let key = scaled(&inputs.key, head.key_row, head.key_scale, &all);
    let value = scaled(&inputs.value, head.key_row, head.key_scale, &all);
    let query = scaled(&inputs.query, head.query_row, head.query_scale, &rows);

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
