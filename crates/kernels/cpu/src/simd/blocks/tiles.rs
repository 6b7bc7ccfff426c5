//! Products of bf16 by the tile unit: e2m1 × e4m3 has at most six significant bits, so that every value is exact in bf16 and
//! every product in f32.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use gauntlet_nvfp4::{BLOCK, Nvfp4Tensor};

use super::{BLOCK_BYTES, Operand, Panels};
use crate::simd::{CHUNK, SIDE, Tiles};

/// Tile registers that hold the sums of a register block.
pub(super) const SUM_TILES: usize = 4;

/// Words of a row of a chunk.
const ROW: usize = SIDE / 2;
/// The number of chunks that are widened before they are transposed into columns: 32 rows of them are 16 KiB.
const TURNED: usize = 8;

/// See [`Blocks::pack`](super::Blocks::pack). Rows beyond the last keep their old content, which is never used.
pub(super) fn pack(
    unit: Tiles,
    operand: Operand,
    tensor: &Nvfp4Tensor,
    rows: Range<usize>,
    columns: Range<usize>,
    panel: &mut [f32],
) {
    if columns.is_empty() {
        return;
    }
    let panel: &mut [u32] = cast_slice_mut(panel);
    let run = |row: usize, columns: Range<usize>| {
        let first = row * tensor.columns() + columns.start;
        let blocks = first / BLOCK..(first + columns.len()) / BLOCK;
        let codes = &tensor.packed()[blocks.start * BLOCK_BYTES..blocks.end * BLOCK_BYTES];
        (codes, &tensor.scales()[blocks])
    };
    match operand {
        Operand::Rows => {
            for (at, row) in rows.enumerate() {
                let (codes, scales) = run(row, columns.clone());
                unit.widen_nvfp4(codes, scales, &mut panel[at * ROW..], CHUNK);
            }
        }
        Operand::Columns => {
            let mut widened = [0; SIDE * ROW * TURNED];
            let firsts = columns.clone().step_by(TURNED * SIDE);
            for (first, panel) in firsts.zip(panel.chunks_mut(TURNED * CHUNK)) {
                let columns = first..columns.end.min(first + TURNED * SIDE);
                let size = columns.len().next_multiple_of(SIDE);
                for (row, words) in rows.clone().zip(widened.chunks_exact_mut(size / 2)) {
                    let (codes, scales) = run(row, columns.clone());
                    unit.widen_nvfp4(codes, scales, words, ROW);
                }
                unit.pack_columns(&widened[..SIDE * size / 2], size, panel);
            }
        }
    }
}

/// See [`Blocks::multiply`](super::Blocks::multiply).
pub(super) fn multiply(
    unit: Tiles,
    panels: &Panels<'_>,
    sums: &mut [f32],
    strides: [usize; 2],
    accumulate: bool,
) {
    let [rows, columns] = panels.counts;
    for (at, first) in (0..rows).step_by(SIDE).enumerate() {
        let mut block = [0.0; SIDE * SIDE];
        if panels.chunks > 0 {
            let [a, b] = [&panels.rows[at * panels.apart..], panels.columns].map(cast_slice);
            let configured = unit.configure();
            configured
                .product((panels.chunks, 1), a, b, &mut block, false)
                .finish();
        }
        let rows = SIDE.min(rows - first);
        // Rows of the sums are rows of the block, or its columns after transposition.
        let (lines, length, stride) = if strides[1] == 1 {
            (rows, columns, strides[0])
        } else {
            unit.turn(&mut block);
            (columns, rows, strides[1])
        };
        let places = sums[first * strides[0]..].chunks_mut(stride.max(length));
        for (line, sums) in block.chunks_exact(SIDE).zip(places).take(lines) {
            for (sum, product) in sums[..length].iter_mut().zip(line) {
                *sum = if accumulate { *sum + product } else { *product };
            }
        }
    }
}
