//! Instructions that a warp executes as a whole.

use super::{Mnemonic, Operands};
use crate::arithmetic::atomic;
use crate::fault::Problem;
use crate::instruction::{Element, GroupProduct, Left, Shuffle, Vote, WarpOperation};

impl Operands<'_> {
    pub(super) fn of_warp(&self, name: &Mnemonic<'_>) -> Result<WarpOperation, Problem> {
        let transposed = name.has("trans");
        Ok(match (name.part(0), name.part(2)) {
            ("elect", _) => {
                let one = self.text(0)?.split('|').nth(1).unwrap_or("_");
                WarpOperation::Elect {
                    lane: self.register(0)?,
                    one: self.written(one)?,
                    mask: self.number(1)?,
                }
            }
            ("shfl", kind) => WarpOperation::Shuffle {
                kind: match kind {
                    "idx" => Shuffle::Index,
                    "bfly" => Shuffle::Butterfly,
                    "up" => Shuffle::Up,
                    "down" => Shuffle::Down,
                    _ => return Err("no such instruction here".to_owned()),
                },
                to: self.register(0)?,
                is_in_range: match self.text(0)?.split_once('|') {
                    Some((_, predicate)) => Some(self.written(predicate)?),
                    None => None,
                },
                from: self.number(1)?,
                lane: self.number(2)?,
                clamp: self.number(3)?,
                mask: self.number(4)?,
            },
            ("vote", kind) => WarpOperation::Vote {
                kind: match kind {
                    "any" => Vote::Any,
                    "all" => Vote::All,
                    "uni" => Vote::Uniform,
                    "ballot" => Vote::Ballot,
                    _ => return Err("no such instruction here".to_owned()),
                },
                to: self.register(0)?,
                from: self.number(1)?,
                mask: self.number(2)?,
            },
            ("redux", operation) => WarpOperation::Reduce {
                function: atomic(operation, name.part_from_end(0))
                    .ok_or("no such instruction here")?
                    .0,
                to: self.register(0)?,
                from: self.number(1)?,
                mask: self.number(2)?,
            },
            ("match", _) => WarpOperation::Match {
                all: name.part(1) == "all",
                to: self.register(0)?,
                same: match self.text(0)?.split_once('|') {
                    Some((_, predicate)) => Some(self.written(predicate)?),
                    None => None,
                },
                from: self.number(1)?,
                mask: self.number(2)?,
            },
            ("ldmatrix", "aligned") if name.part(3) == "m8n8" && name.part_from_end(0) == "b16" => {
                WarpOperation::LoadMatrices {
                    to: self.registers(0)?,
                    from: self.address(1)?,
                    transposed,
                }
            }
            ("stmatrix", _) => WarpOperation::StoreMatrices {
                to: self.address(0)?,
                from: self.numbers(1)?,
                transposed,
            },
            ("mma", "aligned") => self.product(product_element(name)?)?,
            _ => return Err("no such instruction here".to_owned()),
        })
    }

    fn product(&self, element: Element) -> Result<WarpOperation, Problem> {
        let (sums, left, right, before) = (
            self.registers(0)?,
            self.numbers(1)?,
            self.numbers(2)?,
            self.numbers(3)?,
        );
        if [sums.len(), left.len(), right.len(), before.len()] != [4, 4, 2, 4] {
            return Err("a product of another shape".to_owned());
        }
        Ok(WarpOperation::Multiply {
            element,
            sums,
            left,
            right,
            before,
        })
    }

    pub(super) fn group_product(&self, name: &Mnemonic<'_>) -> Result<WarpOperation, Problem> {
        match name.part(1) {
            "fence" => return Ok(WarpOperation::Synchronise),
            "commit_group" => return Ok(WarpOperation::CommitProducts),
            "wait_group" => {
                return Ok(WarpOperation::WaitForProducts {
                    left: self.constant(0)?,
                });
            }
            _ => {}
        }
        let shape = name
            .part(4)
            .strip_prefix("m64n")
            .and_then(|rest| rest.split_once('k'));
        let columns: usize = shape
            .and_then(|(columns, _)| columns.parse().ok())
            .ok_or("no such shape")?;
        let sums = self.registers(0)?;
        let left = match self.text(1)?.starts_with('{') {
            true => Left::Fragments(self.numbers(1)?),
            false => Left::Descriptor(self.number(1)?),
        };
        if 2 * sums.len() != columns || matches!(&left, Left::Fragments(words) if words.len() != 4) {
            return Err("registers that do not fit the shape".to_owned());
        }
        // After both scale factors: for 16-bit elements in shared memory, whether each operand is transposed, the
        // second operand last.
        let numbers = (4..self.texts.len())
            .map(|index| self.constant(index))
            .collect::<Result<Vec<_>, _>>()?;
        let (factors, transposed) = numbers.split_at(numbers.len().min(2));
        if factors != [1, 1] || transposed.len() > 1 && transposed[0] != 0 {
            return Err("only factors of 1, and only the second operand transposed".to_owned());
        }
        let right_transposed = transposed.last().is_some_and(|one| *one != 0);
        Ok(WarpOperation::MultiplyGroup(Box::new(GroupProduct {
            element: element(name.part_from_end(0))?,
            columns,
            sums,
            left,
            right: self.number(2)?,
            right_transposed,
            add: self.number(3)?,
        })))
    }
}

/// The element type of both operands of `mma.sync.aligned.m16n8k….row.col.f32.….….f32`, whose depth is 32 bytes of it; no
/// other product of a warp is known here.
fn product_element(name: &Mnemonic<'_>) -> Result<Element, Problem> {
    let element = element(name.part_from_end(1))?;
    let of_both = name.part_from_end(1);
    let known = format!(
        "mma.sync.aligned.m16n8k{}.row.col.f32.{of_both}.{of_both}.f32",
        element.depth()
    );
    if name.0 != known {
        return Err(format!(
            "of products with these operands only `{known}` is known here"
        ));
    }
    Ok(element)
}

fn element(type_name: &str) -> Result<Element, Problem> {
    match type_name {
        "f16" => Ok(Element::F16),
        "bf16" => Ok(Element::Bf16),
        "e4m3" => Ok(Element::E4m3),
        _ => Err(format!("no products of `{type_name}` here")),
    }
}
