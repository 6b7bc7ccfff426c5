//! Memory that checks accesses against allocations.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;

use crate::fault::Problem;
use crate::module::Global;
use crate::watch::Place;

/// The value of unwritten bytes: a NaN in all formats.
pub(crate) const UNWRITTEN: u8 = 0xFF;

/// The address of the first allocation, and the gap between two: large enough that an out-of-bounds index hits nothing.
const FIRST: u64 = 1 << 32;
const GAP: u64 = 1 << 20;

/// Variables of modules lie here, above all allocations.
pub(crate) const VARIABLES: u64 = 0x4000_0000_0000_0000;

/// A thread's own memory begins here, for addresses of any kind.
pub(crate) const LOCAL: u64 = 0x5000_0000_0000_0000;

/// Global memory of the device.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    allocations: Vec<(u64, Vec<u8>)>,
    /// Allocations that nothing has written since they were made.
    unwritten: Vec<usize>,
    /// Names by address.
    names: HashMap<u64, String>,
    pub(crate) trace: Trace,
}

/// What has been accessed while it was listened to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    listens: Cell<bool>,
    touches: RefCell<Vec<Touch>>,
}

/// An access to bytes of one memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touch {
    pub address: u64,
    pub count: usize,
    pub writes: bool,
}

impl Trace {
    pub fn listen(&self) {
        self.listens.set(true);
    }

    /// What was accessed since `listen`.
    pub fn take(&self) -> Vec<Touch> {
        self.listens.set(false);
        self.touches.take()
    }

    #[inline]
    fn note(&self, address: u64, count: usize, writes: bool) {
        if self.listens.get() {
            let touch = Touch {
                address,
                count,
                writes,
            };
            self.touches.borrow_mut().push(touch);
        }
    }
}

impl Memory {
    /// Memory without allocations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allocates memory with these contents; returns its address, a multiple of 256.
    pub fn allocate(&mut self, bytes: Vec<u8>) -> u64 {
        let count = self.allocations.partition_point(|(begin, _)| *begin < VARIABLES);
        let address = match self.allocations[..count].last() {
            Some((begin, last)) => (begin + last.len() as u64 + GAP).next_multiple_of(256),
            None => FIRST,
        };
        self.allocations.insert(count, (address, bytes));
        address
    }

    /// Makes a variable of a module with its first value, unless it is there already.
    pub(crate) fn define(&mut self, Global { name, address, bytes }: &Global) {
        let address = *address;
        self.call(address, name);
        let place = self.allocations.partition_point(|(begin, _)| *begin < address);
        if self
            .allocations
            .get(place)
            .is_none_or(|(begin, _)| *begin != address)
        {
            self.allocations.insert(place, (address, bytes.to_vec()));
        }
    }

    /// Names an allocation in messages.
    pub fn call(&mut self, address: u64, name: &str) {
        self.names.insert(address, name.to_owned());
    }

    /// Allocates memory filled with `UNWRITTEN` bytes.
    pub fn allocate_unwritten(&mut self, bytes: usize) -> u64 {
        self.allocate_poisoned(vec![UNWRITTEN; bytes])
    }

    /// Allocates memory whose contents nobody may use: [`watch`](crate::watch) refuses to read them before they are written.
    pub fn allocate_poisoned(&mut self, bytes: Vec<u8>) -> u64 {
        let address = self.allocate(bytes);
        self.unwritten.extend(self.index(address));
        address
    }

    /// Forgets what was unwritten before a run.
    pub(crate) fn end_run(&mut self) {
        self.unwritten.clear();
    }

    /// The place of an address.
    pub(crate) fn place(&self, address: u64) -> Option<Place> {
        let index = self.index(address)?;
        let (begin, bytes) = &self.allocations[index];
        Some(Place::Global {
            index,
            offset: (address - begin) as usize,
            size: bytes.len(),
            is_unwritten: self.unwritten.contains(&index),
        })
    }

    /// The name of an allocation.
    pub(crate) fn name(&self, index: usize) -> String {
        let (address, _) = &self.allocations[index];
        match self.names.get(address) {
            Some(name) => format!("`{name}`"),
            None => format!("the allocation at {address:#x}"),
        }
    }

    /// The bytes of the allocation that begins at `address`, if there is one.
    pub fn contents(&self, address: u64) -> Option<&[u8]> {
        let (begin, bytes) = &self.allocations[self.index(address)?];
        (*begin == address).then_some(bytes)
    }

    /// The same, to be changed between runs.
    pub fn contents_mut(&mut self, address: u64) -> Option<&mut [u8]> {
        let index = self.index(address)?;
        self.unwritten.retain(|one| *one != index);
        let (begin, bytes) = &mut self.allocations[index];
        (*begin == address).then_some(bytes)
    }

    pub(crate) fn read(&self, address: u64, count: usize) -> Result<&[u8], Problem> {
        let found = self.index(address).and_then(|index| {
            let (begin, bytes) = &self.allocations[index];
            bytes.get((address - begin) as usize..)?.get(..count)
        });
        let found = found.ok_or_else(|| self.outside(address, count))?;
        self.trace.note(address, count, false);
        Ok(found)
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
                self.trace.note(address, from.len(), true);
                Ok(())
            }
            None => Err(self.outside(address, from.len())),
        }
    }

    /// The last allocation that begins at or before an address.
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

/// A block's shared memory. Threads access it through another proxy than the copy engine and the matrix unit (PTX ISA,
/// "Proxies"): these need not see a thread's stores before that thread has executed a fence.
#[derive(Debug)]
pub(crate) struct Shared {
    bytes: Vec<u8>,
    /// For each piece, the thread that stored there and has not executed a fence since.
    stored: Vec<Option<u32>>,
    /// The pieces of each such thread.
    pieces: HashMap<u32, Vec<usize>>,
    pub trace: Trace,
}

/// The granularity, in bytes, at which unfenced stores are tracked.
const PIECE: usize = 16;

/// Where a block's shared memory begins; lower addresses are the system's, as on a device. Addresses within a cluster
/// have the block's rank in the upper byte.
pub(crate) const SHARED_BEGIN: u32 = 1024;
pub(crate) const RANK_SHIFT: u32 = 24;

/// The address within its block, and the rank of the block, of an address of a cluster's shared memory.
pub(crate) fn local(address: u32) -> (u32, u32) {
    (address & ((1 << RANK_SHIFT) - 1), address >> RANK_SHIFT)
}

/// The ranks of the blocks in the mask of a multicast.
pub(crate) fn ranks(mask: u64) -> impl Iterator<Item = u32> {
    (0..u16::BITS).filter(move |rank| mask >> rank & 1 == 1)
}

/// Generic addresses of shared memory begin here, where there is no global memory.
pub(crate) const SHARED_WINDOW: u64 = 0x6000_0000_0000_0000;

impl Shared {
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes: vec![UNWRITTEN; bytes],
            stored: vec![None; bytes.div_ceil(PIECE)],
            pieces: HashMap::new(),
            trace: Trace::default(),
        }
    }

    /// Its bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Reads as a thread.
    pub fn read(&self, address: u32, count: usize) -> Result<&[u8], Problem> {
        let begin = address.checked_sub(SHARED_BEGIN).map(|begin| begin as usize);
        let found = begin.and_then(|begin| self.bytes.get(begin..begin + count));
        let found = found.ok_or_else(|| self.outside(address, count))?;
        self.trace.note(address.into(), count, false);
        Ok(found)
    }

    /// Reads as the copy engine and the matrix unit do.
    pub fn read_async(&self, address: u32, count: usize) -> Result<&[u8], Problem> {
        let read = self.read(address, count)?;
        self.check_fences(address, count, "read").map(|()| read)
    }

    /// Stores as a thread.
    pub fn write(&mut self, thread: u32, address: u32, from: &[u8]) -> Result<(), Problem> {
        self.put(address, from)?;
        for piece in pieces(address, from.len()) {
            if self.stored[piece] != Some(thread) {
                self.stored[piece] = Some(thread);
                self.pieces.entry(thread).or_default().push(piece);
            }
        }
        Ok(())
    }

    /// Stores as the copy engine does.
    pub fn write_async(&mut self, address: u32, from: &[u8]) -> Result<(), Problem> {
        self.put(address, from)?;
        self.check_fences(address, from.len(), "written")
    }

    /// Makes a thread's stores visible to the copy engine and the matrix unit.
    pub fn fence(&mut self, thread: u32) {
        for piece in self.pieces.remove(&thread).unwrap_or_default() {
            if self.stored[piece] == Some(thread) {
                self.stored[piece] = None;
            }
        }
    }

    fn check_fences(&self, address: u32, count: usize, what: &str) -> Result<(), Problem> {
        let unfenced = pieces(address, count).find_map(|piece| self.stored[piece]);
        match unfenced {
            None => Ok(()),
            Some(thread) => Err(format!(
                "{count} bytes at {address} of shared memory are {what} by the copy engine or the matrix unit, and thread {thread} has \
                 stored there without a fence since (fence.proxy.async)"
            )),
        }
    }

    fn put(&mut self, address: u32, from: &[u8]) -> Result<(), Problem> {
        let begin = address.checked_sub(SHARED_BEGIN).map(|begin| begin as usize);
        match begin.and_then(|begin| self.bytes.get_mut(begin..begin + from.len())) {
            Some(to) => {
                to.copy_from_slice(from);
                self.trace.note(address.into(), from.len(), true);
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

/// The pieces that a range of bytes overlaps.
fn pieces(address: u32, count: usize) -> Range<usize> {
    let begin = (address - SHARED_BEGIN) as usize;
    begin / PIECE..(begin + count).div_ceil(PIECE)
}

/// Checks that an address is a multiple of the access size.
pub(crate) fn aligned(address: u64, to: usize) -> Result<(), Problem> {
    match address.is_multiple_of(to as u64) {
        true => Ok(()),
        false => Err(format!("address {address:#x} is no multiple of {to}")),
    }
}

/// The little-endian number in up to eight bytes.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_allocated_is_not_there() {
        let mut memory = Memory::new();
        let first = memory.allocate(vec![1, 2, 3]);
        let second = memory.allocate_unwritten(300);
        assert_eq!(memory.read(first + 1, 2).unwrap(), [2, 3]);
        assert!(
            memory
                .read(first + 1, 3)
                .unwrap_err()
                .contains("1 bytes from the begin of 3 bytes")
        );
        assert!(memory.write(second + 299, &[0, 0]).is_err());
        assert_eq!(
            (memory.contents(second).unwrap()[0], memory.contents(second + 1)),
            (UNWRITTEN, None)
        );
    }

    #[test]
    fn a_fence_is_the_thread_s_own() {
        let mut shared = Shared::new(64);
        shared.write(5, SHARED_BEGIN + 20, &[1; 4]).unwrap();
        assert_eq!(shared.read(SHARED_BEGIN + 20, 4).unwrap(), [1; 4]);
        assert!(shared.read_async(SHARED_BEGIN, 16).is_ok());
        shared.fence(4);
        assert!(
            shared
                .read_async(SHARED_BEGIN, 32)
                .unwrap_err()
                .contains("thread 5")
        );
        shared.fence(5);
        assert!(shared.read_async(SHARED_BEGIN, 32).is_ok());
        shared.write(5, SHARED_BEGIN, &[1; 4]).unwrap();
        assert!(
            shared
                .write_async(SHARED_BEGIN, &[0; 16])
                .unwrap_err()
                .contains("written")
        );
    }
}
