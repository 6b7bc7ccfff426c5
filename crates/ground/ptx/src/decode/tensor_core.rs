//! Instructions of the tensor cores (`tcgen05`).

use super::{Mnemonic, Operands};
use crate::fault::Problem;
use crate::instruction::{Operation, WarpOperation};
use crate::tensor_core::instruction::{CopyShape, Group, Multiply, TensorOperation, TensorWarpOperation};

impl Operands<'_> {
    pub(super) fn tensor_core(&self, name: &Mnemonic<'_>) -> Result<Operation, Problem> {
        let of_warp = |operation| Ok(Operation::Warp(WarpOperation::Tensor(operation)));
        match name.part(1) {
            "mma" | "cp" | "commit" | "fence::before_thread_sync" | "fence::after_thread_sync" => {
                self.of_thread(name).map(Operation::Tensor)
            }
            "alloc" => of_warp(TensorWarpOperation::Allocate {
                group: group(name)?,
                to: self.address(0)?,
                columns: self.number(1)?,
            }),
            "dealloc" => of_warp(TensorWarpOperation::Free {
                group: group(name)?,
                address: self.number(0)?,
                columns: self.number(1)?,
            }),
            "relinquish_alloc_permit" => of_warp(TensorWarpOperation::Relinquish(group(name)?)),
            "ld" => {
                let to = self.registers(0)?;
                check_access(name, to.len())?;
                let from = self.address(1)?;
                of_warp(TensorWarpOperation::Load { to, from })
            }
            "st" => {
                let from = self.numbers(1)?;
                check_access(name, from.len())?;
                let to = self.address(0)?;
                of_warp(TensorWarpOperation::Store { to, from })
            }
            "wait::ld" => of_warp(TensorWarpOperation::WaitForLoads { moves: Vec::new() }),
            "wait::st" => of_warp(TensorWarpOperation::WaitForStores),
            _ => Err("no such instruction here".to_owned()),
        }
    }

    fn of_thread(&self, name: &Mnemonic<'_>) -> Result<TensorOperation, Problem> {
        Ok(match name.part(1) {
            "fence::before_thread_sync" => TensorOperation::FenceBefore,
            "fence::after_thread_sync" => TensorOperation::FenceAfter,
            "commit" => TensorOperation::Commit {
                group: group(name)?,
                barrier: self.address(0)?,
                multicast: match name.has("multicast::cluster") {
                    true => Some(self.number(1)?),
                    false => None,
                },
            },
            "cp" => TensorOperation::Copy {
                group: group(name)?,
                shape: copy_shape(name)?,
                to: self.address(0)?,
                from: self.number(1)?,
            },
            _ => self.multiplied(name)?,
        })
    }

    /// `tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [sums], a, b, description, [scales of a], [scales of b], add`.
    fn multiplied(&self, name: &Mnemonic<'_>) -> Result<TensorOperation, Problem> {
        let is_known = name.part(3) == "kind::mxf4nvf4"
            && name.part(4) == "block_scale"
            && matches!(name.part(5), "scale_vec::4X" | "block16")
            && (name.part(6).is_empty() || name.part(6).starts_with("collector::a::"));
        if !is_known {
            return Err("of the products of the tensor cores only `tcgen05.mma.….kind::mxf4nvf4.block_scale.scale_vec::4X` is known here".to_owned());
        }
        if self.texts.len() != 7 || self.text(1)?.starts_with('[') {
            return Err("only products of two operands in shared memory are known here".to_owned());
        }
        let multiply = Multiply {
            sums: self.address(0)?,
            operands: [self.number(1)?, self.number(2)?],
            description: self.number(3)?,
            scales: [self.address(4)?, self.address(5)?],
            add: self.number(6)?,
        };
        Ok(TensorOperation::Multiply(group(name)?, Box::new(multiply)))
    }
}

fn group(name: &Mnemonic<'_>) -> Result<Group, Problem> {
    match name.part(2) {
        "cta_group::1" => Ok(Group::One),
        "cta_group::2" => Ok(Group::Pair),
        _ => Err("no .cta_group::1 or .cta_group::2".to_owned()),
    }
}

fn copy_shape(name: &Mnemonic<'_>) -> Result<CopyShape, Problem> {
    let shape = |rows, columns| Ok(CopyShape { rows, columns });
    match (name.part(3), name.part(4)) {
        ("32x128b", "warpx4") if name.part(5).is_empty() => shape(32, 4),
        ("128x128b", "") => shape(128, 4),
        ("128x256b", "") => shape(128, 8),
        _ => Err(
            "of the copies to tensor memory only 32x128b.warpx4, 128x128b and 128x256b are known here"
                .to_owned(),
        ),
    }
}

/// Checks that a load or store is of the shape 32x32b, with a register for each column.
fn check_access(name: &Mnemonic<'_>, registers: usize) -> Result<(), Problem> {
    let known = [1, 2, 4, 8, 16, 32, 64, 128]
        .into_iter()
        .find(|count| name.part(5) == format!("x{count}"));
    if name.part(4) != "32x32b" || known.is_none() || name.part(6) != "b32" {
        return Err(
            "of the loads and stores of tensor memory only 32x32b.x1 to .x128 of whole words are known here"
                .to_owned(),
        );
    }
    match known == Some(registers) {
        true => Ok(()),
        false => Err(format!("{registers} registers, which do not fit the shape")),
    }
}
