//! Packing NVFP4 into panels, by panel width and run length: with the codes in a cache, in memory, and in memory but
//! prefetched.

use std::time::Instant;

use gauntlet_nvfp4::{BLOCK, Nvfp4Tensor};
use gauntlet_problems::TokenFormat;

use super::bench::{Bench, Piece, advance};
use super::{CalibrationError, CalibrationFigure, cost};
use crate::memory::AlignedBuffer;
use crate::simd::{Operand, prefetch};

/// Lengths of runs along K: multiples of every instruction set's chunk.
const SHORT: usize = 256;
const LONG: usize = 2048;

/// Lengths of runs when the codes are in memory: from half a cache line per row and run to eight lines.
const FAR_DEPTHS: [usize; 3] = [64, 256, 1024];

/// MiB of codes that all threads together read before they return to the same codes.
const FAR_MIB: [usize; 3] = [4, 64, 512];

/// K of the codes: long enough that rows lie far apart in memory.
const WIDE: usize = 4096;

/// Bytes of panels to cycle through: a panel lies in the second-level cache when it is written again.
const PANEL_BYTES: usize = 128 << 10;

pub(super) fn measure(bench: &Bench) -> Result<Vec<CalibrationFigure>, CalibrationError> {
    let mut figures = Vec::new();
    let blocks = bench.instructions.blocks(usize::MAX, TokenFormat::Nvfp4);
    let width = |operand| blocks.width(operand);
    for (side, operand) in [("columns", Operand::Columns), ("rows", Operand::Rows)] {
        // A panel of `WIDE` codes fits every second-level cache.
        let seconds = |depth| {
            Ok::<_, CalibrationError>(pack(bench, operand, width(operand), depth, false)? * depth as f64)
        };
        let (short, long) = (seconds(SHORT)?, seconds(LONG)?);
        let (few, many) = (blocks.chunks(SHORT) as f64, blocks.chunks(LONG) as f64);
        let chunk = (long - short) / (many - few);
        figures.push(cost(format!("pack.{side}.chunk"), "chunk of a row", chunk));
        figures.push(cost(
            format!("pack.{side}.run"),
            "run of a row",
            short - few * chunk,
        ));
    }
    let operand = Operand::Columns;
    for depth in FAR_DEPTHS {
        let near = pack(bench, operand, width(operand), depth, false)?;
        for size in FAR_MIB {
            let share = (size << 20) / bench.pool.threads();
            let rows = (2 * share / WIDE).next_multiple_of(width(operand));
            for (manner, ahead) in [("far", false), ("ahead", true)] {
                let seconds = pack(bench, operand, rows, depth, ahead)?;
                let name = format!("pack.{manner}.{depth}.{size}MiB");
                figures.push(cost(name, "value", seconds - near));
            }
        }
    }
    Ok(figures)
}

/// Seconds per value, over the panels of `rows` rows.
fn pack(
    bench: &Bench,
    operand: Operand,
    rows: usize,
    depth: usize,
    ahead: bool,
) -> Result<f64, CalibrationError> {
    struct State {
        tensor: Nvfp4Tensor,
        panels: AlignedBuffer,
        work: Work,
        step: usize,
        panel: usize,
    }
    let blocks = bench.instructions.blocks(usize::MAX, TokenFormat::Nvfp4);
    let width = blocks.width(operand);
    let words = blocks.panel_words(operand, blocks.chunks(depth));
    let steps_in_row = WIDE / depth;
    let steps = steps_in_row * rows.div_ceil(width);
    let panels = (PANEL_BYTES / size_of::<f32>() / words).max(1);
    let make = || {
        // Codes of 1.0 and scales of 1.0, so that nothing is subnormal.
        let (packed, scales) = (vec![0x22; rows * WIDE / 2], vec![0x38; rows * WIDE / BLOCK]);
        Ok(State {
            tensor: Nvfp4Tensor::new(rows, WIDE, packed, scales, 1.0)?,
            panels: AlignedBuffer::zeroed(panels * words)?,
            work: Work::new(bench)?,
            step: 0,
            panel: 0,
        })
    };
    bench.pieces(make, |state| {
        let place = |step: usize| {
            let (panel, run) = (step / steps_in_row, step % steps_in_row);
            let lanes = panel * width..rows.min((panel + 1) * width);
            (lanes, run * depth..(run + 1) * depth)
        };
        let mut seconds = 0.0;
        if ahead {
            // Prefetch while the previous panel is multiplied, as a thread with several stages does.
            let start = Instant::now();
            let (lanes, run) = place(state.step);
            for row in lanes {
                let first = row * WIDE / 2;
                prefetch(&state.tensor.packed()[first + run.start / 2..first + run.end / 2]);
            }
            seconds += start.elapsed().as_secs_f64();
            state.work.multiply(bench);
        }
        let (lanes, run) = place(advance(&mut state.step, steps));
        let target = advance(&mut state.panel, panels) * words;
        let panel = &mut state.panels.values_mut()[target..target + words];
        let start = Instant::now();
        blocks.pack(operand, &state.tensor, lanes, run, panel);
        seconds += start.elapsed().as_secs_f64();
        Piece {
            units: (width * depth) as f64,
            seconds,
        }
    })
}

/// A product that runs while a prefetch is under way.
struct Work {
    rows: AlignedBuffer,
    columns: AlignedBuffer,
    sums: AlignedBuffer,
}

impl Work {
    const DEPTH: usize = 64;
    const CALLS: usize = 64;

    fn new(bench: &Bench) -> Result<Self, CalibrationError> {
        let (rows, columns) = (bench.instructions.rows(), bench.instructions.columns());
        Ok(Self {
            rows: AlignedBuffer::zeroed(Self::DEPTH * rows)?,
            columns: AlignedBuffer::zeroed(Self::DEPTH * columns)?,
            sums: AlignedBuffer::zeroed(rows * columns)?,
        })
    }

    fn multiply(&mut self, bench: &Bench) {
        for _ in 0..Self::CALLS {
            let (a, b) = (self.rows.values(), self.columns.values());
            bench
                .instructions
                .multiply(Self::DEPTH, a, b, self.sums.values_mut(), true);
        }
    }
}
