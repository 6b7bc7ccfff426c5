//! From accumulators to the output: scales, the SwiGLU, rounding, and the way to memory.

use std::ops::Range;

use gauntlet_problem::OutputFormat;
use gauntlet_schedule::Epilogue;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::memory::Disjoint;
use crate::simd::{Instructions, LANES, SimdPath, stream_rows};

/// The accumulators of one tile: register blocks, those of a column panel one after another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sums<'a> {
    /// The sums of the only, or of the gate's, product.
    pub first: &'a [f32],
    /// Those of the second product of the dual form.
    pub second: Option<&'a [f32]>,
    /// Register blocks in a column panel.
    pub row_panels: usize,
    /// Whether rows of the output lie along columns of the blocks.
    pub swapped: bool,
}

/// What is done to the sums.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Finish<'a> {
    /// Multiply all by one scale.
    Scale(f64),
    /// Multiply each row by its own.
    RowScales(&'a [f64]),
    /// `silu(first · scales[0]) · (second · scales[1])`.
    Swiglu([f64; 2]),
}

/// Where a tile goes in the output, in elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// The tile's first element.
    pub start: usize,
    /// From one row to the next.
    pub stride: usize,
    /// Rows of the tile.
    pub rows: usize,
    /// Columns of the tile.
    pub columns: usize,
}

/// Writes tiles the way a schedule says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer<'a> {
    instructions: Instructions,
    epilogue: Epilogue,
    format: OutputFormat,
    bytes: Disjoint<'a, u8>,
}

impl<'a> Writer<'a> {
    /// A writer into `bytes`.
    pub fn new(
        instructions: Instructions,
        epilogue: Epilogue,
        format: OutputFormat,
        bytes: &'a mut [u8],
    ) -> Self {
        Self {
            instructions,
            epilogue,
            format,
            bytes: Disjoint::new(bytes),
        }
    }

    /// Bytes that [`write`](Self::write) needs to stage a tile.
    pub fn staging_bytes(epilogue: Epilogue, format: OutputFormat, rows: usize, columns: usize) -> usize {
        match epilogue {
            Epilogue::Direct => 0,
            Epilogue::Staged => rows.saturating_mul(columns).saturating_mul(format.bytes()),
        }
    }

    /// Finishes the sums of a tile and writes them to `target`.
    ///
    /// # Safety
    ///
    /// Nothing else reads or writes the elements of `target` meanwhile.
    pub unsafe fn write(&self, sums: &Sums<'_>, finish: Finish<'_>, target: &Target, staging: &mut [u8]) {
        let size = self.format.bytes();
        let row_bytes = target.columns * size;
        // SAFETY: the caller promises that the target's elements are this call's alone, and rows do not overlap.
        let output_row = |row: usize| unsafe {
            let start = (target.start + row * target.stride) * size;
            self.bytes.part_mut(start..start + row_bytes)
        };
        match self.epilogue {
            Epilogue::Direct => {
                for row in 0..target.rows {
                    self.finish_row(sums, finish, row, output_row(row));
                }
            }
            Epilogue::Staged => {
                for (row, staged) in staging
                    .chunks_exact_mut(row_bytes.max(1))
                    .take(target.rows)
                    .enumerate()
                {
                    self.finish_row(sums, finish, row, staged);
                }
                let rows = (0..target.rows)
                    .map(output_row)
                    .zip(staging.chunks_exact(row_bytes.max(1)));
                match self.instructions.path() {
                    SimdPath::Portable => rows.for_each(|(row, staged)| row.copy_from_slice(staged)),
                    SimdPath::Amx | SimdPath::Avx512 | SimdPath::Avx2 => stream_rows(rows),
                }
            }
        }
    }

    /// Finishes one row of the tile into `bytes`, a run at a time: as much as lies together in a register block, or, of
    /// swapped blocks, as many whole ones as fill the lanes, for it is all gathered one by one.
    fn finish_row(&self, sums: &Sums<'_>, finish: Finish<'_>, row: usize, bytes: &mut [u8]) {
        let run = if sums.swapped {
            LANES / self.instructions.rows() * self.instructions.rows()
        } else {
            self.instructions.columns()
        };
        let mut values = [0.0; LANES];
        let (mut turned_first, mut turned_second) = ([0.0; LANES], [0.0; LANES]);
        for (index, bytes) in bytes.chunks_mut(run * self.format.bytes()).enumerate() {
            let values = &mut values[..bytes.len() / self.format.bytes()];
            let place = (row, index * run..index * run + values.len());
            let first = self.run(sums, sums.first, &place, &mut turned_first);
            match finish {
                Finish::Scale(scale) => self.instructions.scale(first, scale, values),
                Finish::RowScales(scales) => self.instructions.scale(first, scales[row], values),
                Finish::Swiglu(scales) => {
                    let second = sums.second.unwrap_or(sums.first);
                    let second = self.run(sums, second, &place, &mut turned_second);
                    self.instructions.swiglu(first, second, scales, values);
                }
            }
            encode(self.format, values, bytes);
        }
    }

    /// One run of an output row, its columns: as it lies in a block, or gathered from swapped ones.
    fn run<'s>(
        &self,
        sums: &Sums<'_>,
        blocks: &'s [f32],
        &(row, ref run): &(usize, Range<usize>),
        turned: &'s mut [f32; LANES],
    ) -> &'s [f32] {
        let (rows, columns) = (self.instructions.rows(), self.instructions.columns());
        if sums.swapped {
            // The rows of all blocks of a column panel are as far apart.
            let first = (row / columns * sums.row_panels * rows + run.start) * columns + row % columns;
            let gathered = blocks[first..].iter().step_by(columns);
            for (value, sum) in turned[..run.len()].iter_mut().zip(gathered) {
                *value = *sum;
            }
            &turned[..run.len()]
        } else {
            let block = (run.start / columns * sums.row_panels + row / rows) * rows * columns;
            &blocks[block + row % rows * columns..][..run.len()]
        }
    }
}

/// Rounds to nearest, ties to even, into little-endian bytes.
fn encode(format: OutputFormat, values: &[f32], bytes: &mut [u8]) {
    match format {
        OutputFormat::F16 => {
            let mut halves = [f16::ZERO; LANES];
            let halves = &mut halves[..values.len()];
            halves.convert_from_f32_slice(values);
            for (bytes, half) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(halves) {
                *bytes = half.to_le_bytes();
            }
        }
        OutputFormat::Bf16 => {
            for (bytes, value) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(values) {
                *bytes = bf16::from_f32(*value).to_le_bytes();
            }
        }
        OutputFormat::F32 => {
            for (bytes, value) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(values) {
                *bytes = value.to_le_bytes();
            }
        }
    }
}
