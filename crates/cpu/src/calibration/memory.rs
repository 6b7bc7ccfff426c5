//! Bandwidth of memory, of one thread and of all.

use gauntlet_executor::protocol::Parameter;

use super::CalibrationError;
use super::bench::{Bench, advance};
use crate::memory::AlignedBuffer;

/// Of all threads together.
const BYTES: usize = 512 << 20;

/// Read or written in one go.
const PIECE: usize = 256 << 10;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Parameter>, CalibrationError> {
    let threads = bench.pool.threads();
    let mut parameters = Vec::new();
    for (name, write) in [("memory.read", false), ("memory.write", true)] {
        parameters.push(Parameter {
            name: name.to_owned(),
            unit: "GB/s".to_owned(),
            value: threads as f64 / pass(bench, write)? / 1e9,
        });
    }
    Ok(parameters)
}

/// Seconds a byte of one thread while all of them read, or write.
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
            // Independent sums, so that adding does not hold reading up.
            let mut sums = [0.0_f32; 64];
            for chunk in piece.as_chunks::<64>().0 {
                sums.iter_mut().zip(chunk).for_each(|(sum, value)| *sum += value);
            }
            std::hint::black_box(sums);
        }
        PIECE as f64
    })
}
