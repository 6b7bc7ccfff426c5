//! The f64 oracle of grouped GEMM, from exactly dequantised operands. On the competition's plain operands every sum is
//! exact in f64; elsewhere its relative error is near 1e-15 of the sum of magnitudes.

use std::ops::Range;

use gauntlet_nvfp4::{BLOCK, Nvfp4Tensor};
use gauntlet_problems::{Form, GemmShape, GroupInputs, GroupedGemm, Tokens};
use gauntlet_task::product::{Matrix, add_product_transposed};
use gauntlet_task::{Coverage, Grid, pieces};
use rayon::prelude::*;

/// Rows and columns of a unit of work.
const TILE: usize = 256;

/// Depth dequantised at a time: a panel of a megabyte stays in a core's cache between its making and its use.
const DEPTH: usize = 512;

/// The grids of each group.
pub fn grids(gemm: &GroupedGemm, groups: &[GroupInputs], coverage: Coverage) -> Vec<Vec<Grid>> {
    let compute = |((group, shape), inputs): ((usize, &GemmShape), &GroupInputs)| {
        let tiles = tiles(group, shape, coverage);
        tiles
            .into_par_iter()
            .map(|(rows, columns)| grid(gemm.form, inputs, rows, columns))
            .collect()
    };
    gemm.groups
        .par_iter()
        .enumerate()
        .zip(groups)
        .map(compute)
        .collect()
}

/// Rows and columns of each unit of work: sampled rows cross all columns, the other rows the sampled columns.
fn tiles(group: usize, shape: &GemmShape, coverage: Coverage) -> Vec<(Vec<usize>, Vec<usize>)> {
    let rows = coverage.rows(group, shape.m);
    let others = (0..shape.m)
        .filter(|row| rows.binary_search(row).is_err())
        .collect();
    let mut tiles = crossing(rows, (0..shape.n).collect());
    tiles.extend(crossing(others, coverage.columns(group, shape.n)));
    tiles
}

fn crossing(rows: Vec<usize>, columns: Vec<usize>) -> Vec<(Vec<usize>, Vec<usize>)> {
    let columns = pieces(columns, TILE);
    let with_columns = |rows: Vec<usize>| {
        columns
            .iter()
            .map(move |columns| (rows.clone(), columns.clone()))
            .collect::<Vec<_>>()
    };
    pieces(rows, TILE).into_iter().flat_map(with_columns).collect()
}

/// The expected result at these rows and columns of a group.
pub fn grid(form: Form, inputs: &GroupInputs, rows: Vec<usize>, columns: Vec<usize>) -> Grid {
    let mut values = product(&inputs.a, &rows, &inputs.b, &columns);
    if let (Form::Swiglu, Some(b2)) = (form, &inputs.b2) {
        let factors = product(&inputs.a, &rows, b2, &columns);
        values
            .iter_mut()
            .zip(factors)
            .for_each(|(value, factor)| *value = silu(*value) * factor);
    }
    Grid {
        rows,
        columns,
        values,
    }
}

/// The exact x / (1 + e⁻ˣ) but for f64's rounding; −0 where e⁻ˣ overflows.
fn silu(value: f64) -> f64 {
    value / (1.0 + (-value).exp())
}

/// Rows of A by rows of B, `[rows.len(), columns.len()]`.
fn product(a: &Tokens, rows: &[usize], b: &Nvfp4Tensor, columns: &[usize]) -> Vec<f64> {
    let mut product = vec![0.0; rows.len() * columns.len()];
    let (mut left, mut right) = (vec![0.0; rows.len() * DEPTH], vec![0.0; columns.len() * DEPTH]);
    for start in (0..a.columns()).step_by(DEPTH) {
        let depth = DEPTH.min(a.columns() - start);
        let (left, right) = (
            &mut left[..rows.len() * depth],
            &mut right[..columns.len() * depth],
        );
        fill_panel(left, rows, start, depth, |row, blocks, values| {
            a.dequantise_blocks_scaled(row, blocks, values);
        });
        fill_panel(right, columns, start, depth, |row, blocks, values| {
            b.dequantise_blocks_scaled(row, blocks, values);
        });
        add_product_transposed(
            &mut product,
            &Matrix {
                values: left,
                rows: rows.len(),
                columns: depth,
            },
            &Matrix {
                values: right,
                rows: columns.len(),
                columns: depth,
            },
        );
    }
    product
}

/// Some rows of a tensor, `depth` elements of each from `start`, exact. `decode` writes some blocks of a row.
fn fill_panel(
    panel: &mut [f64],
    rows: &[usize],
    start: usize,
    depth: usize,
    decode: impl Fn(usize, Range<usize>, &mut [f64]),
) {
    let blocks = start / BLOCK..(start + depth) / BLOCK;
    for (&row, values) in rows.iter().zip(panel.chunks_exact_mut(depth)) {
        decode(row, blocks.clone(), values);
    }
}
