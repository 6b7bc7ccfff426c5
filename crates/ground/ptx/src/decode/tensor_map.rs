//! Changes of tensor maps, and their fences.

use super::{Mnemonic, Operands, space};
use crate::fault::Problem;
use crate::instruction::{MapOperation, Operation, WarpOperation};
use crate::tensor_map::{MAP_BYTES, MapField};

impl Operands<'_> {
    /// `tensormap.replace.tile.global_dim.global.b1024.b32 [map], 1, size` and `tensormap.cp_fenceproxy….aligned [to], [from], 128`.
    pub(super) fn of_map(&self, name: &Mnemonic<'_>) -> Result<Operation, Problem> {
        match name.part(1) {
            "replace" if name.part(2) == "tile" => self.replaced(name).map(Operation::Map),
            "cp_fenceproxy" if name.has("release") => {
                self.whole_map(2)?;
                Ok(Operation::Warp(WarpOperation::PublishMap {
                    to: self.address(0)?,
                    from: self.address(1)?,
                }))
            }
            _ => Err("no such instruction here".to_owned()),
        }
    }

    fn replaced(&self, name: &Mnemonic<'_>) -> Result<MapOperation, Problem> {
        let index = |most: u64| {
            let index = self.constant(1)?;
            match index <= most {
                true => Ok(index as usize),
                false => Err(format!("a map has no dimension {index} here")),
            }
        };
        let (field, value) = match name.part(3) {
            "global_address" => (MapField::Address, 1),
            "global_dim" => (MapField::Size(index(4)?), 2),
            "global_stride" => (MapField::Stride(index(3)?), 2),
            "box_dim" => (MapField::BoxSize(index(4)?), 2),
            other => return Err(format!("no replacement of `{other}` in a tensor map here")),
        };
        Ok(MapOperation::Replace {
            space: space(name)?,
            map: self.address(0)?,
            field,
            value: self.number(value)?,
        })
    }

    /// `fence.proxy.tensormap::generic.release.gpu` and `fence.proxy.tensormap::generic.acquire.gpu [map], 128`.
    pub(super) fn map_fence(&self, name: &Mnemonic<'_>) -> Result<MapOperation, Problem> {
        match name.part(3) {
            "release" => Ok(MapOperation::Release),
            "acquire" => {
                self.whole_map(1)?;
                Ok(MapOperation::Acquire {
                    map: self.address(0)?,
                })
            }
            _ => Err("no such fence here".to_owned()),
        }
    }

    /// The number of bytes at this operand is that of a map.
    fn whole_map(&self, index: usize) -> Result<(), Problem> {
        match self.constant(index)? {
            bytes if bytes == MAP_BYTES as u64 => Ok(()),
            bytes => Err(format!("{bytes} bytes of a tensor map, which has {MAP_BYTES}")),
        }
    }
}
