//! The epilogue, which turns sums into output one run of a register block at a time, and storing and adding split sums.

use gauntlet_problems::Epilogue;
use gauntlet_problems::OutputFormat;

use super::bench::{Bench, advance};
use super::{CalibrationError, CalibrationFigure, cost};
use crate::epilogue::{Finish, Places, Sums, Target, Writer};
use crate::memory::AlignedBuffer;
use crate::simd::LANES;

/// Rows of a tile: a multiple of every register block's rows and columns.
const ROWS: usize = 96;

/// Runs in a row of a tile.
const RUNS: usize = 4;

/// The size of a call's output, which each call overwrites.
const OUTPUT_BYTES: usize = 4 << 20;

/// Bytes of split parts, which each call writes once and reads once.
const PARTS_BYTES: usize = 4 << 20;

const FORMATS: [(&str, OutputFormat); 3] = [
    ("f16", OutputFormat::F16),
    ("bf16", OutputFormat::Bf16),
    ("f32", OutputFormat::F32),
];

/// What the epilogue does to sums, and how they are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Of a GEMM.
    Scale,
    /// Of a dual GEMM.
    Swiglu,
    /// Of attention with queries as the rows of register blocks.
    Plain,
    /// Of attention with queries as the columns.
    Swapped,
}

const KINDS: [(&str, Kind); 4] = [
    ("scale", Kind::Scale),
    ("swiglu", Kind::Swiglu),
    ("plain", Kind::Plain),
    ("swapped", Kind::Swapped),
];

pub(super) fn measure(bench: &Bench) -> Result<Vec<CalibrationFigure>, CalibrationError> {
    let mut figures = Vec::new();
    for (format_name, format) in FORMATS {
        for (manner_name, manner) in [("direct", Epilogue::Direct), ("staged", Epilogue::Staged)] {
            for (kind_name, kind) in KINDS {
                let row = write(bench, format, manner, kind, RUNS)?;
                let name = format!("epilogue.{format_name}.{manner_name}.{kind_name}");
                figures.push(cost(name, "run of a row", row / RUNS as f64));
            }
        }
    }
    let narrow = write(bench, OutputFormat::F16, Epilogue::Direct, Kind::Plain, 1)?;
    let wide = write(bench, OutputFormat::F16, Epilogue::Direct, Kind::Plain, RUNS)?;
    // A row of one run costs more than a quarter of a row of four.
    let row = (narrow * RUNS as f64 - wide) / (RUNS - 1) as f64;
    figures.push(cost("epilogue.row", "row", row));
    figures.push(cost("split.store", "value", parts(bench, false)?));
    figures.push(cost("split.add", "value", parts(bench, true)?));
    Ok(figures)
}

/// Seconds per row of `runs` runs.
fn write(
    bench: &Bench,
    format: OutputFormat,
    manner: Epilogue,
    kind: Kind,
    runs: usize,
) -> Result<f64, CalibrationError> {
    struct State {
        first: AlignedBuffer,
        second: AlignedBuffer,
        staging: Vec<u8>,
        output: Vec<u8>,
        tile: usize,
    }
    let instructions = bench.instructions;
    let (rows, columns) = (instructions.rows(), instructions.columns());
    let dual = kind == Kind::Swiglu;
    let width = runs
        * match kind {
            Kind::Scale | Kind::Swiglu => LANES,
            Kind::Plain => columns,
            Kind::Swapped => rows,
        };
    let sums = ROWS.next_multiple_of(rows * columns) * width.next_multiple_of(columns);
    let tile_bytes = ROWS * width * format.bytes();
    let tiles = OUTPUT_BYTES / tile_bytes;
    let make = || {
        let mut first = AlignedBuffer::zeroed(sums)?;
        let mut second = AlignedBuffer::zeroed(sums)?;
        first.values_mut().fill(1.5);
        second.values_mut().fill(0.5);
        Ok(State {
            first,
            second,
            staging: vec![0; Writer::staging_bytes(manner, format, ROWS, width)],
            output: vec![1; tiles * tile_bytes],
            tile: 0,
        })
    };
    bench.each(make, |state| {
        // Tiles lie side by side in the output, whose rows are as wide as all of them.
        let target = Target {
            start: advance(&mut state.tile, tiles) * width,
            stride: tiles * width,
            rows: ROWS,
            columns: width,
        };
        let sums = Sums {
            first: state.first.values(),
            second: dual.then_some(state.second.values()),
            places: match kind {
                Kind::Scale | Kind::Swiglu => Places::Rows { stride: width },
                Kind::Plain => Places::Blocks {
                    row_panels: ROWS.div_ceil(rows),
                    swapped: false,
                },
                Kind::Swapped => Places::Blocks {
                    row_panels: runs,
                    swapped: true,
                },
            },
        };
        let finish = if dual {
            Finish::Swiglu([0.5, 2.0])
        } else {
            Finish::Scale(0.5)
        };
        let writer = Writer::new(instructions, manner, format, &mut state.output);
        // SAFETY: the output is this state's alone.
        unsafe { writer.write(&sums, finish, &target, &mut state.staging) };
        ROWS as f64
    })
}

/// Seconds per value to store split sums, or to load and add them.
fn parts(bench: &Bench, add: bool) -> Result<f64, CalibrationError> {
    const SUMS: usize = 16 << 10;
    const PARTS: usize = PARTS_BYTES / size_of::<f32>() / SUMS;
    let make = || {
        let mut parts = AlignedBuffer::zeroed(PARTS * SUMS)?;
        parts.values_mut().fill(1.0);
        Ok((AlignedBuffer::zeroed(SUMS)?, parts, 0))
    };
    bench.each(make, |(sums, parts, next)| {
        let part = &mut parts.values_mut()[advance(next, PARTS) * SUMS..][..SUMS];
        if add {
            sums.values_mut()
                .iter_mut()
                .zip(part)
                .for_each(|(sum, part)| *sum += *part);
        } else {
            part.copy_from_slice(sums.values());
        }
        SUMS as f64
    })
}
