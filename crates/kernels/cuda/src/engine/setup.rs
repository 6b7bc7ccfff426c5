//! What a call needs in device memory beside the operands and the result: tables, tensor maps, workspace, counters.

use crate::plan::{Addresses, Map, Matrix, Memory, OPERANDS, Weights};
use gauntlet_cuda::driver::{
    CallMemory, Context, DeviceMemory, DriverError, MAP_BYTES, Stream, TensorMap, encode,
};

use super::operands::Operands;

/// Tables and tensor maps of one copy of the operands, made once.
#[derive(Debug)]
pub(super) struct Tables {
    tables: DeviceMemory,
    maps: DeviceMemory,
}

impl Tables {
    pub fn new(context: &Context, memory: &Memory, operands: &Operands) -> Result<Self, DriverError> {
        Ok(Self {
            tables: DeviceMemory::from_bytes(context, &memory.tables)?,
            maps: DeviceMemory::from_bytes(context, &encode_maps(memory, operands)?)?,
        })
    }
}

/// Workspace and counters, shared by all copies since calls follow each other.
#[derive(Debug)]
pub(super) struct Scratch {
    workspace: DeviceMemory,
    counters: DeviceMemory,
}

impl Scratch {
    pub fn new(stream: &Stream, memory: &Memory) -> Result<Self, DriverError> {
        let context = stream.context();
        let scratch = Self {
            workspace: DeviceMemory::new(context, memory.workspace_bytes)?,
            counters: DeviceMemory::new(context, memory.counter_bytes)?,
        };
        // Filled with NaN, so that reading workspace that was never written is detected.
        scratch.workspace.fill(0xFF, stream)?;
        scratch.counters.fill(0, stream)?;
        stream.synchronise()?;
        Ok(scratch)
    }
}

/// Memory of one call alone, given back in the stream's order when dropped.
#[derive(Debug)]
pub(super) struct OfCall<'a> {
    tables: CallMemory<'a>,
    maps: CallMemory<'a>,
    workspace: CallMemory<'a>,
    counters: CallMemory<'a>,
}

impl<'a> OfCall<'a> {
    pub fn new(stream: &'a Stream, memory: &Memory, operands: &Operands) -> Result<Self, DriverError> {
        Ok(Self {
            tables: CallMemory::from_bytes(stream, &memory.tables)?,
            maps: CallMemory::from_bytes(stream, &encode_maps(memory, operands)?)?,
            workspace: CallMemory::new(stream, memory.workspace_bytes)?,
            counters: CallMemory::zeroed(stream, memory.counter_bytes)?,
        })
    }

    pub fn addresses(&self, operands: &Operands, output: &DeviceMemory) -> Addresses {
        Addresses {
            operands: operands.rows,
            scales: operands.scales,
            factors: [1.0; OPERANDS],
            output: output.address(),
            tables: self.tables.address(),
            maps: self.maps.address(),
            workspace: self.workspace.address(),
            counters: self.counters.address(),
            rows: 0,
        }
    }
}

/// The addresses of everything that was made once.
pub(super) fn kept_addresses(
    operands: &Operands,
    output: &DeviceMemory,
    tables: &Tables,
    scratch: &Scratch,
) -> Addresses {
    Addresses {
        operands: operands.rows,
        scales: operands.scales,
        factors: [1.0; OPERANDS],
        output: output.address(),
        tables: tables.tables.address(),
        maps: tables.maps.address(),
        workspace: scratch.workspace.address(),
        counters: scratch.counters.address(),
        rows: 0,
    }
}

fn encode_maps(memory: &Memory, operands: &Operands) -> Result<Vec<u8>, DriverError> {
    encode_all(&memory.maps, |map| match map.matrix {
        Matrix::Tokens | Matrix::Query => operands.rows[0],
        Matrix::Key => operands.rows[1],
        Matrix::Value => operands.rows[2],
        _ => weight_address(map, &operands.weights),
    })
}

/// Encodes the tensor maps one after another, as they lie in device memory; `address` gives the address of a map's
/// matrix. Maps of absent matrices (the second weights of the plain form) and of empty ones stay zero: no kernel uses
/// them, and the driver refuses to encode them.
pub(crate) fn encode_all(maps: &[Map], address: impl Fn(&Map) -> u64) -> Result<Vec<u8>, DriverError> {
    let mut bytes = vec![0; maps.len() * MAP_BYTES];
    for (map, encoded) in maps.iter().zip(bytes.chunks_exact_mut(MAP_BYTES)) {
        let address = address(map);
        if address != 0 && !map.sizes.contains(&0) {
            let form = TensorMap {
                element: map.element,
                sizes: &map.sizes,
                boxes: &map.boxes,
                swizzle: map.swizzle,
            };
            let made = encode(form, address + map.offset).map_err(|error| {
                let Map { matrix, group, .. } = map;
                error.about(format_args!(
                    "tensor map of {matrix:?} {group}, {form:?} at {address:#x}"
                ))
            })?;
            encoded.copy_from_slice(&made);
        }
    }
    Ok(bytes)
}

/// The address of a matrix of weights; 0 for other operands.
pub(crate) fn weight_address(map: &Map, weights: &[Weights]) -> u64 {
    let of = weights.get(map.group).copied().unwrap_or_default();
    match map.matrix {
        Matrix::Weights => of.packed[0],
        Matrix::WeightScales => of.scales[0],
        Matrix::SecondWeights => of.packed[1],
        Matrix::SecondWeightScales => of.scales[1],
        Matrix::Tokens | Matrix::Query | Matrix::Key | Matrix::Value => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_map_describes_its_matrix() {
        let weights = [
            Weights::default(),
            Weights {
                packed: [1, 3],
                scales: [2, 4],
                scale: [1.0; 2],
            },
        ];
        let matrices = [
            Matrix::Weights,
            Matrix::WeightScales,
            Matrix::SecondWeights,
            Matrix::SecondWeightScales,
        ];
        let found =
            matrices.map(|matrix| weight_address(&Map::of_bytes(matrix, 1, [128, 1], [128, 1]), &weights));
        assert_eq!(found, [1, 2, 3, 4]);
    }

    /// Without a driver too, as there is nothing to ask it.
    #[test]
    fn maps_of_what_is_not_there_are_zero() {
        let map = Map::of_bytes(Matrix::SecondWeights, 0, [128, 1], [128, 1]);
        let bytes = encode_all(&[map.clone(), map], |map| {
            weight_address(map, &[Weights::default()])
        })
        .unwrap();
        assert_eq!(bytes, [0; 2 * MAP_BYTES]);
    }
}
