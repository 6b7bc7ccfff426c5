//! The bandwidth of memory while all threads read, or write.

use super::bench::{Bench, advance};
use super::{CalibrationError, CalibrationFigure};
use crate::memory::AlignedBuffer;

/// The size of the buffers of all threads together: larger than any cache.
const BYTES: usize = 512 << 20;

/// Bytes that are read or written between two readings of the clock.
const PIECE: usize = 256 << 10;

pub(super) fn measure(bench: &Bench) -> Result<Vec<CalibrationFigure>, CalibrationError> {
    let threads = bench.pool.threads();
    let mut figures = Vec::new();
    for (name, write) in [("memory.read", false), ("memory.write", true)] {
        figures.push(CalibrationFigure {
            name: name.to_owned(),
            unit: "GB/s".to_owned(),
            value: threads as f64 / pass(bench, write)? / 1e9,
        });
    }
    Ok(figures)
}

/// Seconds per byte of one thread while all threads read, or write.
fn pass(bench: &Bench, write: bool) -> Result<f64, CalibrationError> {
    let pieces = BYTES / bench.pool.threads() / PIECE;
    let values = PIECE / size_of::<f32>();
    let make = || {
        let mut buffer = AlignedBuffer::zeroed(pieces * values)?;
        buffer.values_mut().fill(1.0);
        Ok((buffer, 0))
    };
    bench.each(make, |(buffer, next)| {
        let piece = &mut buffer.values_mut()[advance(next, pieces) * values..][..values];
        if write {
            piece.fill(std::hint::black_box(2.0));
        } else {
            // Many independent sums: one chain of additions would be slower than memory.
            let mut sums = [0.0_f32; 64];
            for chunk in piece.as_chunks::<64>().0 {
                sums.iter_mut().zip(chunk).for_each(|(sum, value)| *sum += value);
            }
            std::hint::black_box(sums);
        }
        PIECE as f64
    })
}
