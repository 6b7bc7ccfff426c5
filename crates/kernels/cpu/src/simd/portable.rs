//! Plain Rust, vectorised by the compiler for the baseline of the architecture.

use super::{Loops, SoftmaxLanes, vector};

const ROWS: usize = 4;
const COLUMNS: usize = 8;

/// Whether the baseline of the architecture has a fused multiply-add.
const FMA: bool = cfg!(target_arch = "aarch64");

/// 4 × 8: eight 128-bit accumulators leave room for both operands in the 16 registers of SSE2.
pub(super) static LOOPS: Loops = Loops {
    rows: ROWS,
    columns: COLUMNS,
    accumulators: ROWS * COLUMNS / 4,
    multiply,
    softmax_rows: softmax::<ROWS, { 4 * ROWS }>,
    softmax_columns: softmax::<COLUMNS, { 2 * COLUMNS }>,
    widen: vector::widen,
    turn: vector::turn::<COLUMNS>,
    scale: vector::scale,
    swiglu: vector::swiglu::<FMA>,
    halve: vector::halve,
};

/// # Safety
///
/// `a` holds `depth · ROWS` values, `b` `depth · COLUMNS`, `c` `ROWS · COLUMNS`, and `c` overlaps neither.
unsafe fn multiply(depth: usize, a: *const f32, b: *const f32, c: *mut f32, accumulate: bool) {
    // SAFETY: the caller promises these lengths.
    let (a, b, c) = unsafe {
        (
            std::slice::from_raw_parts(a, depth * ROWS),
            std::slice::from_raw_parts(b, depth * COLUMNS),
            std::slice::from_raw_parts_mut(c, ROWS * COLUMNS),
        )
    };
    let (c, _) = c.as_chunks_mut::<COLUMNS>();
    let mut sums = [[0.0_f32; COLUMNS]; ROWS];
    if accumulate {
        sums.copy_from_slice(c);
    }
    for (a, b) in a.as_chunks::<ROWS>().0.iter().zip(b.as_chunks::<COLUMNS>().0) {
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                let sum = &mut sums[row][column];
                *sum = vector::multiply_add::<FMA>(a[row], b[column], *sum);
            }
        }
    }
    c.copy_from_slice(&sums);
}

fn softmax<const W: usize, const C: usize>(panel: &mut [f32], scale: f32, lanes: &mut SoftmaxLanes) {
    vector::softmax::<W, C, FMA>(panel, scale, lanes);
}
