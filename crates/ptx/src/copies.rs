//! Asynchronous copies, which land some time after they are requested.

use crate::block::Block;
use crate::fault::Problem;
use crate::memory::{Memory, aligned, number};

/// Bytes of an encoded map.
pub(crate) const MAP_BYTES: usize = 128;

/// How the 16-byte pieces of a box's rows are permuted in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swizzle {
    /// Not at all.
    None,
    /// Within the 32 bytes of a row.
    Bytes32,
    /// Within the 64 bytes of a row.
    Bytes64,
    /// Within the 128 bytes of a row.
    Bytes128,
}

impl Swizzle {
    /// The address at which the byte with the unswizzled address `address` lies.
    pub(crate) fn place(self, address: u32) -> u32 {
        address
            ^ match self {
                Self::None => 0,
                Self::Bytes32 => (address >> 7 & 1) << 4,
                Self::Bytes64 => (address >> 7 & 3) << 4,
                Self::Bytes128 => (address >> 7 & 7) << 4,
            }
    }
}

/// A decoded tensor map: a tensor without gaps, fetched in boxes, with zeros beyond the edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMap {
    /// The address of the first element.
    pub address: u64,
    /// Bytes of an element.
    pub element_bytes: usize,
    /// Elements along each dimension, at most five, the innermost first.
    pub sizes: Vec<u64>,
    /// Elements of a box along each dimension, the innermost first.
    pub boxes: Vec<u32>,
    /// How a box's rows lie.
    pub swizzle: Swizzle,
}

impl TensorMap {
    /// Encodes the map. It has the size of a device's tensor map, but not its layout, which is not public.
    pub fn encode(&self) -> [u8; MAP_BYTES] {
        let swizzle = match self.swizzle {
            Swizzle::None => 0,
            Swizzle::Bytes64 => 1,
            Swizzle::Bytes128 => 2,
            Swizzle::Bytes32 => 3,
        };
        let head = [
            self.address,
            self.element_bytes as u64,
            swizzle,
            self.sizes.len() as u64,
        ];
        let boxes = self.boxes.iter().map(|size| u64::from(*size));
        let words = head.into_iter().chain(self.sizes.iter().copied()).chain(boxes);
        let mut bytes = [0; MAP_BYTES];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, Problem> {
        let words: Vec<u64> = bytes.chunks_exact(8).map(number).collect();
        let rank = words[3] as usize;
        let swizzle = match words[2] {
            0 => Swizzle::None,
            1 => Swizzle::Bytes64,
            2 => Swizzle::Bytes128,
            3 => Swizzle::Bytes32,
            _ => return Err("what is taken for a tensor map is none".to_owned()),
        };
        if !(1..=5).contains(&rank) {
            return Err("what is taken for a tensor map is none".to_owned());
        }
        Ok(Self {
            address: words[0],
            element_bytes: words[1] as usize,
            sizes: words[4..4 + rank].to_vec(),
            boxes: words[4 + rank..4 + 2 * rank]
                .iter()
                .map(|size| *size as u32)
                .collect(),
            swizzle,
        })
    }

    /// Bytes of a box.
    fn box_bytes(&self) -> usize {
        self.boxes.iter().product::<u32>() as usize * self.element_bytes
    }

    /// Decodes a map. It is a fault if the map has another number of dimensions than `dimensions`.
    pub(crate) fn of(bytes: &[u8], dimensions: usize) -> Result<Self, Problem> {
        let map = Self::decode(bytes)?;
        match map.sizes.len() {
            found if found == dimensions => Ok(map),
            found => Err(format!("a box of {dimensions} dimensions of a map of {found}")),
        }
    }

    /// Reads the box that begins at these elements, row after row.
    fn fetch(&self, memory: &Memory, begin: &[i32]) -> Result<Vec<u8>, Problem> {
        let mut bytes = Vec::with_capacity(self.box_bytes());
        for element in self.addresses(begin) {
            match element {
                Some(at) => bytes.extend_from_slice(memory.read(at, self.element_bytes)?),
                None => bytes.resize(bytes.len() + self.element_bytes, 0),
            }
        }
        Ok(bytes)
    }

    /// Writes the box that begins at these elements; what lies beyond the edges is left out.
    fn store(&self, memory: &mut Memory, begin: &[i32], bytes: &[u8]) -> Result<(), Problem> {
        let elements = bytes.chunks_exact(self.element_bytes);
        for (element, bytes) in self.addresses(begin).into_iter().zip(elements) {
            if let Some(at) = element {
                memory.write(at, bytes)?;
            }
        }
        Ok(())
    }

    /// The address of each element of the box that begins at these elements, row after row; none beyond the edges.
    fn addresses(&self, begin: &[i32]) -> Vec<Option<u64>> {
        let row = self.boxes[0] as usize;
        let mut addresses = Vec::with_capacity(self.box_bytes() / self.element_bytes);
        for index in 0..self.box_bytes() / (row * self.element_bytes) {
            let (mut rest, mut inside, mut before, mut stride) = (index, true, 0, self.sizes[0]);
            for (dimension, size) in self.boxes.iter().enumerate().skip(1) {
                let at = i64::from(begin[dimension]) + (rest % *size as usize) as i64;
                rest /= *size as usize;
                inside &= (0..self.sizes[dimension] as i64).contains(&at);
                before += at.max(0) as u64 * stride;
                stride *= self.sizes[dimension];
            }
            for column in 0..row as i64 {
                let column = i64::from(begin[0]) + column;
                let is_inside = inside && (0..self.sizes[0] as i64).contains(&column);
                addresses.push(
                    is_inside.then(|| self.address + (before + column as u64) * self.element_bytes as u64),
                );
            }
        }
        addresses
    }
}

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
    pub way: Way,
    pub awaited: Awaited,
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
    /// Carries out the copy.
    pub fn land(&self, memory: &mut Memory, blocks: &mut [Block]) -> Result<(), Problem> {
        let block = &mut blocks[self.block];
        let count = match &self.way {
            Way::ToShared {
                to,
                from,
                bytes,
                given,
            } => {
                let mut copied = memory.read(*from, *given)?.to_vec();
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
            Way::Box { to, map, at } => {
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
            Way::BoxToGlobal { from, map, at } => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_has_zeros_beyond_the_edges_and_is_swizzled() {
        let mut memory = Memory::new();
        let address = memory.allocate((0..80 * 3).map(|index| index as u8).collect());
        let map = TensorMap {
            address,
            element_bytes: 1,
            sizes: vec![80, 3],
            boxes: vec![64, 4],
            swizzle: Swizzle::None,
        };
        assert_eq!(TensorMap::decode(&map.encode()).unwrap(), map);
        let fetched = map.fetch(&memory, &[32, 1]).unwrap();
        assert_eq!(
            (fetched.len(), fetched[0], fetched[47], fetched[48]),
            (256, 112, 159, 0)
        );
        assert_eq!(
            (fetched[64], fetched[128]),
            (192, 0),
            "the third row, and one that there is not"
        );
        assert_eq!(map.fetch(&memory, &[-16, 0]).unwrap()[15..17], [0, 0]);

        let mut block = Block::new(0, crate::block::tests::shape(32), 1, 1024);
        let swizzled = TensorMap {
            boxes: vec![64, 2],
            swizzle: Swizzle::Bytes64,
            ..map
        };
        let way = Way::Box {
            to: 1024,
            map: swizzled,
            at: vec![0, 0],
        };
        block.initialise(1536, 1).unwrap();
        Copy {
            due: 0,
            block: 0,
            way,
            awaited: Awaited::Barrier {
                block: 0,
                address: 1536,
            },
        }
        .land(&mut memory, std::slice::from_mut(&mut block))
        .unwrap();
        assert_eq!(block.shared.read(1024, 2).unwrap(), [0, 1]);
        assert_eq!(Swizzle::Bytes128.place(1024 + 128), 1024 + 128 + 16);
    }
}
