//! Tensor maps that a kernel changes itself (PTX ISA, `tensormap.replace` and `fence.proxy.tensormap`).
//!
//! The copy engine reads a map through a proxy of its own. It sees a change after the thread that made it has executed the
//! release fence, and the thread that requests the copy, later, the acquire fence on the map. Until the copy has landed the map
//! must stay as it is. What an earlier launch changed is visible to a later one.

use std::collections::{HashMap, HashSet};

use crate::block::WARP;
use crate::fault::Problem;
use crate::instruction::{Address, MapOperation, Operand, Space};
use crate::launch::Machine;
use crate::memory::{SHARED_BEGIN, aligned};
use crate::tensor_map::{MAP_BYTES, MapField, TensorMap};
use crate::thread::Who;

/// The alignment of a tensor map.
const ALIGNMENT: usize = 64;

/// A thread: its block's index among those that run, and its number in the block.
type Thread = (usize, usize);

/// A piece of global memory that a thread has changed.
#[derive(Debug)]
struct Change {
    by: Thread,
    is_released: bool,
    /// Threads that have executed the acquire fence since the release.
    acquired: HashSet<Thread>,
}

/// The pieces of global memory, of [`ALIGNMENT`] bytes, that kernels which change maps have written.
#[derive(Debug, Default)]
pub(crate) struct ChangedMaps {
    changes: HashMap<u64, Change>,
    /// Of each thread the pieces that it has changed since its last release.
    unreleased: HashMap<Thread, Vec<u64>>,
}

impl ChangedMaps {
    fn change(&mut self, by: Thread, address: u64, bytes: usize) {
        for piece in pieces(address, bytes) {
            let change = Change {
                by,
                is_released: false,
                acquired: HashSet::new(),
            };
            self.changes.insert(piece, change);
            self.unreleased.entry(by).or_default().push(piece);
        }
    }

    fn release(&mut self, by: Thread) {
        for piece in self.unreleased.remove(&by).unwrap_or_default() {
            if let Some(change) = self.changes.get_mut(&piece).filter(|change| change.by == by) {
                change.is_released = true;
            }
        }
    }

    fn acquire(&mut self, by: Thread, address: u64) {
        for piece in pieces(address, MAP_BYTES) {
            if let Some(change) = self.changes.get_mut(&piece).filter(|change| change.is_released) {
                change.acquired.insert(by);
            }
        }
    }

    /// Why the copy engine need not see a change of the map when this thread requests a copy; changes by threads for which
    /// `is_before` holds were made by an earlier launch.
    fn check(&self, by: Thread, address: u64, is_before: impl Fn(usize) -> bool) -> Result<(), Problem> {
        let changes = pieces(address, MAP_BYTES).filter_map(|piece| self.changes.get(&piece));
        for change in changes.filter(|change| !is_before(change.by.0)) {
            let thread = change.by.1;
            if !change.is_released {
                return Err(format!(
                    "the tensor map was changed by thread {thread}, which has executed no release fence since \
                     (fence.proxy.tensormap::generic.release)"
                ));
            }
            if !change.acquired.contains(&by) {
                return Err(format!(
                    "the tensor map was changed by thread {thread}, and this thread has executed no acquire fence on it since \
                     (fence.proxy.tensormap::generic.acquire)"
                ));
            }
        }
        Ok(())
    }
}

/// The pieces that a range of bytes overlaps.
fn pieces(address: u64, bytes: usize) -> impl Iterator<Item = u64> {
    let size = ALIGNMENT as u64;
    address / size..(address + bytes as u64).div_ceil(size)
}

impl Machine<'_> {
    /// Executes an instruction of one thread on tensor maps.
    pub(crate) fn map_operation(&mut self, who: Who, operation: &MapOperation) -> Result<(), Problem> {
        match operation {
            MapOperation::Replace {
                space,
                map,
                field,
                value,
            } => self.replace_in_map(who, *space, *map, *field, *value),
            MapOperation::Release => {
                self.changed_maps.release((who.block, who.thread));
                Ok(())
            }
            MapOperation::Acquire { map } => {
                let address = self.address(who, *map);
                aligned(address, ALIGNMENT)?;
                self.changed_maps.acquire((who.block, who.thread), address);
                Ok(())
            }
        }
    }

    fn replace_in_map(
        &mut self,
        who: Who,
        space: Space,
        map: Address,
        field: MapField,
        value: Operand,
    ) -> Result<(), Problem> {
        let (address, value) = (self.address(who, map), self.value(who, value));
        aligned(address, ALIGNMENT)?;
        let mut map = TensorMap::decode(self.read(who, space, address, MAP_BYTES)?)?;
        map.replace(field, value)?;
        self.write(who, space, address, &map.encode())
    }

    /// A whole warp copies a map from shared memory, and releases it (`tensormap.cp_fenceproxy`). All lanes give the same
    /// addresses.
    pub(crate) fn publish_map(
        &mut self,
        (block, warp): (usize, usize),
        [to, from]: [Address; 2],
    ) -> Result<(), Problem> {
        let lanes = (warp * WARP..(warp + 1) * WARP).map(|thread| Who { block, thread });
        let addresses: HashSet<[u64; 2]> = lanes
            .map(|who| [self.address(who, to), self.address(who, from)])
            .collect();
        let mut addresses = addresses.into_iter();
        let (Some([to, from]), None) = (addresses.next(), addresses.next()) else {
            return Err("lanes of the warp give different addresses".to_owned());
        };
        aligned(to, MAP_BYTES)?;
        aligned(from, MAP_BYTES)?;
        let from = self.blocks[block].own_address(from)?.max(SHARED_BEGIN);
        let map = self.blocks[block].shared.read(from, MAP_BYTES)?.to_vec();
        let who = Who {
            block,
            thread: warp * WARP,
        };
        self.write(who, Space::Global, to, &map)?;
        self.changed_maps.release((who.block, who.thread));
        Ok(())
    }

    /// Notes that a thread writes to global memory, if its kernel changes tensor maps.
    ///
    /// # Errors
    /// If a map lies there that the copy engine may still read.
    pub(crate) fn note_change(&mut self, who: Who, address: u64, bytes: usize) -> Result<(), Problem> {
        if !self.kernel(who.block).changes_maps {
            return Ok(());
        }
        let overlaps = |map: u64| map < address + bytes as u64 && address < map + MAP_BYTES as u64;
        if self.copies.iter().filter_map(|copy| copy.map()).any(overlaps) {
            return Err("a tensor map changes while a copy that reads it is on its way".to_owned());
        }
        self.changed_maps.change((who.block, who.thread), address, bytes);
        Ok(())
    }

    /// Whether the copy engine sees the map at this address of global memory as it is.
    pub(crate) fn check_map(&self, who: Who, address: u64) -> Result<(), Problem> {
        let launch = self.blocks[who.block].launch;
        let is_before = |block: usize| self.blocks[block].launch < launch;
        self.changed_maps
            .check((who.block, who.thread), address, is_before)
    }
}
