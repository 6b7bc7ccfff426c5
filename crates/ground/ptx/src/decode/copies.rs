//! Asynchronous copies.

use super::{Mnemonic, Operands};
use crate::fault::Problem;
use crate::instruction::{CopyOperation, Operand, Target};
use crate::text::{operands, within};

impl Operands<'_> {
    /// `cp.async.cg.shared.global [to], [from], 16` and `.ca` of 4, 8 or 16 bytes; then how many bytes are given, the others
    /// being zeros, and last a cache policy if there is one.
    fn copy_of_thread(&self, mnemonic: &str) -> Result<CopyOperation, Problem> {
        let name = mnemonic.replacen("shared::cta", "shared", 1);
        let sizes: &[u64] = match &name {
            name if name.starts_with("cp.async.cg.shared.global") => &[16],
            name if name.starts_with("cp.async.ca.shared.global") => &[4, 8, 16],
            _ => return Err("no such instruction here".to_owned()),
        };
        let bytes = self.constant(2)?;
        if !sizes.contains(&bytes) {
            return Err(format!("copies of {bytes} bytes where {sizes:?} are possible"));
        }
        let count = self.texts.len() - usize::from(mnemonic.contains("cache_hint"));
        let bytes = Operand::Constant(bytes);
        Ok(CopyOperation::OfThread {
            to: self.address(0)?,
            from: self.address(1)?,
            bytes,
            given: if count > 3 { self.number(3)? } else { bytes },
        })
    }

    /// `[map, {column, row}]`.
    fn part_of_map(&self, index: usize) -> Result<(Operand, Vec<Operand>), Problem> {
        let text = within(self.text(index)?, ['[', ']']).ok_or("a map and where its box begins")?;
        let inner = Operands {
            names: self.names,
            texts: operands(text),
        };
        Ok((inner.number(0)?, inner.numbers(1)?))
    }

    /// Where a bulk copy goes: its first operand, the barrier at index `barrier`, and behind it the ranks of a multicast.
    fn target(&self, name: &Mnemonic<'_>, barrier: usize) -> Result<Target, Problem> {
        Ok(Target {
            to: self.address(0)?,
            barrier: self.address(barrier)?,
            multicast: match name.has("multicast::cluster") {
                true => Some(self.number(barrier + 1)?),
                false => None,
            },
            pairs: name.has("cta_group::2"),
        })
    }

    /// The mnemonic is given whole, because its forms differ from the front on.
    pub(super) fn copy(&self, mnemonic: &str) -> Result<CopyOperation, Problem> {
        let is = |prefix: &str| mnemonic.starts_with(prefix);
        let name = Mnemonic(mnemonic);
        if let Some(unknown) = ["im2col", "im2col::w", "tile::gather4", "tile::scatter4"]
            .into_iter()
            .find(|form| name.has(form))
        {
            return Err(format!("no copies of the form `{unknown}` here"));
        }
        Ok(if is("cp.async.bulk.tensor.") && name.part(5) == "global" {
            let (map, at) = self.part_of_map(0)?;
            CopyOperation::TensorToGlobal {
                map,
                at,
                from: self.address(1)?,
            }
        } else if is("cp.async.bulk.tensor.") {
            let (map, at) = self.part_of_map(1)?;
            CopyOperation::Tensor {
                map,
                at,
                target: self.target(&name, 2)?,
            }
        } else if is("cp.async.bulk.shared::cluster.global.mbarrier")
            || is("cp.async.bulk.shared::cta.global.mbarrier")
        {
            CopyOperation::Bulk {
                from: self.address(1)?,
                bytes: self.number(2)?,
                target: self.target(&name, 3)?,
            }
        } else if is("cp.async.bulk.global.shared::cta.bulk_group") {
            CopyOperation::ToGlobal {
                to: self.address(0)?,
                from: self.address(1)?,
                bytes: self.number(2)?,
            }
        } else if is("cp.async.bulk.commit_group") {
            CopyOperation::CommitToGlobal
        } else if is("cp.async.bulk.wait_group") {
            CopyOperation::WaitToGlobal {
                left: self.constant(0)?,
            }
        } else if is("cp.async.commit_group") {
            CopyOperation::CommitOfThread
        } else if is("cp.async.wait_all") {
            // As a commit and a wait for all groups: copies that are in no group yet are awaited too.
            CopyOperation::WaitOfThreadForAll
        } else if is("cp.async.wait_group") {
            CopyOperation::WaitOfThread {
                left: self.constant(0)?,
            }
        } else if is("cp.async.mbarrier.arrive.noinc") {
            CopyOperation::ArriveOfThread {
                barrier: self.address(0)?,
            }
        } else if is("cp.async.cg.shared") || is("cp.async.ca.shared") {
            self.copy_of_thread(mnemonic)?
        } else {
            return Err("no such instruction here".to_owned());
        })
    }
}
