//! Tells what was found.

use super::shadow::{Access, Ends};
use super::{PRODUCTS, Place, Unwritten};
use crate::copies::Kind;
use crate::fault::{Fault, Problem};
use crate::launch::Machine;
use crate::memory::SHARED_BEGIN;

/// Two accesses to the same bytes, of which one writes, that nothing orders.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub place: Place,
    pub count: usize,
    pub earlier: Access,
    pub now: Access,
}

impl Machine<'_> {
    /// Tells what was found.
    pub fn told(&self, found: Found) -> Problem {
        let Found {
            place,
            count,
            earlier,
            now,
        } = found;
        let does = if now.writes { "writes" } else { "reads" };
        format!(
            "race: {does} {count} bytes at {}, which {} before, and nothing orders the two: {}",
            self.named(place),
            self.named_access(&earlier),
            self.missing(place, &earlier, &now)
        )
    }

    /// The fault of a read of what nobody had written, if there was one and nothing that explains it.
    pub fn unwritten(&self) -> Option<Fault> {
        let Unwritten { who, at, place } = self.watch.as_ref()?.unwritten?;
        let problem = format!(
            "uninitialised read: nobody has written {} before",
            self.named(place)
        );
        Some(self.fault(who.block, who.thread, at, problem))
    }

    /// Names a place in memory.
    fn named(&self, place: Place) -> String {
        match place {
            Place::Shared { block, offset, .. } => {
                let address = SHARED_BEGIN as usize + offset;
                format!(
                    "{address} of the shared memory of block {}{}",
                    self.blocks[block].index,
                    self.kernel(block).variable(address as u32)
                )
            }
            Place::Global {
                index, offset, size, ..
            } => format!(
                "byte {offset} of {size} of {} in global memory",
                self.memory.name(index)
            ),
        }
    }

    /// Names who made an access, where and how.
    fn named_access(&self, access: &Access) -> String {
        let block = access.block as usize;
        let spot = self.kernel(block).spot(access.at as usize);
        let did = if access.writes { "wrote" } else { "read" };
        let index = self.blocks[block].index;
        let slot = access.slot as usize;
        match access.ends {
            _ if slot >= self.blocks[block].threads.len() => {
                format!("a copy that {spot} asked for {did}")
            }
            Ends::WithEpoch => format!("block {index}, thread {slot} {did} at {spot}"),
            Ends::WithGroup(kind) if kind as usize == PRODUCTS => {
                format!(
                    "a product of warp {} of block {index}, {spot}, {did}",
                    slot / crate::block::WARP
                )
            }
            Ends::WithGroup(_) => format!("a copy of block {index}, thread {slot}, {spot}, {did}"),
        }
    }

    /// What would order two accesses.
    fn missing(&self, place: Place, earlier: &Access, now: &Access) -> &'static str {
        let is_copy = |access: &Access| {
            access.ends != Ends::WithEpoch
                || access.slot as usize >= self.blocks[access.block as usize].threads.len()
        };
        match (place, earlier.ends) {
            (_, Ends::WithGroup(kind)) if kind as usize == PRODUCTS => {
                "the product's warp has to wait for it (wgmma.wait_group), and a barrier has to follow"
            }
            (_, Ends::WithGroup(kind)) if kind == Kind::ToGlobal as u8 => {
                "the thread that asked for it has to wait (cp.async.bulk.wait_group), and a barrier has to follow"
            }
            (_, Ends::WithGroup(_)) => {
                "the thread that asked for it has to wait (cp.async.wait_group), and a barrier has to follow"
            }
            _ if is_copy(earlier) => "a wait for the phase of the barrier that the copy completes is missing",
            (Place::Shared { .. }, _) if is_copy(now) => {
                "a barrier is missing between it and the request of the copy"
            }
            _ if earlier.block == now.block && earlier.slot / 32 == now.slot / 32 => {
                "between lanes of one warp, __syncwarp() is missing, or __syncthreads()"
            }
            _ if earlier.block == now.block => "a barrier between them is missing, such as __syncthreads()",
            _ => {
                "blocks of a launch run in any order; an atomic access, a fence on both sides of one, or another launch is missing"
            }
        }
    }
}
