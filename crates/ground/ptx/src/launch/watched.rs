//! What is told to the watch, and what it finds.

use crate::block::WARP;
use crate::copies::{Awaited, Copy};
use crate::fault::Problem;
use crate::instruction::{Order, Space, WarpOperation};
use crate::launch::Machine;
use crate::memory::{SHARED_BEGIN, Touch};
use crate::thread::Who;
use crate::watch::{Diverged, End, PRODUCTS, Place, Strength, Use};

impl Machine<'_> {
    /// The place in memory that an address means; none if accesses there are not watched.
    fn place(&self, block: usize, space: Space, address: u64) -> Option<Place> {
        match space {
            Space::Global | Space::Generic => self.memory.place(address),
            Space::Shared => Some(Place::Shared {
                block,
                offset: (address as u32 & 0xFF_FFFF).checked_sub(SHARED_BEGIN)? as usize,
                size: self.blocks[block].shared.size(),
            }),
            Space::Local | Space::Parameter => None,
        }
    }

    /// Watches a thread's access, which lies within memory.
    pub fn watch_access(
        &mut self,
        who: Who,
        (space, address, count): (Space, u64, usize),
        usage: Use,
        order: Order,
    ) -> Result<(), Problem> {
        if self.watch.is_none() {
            return Ok(());
        }
        let at = self.blocks[who.block].next(who.thread) - 1;
        let place = self.place(who.block, space, address);
        let (Some(place), Some(watch)) = (place, &mut self.watch) else {
            return Ok(());
        };
        let is_shared = matches!(place, Place::Shared { .. });
        let strength = match order.scope {
            _ if !order.is_atomic || is_shared && order.is_volatile => Strength::Weak,
            crate::instruction::Scope::Block => Strength::Block,
            crate::instruction::Scope::Device => Strength::Device,
        };
        let at_fence = watch.is_at_fence(who);
        let found = watch.access(who, at, (place, count), usage, strength);
        if strength != Strength::Weak {
            watch.synchronise(who, place, usage, order, at_fence);
        }
        found.map_err(|found| self.told(found))
    }

    /// Notes how many phases of a barrier have ended.
    pub fn watch_phases(&mut self, block: usize, barrier: u32) {
        if let (Some(watch), Some(ended)) = (&mut self.watch, self.blocks[block].phases(barrier)) {
            watch.end_phases(block, barrier, ended);
        }
    }

    /// Notes that a numbered barrier lets its threads go on.
    pub fn watch_release(&mut self, block: usize, number: u64) -> Result<(), Problem> {
        let own = &self.blocks[block];
        let kernel = self.launches[own.launch].kernel;
        let Some(watch) = &mut self.watch else {
            return Ok(());
        };
        let ended = |thread| own.thread_has_ended(thread);
        let diverged = watch.diverged((block, number), &kernel.instructions, ended);
        watch.release(block, number);
        let Some((thread, at, how)) = diverged else {
            return Ok(());
        };
        let met = format!("divergent barrier: thread {thread} waits at {}", kernel.spot(at));
        Err(match how {
            Diverged::Elsewhere { thread, at } => format!(
                "{met}, and thread {thread} of the same warp at {}: all lanes of a warp have to execute the same barrier together",
                kernel.spot(at)
            ),
            Diverged::Around { thread } => format!(
                "{met}, and thread {thread} has gone around it: all threads of the block have to execute the barrier, or none"
            ),
        })
    }

    /// Checks what a block leaves behind.
    pub fn watch_end(&mut self, block: usize) -> Result<(), Problem> {
        match self.blocks[block]
            .expects_bytes()
            .filter(|_| self.watch.is_some())
        {
            Some((barrier, bytes)) => Err(format!(
                "its block ends, and the barrier at {barrier} of its shared memory{} still expects {bytes} bytes: a copy may land after \
                 the block's end; wait for the phase",
                self.kernel(block).variable(barrier)
            )),
            None => Ok(()),
        }
    }

    /// Notes that lanes of a warp wait for each other, before they do what their instruction says.
    pub(super) fn watch_lanes(
        &mut self,
        (block, warp): (usize, usize),
        operation: &WarpOperation,
        lanes: u32,
    ) {
        let Some(watch) = &mut self.watch else {
            return;
        };
        let first = Who {
            block,
            thread: warp * WARP,
        };
        match operation {
            WarpOperation::CommitProducts => watch.close_products(first),
            WarpOperation::WaitForProducts { left } => {
                let closed = watch.open_products(first).saturating_sub(*left as usize);
                watch.waited(first, PRODUCTS, closed);
            }
            _ => {}
        }
        let orders = matches!(operation, WarpOperation::SynchroniseLanes { .. });
        watch.gather_lanes(block, warp, lanes, orders);
        let is_traced = matches!(
            operation,
            WarpOperation::LoadMatrices { .. }
                | WarpOperation::StoreMatrices { .. }
                | WarpOperation::MultiplyGroup(_)
                | WarpOperation::PublishMap { .. }
                | WarpOperation::Tensor(_)
        );
        if is_traced {
            self.blocks[block].shared.trace.listen();
            self.memory.trace.listen();
        }
    }

    /// Watches what a warp has accessed with an instruction.
    pub(super) fn watch_warp(
        &mut self,
        (block, warp): (usize, usize),
        operation: &WarpOperation,
        at: usize,
    ) -> Result<(), Problem> {
        if self.watch.is_none() {
            return Ok(());
        }
        let [shared, global] = [self.blocks[block].shared.trace.take(), self.memory.trace.take()];
        if shared.is_empty() && global.is_empty() {
            return Ok(());
        }
        let touches = shared.iter().map(|touch| (Space::Shared, *touch));
        let touches: Vec<_> = touches
            .chain(global.iter().map(|touch| (Space::Global, *touch)))
            .collect();
        let product = match operation {
            WarpOperation::MultiplyGroup(_) => self
                .watch
                .as_mut()
                .map(|watch| watch.ask_of_warp(block, warp, at)),
            _ => None,
        };
        for (index, (space, touch)) in touches.into_iter().enumerate() {
            let place = self.place(block, space, touch.address);
            let (Some(place), Some(watch)) = (place, &mut self.watch) else {
                continue;
            };
            let usage = if touch.writes { Use::Write } else { Use::Take };
            // Row by row of an 8×8 matrix, or two halves of each lane.
            let lane = match operation {
                WarpOperation::LoadMatrices { .. } => index % WARP,
                WarpOperation::StoreMatrices { .. } => index / 2 % WARP,
                _ => 0,
            };
            let who = Who {
                block,
                thread: warp * WARP + lane,
            };
            let found = match &product {
                Some(asked) => {
                    let end = End::Group {
                        who: asked.who,
                        kind: PRODUCTS,
                        number: watch.open_products(asked.who),
                    };
                    watch.asynchronous(asked, end, (place, touch.count), usage)
                }
                None => watch.access(who, at, (place, touch.count), usage, Strength::Weak),
            };
            found.map_err(|found| self.told(found))?;
        }
        Ok(())
    }

    /// Lands a copy and watches what it accesses.
    pub(super) fn land_watched(&mut self, copy: &Copy) -> Result<(), Problem> {
        let Some(asked) = &copy.asked else {
            return Ok(());
        };
        let spot = self.kernel(asked.who.block).spot(asked.at);
        let of_thread = |problem: Problem| format!("thread {}, {spot}: {problem}", asked.who.thread);
        self.blocks[copy.block].shared.trace.listen();
        self.memory.trace.listen();
        let landed = copy.land(self.memory, &mut self.blocks);
        let [shared, global] = [
            self.blocks[copy.block].shared.trace.take(),
            self.memory.trace.take(),
        ];
        let end = match copy.awaited {
            Awaited::Group { thread, kind, number } => End::Group {
                who: Who {
                    block: copy.block,
                    thread,
                },
                kind: kind as usize,
                number: number as usize,
            },
            Awaited::Barrier { block, address } => End::Phase {
                block,
                barrier: address,
            },
        };
        let is_asynchronous =
            |touches: Vec<Touch>, space| joined(touches).into_iter().map(move |touch| (space, touch));
        for (space, touch) in
            is_asynchronous(global, Space::Global).chain(is_asynchronous(shared, Space::Shared))
        {
            let place = self.place(copy.block, space, touch.address);
            let (Some(place), Some(watch)) = (place, &mut self.watch) else {
                continue;
            };
            let usage = if touch.writes { Use::Write } else { Use::Take };
            let found = watch.asynchronous(asked, end, (place, touch.count), usage);
            found.map_err(|found| of_thread(self.told(found)))?;
        }
        if let Awaited::Barrier { block, address } = copy.awaited {
            self.watch_phases(block, address);
        }
        landed.map_err(of_thread)
    }

    /// The number below which all launches have ended when one begins.
    pub(super) fn ended_before(&self, launch: usize) -> usize {
        let chain = (0..=launch).rev();
        chain
            .take_while(|launch| *launch > 0)
            .find(|launch| !self.launches[*launch].overlaps)
            .unwrap_or(0)
    }
}

/// Neighbouring accesses as one.
fn joined(touches: Vec<Touch>) -> Vec<Touch> {
    let mut joined: Vec<Touch> = Vec::new();
    for touch in touches {
        match joined.last_mut() {
            Some(last)
                if last.address + last.count as u64 == touch.address && last.writes == touch.writes =>
            {
                last.count += touch.count;
            }
            _ => joined.push(touch),
        }
    }
    joined
}
