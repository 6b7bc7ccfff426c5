//! The register blocks of f32 and of NVFP4: the cost of a step of depth, the cost of a call, and the extra cost when operands
//! come from beyond the first-level cache.

use gauntlet_nvfp4::{BLOCK, Nvfp4Tensor};
use gauntlet_problems::TokenFormat;

use super::bench::{Bench, advance};
use super::{CalibrationError, CalibrationFigure, cost};
use crate::memory::AlignedBuffer;
use crate::simd::{Ahead, Blocks, Dots, Instructions, Operand, Panels, Rows};

/// Bytes touched between two uses of a panel.
const DISTANCES_KIB: [usize; 9] = [32, 64, 128, 256, 512, 1024, 2048, 4096, 16384];

/// Bytes of sums that a step cycles through: by the time a step returns to a tile's sums, they lie in the second-level cache.
const SUMS_BYTES: usize = 128 << 10;

/// A kind of register block.
trait RegisterBlock: Copy + Sync {
    /// The prefix of its figures' names.
    const NAME: &'static str;
    /// Depths whose panels, one of each side, fit the first-level cache of any processor in use.
    const SHALLOW: usize;
    const DEEP: usize;

    /// The number of sums.
    fn sums(self) -> usize;
    /// Words of a panel of rows, or of columns.
    fn panel(self, operand: Operand, depth: usize) -> usize;
    fn multiply(self, depth: usize, rows: &[f32], columns: &[f32], sums: &mut [f32]);
}

/// The register block of attention.
impl RegisterBlock for Instructions {
    const NAME: &'static str = "multiply";
    const SHALLOW: usize = 32;
    const DEEP: usize = 192;

    fn sums(self) -> usize {
        self.rows() * self.columns()
    }

    fn panel(self, operand: Operand, depth: usize) -> usize {
        depth
            * match operand {
                Operand::Rows => self.rows(),
                Operand::Columns => self.columns(),
            }
    }

    fn multiply(self, depth: usize, rows: &[f32], columns: &[f32], sums: &mut [f32]) {
        Self::multiply(&self, depth, rows, columns, sums, true);
    }
}

/// The register block of a GEMM.
impl RegisterBlock for Blocks {
    const NAME: &'static str = "dots";
    // Multiples of the depth of all instruction sets' chunks.
    const SHALLOW: usize = 512;
    const DEEP: usize = 2048;

    fn sums(self) -> usize {
        self.width(Operand::Rows) * self.width(Operand::Columns)
    }

    fn panel(self, operand: Operand, depth: usize) -> usize {
        self.panel_words(operand, self.chunks(depth))
    }

    fn multiply(self, depth: usize, rows: &[f32], columns: &[f32], sums: &mut [f32]) {
        let widths = [Operand::Rows, Operand::Columns].map(|operand| self.width(operand));
        let panels = Panels {
            chunks: self.chunks(depth),
            counts: widths,
            rows,
            apart: 0,
            columns,
            ahead: Ahead::NONE,
        };
        Blocks::multiply(&self, &panels, sums, [widths[1], 1], true);
    }
}

pub(super) fn measure(bench: &Bench) -> Result<Vec<CalibrationFigure>, CalibrationError> {
    let mut figures = costs(bench, bench.instructions)?;
    figures.extend(costs(
        bench,
        bench.instructions.blocks(usize::MAX, TokenFormat::Nvfp4),
    )?);
    figures.extend(codes(bench)?);
    Ok(figures)
}

/// Products straight from quantised codes in the first-level cache, with one column and with as many as fit.
fn codes(bench: &Bench) -> Result<Vec<CalibrationFigure>, CalibrationError> {
    let Blocks::Dots(dots) = bench.instructions.blocks(1, TokenFormat::Nvfp4) else {
        return Ok(Vec::new());
    };
    let most = dots.width(Operand::Columns);
    let (one, all) = (
        multiply_codes(bench, dots, 1)?,
        multiply_codes(bench, dots, most)?,
    );
    let column = (all - one) / (most - 1) as f64;
    Ok(vec![
        cost("codes.value", "value", one - column),
        cost("codes.column", "value and column", column),
    ])
}

/// Seconds per value.
fn multiply_codes(bench: &Bench, dots: &Dots, columns: usize) -> Result<f64, CalibrationError> {
    const DEPTH: usize = <Blocks as RegisterBlock>::SHALLOW;
    const ROWS: usize = 32;
    struct State {
        rows: Nvfp4Tensor,
        columns: AlignedBuffer,
        sums: Vec<f32>,
    }
    let make = || {
        let mut state = State {
            // Codes and scales of 1.0.
            rows: Nvfp4Tensor::new(
                ROWS,
                DEPTH,
                vec![0x22; ROWS * DEPTH / 2],
                vec![0x38; ROWS * DEPTH / BLOCK],
                1.0,
            )?,
            columns: AlignedBuffer::zeroed(dots.chunks(DEPTH) * columns * dots.words(Operand::Columns))?,
            sums: vec![0.0; ROWS * columns],
        };
        state.columns.values_mut().fill(0.25);
        Ok(state)
    };
    bench.each(make, |state| {
        let rows = Rows {
            tensor: &state.rows,
            rows: 0..ROWS,
            columns: 0..DEPTH,
        };
        dots.multiply_codes(
            &rows,
            columns,
            state.columns.values(),
            &mut state.sums,
            [columns, 1],
            true,
        );
        (ROWS * DEPTH) as f64
    })
}

/// Seconds per multiply-add of a GEMM's inner loop, with all operands in the first-level cache.
pub(super) fn inner_loop(bench: &Bench, blocks: Blocks) -> Result<f64, CalibrationError> {
    let step = block(bench, blocks, Blocks::DEEP, 1, 1)?;
    Ok(step / RegisterBlock::sums(blocks) as f64)
}

fn costs<B: RegisterBlock>(bench: &Bench, kind: B) -> Result<Vec<CalibrationFigure>, CalibrationError> {
    let shallow = block(bench, kind, B::SHALLOW, 1, 1)? * B::SHALLOW as f64;
    let deep = block(bench, kind, B::DEEP, 1, 1)? * B::DEEP as f64;
    let step = (deep - shallow) / (B::DEEP - B::SHALLOW) as f64;
    let mut figures = vec![
        cost(format!("{}.step", B::NAME), "step of depth", step),
        cost(
            format!("{}.call", B::NAME),
            "block",
            shallow - B::SHALLOW as f64 * step,
        ),
    ];
    for distance in DISTANCES_KIB {
        let panels = |operand| (distance << 10).div_ceil(kind.panel(operand, B::DEEP) * size_of::<f32>());
        for (side, seconds) in [
            ("rows", block(bench, kind, B::DEEP, panels(Operand::Rows), 1)?),
            (
                "columns",
                block(bench, kind, B::DEEP, 1, panels(Operand::Columns))?,
            ),
        ] {
            let name = format!("{}.{side}.{distance}KiB", B::NAME);
            figures.push(cost(name, "step of depth", seconds - deep / B::DEEP as f64));
        }
    }
    Ok(figures)
}

/// Seconds per step of depth, cycling through `row_panels` and `column_panels` panels.
fn block<B: RegisterBlock>(
    bench: &Bench,
    kind: B,
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
    let (row, column) = (
        kind.panel(Operand::Rows, depth),
        kind.panel(Operand::Columns, depth),
    );
    let size = kind.sums();
    let blocks = SUMS_BYTES / size_of::<f32>() / size;
    let make = || {
        let mut state = State {
            rows: AlignedBuffer::zeroed(row * row_panels)?,
            columns: AlignedBuffer::zeroed(column * column_panels)?,
            sums: AlignedBuffer::zeroed(size * blocks)?,
            next: [0; 3],
        };
        // Untouched zeros share one physical page, which would stay in every cache. The same words are valid codes for
        // the blocks that multiply codes.
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
            kind.multiply(
                depth,
                &state.rows.values()[a..],
                &state.columns.values()[b..],
                sums,
            );
        }
        (32 * depth) as f64
    })
}
