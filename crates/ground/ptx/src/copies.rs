//! Asynchronous copies, which land some time after they are requested.

use crate::block::Block;
use crate::fault::Problem;
use crate::memory::{Memory, aligned};
use crate::tensor_map::TensorMap;
use crate::watch::Asked;

/// The source and destination of a copy.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    /// Padded with zeros.
    ToShared {
        to: u32,
        from: u64,
        bytes: usize,
        given: usize,
    },
    Box {
        to: u32,
        map: TensorMap,
        /// The address from which the copy engine reads the map, until the copy has landed.
        read_at: u64,
        at: Vec<i32>,
    },
    Bytes {
        to: u32,
        bytes: Vec<u8>,
    },
    ToGlobal {
        to: u64,
        from: u32,
        bytes: usize,
    },
    BoxToGlobal {
        from: u32,
        map: TensorMap,
        /// As of a box.
        read_at: u64,
        at: Vec<i32>,
    },
}

/// A copy that a thread has requested.
#[derive(Debug)]
pub(crate) struct Copy {
    /// The time from which it may land.
    pub due: u64,
    /// The block whose shared memory it uses, as an index among the blocks that run.
    pub block: usize,
    /// In a box, so that the list of all copies, which is searched often, is short.
    pub way: Box<Way>,
    pub awaited: Awaited,
    /// Who asked for it and what it may rely on, if accesses are watched.
    pub asked: Option<Box<Asked>>,
}

/// How threads wait for a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Awaited {
    /// At the barrier at this address of a block, given as an index among the blocks that run: it counts the copy's bytes.
    Barrier { block: usize, address: u32 },
    /// In a group of the thread that requested the copy.
    Group { thread: usize, kind: Kind, number: u64 },
}

/// The kinds of copy groups of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    OfThread,
    ToGlobal,
}

impl Copy {
    /// The address of the tensor map that it reads, if it does.
    pub fn map(&self) -> Option<u64> {
        match *self.way {
            Way::Box { read_at, .. } | Way::BoxToGlobal { read_at, .. } => Some(read_at),
            Way::ToShared { .. } | Way::Bytes { .. } | Way::ToGlobal { .. } => None,
        }
    }

    /// Carries out the copy.
    pub fn land(&self, memory: &mut Memory, blocks: &mut [Block]) -> Result<(), Problem> {
        let block = &mut blocks[self.block];
        let count = match self.way.as_ref() {
            Way::ToShared {
                to,
                from,
                bytes,
                given,
            } => {
                // Of a copy of nothing, which fills with zeros, the address may be any.
                let mut copied = match given {
                    0 => Vec::new(),
                    given => memory.read(*from, *given)?.to_vec(),
                };
                copied.resize(*bytes, 0);
                match self.awaited {
                    Awaited::Group { thread, .. } => block.shared.write(thread as u32, *to, &copied)?,
                    Awaited::Barrier { .. } => block.shared.write_async(*to, &copied)?,
                }
                *bytes
            }
            Way::Bytes { to, bytes } => {
                block.shared.write_async(*to, bytes)?;
                bytes.len()
            }
            Way::Box { to, map, at, .. } => {
                aligned(u64::from(*to), 128)?;
                let bytes = map.fetch(memory, at)?;
                for (index, piece) in bytes.chunks(16).enumerate() {
                    block
                        .shared
                        .write_async(map.swizzle.place(to + 16 * index as u32), piece)?;
                }
                bytes.len()
            }
            Way::ToGlobal { to, from, bytes } => {
                memory.write(*to, block.shared.read_async(*from, *bytes)?)?;
                *bytes
            }
            Way::BoxToGlobal { from, map, at, .. } => {
                aligned(u64::from(*from), 128)?;
                let mut bytes = Vec::with_capacity(map.box_bytes());
                for piece in (0..map.box_bytes() as u32).step_by(16) {
                    let place = map.swizzle.place(from + piece);
                    bytes.extend_from_slice(block.shared.read_async(place, 16)?);
                }
                map.store(memory, at, &bytes)?;
                map.box_bytes()
            }
        };
        match self.awaited {
            Awaited::Barrier { block, address } => blocks[block].complete(address, count),
            Awaited::Group { .. } => Ok(()),
        }
    }
}

/// Checks the alignment and size that bulk copies require.
pub(crate) fn bulk(addresses: [u64; 2], bytes: u64) -> Result<(), Problem> {
    addresses
        .into_iter()
        .chain([bytes])
        .try_for_each(|number| aligned(number, 16))
}
