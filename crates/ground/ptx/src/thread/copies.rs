//! Executes instructions that start asynchronous copies and wait for them.

use crate::copies::{Awaited, Copy, Kind, Way, bulk};
use crate::fault::Problem;
use crate::instruction::{CopyOperation, Operand, Space, Target};
use crate::launch::Machine;
use crate::memory::{aligned, local, ranks};
use crate::tensor_map::{MAP_BYTES, TensorMap};
use crate::thread::{Who, located};

impl Machine<'_> {
    /// Requests a copy, or waits for some.
    pub(super) fn copy(&mut self, who: Who, operation: &CopyOperation) -> Result<(), Problem> {
        let groups = self.blocks[who.block].threads[who.thread].groups;
        let group = |kind: Kind| Awaited::Group {
            thread: who.thread,
            kind,
            number: groups[kind as usize],
        };
        let (block, way, awaited) = match operation {
            CopyOperation::OfThread {
                to,
                from,
                bytes,
                given,
            } => {
                let (to, from) = (self.shared_address(who, *to)?, self.address(who, *from));
                let [bytes, given] = [bytes, given].map(|one| self.value(who, *one) as usize);
                aligned(u64::from(to) | from, bytes)?;
                if given > bytes {
                    return Err(format!("{given} of {bytes} bytes"));
                }
                let way = Way::ToShared {
                    to,
                    from,
                    bytes,
                    given,
                };
                (who.block, way, group(Kind::OfThread))
            }
            CopyOperation::Bulk { from, bytes, target } => {
                let (from, bytes) = (self.address(who, *from), self.value(who, *bytes));
                let (to, _) = local(self.address(who, target.to) as u32);
                bulk([u64::from(to), from], bytes)?;
                let way = Way::ToShared {
                    to,
                    from,
                    bytes: bytes as usize,
                    given: bytes as usize,
                };
                return self.ask_targets(who, target, &way);
            }
            CopyOperation::Tensor { map, at, target } => {
                let way = Way::Box {
                    to: local(self.address(who, target.to) as u32).0,
                    map: self.tensor_map(who, *map, at.len())?,
                    read_at: self.value(who, *map),
                    at: self.place_of_box(who, at),
                };
                return self.ask_targets(who, target, &way);
            }
            CopyOperation::TensorToGlobal { map, at, from } => {
                let way = Way::BoxToGlobal {
                    from: self.shared_address(who, *from)?,
                    map: self.tensor_map(who, *map, at.len())?,
                    read_at: self.value(who, *map),
                    at: self.place_of_box(who, at),
                };
                (who.block, way, group(Kind::ToGlobal))
            }
            CopyOperation::ToGlobal { to, from, bytes } => {
                let (to, from) = (self.address(who, *to), self.shared_address(who, *from)?);
                let bytes = self.value(who, *bytes);
                bulk([to, u64::from(from)], bytes)?;
                let way = Way::ToGlobal {
                    to,
                    from,
                    bytes: bytes as usize,
                };
                (who.block, way, group(Kind::ToGlobal))
            }
            CopyOperation::Remote { to, from, barrier } => {
                let (block, to) = self.cluster_address(who, *to)?;
                let (its_block, address) = self.cluster_address(who, *barrier)?;
                if its_block != block {
                    return Err("its barrier lies in another block than its bytes".to_owned());
                }
                let bytes = self.bytes(who, 4, from);
                (
                    block,
                    Way::Bytes { to, bytes },
                    Awaited::Barrier { block, address },
                )
            }
            CopyOperation::CommitOfThread => {
                self.close_group(who, Kind::OfThread);
                return Ok(());
            }
            CopyOperation::CommitToGlobal => {
                self.close_group(who, Kind::ToGlobal);
                return Ok(());
            }
            CopyOperation::WaitOfThread { left } => return self.land_groups(who, Kind::OfThread, *left),
            CopyOperation::WaitOfThreadForAll => {
                self.close_group(who, Kind::OfThread);
                return self.land_groups(who, Kind::OfThread, 0);
            }
            CopyOperation::WaitToGlobal { left } => return self.land_groups(who, Kind::ToGlobal, *left),
            CopyOperation::ArriveOfThread { barrier } => {
                self.close_group(who, Kind::OfThread);
                self.land_groups(who, Kind::OfThread, 0)?;
                let barrier = self.shared_address(who, *barrier)?;
                if let Some(watch) = &mut self.watch {
                    watch.arrive(who, who.block, barrier);
                }
                return self.arrive(who.block, barrier, 0, 1);
            }
        };
        self.ask(who, block, way, awaited);
        Ok(())
    }

    /// The map at a generic address: in memory, or in the launch's parameter.
    fn tensor_map(&self, who: Who, map: Operand, dimensions: usize) -> Result<TensorMap, Problem> {
        let (space, address) = located(Space::Generic, self.value(who, map));
        self.check_map(who, address)?;
        TensorMap::of(self.read(who, space, address, MAP_BYTES)?, dimensions)
    }

    fn place_of_box(&self, who: Who, at: &[Operand]) -> Vec<i32> {
        at.iter().map(|one| self.value(who, *one) as i32).collect()
    }

    /// Requests a bulk copy for each block that gets it. Each copy signals the barrier at the same address of its own block, or,
    /// with `.cta_group::2`, of that block of its pair whose rank is even or odd as that of the given barrier's block.
    fn ask_targets(&mut self, who: Who, target: &Target, way: &Way) -> Result<(), Problem> {
        let (_, to_rank) = local(self.address(who, target.to) as u32);
        let (address, rank) = local(self.address(who, target.barrier) as u32);
        let ranks: Vec<u32> = match target.multicast {
            Some(mask) => ranks(self.value(who, mask)).collect(),
            None => vec![to_rank],
        };
        if ranks.is_empty() {
            return Err("a multicast to no block".to_owned());
        }
        let is_same = target.multicast.is_some() || rank == to_rank;
        let is_other = target.pairs && rank ^ 1 == to_rank;
        if !is_same && !is_other {
            return Err(format!(
                "its bytes go to the block of rank {to_rank} of the cluster, and its barrier lies in that of rank {rank}: with \
                 .cta_group::2 it may be the other block of the pair, else it is the same block"
            ));
        }
        for to_rank in ranks {
            let of_barrier = match target.pairs {
                true => to_rank & !1 | rank & 1,
                false => to_rank,
            };
            let (to, block) = (
                self.block_of_rank(who.block, to_rank)?,
                self.block_of_rank(who.block, of_barrier)?,
            );
            self.ask(who, to, way.clone(), Awaited::Barrier { block, address });
        }
        Ok(())
    }

    fn close_group(&mut self, who: Who, kind: Kind) {
        self.blocks[who.block].threads[who.thread].groups[kind as usize] += 1;
    }

    /// Lands all of the thread's groups of copies but the last `left`.
    fn land_groups(&mut self, who: Who, kind: Kind, left: u64) -> Result<(), Problem> {
        let thread = &self.blocks[who.block].threads[who.thread];
        let closed = thread.groups[kind as usize];
        let is_due = |number: u64| number + left < closed;
        // Few threads wait for a copy that has not landed: the list of all copies is long.
        let pending = thread.pending[kind as usize].iter();
        let count = pending.filter(|number| is_due(**number)).count();
        let due = |copy: &Copy| {
            let Awaited::Group {
                thread,
                kind: of,
                number,
            } = copy.awaited
            else {
                return false;
            };
            copy.block == who.block && thread == who.thread && of == kind && is_due(number)
        };
        let mut index = 0;
        for _ in 0..count {
            // Landing moves the last copy here, so none before this place is due.
            let Some(more) = self.copies[index..].iter().position(due) else {
                break;
            };
            index += more;
            self.land(index)?;
        }
        if let Some(watch) = &mut self.watch {
            watch.waited(who, kind as usize, closed.saturating_sub(left) as usize);
        }
        Ok(())
    }
}
