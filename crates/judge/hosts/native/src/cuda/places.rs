//! Where the tensors of calls lie on a GPU.
//!
//! How fast a kernel is depends on the pages that its tensors lie in. On an H200 a softmax of 16 MiB that took 13.5 µs differed by
//! 1.7 % between allocations with gaps of 2 to 512 MiB, and by 0.7 % between allocations without gaps, which are more alike;
//! streams, modules, events and the memory that evicts the cache made no difference (`results/h200/places/2026-11-29.json`). So
//! calls have their tensors in many places, far apart, and a process shows what the kernel takes over all of them rather than
//! in one.

use std::ops::Range;

use gauntlet_cuda::driver::{Context, DeviceMemory, DriverError, Stream};
use gauntlet_tensors::Tensor;
use rand::{RngExt, rng};

use crate::operands::Operands;
use crate::service::Addresses;

/// Alignment of tensors, that of the driver's allocations.
const ALIGNMENT: usize = 256;

/// A tensor begins in turn at each of this many offsets of its allocation.
pub(super) const SHIFTS: usize = 64;

/// Most allocations of a tensor; a power of two, as every number of them is.
const MAX_PLACES: usize = 32;

/// Allocations beyond the second, and operands that are kept on the GPU, take up at most this share of its memory each: several
/// workers hold theirs at a time.
const SHARE_OF_MEMORY: usize = 128;

/// The gaps between allocations are about this share of the GPU's free memory together. They are free again when all are made.
const SHARE_OF_GAPS: usize = 32;

/// The allocations of the tensors of a case, used in turn.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// By tensor: inputs first. All have as many, at least two.
    tensors: Vec<Vec<DeviceMemory>>,
}

impl Places {
    /// Allocates memory for tensors of these lengths, unless that of the last case serves. Otherwise `free` is called first: it
    /// frees what belonged to that memory.
    ///
    /// # Errors
    /// If there is too little memory.
    pub fn allocate(
        &mut self,
        context: &Context,
        lengths: impl Iterator<Item = usize>,
        free: impl FnOnce(),
    ) -> Result<(), DriverError> {
        let bytes: Vec<usize> = lengths.map(|length| length.max(1) + SHIFTS * ALIGNMENT).collect();
        let has = self.tensors.iter().map(|places| places[0].bytes());
        if has.eq(bytes.iter().copied()) {
            return Ok(());
        }
        free();
        // The old memory is freed first: old and new together might not fit.
        self.tensors.clear();
        let places = number_of_places(bytes.iter().sum(), share(context));
        let made = allocated(context, &bytes, places, true);
        // Where gaps leave no room for the tensors, two places without them may find it.
        self.tensors = made.or_else(|_| allocated(context, &bytes, 2, false))?;
        Ok(())
    }

    /// How many tensors there are.
    pub fn tensors(&self) -> usize {
        self.tensors.len()
    }

    /// Where a tensor of the call with this number begins in its allocation. The step is odd, so every offset is used.
    fn shift(number: usize, tensor: usize) -> usize {
        (number * 37 + tensor * 11) % SHIFTS * ALIGNMENT
    }

    /// Where tensors of the call with this number lie: an allocation, and an offset in it. Calls whose numbers differ by an odd
    /// number have no allocation in common.
    pub fn of(&self, number: usize, tensors: Range<usize>) -> impl Iterator<Item = (&DeviceMemory, usize)> {
        tensors.map(move |tensor| {
            let places = &self.tensors[tensor];
            (&places[number % places.len()], Self::shift(number, tensor))
        })
    }

    /// The addresses of that call's tensors, of which the first `inputs` are inputs.
    pub fn addresses(&self, number: usize, inputs: usize) -> Addresses {
        let of = |tensors| {
            let places = self.of(number, tensors);
            places
                .map(|(memory, begin)| memory.address() + begin as u64)
                .collect()
        };
        Addresses {
            inputs: of(0..inputs),
            outputs: of(inputs..self.tensors.len()),
        }
    }

    /// Fills the memory of that call with a byte, from a tensor on, so that nothing stays of what lay there.
    ///
    /// # Errors
    /// If the driver reports an error.
    pub fn fill(&self, number: usize, first: usize, byte: u8, stream: &Stream) -> Result<(), DriverError> {
        for (memory, _) in self.of(number, first..self.tensors.len()) {
            memory.fill(byte, stream)?;
        }
        // Copies from the host do not wait for the stream.
        stream.synchronise()
    }
}

/// As many places for tensors of each of these lengths, with gaps of random lengths between them or without.
fn allocated(
    context: &Context,
    bytes: &[usize],
    places: usize,
    apart: bool,
) -> Result<Vec<Vec<DeviceMemory>>, DriverError> {
    let (free, _) = context.memory()?;
    let gap = free / SHARE_OF_GAPS / (places * bytes.len()).max(1);
    let mut gaps = Vec::new();
    let mut tensors: Vec<Vec<DeviceMemory>> = bytes.iter().map(|_| Vec::with_capacity(places)).collect();
    for _ in 0..places {
        for (bytes, tensor) in bytes.iter().zip(&mut tensors) {
            tensor.push(DeviceMemory::new(context, *bytes)?);
            if apart {
                // Where there is no memory for a gap, there is none.
                gaps.extend(DeviceMemory::new(context, rng().random_range(0..=2 * gap)).ok());
            }
        }
    }
    Ok(tensors)
}

/// Operands that were brought to a GPU once, for calls of a kernel that is trusted: over the bus 16 MiB take two milliseconds,
/// on the GPU ten microseconds. No kernel is given their addresses.
#[derive(Debug, Default)]
pub(super) struct Brought {
    /// The number of the load that they belong to.
    load: usize,
    /// By file, as far as they were needed.
    files: Vec<Option<Vec<DeviceMemory>>>,
}

impl Brought {
    /// The inputs of a copy; none if all files of the load would take too much memory.
    ///
    /// # Errors
    /// If there is no memory for them, or a copy fails.
    pub fn get(
        &mut self,
        context: &Context,
        (operands, load): (&Operands, usize),
        copy: usize,
    ) -> Result<Option<&[DeviceMemory]>, DriverError> {
        if operands.files().saturating_mul(operands.bytes()) > share(context) {
            self.files.clear();
            return Ok(None);
        }
        if self.load != load || self.files.len() != operands.files() {
            self.files.clear();
            self.files.resize_with(operands.files(), || None);
            self.load = load;
        }
        let file = &mut self.files[operands.file(copy)];
        if file.is_none() {
            let inputs = operands.copy(copy).iter();
            let bring = |tensor: &Tensor| DeviceMemory::from_bytes(context, &tensor.bytes);
            *file = Some(inputs.map(bring).collect::<Result<_, _>>()?);
        }
        Ok(file.as_deref())
    }
}

/// The bytes that belong to one of the purposes.
fn share(context: &Context) -> usize {
    context.device().memory_bytes / SHARE_OF_MEMORY
}

/// How many allocations each tensor gets if one of each takes this many bytes.
fn number_of_places(bytes: usize, share: usize) -> usize {
    let fit = (share / bytes.max(1)).clamp(2, MAX_PLACES);
    // A power of two: the largest that is no larger.
    1 << fit.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_tensors_have_two_places_and_small_ones_many() {
        let share = 1 << 30;
        assert_eq!(number_of_places(0, share), 32);
        assert_eq!(number_of_places(32 << 20, share), 32);
        assert_eq!(number_of_places(80 << 20, share), 8);
        assert_eq!(number_of_places(300 << 20, share), 2);
        assert_eq!(number_of_places(10 << 30, share), 2);
    }

    #[test]
    fn every_offset_of_a_tensor_is_used() {
        let mut offsets: Vec<usize> = (0..SHIFTS).map(|number| Places::shift(number, 1)).collect();
        offsets.sort_unstable();
        let all: Vec<usize> = (0..SHIFTS).map(|offset| offset * ALIGNMENT).collect();
        assert_eq!(offsets, all);
    }
}
