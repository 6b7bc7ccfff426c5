//! The register block: what a step of depth costs, what a call costs, and what it adds if operands must be fetched
//! from further away than the first-level cache.

use gauntlet_executor::protocol::Parameter;

use super::bench::{Bench, advance};
use super::{CalibrationError, cost};
use crate::memory::AlignedBuffer;

/// Depths whose panels, one of each side, fit the first-level cache of any processor in use.
const SHALLOW: usize = 32;
const DEEP: usize = 192;

/// Bytes touched between two uses of a panel.
const DISTANCES_KIB: [usize; 9] = [32, 64, 128, 256, 512, 1024, 2048, 4096, 16384];

/// Sums of a tile lie in the second-level cache by the time that a step comes back to them.
const SUMS_BYTES: usize = 128 << 10;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Parameter>, CalibrationError> {
    let shallow = block(bench, SHALLOW, 1, 1)? * SHALLOW as f64;
    let deep = block(bench, DEEP, 1, 1)? * DEEP as f64;
    let step = (deep - shallow) / (DEEP - SHALLOW) as f64;
    let mut parameters = vec![
        cost("multiply.step", "step of depth", step),
        cost("multiply.call", "block", shallow - SHALLOW as f64 * step),
    ];
    let (rows, columns) = (bench.instructions.rows(), bench.instructions.columns());
    for distance in DISTANCES_KIB {
        let panels = |width: usize| (distance << 10).div_ceil(DEEP * width * size_of::<f32>());
        for (side, seconds) in [
            ("rows", block(bench, DEEP, panels(rows), 1)?),
            ("columns", block(bench, DEEP, 1, panels(columns))?),
        ] {
            let name = format!("multiply.{side}.{distance}KiB");
            parameters.push(cost(name, "step of depth", seconds - deep / DEEP as f64));
        }
    }
    Ok(parameters)
}

/// Seconds a step of depth, over so many row and column panels in turn.
fn block(
    bench: &Bench,
    depth: usize,
    row_panels: usize,
    column_panels: usize,
) -> Result<f64, CalibrationError> {
    struct State {
        rows: AlignedBuffer,
        columns: AlignedBuffer,
        sums: AlignedBuffer,
        next: [usize; 3],
    }
    let instructions = bench.instructions;
    let (row, column) = (depth * instructions.rows(), depth * instructions.columns());
    let size = instructions.rows() * instructions.columns();
    let blocks = SUMS_BYTES / size_of::<f32>() / size;
    let make = || {
        let mut state = State {
            rows: AlignedBuffer::zeroed(row * row_panels)?,
            columns: AlignedBuffer::zeroed(column * column_panels)?,
            sums: AlignedBuffer::zeroed(size * blocks)?,
            next: [0; 3],
        };
        // Untouched zeros are all one page, which lies in every cache.
        state.rows.values_mut().fill(0.5);
        state.columns.values_mut().fill(0.25);
        state.sums.values_mut().fill(1.0);
        Ok(state)
    };
    bench.each(make, |state| {
        for _ in 0..32 {
            let a = advance(&mut state.next[0], row_panels) * row;
            let b = advance(&mut state.next[1], column_panels) * column;
            let c = advance(&mut state.next[2], blocks) * size;
            let sums = &mut state.sums.values_mut()[c..c + size];
            instructions.multiply(
                depth,
                &state.rows.values()[a..],
                &state.columns.values()[b..],
                sums,
                true,
            );
        }
        (32 * depth) as f64
    })
}
