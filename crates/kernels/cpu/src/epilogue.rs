//! From accumulators to output: scaling, SwiGLU, rounding, and stores.

use std::ops::Range;

use gauntlet_problems::Epilogue;
use gauntlet_problems::OutputFormat;
use half::bf16;

use crate::memory::Disjoint;
use crate::simd::{Instructions, LANES, SimdPath, stream_rows};

/// The accumulators of one tile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sums<'a> {
    /// The sums of the only product, or of the gate's.
    pub first: &'a [f32],
    /// The sums of the dual form's second product, stored in rows.
    pub second: Option<&'a [f32]>,
    /// The layout of the sums.
    pub places: Places,
}

/// The layout of a tile's sums.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Places {
    /// In the output's order, with rows `stride` apart.
    Rows {
        /// The distance from one row to the next.
        stride: usize,
    },
    /// In register blocks; those of a column panel follow each other.
    Blocks {
        /// Register blocks in a column panel.
        row_panels: usize,
        /// Whether rows of the output are columns of the blocks.
        swapped: bool,
    },
}

/// The operation applied to the sums.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Finish<'a> {
    /// Multiply all by one scale.
    Scale(f64),
    /// Multiply each row by its own.
    RowScales(&'a [f64]),
    /// `silu(first · scales[0]) · (second · scales[1])`.
    Swiglu([f64; 2]),
}

/// A tile's place in the output, in elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// The tile's first element.
    pub start: usize,
    /// The distance from one row to the next.
    pub stride: usize,
    /// Rows of the tile.
    pub rows: usize,
    /// Columns of the tile.
    pub columns: usize,
}

/// Writes tiles by the method that the schedule names.
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
    /// No other access to the elements of `target` happens meanwhile.
    pub unsafe fn write(&self, sums: &Sums<'_>, finish: Finish<'_>, target: &Target, staging: &mut [u8]) {
        match self.epilogue {
            // SAFETY: the caller promises exclusive access to the target's elements.
            Epilogue::Direct => unsafe { self.finish(sums, finish, target, self.bytes) },
            Epilogue::Staged => {
                let staged = Target {
                    start: 0,
                    stride: target.columns,
                    ..*target
                };
                // SAFETY: this call has exclusive access to the staging memory.
                unsafe { self.finish(sums, finish, &staged, Disjoint::new(staging)) };
                let size = self.format.bytes();
                let row_bytes = target.columns * size;
                // SAFETY: the caller promises exclusive access to the target's elements, and rows do not overlap.
                let output_row = |row: usize| unsafe {
                    let start = (target.start + row * target.stride) * size;
                    self.bytes.part_mut(start..start + row_bytes)
                };
                let rows = (0..target.rows)
                    .map(output_row)
                    .zip(staging.chunks_exact(row_bytes.max(1)));
                match self.instructions.path() {
                    SimdPath::Neon | SimdPath::Portable => {
                        rows.for_each(|(row, staged)| row.copy_from_slice(staged));
                    }
                    SimdPath::Amx | SimdPath::Avx512 | SimdPath::Avx2 => stream_rows(rows),
                }
            }
        }
    }

    /// Finishes a tile into `bytes`, one run at a time. A run is the part of a row that is contiguous in a register
    /// block, or is transposed at a time from swapped blocks, or [`LANES`] elements.
    ///
    /// # Safety
    ///
    /// No other access to the elements of `target` in `bytes` happens meanwhile.
    unsafe fn finish(&self, sums: &Sums<'_>, finish: Finish<'_>, target: &Target, bytes: Disjoint<'_, u8>) {
        let size = self.format.bytes();
        let finish_run = |row: usize, run: &Range<usize>, first: &[f32], second: &[f32]| {
            let start = (target.start + row * target.stride + run.start) * size;
            // SAFETY: the caller promises exclusive access to the target's elements; only one run is in use at a time.
            let bytes = unsafe { bytes.part_mut(start..start + run.len() * size) };
            self.finish_run(finish, row, first, second, bytes);
        };
        // Without a second product, the first is passed as a placeholder and not read.
        let second = sums.second.unwrap_or(sums.first);
        let runs = |length: usize| {
            (0..target.columns)
                .step_by(length)
                .map(move |start| start..target.columns.min(start + length))
        };
        let all =
            |length: usize| (0..target.rows).flat_map(move |row| runs(length).map(move |run| (row, run)));
        let (rows, columns) = (self.instructions.rows(), self.instructions.columns());
        match sums.places {
            Places::Rows { stride } => {
                for (row, run) in all(LANES) {
                    let place = row * stride + run.start..row * stride + run.end;
                    finish_run(row, &run, &sums.first[place.clone()], &second[place]);
                }
            }
            Places::Blocks {
                row_panels,
                swapped: false,
            } => {
                for (row, run) in all(columns) {
                    let block = (run.start / columns * row_panels + row / rows) * rows * columns;
                    let place = block + row % rows * columns;
                    let place = place..place + run.len();
                    finish_run(row, &run, &sums.first[place.clone()], &second[place]);
                }
            }
            Places::Blocks {
                row_panels,
                swapped: true,
            } => {
                let mut turned = [0.0; LANES * LANES];
                for (panel, run) in (0..target.rows.div_ceil(columns))
                    .flat_map(|panel| runs(LANES).map(move |run| (panel, run)))
                {
                    // All blocks of a column panel have the same distance between rows.
                    let place = (panel * row_panels * rows + run.start) * columns;
                    let place = place..place + run.len() * columns;
                    self.instructions.turn(&sums.first[place], &mut turned);
                    let turned = turned.chunks_exact(LANES).take(columns);
                    for (row, first) in (panel * columns..target.rows).zip(turned) {
                        finish_run(row, &run, &first[..run.len()], &first[..run.len()]);
                    }
                }
            }
        }
    }

    /// Finishes one run of row `row` and rounds it, to nearest, ties to even, into the little-endian `bytes`.
    fn finish_run(&self, finish: Finish<'_>, row: usize, first: &[f32], second: &[f32], bytes: &mut [u8]) {
        let values = &mut [0.0; LANES][..first.len()];
        match finish {
            Finish::Scale(scale) => self.instructions.scale(first, scale, values),
            Finish::RowScales(scales) => self.instructions.scale(first, scales[row], values),
            Finish::Swiglu(scales) => self.instructions.swiglu(first, second, scales, values),
        }
        match self.format {
            OutputFormat::F16 => self.instructions.halve(values, bytes),
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
}
