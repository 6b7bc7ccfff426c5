//! What a warp does with tensor memory as a whole: allocation, loads and stores.

use std::ops::Range;

use crate::block::WARP;
use crate::fault::Problem;
use crate::instruction::{Address, Operand, Register};
use crate::launch::Machine;
use crate::tensor_core::instruction::{Group, TensorWarpOperation};
use crate::tensor_core::memory::{Access, AccessKind, COLUMNS, QUARTER, Request, UNIT, Wish, place};
use crate::thread::Who;

/// What registers hold between a load and its wait: a NaN, so that a result that is used too early is seen.
const NOT_LOADED: u64 = 0xFFFF_FFFF;

impl Machine<'_> {
    /// Executes an instruction of a warp at instruction `at`; returns whether it has ended: an allocation waits for room, and for
    /// the other block of its pair.
    pub fn tensor_warp_operation(
        &mut self,
        (block, warp): (usize, usize),
        operation: &TensorWarpOperation,
    ) -> Result<bool, Problem> {
        match operation {
            TensorWarpOperation::Allocate { group, to, columns } => {
                let columns = self.uniform(block, warp, *columns, "columns")? as usize;
                let to = self.uniform_address(block, warp, *to)?;
                let to = self.blocks[block].own_address(to)?;
                if !matches!(self.blocks[block].tensor.request, Some(Request::Done(_))) {
                    self.blocks[block].tensor.check_request(columns)?;
                }
                let Some(first) = self.agree(block, *group, Wish::Allocate(columns))? else {
                    return Ok(false);
                };
                let thread = (warp * WARP) as u32;
                let shared = &mut self.blocks[block].shared;
                shared.write(thread, to, &(first as u32).to_le_bytes())?;
            }
            TensorWarpOperation::Free {
                group,
                address,
                columns,
            } => {
                let count = self.uniform(block, warp, *columns, "columns")? as usize;
                let address = self.uniform(block, warp, *address, "addresses")?;
                let (lane, first) = place(address);
                if lane != 0 {
                    return Err(format!(
                        "address {address:#010x} of tensor memory is that of no allocation"
                    ));
                }
                return Ok(self
                    .agree(block, *group, Wish::Free(first..first + count))?
                    .is_some());
            }
            TensorWarpOperation::Relinquish(_) => self.blocks[block].tensor.relinquished = true,
            TensorWarpOperation::Load { to, from } => {
                let columns = self.accessed(block, warp, *from, to.len())?;
                for lane in 0..WARP {
                    for register in to {
                        self.set_lane(block, warp, lane, *register, NOT_LOADED);
                    }
                }
                self.begin_access(block, warp, columns, AccessKind::Load(to.clone()));
            }
            TensorWarpOperation::Store { to, from } => {
                let columns = self.accessed(block, warp, *to, from.len())?;
                let of_lane = |lane| {
                    from.iter()
                        .map(|one| self.blocks[block].value(warp * WARP + lane, *one) as u32)
                        .collect()
                };
                let stored = (0..WARP).map(of_lane).collect();
                self.begin_access(block, warp, columns, AccessKind::Store(stored));
            }
            TensorWarpOperation::WaitForLoads { moves } => {
                self.end_accesses(block, warp, true);
                self.move_again(block, warp, moves);
            }
            TensorWarpOperation::WaitForStores => self.end_accesses(block, warp, false),
        }
        Ok(true)
    }

    /// The value of an operand, which has to be the same in all lanes.
    fn uniform(&self, block: usize, warp: usize, operand: Operand, what: &str) -> Result<u64, Problem> {
        let value = |lane| self.blocks[block].value(warp * WARP + lane, operand);
        let first = value(0);
        match (1..WARP).find(|lane| value(*lane) != first) {
            None => Ok(first),
            Some(lane) => Err(format!(
                "lanes 0 and {lane} of the warp give different {what}: {first} and {}",
                value(lane)
            )),
        }
    }

    fn uniform_address(&self, block: usize, warp: usize, address: Address) -> Result<u64, Problem> {
        let base = self.uniform(block, warp, address.base, "addresses")?;
        Ok(base.wrapping_add(address.offset))
    }

    /// Does what a block wishes, together with the other block of its pair once that wishes the same; returns the first column, or
    /// nothing if it has to wait.
    fn agree(&mut self, block: usize, group: Group, wish: Wish) -> Result<Option<usize>, Problem> {
        if let Some(Request::Done(first)) = self.blocks[block].tensor.request {
            self.blocks[block].tensor.request = None;
            return Ok(Some(first));
        }
        let blocks = self.pair(block, group)?;
        if let Wish::Free(columns) = &wish {
            self.blocks[block].tensor.check_release(columns)?;
        }
        let asked = Some(Request::Asked(wish.clone()));
        self.blocks[block].tensor.request.clone_from(&asked);
        for other in blocks.iter().filter(|other| **other != block) {
            match &self.blocks[*other].tensor.request {
                request if *request == asked => {}
                Some(Request::Asked(other)) => {
                    return Err(format!(
                        "the blocks of a pair ask for different things: {wish:?} and {other:?}"
                    ));
                }
                _ => return Ok(None),
            }
        }
        let Some(first) = self.grant(&blocks, &wish) else {
            return Ok(None);
        };
        for other in blocks {
            self.blocks[other].tensor.request = (other != block).then_some(Request::Done(first));
        }
        self.happened();
        Ok(Some(first))
    }

    /// Allocates the same columns in all blocks, at a random place with room, or frees them; returns the first column.
    fn grant(&mut self, blocks: &[usize], wish: &Wish) -> Option<usize> {
        match wish {
            Wish::Allocate(count) => {
                let is_free = |first: &usize| {
                    let columns = *first..first + count;
                    blocks
                        .iter()
                        .all(|block| self.blocks[*block].tensor.is_free(&columns))
                };
                let places = (0..=COLUMNS - count).step_by(UNIT);
                let places: Vec<usize> = places.filter(is_free).collect();
                if places.is_empty() {
                    return None;
                }
                let first = places[self.draw(places.len())];
                for block in blocks {
                    self.blocks[*block].tensor.allocate(first..first + count);
                }
                Some(first)
            }
            Wish::Free(columns) => {
                for block in blocks {
                    self.blocks[*block].tensor.release(columns);
                }
                Some(columns.start)
            }
        }
    }

    /// The columns that a warp loads or stores.
    fn accessed(
        &self,
        block: usize,
        warp: usize,
        address: Address,
        count: usize,
    ) -> Result<Range<usize>, Problem> {
        let address = self.uniform_address(block, warp, address)?;
        let (lane, first) = place(address);
        let own = warp % 4 * QUARTER;
        if lane != own {
            return Err(format!(
                "warp {warp} accesses tensor memory from lane {lane} on: it reaches lanes {own} to {} only",
                own + QUARTER - 1
            ));
        }
        let columns = first..first + count;
        let memory = &self.blocks[block].tensor;
        memory.check(&columns)?;
        let fences = self.lanes(block, warp).iter().map(|lane| lane.fences.after);
        memory.check_access(&columns, fences.min().unwrap_or(0))?;
        let is_stored = |access: &Access| {
            let is_store = matches!(access.kind, AccessKind::Store(_));
            access.warp == warp && is_store && super::memory::overlap(&access.columns, &columns)
        };
        match memory.accesses.iter().any(is_stored) {
            true => Err(format!(
                "accesses columns {} to {} of tensor memory, where it has stored without a wait (tcgen05.wait::st)",
                columns.start,
                columns.end - 1
            )),
            false => Ok(columns),
        }
    }

    fn begin_access(&mut self, block: usize, warp: usize, columns: Range<usize>, kind: AccessKind) {
        self.blocks[block]
            .tensor
            .begin_access(Access { warp, columns, kind });
    }

    /// Carries out the warp's loads or stores: as late as it may be.
    fn end_accesses(&mut self, block: usize, warp: usize, loads: bool) {
        let now = self.now();
        for access in self.blocks[block].tensor.end_accesses(warp, loads, now) {
            for lane in 0..WARP {
                let row = warp % 4 * QUARTER + lane;
                match &access.kind {
                    AccessKind::Load(to) => {
                        for (column, register) in access.columns.clone().zip(to) {
                            let bits = self.blocks[block].tensor.cell(row, column);
                            self.set_lane(block, warp, lane, *register, bits.into());
                        }
                    }
                    AccessKind::Store(stored) => self.blocks[block]
                        .tensor
                        .cells_mut(row, access.columns.clone())
                        .copy_from_slice(&stored[lane]),
                }
            }
        }
    }

    /// Executes moves again in all lanes.
    fn move_again(&mut self, block: usize, warp: usize, moves: &[usize]) {
        let kernel = self.launches[self.blocks[block].launch].kernel;
        for thread in warp * WARP..(warp + 1) * WARP {
            for at in moves {
                let who = Who { block, thread };
                self.blocks[who.block].execute_again(who.thread, &kernel.instructions, *at);
            }
        }
    }

    fn set_lane(&mut self, block: usize, warp: usize, lane: usize, register: Register, bits: u64) {
        let registers = &mut self.blocks[block].registers;
        registers.of_mut(warp * WARP + lane).set(register, bits);
    }
}
