//! How fast the register block of a GEMM is alone, with all its operands in the first-level cache: what a whole product
//! could reach if packing, writing and memory cost nothing.

use std::sync::{Barrier, Mutex};
use std::time::Instant;

use crate::memory::{AlignedBuffer, OutOfMemory};
use crate::pool::{Pool, lock};
use crate::simd::{Ahead, Blocks, Operand, Panels};

/// Steps of depth of a call: a multiple of all instruction sets' chunks, and few enough that a panel of each side fits
/// the first-level cache of any processor in use.
const DEPTH: usize = 2048;

/// Bytes of sums that calls cycle through: by the time they return to a block's sums, those lie in the second-level cache.
const SUMS_BYTES: usize = 128 << 10;

/// Calls in a slice of time, and slices: long enough to hide the clock's resolution, short enough that bursts of other
/// programs disturb few slices.
const CALLS: usize = 32;
const SLICE: f64 = 1e-3;
const SLICES: usize = 8;

/// See [`Engine::inner_loop_rate`](crate::Engine::inner_loop_rate).
pub(crate) fn rate(pool: &Pool, blocks: Blocks) -> Result<f64, OutOfMemory> {
    let barrier = Barrier::new(pool.threads());
    let rates = Mutex::new(Vec::with_capacity(pool.threads()));
    pool.run(&|_| {
        let operands = Operands::new(blocks);
        barrier.wait();
        let rate = operands.map(|mut operands| operands.rate(blocks));
        lock(&rates).push(rate);
    });
    let rates = lock(&rates);
    rates.iter().cloned().sum()
}

/// A panel of each side, and sums of several blocks.
struct Operands {
    rows: AlignedBuffer,
    columns: AlignedBuffer,
    sums: AlignedBuffer,
    next: usize,
}

impl Operands {
    fn new(blocks: Blocks) -> Result<Self, OutOfMemory> {
        let panel = |operand| blocks.panel_words(operand, blocks.chunks(DEPTH));
        let size = sums(blocks);
        let mut operands = Self {
            rows: AlignedBuffer::zeroed(panel(Operand::Rows))?,
            columns: AlignedBuffer::zeroed(panel(Operand::Columns))?,
            sums: AlignedBuffer::zeroed(SUMS_BYTES / size_of::<f32>() / size * size)?,
            next: 0,
        };
        // Untouched zeros share one physical page, which would stay in every cache. The same words are valid codes for
        // the blocks that multiply codes.
        operands.rows.values_mut().fill(0.5);
        operands.columns.values_mut().fill(0.25);
        operands.sums.values_mut().fill(1.0);
        Ok(operands)
    }

    /// Multiply-adds a second: the median slice, after one to warm up.
    fn rate(&mut self, blocks: Blocks) -> f64 {
        self.slice(blocks);
        let mut rates: Vec<f64> = (0..SLICES).map(|_| self.slice(blocks)).collect();
        rates.sort_by(f64::total_cmp);
        rates[(SLICES - 1) / 2]
    }

    fn slice(&mut self, blocks: Blocks) -> f64 {
        let start = Instant::now();
        let mut calls = 0;
        loop {
            (0..CALLS).for_each(|_| self.multiply(blocks));
            calls += CALLS;
            let seconds = start.elapsed().as_secs_f64();
            if seconds >= SLICE {
                return (calls * DEPTH * sums(blocks)) as f64 / seconds;
            }
        }
    }

    fn multiply(&mut self, blocks: Blocks) {
        let counts = [Operand::Rows, Operand::Columns].map(|operand| blocks.width(operand));
        let size = sums(blocks);
        let first = self.next;
        self.next = (first + size) % self.sums.values().len();
        let panels = Panels {
            chunks: blocks.chunks(DEPTH),
            counts,
            rows: self.rows.values(),
            apart: 0,
            columns: self.columns.values(),
            ahead: Ahead::NONE,
        };
        let sums = &mut self.sums.values_mut()[first..first + size];
        blocks.multiply(&panels, sums, [counts[1], 1], true);
    }
}

/// The number of sums of a register block.
fn sums(blocks: Blocks) -> usize {
    blocks.width(Operand::Rows) * blocks.width(Operand::Columns)
}

#[cfg(test)]
mod tests {
    use gauntlet_problems::TokenFormat;

    use super::*;
    use crate::simd::{Instructions, SimdPath};

    #[test]
    fn every_thread_adds_to_the_rate() {
        let pool = Pool::new(2, None).unwrap();
        let instructions = Instructions::detect(SimdPath::Portable).unwrap();
        let found = rate(&pool, instructions.blocks(usize::MAX, TokenFormat::Nvfp4)).unwrap();
        assert!(found.is_finite() && found > 0.0, "{found}");
    }
}
