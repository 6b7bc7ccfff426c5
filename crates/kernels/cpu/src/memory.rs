//! Buffers of the workspace, and slices that several threads write in disjoint parts.

use std::marker::PhantomData;
use std::ops::Range;

use gauntlet_device::available_bytes;
use gauntlet_problems::{Operation, Output};
use thiserror::Error;

use crate::error::RunError;

/// The size of a cache line, and of the widest vector.
const ALIGNMENT: usize = 64;

/// The workspace that a schedule needs does not fit into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the workspace needs a buffer of {bytes} bytes, which cannot be allocated; use a smaller tile, fewer stages or a smaller split-k"
)]
pub struct OutOfMemory {
    /// The size of the buffer that could not be allocated; `usize::MAX` stands for more than can be addressed.
    pub bytes: usize,
}

/// Results up to this size are not compared with the free memory, which takes longer than the smallest calls.
const SMALL_RESULT: usize = 64 << 20;

/// A result to be computed, in which every element is NaN.
///
/// # Errors
/// If there is no memory for it.
pub fn output_for(problem: &Operation) -> Result<Output, RunError> {
    let bytes = problem.output_bytes();
    let refused = RunError::Result { bytes };
    if bytes > SMALL_RESULT && bytes > available_bytes() {
        return Err(refused);
    }
    Output::try_poisoned(problem).map_err(|_| refused)
}

/// f32 values, aligned to a cache line and initialised to zero.
#[derive(Debug)]
pub(crate) struct AlignedBuffer {
    storage: Vec<f32>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    /// Bytes of memory that a buffer of `length` values takes up.
    pub fn bytes(length: usize) -> usize {
        let values = length.saturating_mul(size_of::<f32>());
        values.saturating_add(ALIGNMENT + size_of::<Self>())
    }

    /// A buffer of `length` zeros.
    pub fn zeroed(length: usize) -> Result<Self, OutOfMemory> {
        let slack = ALIGNMENT / size_of::<f32>();
        let bytes = length.saturating_mul(size_of::<f32>());
        let mut storage = Vec::new();
        storage
            .try_reserve_exact(length.saturating_add(slack))
            .map_err(|_| OutOfMemory { bytes })?;
        storage.resize(length + slack, 0.0);
        // `align_offset` may return `usize::MAX`, but does so only in constant evaluation.
        let start = storage.as_ptr().align_offset(ALIGNMENT).min(slack);
        Ok(Self {
            storage,
            start,
            length,
        })
    }

    /// The values.
    pub fn values(&self) -> &[f32] {
        &self.storage[self.start..self.start + self.length]
    }

    /// The values.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.storage[self.start..self.start + self.length]
    }
}

/// A slice that several threads write at the same time, each its own part.
///
/// A tile of a row-major matrix consists of a piece of each of its rows; the safe methods that split a slice cannot
/// express such a part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disjoint<'a, T> {
    start: *mut T,
    length: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: access goes through `part` and `part_mut`, whose callers promise that no element is written by one thread
// while another uses it. Two threads may read the same element through two copies, so `T: Sync` is needed too.
unsafe impl<T: Send + Sync> Send for Disjoint<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Disjoint<'_, T> {}

impl<'a, T> Disjoint<'a, T> {
    pub fn new(slice: &'a mut [T]) -> Self {
        Self {
            start: slice.as_mut_ptr(),
            length: slice.len(),
            slice: PhantomData,
        }
    }

    /// The elements of `range` to read.
    ///
    /// # Safety
    ///
    /// While the result is in use, no overlapping part is written.
    pub unsafe fn part(&self, range: Range<usize>) -> &'a [T] {
        assert!(range.start <= range.end && range.end <= self.length);
        // SAFETY: the range is within the slice, and the caller promises that it is not written meanwhile.
        unsafe { std::slice::from_raw_parts(self.start.add(range.start), range.len()) }
    }

    /// The elements of `range` to write.
    ///
    /// # Safety
    ///
    /// While the result is in use, no overlapping part is used.
    pub unsafe fn part_mut(&self, range: Range<usize>) -> &'a mut [T] {
        assert!(range.start <= range.end && range.end <= self.length);
        // SAFETY: the range is within the slice, and the caller promises that it is not used elsewhere meanwhile.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_problems::{Form, GroupedGemm};

    use super::*;

    #[test]
    fn buffers_start_at_a_cache_line() {
        for length in [0, 1, 15, 16, 1000] {
            let mut buffer = AlignedBuffer::zeroed(length).unwrap();
            assert_eq!(buffer.values().len(), length);
            assert_eq!(buffer.values_mut().as_ptr().align_offset(ALIGNMENT), 0);
            assert!(buffer.values().iter().all(|value| *value == 0.0));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the system")]
    fn results_without_memory_are_refused() {
        let problem = |m, n| Operation::GroupedGemm(GroupedGemm::new(Form::Plain, [[m, n, 16]]));
        assert_eq!(
            output_for(&problem(3, 5)).unwrap(),
            Output::poisoned(&problem(3, 5))
        );
        // More than there is, and more than can be addressed.
        for rows in [1 << 46, 1 << 54] {
            let bytes = rows * 2;
            assert_eq!(
                output_for(&problem(rows, 1)).unwrap_err(),
                RunError::Result { bytes }
            );
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert_eq!(
            AlignedBuffer::zeroed(usize::MAX).unwrap_err(),
            OutOfMemory { bytes: usize::MAX }
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the system")]
    fn some_memory_is_available_and_not_all_there_could_be() {
        let available = available_bytes();
        assert!((1 << 20..1 << 50).contains(&available), "{available}");
    }

    #[test]
    fn threads_write_disjoint_parts() {
        let mut values = vec![0_usize; 1000];
        let shared = Disjoint::new(&mut values);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for row in 0..10 {
                        let first = row * 100 + thread * 25;
                        // SAFETY: 25 columns of each row belong to this thread alone.
                        unsafe { shared.part_mut(first..first + 25) }.fill(thread + 1);
                    }
                });
            }
        });
        assert!(
            values
                .iter()
                .enumerate()
                .all(|(index, value)| *value == index % 100 / 25 + 1)
        );
    }

    #[test]
    #[should_panic(expected = "range.end <= self.length")]
    fn parts_outside_are_refused() {
        let mut values = [0_u8; 4];
        // SAFETY: nothing else uses the slice.
        unsafe { Disjoint::new(&mut values).part(2..5) };
    }
}
