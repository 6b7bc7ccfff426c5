//! How primitives are timed.

use std::sync::{Barrier, Mutex};
use std::time::Instant;

use super::CalibrationError;
use crate::pool::{Pool, lock};
use crate::simd::Instructions;

/// Long enough to hide the clock's resolution, short enough that bursts of other programs disturb few slices.
const SLICE: f64 = 1e-3;

/// The number of slices per figure.
const QUICK_SLICES: usize = 8;
const SLICES: usize = 24;

/// Times primitives on all threads at the same time.
pub(super) struct Bench<'p> {
    pub pool: &'p Pool,
    pub instructions: Instructions,
    pub slices: usize,
}

/// The result of one piece of work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// The amount of work done.
    pub units: f64,
    /// Its duration.
    pub seconds: f64,
}

impl<'p> Bench<'p> {
    pub fn new(pool: &'p Pool, instructions: Instructions, quick: bool) -> Self {
        Self {
            pool,
            instructions,
            slices: if quick { QUICK_SLICES } else { SLICES },
        }
    }

    /// Seconds per unit of `work`, which returns the number of units it did: the mean over threads, each with its own
    /// state.
    pub fn each<S>(
        &self,
        make: impl Fn() -> Result<S, CalibrationError> + Sync,
        work: impl Fn(&mut S) -> f64 + Sync,
    ) -> Result<f64, CalibrationError> {
        self.pieces(make, |state| {
            let start = Instant::now();
            let units = work(state);
            Piece {
                units,
                seconds: start.elapsed().as_secs_f64(),
            }
        })
    }

    /// As [`each`](Self::each), where the work times itself because only part of it counts.
    pub fn pieces<S>(
        &self,
        make: impl Fn() -> Result<S, CalibrationError> + Sync,
        work: impl Fn(&mut S) -> Piece + Sync,
    ) -> Result<f64, CalibrationError> {
        let threads = self.pool.threads();
        let barrier = Barrier::new(threads);
        let costs = Mutex::new(Vec::with_capacity(threads));
        self.pool.run(&|_| {
            let mut state = make();
            barrier.wait();
            let cost = state.as_mut().map_err(|error| error.clone()).map(|state| {
                work(state);
                median((0..self.slices).map(|_| slice(state, &work)).collect())
            });
            lock(&costs).push(cost);
        });
        let sum: f64 = lock(&costs).iter().cloned().sum::<Result<_, _>>()?;
        Ok(sum / threads as f64)
    }

    /// Seconds per call of `work`, which times itself and runs on the caller's thread alone.
    pub fn caller(
        &self,
        mut work: impl FnMut() -> Result<f64, CalibrationError>,
    ) -> Result<f64, CalibrationError> {
        work()?;
        // Single events vary more than slices full of work, so more are measured.
        (0..4 * self.slices)
            .map(|_| work())
            .collect::<Result<_, _>>()
            .map(median)
    }
}

/// Seconds per unit over one slice.
fn slice<S>(state: &mut S, work: &impl Fn(&mut S) -> Piece) -> f64 {
    let (mut units, mut seconds) = (0.0, 0.0);
    while seconds < SLICE {
        let piece = work(state);
        units += piece.units;
        seconds += piece.seconds;
    }
    seconds / units
}

/// The median, because the predicted times are medians of calls.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

/// The next of `count` places in a ring.
pub(super) fn advance(place: &mut usize, count: usize) -> usize {
    let now = *place;
    *place = (now + 1) % count;
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::SimdPath;

    #[test]
    fn the_cost_of_a_unit_is_that_of_the_middle_slice() {
        assert_eq!(median(vec![9.0, 1.0, 2.0, 8.0, 3.0, 7.0]), 3.0);
        let pool = Pool::new(2, None).unwrap();
        let bench = Bench::new(&pool, Instructions::detect(SimdPath::Portable).unwrap(), true);
        let cost = bench.pieces(
            || Ok(0_u32),
            |calls| {
                *calls += 1;
                // Every third slice is disturbed.
                let seconds = if *calls % 3 == 0 { 1.0 } else { 0.25 };
                Piece { units: 2.0, seconds }
            },
        );
        assert_eq!(cost.unwrap(), 0.125);
    }
}
