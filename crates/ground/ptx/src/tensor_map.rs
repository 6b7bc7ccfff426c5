//! Tensor maps: descriptions of tensors in global memory for the copy engine.

use crate::fault::Problem;
use crate::memory::{Memory, aligned, number};

/// Bytes of an encoded map.
pub(crate) const MAP_BYTES: usize = 128;

/// Most dimensions of a map.
const MAX_DIMENSIONS: usize = 5;

/// Words of 8 bytes of an encoded map at which its parts begin: the address; bytes of an element, swizzle and rank in one word;
/// sizes; strides; boxes.
const PROPERTIES: usize = 1;
const SIZES: usize = 2;
const STRIDES: usize = SIZES + MAX_DIMENSIONS;
const BOXES: usize = STRIDES + MAX_DIMENSIONS - 1;

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

const SWIZZLES: [Swizzle; 4] = [
    Swizzle::None,
    Swizzle::Bytes32,
    Swizzle::Bytes64,
    Swizzle::Bytes128,
];

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

/// A decoded tensor map: a tensor that is fetched in boxes, with zeros beyond the edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMap {
    /// The address of the first element.
    pub address: u64,
    /// Bytes of an element.
    pub element_bytes: usize,
    /// Elements along each dimension, at most five, the innermost first.
    pub sizes: Vec<u64>,
    /// Bytes from one element to the next along each dimension but the innermost, whose elements lie without gaps.
    pub strides: Vec<u64>,
    /// Elements of a box along each dimension, the innermost first.
    pub boxes: Vec<u32>,
    /// How a box's rows lie.
    pub swizzle: Swizzle,
}

/// A part of a map that a kernel can replace (PTX ISA, `tensormap.replace`), by the number of the dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapField {
    Address,
    Size(usize),
    /// The stride of the dimension after this one.
    Stride(usize),
    BoxSize(usize),
}

impl TensorMap {
    /// The strides of a tensor of these sizes that lies without gaps.
    pub fn strides_without_gaps(sizes: &[u64], element_bytes: usize) -> Vec<u64> {
        let mut bytes = element_bytes as u64;
        let outer = sizes.iter().take(sizes.len().saturating_sub(1));
        outer
            .map(|size| {
                bytes *= size;
                bytes
            })
            .collect()
    }

    /// Encodes the map. It has the size of a device's tensor map, but not its layout, which is not public.
    pub fn encode(&self) -> [u8; MAP_BYTES] {
        let swizzle = SWIZZLES.iter().position(|one| *one == self.swizzle).unwrap_or(0);
        let mut words = [0_u64; MAP_BYTES / 8];
        words[0] = self.address;
        words[PROPERTIES] =
            self.element_bytes as u64 | (swizzle as u64) << 8 | (self.sizes.len() as u64) << 16;
        let boxes: Vec<u64> = self.boxes.iter().map(|size| u64::from(*size)).collect();
        for (begin, part) in [(SIZES, &self.sizes), (STRIDES, &self.strides), (BOXES, &boxes)] {
            for (to, from) in words[begin..].iter_mut().zip(part) {
                *to = *from;
            }
        }
        let mut bytes = [0; MAP_BYTES];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Problem> {
        let words: Vec<u64> = bytes.chunks_exact(8).map(number).collect();
        let properties = words[PROPERTIES];
        let (element_bytes, swizzle) = (properties & 0xFF, properties >> 8 & 0xFF);
        let rank = (properties >> 16) as usize;
        let none = || "what is taken for a tensor map is none".to_owned();
        let swizzle = SWIZZLES.get(swizzle as usize).copied().ok_or_else(none)?;
        if !(1..=MAX_DIMENSIONS).contains(&rank) || element_bytes == 0 {
            return Err(none());
        }
        let boxes = words[BOXES..BOXES + rank].iter();
        Ok(Self {
            address: words[0],
            element_bytes: element_bytes as usize,
            sizes: words[SIZES..SIZES + rank].to_vec(),
            strides: words[STRIDES..STRIDES + rank - 1].to_vec(),
            boxes: boxes.map(|size| *size as u32).collect(),
            swizzle,
        })
    }

    /// Decodes a map. It is a fault if the map has another number of dimensions than `dimensions`.
    pub(crate) fn of(bytes: &[u8], dimensions: usize) -> Result<Self, Problem> {
        let map = Self::decode(bytes)?;
        match map.sizes.len() {
            found if found == dimensions => Ok(map),
            found => Err(format!("a box of {dimensions} dimensions of a map of {found}")),
        }
    }

    /// Replaces a part of the map. Addresses and strides are multiples of 16 bytes (CUDA driver API, cuTensorMapEncodeTiled).
    pub(crate) fn replace(&mut self, field: MapField, value: u64) -> Result<(), Problem> {
        let rank = self.sizes.len();
        let beyond = || format!("no such dimension in a map of {rank}");
        match field {
            MapField::Address => {
                aligned(value, 16)?;
                self.address = value;
            }
            MapField::Stride(index) => {
                aligned(value, 16)?;
                *self.strides.get_mut(index).ok_or_else(beyond)? = value;
            }
            MapField::Size(index) => *self.sizes.get_mut(index).ok_or_else(beyond)? = value,
            MapField::BoxSize(index) => *self.boxes.get_mut(index).ok_or_else(beyond)? = value as u32,
        }
        Ok(())
    }

    /// Bytes of a box.
    pub(crate) fn box_bytes(&self) -> usize {
        self.boxes.iter().product::<u32>() as usize * self.element_bytes
    }

    /// Reads the box that begins at these elements, row after row.
    pub(crate) fn fetch(&self, memory: &Memory, begin: &[i32]) -> Result<Vec<u8>, Problem> {
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
    pub(crate) fn store(&self, memory: &mut Memory, begin: &[i32], bytes: &[u8]) -> Result<(), Problem> {
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
            let (mut rest, mut inside, mut before) = (index, true, self.address);
            for (dimension, size) in self.boxes.iter().enumerate().skip(1) {
                let at = i64::from(begin[dimension]) + (rest % *size as usize) as i64;
                rest /= *size as usize;
                inside &= (0..self.sizes[dimension] as i64).contains(&at);
                before = before.wrapping_add((at.max(0) as u64).wrapping_mul(self.strides[dimension - 1]));
            }
            for column in 0..row as i64 {
                let column = i64::from(begin[0]) + column;
                let is_inside = inside && (0..self.sizes[0] as i64).contains(&column);
                addresses.push(is_inside.then(|| before + column as u64 * self.element_bytes as u64));
            }
        }
        addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Block;
    use crate::copies::{Awaited, Copy, Way};

    #[test]
    fn a_box_has_zeros_beyond_the_edges_and_is_swizzled() {
        let mut memory = Memory::new();
        let address = memory.allocate((0..80 * 3).map(|index| index as u8).collect());
        let map = TensorMap {
            address,
            element_bytes: 1,
            sizes: vec![80, 3],
            strides: vec![80],
            boxes: vec![64, 4],
            swizzle: Swizzle::None,
        };
        assert_eq!(TensorMap::decode(&map.encode()).unwrap(), map);
        assert_eq!(TensorMap::strides_without_gaps(&map.sizes, 1), map.strides);
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

        let mut block = Block::new(0, crate::block::tests::shape(32), (1, 0), 1024);
        let swizzled = TensorMap {
            boxes: vec![64, 2],
            swizzle: Swizzle::Bytes64,
            ..map
        };
        let way = Way::Box {
            to: 1024,
            map: swizzled,
            read_at: 0,
            at: vec![0, 0],
        };
        block.initialise(1536, 1).unwrap();
        Copy {
            asked: None,
            due: 0,
            block: 0,
            way: Box::new(way),
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

    #[test]
    fn every_part_that_can_be_replaced_changes_the_box() {
        let mut memory = Memory::new();
        let address = memory.allocate((0..=255).collect());
        let map = TensorMap {
            address,
            element_bytes: 1,
            sizes: vec![16, 4],
            strides: vec![16],
            boxes: vec![16, 2],
            swizzle: Swizzle::None,
        };
        let changed = |field, value| {
            let mut map = map.clone();
            map.replace(field, value)
                .map(|()| map.fetch(&memory, &[0, 1]).unwrap())
        };
        let first = |field, value| changed(field, value).unwrap()[..17].to_vec();
        assert_eq!(first(MapField::Address, address + 32)[0], 48);
        assert_eq!(first(MapField::Stride(0), 64)[..2], [64, 65]);
        assert_eq!(first(MapField::Size(0), 8)[7..9], [23, 0]);
        assert_eq!(first(MapField::Size(1), 2)[15..], [31, 0]);
        assert_eq!(changed(MapField::BoxSize(0), 8).unwrap().len(), 16);
        for (field, value) in [
            (MapField::Address, 8),
            (MapField::Stride(0), 8),
            (MapField::Stride(1), 16),
            (MapField::Size(2), 1),
        ] {
            assert!(changed(field, value).is_err(), "{field:?}");
        }
    }
}
