//! Memory that knows what was allocated.

use crate::fault::Problem;

/// What unwritten bytes are: a NaN in all formats.
pub(crate) const UNWRITTEN: u8 = 0xFF;

/// Where the first allocation lies, and what lies between two: enough that an index that is too large hits nothing.
const FIRST: u64 = 1 << 32;
const GAP: u64 = 1 << 20;

/// Global memory of the device.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    allocations: Vec<(u64, Vec<u8>)>,
}

impl Memory {
    /// None allocated.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allocates memory with these contents; returns its address, a multiple of 256.
    pub fn allocate(&mut self, bytes: Vec<u8>) -> u64 {
        let address = match self.allocations.last() {
            Some((begin, last)) => (begin + last.len() as u64 + GAP).next_multiple_of(256),
            None => FIRST,
        };
        self.allocations.push((address, bytes));
        address
    }

    /// Allocates memory that nobody has written yet.
    pub fn allocate_unwritten(&mut self, bytes: usize) -> u64 {
        self.allocate(vec![UNWRITTEN; bytes])
    }

    /// The bytes of the allocation that begins at `address`, if there is one.
    pub fn contents(&self, address: u64) -> Option<&[u8]> {
        let (begin, bytes) = &self.allocations[self.index(address)?];
        (*begin == address).then_some(bytes)
    }

    pub(crate) fn read(&self, address: u64, count: usize) -> Result<&[u8], Problem> {
        let found = self.index(address).and_then(|index| {
            let (begin, bytes) = &self.allocations[index];
            bytes.get((address - begin) as usize..)?.get(..count)
        });
        found.ok_or_else(|| self.outside(address, count))
    }

    pub(crate) fn write(&mut self, address: u64, from: &[u8]) -> Result<(), Problem> {
        let found = self.index(address).and_then(|index| {
            let (begin, bytes) = &mut self.allocations[index];
            bytes
                .get_mut((address - *begin) as usize..)?
                .get_mut(..from.len())
        });
        match found {
            Some(to) => {
                to.copy_from_slice(from);
                Ok(())
            }
            None => Err(self.outside(address, from.len())),
        }
    }

    /// The last allocation that does not begin behind an address.
    fn index(&self, address: u64) -> Option<usize> {
        self.allocations
            .partition_point(|(begin, _)| *begin <= address)
            .checked_sub(1)
    }

    fn outside(&self, address: u64, count: usize) -> Problem {
        let near = self.index(address).map(|index| {
            let (begin, bytes) = &self.allocations[index];
            format!(
                ", {} bytes from the begin of {} bytes",
                address - begin,
                bytes.len()
            )
        });
        format!(
            "{count} bytes at {address:#x} of global memory are not allocated{}",
            near.unwrap_or_default()
        )
    }
}

/// A block's shared memory.
#[derive(Debug)]
pub(crate) struct Shared {
    bytes: Vec<u8>,
}

/// Where a block's shared memory begins; what lies below is the system's, as on a device. Addresses of the cluster's blocks have
/// the block's rank in the upper byte.
pub(crate) const SHARED_BEGIN: u32 = 1024;
pub(crate) const RANK_SHIFT: u32 = 24;

impl Shared {
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes: vec![UNWRITTEN; bytes],
        }
    }

    pub fn read(&self, address: u32, count: usize) -> Result<&[u8], Problem> {
        let begin = address.checked_sub(SHARED_BEGIN).map(|begin| begin as usize);
        let found = begin.and_then(|begin| self.bytes.get(begin..begin + count));
        found.ok_or_else(|| self.outside(address, count))
    }

    pub fn write(&mut self, address: u32, from: &[u8]) -> Result<(), Problem> {
        let begin = address.checked_sub(SHARED_BEGIN).map(|begin| begin as usize);
        match begin.and_then(|begin| self.bytes.get_mut(begin..begin + from.len())) {
            Some(to) => {
                to.copy_from_slice(from);
                Ok(())
            }
            None => Err(self.outside(address, from.len())),
        }
    }

    fn outside(&self, address: u32, count: usize) -> Problem {
        let (begin, end) = (SHARED_BEGIN, SHARED_BEGIN as usize + self.bytes.len());
        format!("{count} bytes at {address} of shared memory, which lies from {begin} to {end}")
    }
}

/// Whether an address is a multiple of the bytes accessed.
pub(crate) fn aligned(address: u64, to: usize) -> Result<(), Problem> {
    match address.is_multiple_of(to as u64) {
        true => Ok(()),
        false => Err(format!("address {address:#x} is no multiple of {to}")),
    }
}

/// The number that up to eight bytes make.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
