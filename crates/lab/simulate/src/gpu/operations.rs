//! The effect and the duration of each operation.

mod transfers;

use std::collections::VecDeque;

use gauntlet_tile_program::{Action, BufferIndex, Guard, Product, Signal};

use super::assumed;
use super::costs::Costs;
use super::engine::{Scene, Shared};
use super::record::{Noted, Row};
use super::state::{Block, Doing, Processor, Slot, Warps};
use crate::timeline::Activity;

/// A group of warps and its context.
pub(super) struct Place<'a> {
    pub(super) scene: &'a Scene<'a>,
    pub(super) shared: &'a mut Shared,
    pub(super) processor: &'a mut Processor,
    /// Groups that this operation resumes.
    pub(super) woken: &'a mut Vec<usize>,
    pub(super) block: usize,
    pub(super) warps: usize,
}

impl Place<'_> {
    /// Runs the operation and moves to the next instruction. `None` if it must be retried after another group's
    /// operation, or continues when all have met.
    pub(super) fn run(mut self, operation: Action) -> Option<()> {
        let start = self.warps().now;
        let activity = match operation {
            Action::Acquire { buffer, ahead } => {
                self.acquire(buffer, ahead)?;
                Activity::Wait
            }
            Action::Await { buffer } => {
                self.await_full(buffer)?;
                Activity::Wait
            }
            Action::Load { buffer, ahead, copy } => {
                self.load(buffer, ahead, copy);
                Activity::Load
            }
            Action::Publish { buffer, when } => {
                self.signal(buffer, when, true);
                Activity::Wait
            }
            Action::Release { buffer, when } => {
                self.signal(buffer, when, false);
                Activity::Wait
            }
            Action::CommitCopies => {
                let warps = self.warps_mut();
                let open = std::mem::take(&mut warps.open_copies);
                warps.copy_groups.push_back(open);
                Activity::Wait
            }
            Action::AwaitCopies { outstanding } => {
                let warps = self.warps_mut();
                wait_for_all_but(outstanding, &mut warps.copy_groups, &mut warps.now);
                Activity::Wait
            }
            Action::AwaitProducts { outstanding } => {
                let warps = self.warps_mut();
                wait_for_all_but(outstanding, &mut warps.products, &mut warps.now);
                Activity::Wait
            }
            Action::Convert { to, .. } => {
                let cycles = self.costs().convert[usize::from(to.is_some())] / self.groups();
                self.occupy_lanes(cycles);
                Activity::Convert
            }
            Action::Softmax { .. } => {
                let cycles = self.costs().softmax / self.groups();
                self.occupy_lanes(cycles);
                Activity::Softmax
            }
            Action::Multiply {
                product,
                asynchronous,
                ..
            } => {
                self.multiply(product, asynchronous);
                Activity::Multiply
            }
            Action::Store { from, to } => {
                self.store(from, to);
                Activity::Store
            }
            Action::BulkStore { .. } => {
                let transfer = self.costs().bulk_store;
                let read = self.write(&transfer, 1.0);
                self.warps_mut().staging_read = read;
                Activity::Store
            }
            Action::AwaitStore => {
                let warps = self.warps_mut();
                warps.now = warps.now.max(warps.staging_read);
                Activity::Wait
            }
            Action::Synchronise => return self.meet(0, self.block().warps.len()),
            Action::SynchroniseRole => {
                let role = self.warps().role;
                return self.meet(1 + role, self.scene.code.roles[role].groups);
            }
        };
        let end = self.warps().now;
        self.note(Row::Warps(self.block, self.warps), activity, start, end);
        self.warps_mut().place += 1;
        Some(())
    }

    fn block(&self) -> &Block {
        &self.processor.blocks[self.block]
    }

    fn warps(&self) -> &Warps {
        &self.block().warps[self.warps]
    }

    fn warps_mut(&mut self) -> &mut Warps {
        &mut self.processor.blocks[self.block].warps[self.warps]
    }

    fn costs(&self) -> &Costs {
        &self.scene.costs[self.warps().kind]
    }

    /// The number of groups that share the role's work.
    fn groups(&self) -> f64 {
        self.scene.code.roles[self.warps().role].groups as f64
    }

    fn slot_mut(&mut self, buffer: BufferIndex, use_number: usize) -> &mut Slot {
        let slot = Block::slot(self.scene.code, buffer, use_number);
        &mut self.processor.blocks[self.block].slots[slot]
    }

    fn use_number(&self, buffer: BufferIndex, ahead: usize) -> usize {
        self.warps()
            .use_number(self.scene.code.buffers[buffer].filled, ahead)
    }

    fn acquire(&mut self, buffer: BufferIndex, ahead: usize) -> Option<()> {
        let slots = self.scene.code.buffers[buffer].slots;
        let Some(before) = self.use_number(buffer, ahead).checked_sub(slots) else {
            return Some(());
        };
        match self.slot_mut(buffer, before).empty_at(before) {
            Some(at) => {
                let warps = self.warps_mut();
                warps.now = warps.now.max(at);
                Some(())
            }
            None => self.park(buffer),
        }
    }

    fn await_full(&mut self, buffer: BufferIndex) -> Option<()> {
        if self.scene.code.buffers[buffer].guard == Guard::Block {
            return Some(());
        }
        let use_number = self.use_number(buffer, 0);
        match self.slot_mut(buffer, use_number).full_at(use_number) {
            Some(at) => {
                let warps = self.warps_mut();
                warps.now = warps.now.max(at);
                Some(())
            }
            None => self.park(buffer),
        }
    }

    fn park(&mut self, buffer: BufferIndex) -> Option<()> {
        self.warps_mut().doing = Doing::Parked(buffer);
        None
    }

    /// Resumes the groups that are parked at the buffer.
    fn wake(&mut self, buffer: BufferIndex) {
        let now = self.warps().now;
        for (index, other) in self.processor.blocks[self.block].warps.iter_mut().enumerate() {
            if other.doing == Doing::Parked(buffer) {
                other.doing = Doing::Ready;
                other.queued = now;
                self.woken.push(index);
            }
        }
    }

    /// Signals that the slot of the current step or tile is full, or empty.
    fn signal(&mut self, buffer: BufferIndex, when: Signal, full: bool) {
        let warps = self.warps();
        let since = match when {
            Signal::Now => 0.0,
            Signal::CopiesDone => warps.last_copy,
            Signal::ProductsDone => warps.last_product,
        };
        let at = warps.now.max(since) + self.scene.machine.signal;
        let users = self.scene.code.users[buffer];
        let use_number = self.use_number(buffer, 0);
        let slot = self.slot_mut(buffer, use_number);
        let complete = if full {
            slot.fill(use_number, at, users.publishing)
        } else {
            slot.empty(use_number, at, users.releasing)
        };
        if complete {
            self.wake(buffer);
        }
    }

    fn occupy_lanes(&mut self, cycles: f64) {
        let start = self.warps().now.max(self.processor.lanes_free);
        self.processor.lanes_free = start + cycles;
        self.warps_mut().now = start + cycles;
    }

    /// A product of the values by fused multiply-adds.
    fn multiply_scalar(&mut self, cycles: f64) {
        self.occupy_lanes(cycles);
        let done = self.warps().now;
        self.processor.last_product = self.processor.last_product.max(done);
    }

    fn multiply(&mut self, product: Product, asynchronous: bool) {
        let scalar = self.costs().scalar / self.groups();
        if product == Product::Values && scalar > 0.0 {
            return self.multiply_scalar(scalar);
        }
        let machine = self.scene.machine;
        let ideal = self.scene.ideal;
        let index = match product {
            Product::Gemm => 0,
            Product::Scores => 1,
            Product::Values => 2,
        };
        let cycles = self.costs().products[index] / self.groups_that_multiply();
        let batch = if ideal.fill { 0.0 } else { machine.batch };
        let latency = if ideal.fill {
            0.0
        } else {
            machine.product_latency[usize::from(self.scene.pair)]
        };
        let start = self.warps().now.max(self.processor.products_free);
        let free = start + batch + cycles;
        let done = free + latency;
        self.processor.products_free = free;
        self.processor.last_product = self.processor.last_product.max(done);
        let issue = if ideal.copy { 0.0 } else { assumed::PRODUCT_ISSUE };
        let warps = self.warps_mut();
        warps.last_product = warps.last_product.max(done);
        if asynchronous {
            warps.now += issue;
            warps.products.push_back(done);
            // Roles that learn of their products' completion by a barrier never wait for them individually.
            if warps.products.len() > assumed::PRODUCTS_IN_FLIGHT {
                warps.products.pop_front();
            }
        } else {
            warps.now = done;
        }
        self.note(Row::MatrixUnit, Activity::Multiply, start, free);
    }

    /// The number of groups that share a product; 1 if one warp issues for all.
    fn groups_that_multiply(&self) -> f64 {
        if self.scene.machine.arch == gauntlet_device::Arch::Sm100a {
            1.0
        } else {
            self.groups()
        }
    }

    /// Waits for `all` participants of a meeting, and resumes them if this is the last.
    fn meet(&mut self, meeting: usize, all: usize) -> Option<()> {
        let now = self.warps().now;
        let place = &mut self.processor.blocks[self.block];
        place.meetings[meeting] += 1;
        if place.meetings[meeting] < all {
            place.warps[self.warps].doing = Doing::Meeting(meeting);
            return None;
        }
        place.meetings[meeting] = 0;
        let [first, further] = self.scene.machine.synchronise;
        let end = now + first + further * (all - 1) as f64;
        let tile = place.before + place.warps[self.warps].begun.saturating_sub(1);
        for (index, other) in place.warps.iter_mut().enumerate() {
            if other.doing == Doing::Meeting(meeting) {
                self.processor.recorded.note(Noted {
                    row: Row::Warps(self.block, index),
                    activity: Activity::Wait,
                    start: other.now,
                    end,
                    tile,
                    step: Some(other.step),
                });
                other.doing = Doing::Ready;
                other.now = end;
                other.queued = end;
                other.place += 1;
                self.woken.push(index);
            }
        }
        place.warps[self.warps].now = end;
        place.warps[self.warps].place += 1;
        Some(())
    }

    fn note(&mut self, row: Row, activity: Activity, start: f64, end: f64) {
        if !self.scene.recording {
            return;
        }
        let tile = self.block().before + self.warps().begun.saturating_sub(1);
        let step = Some(self.warps().step);
        self.processor.recorded.note(Noted {
            row,
            activity,
            start,
            end,
            tile,
            step,
        });
    }
}

/// Waits for the earliest pending work, so that at most `outstanding` pieces of it remain.
fn wait_for_all_but(outstanding: usize, pending: &mut VecDeque<f64>, now: &mut f64) {
    while pending.len() > outstanding {
        *now = now.max(pending.pop_front().unwrap_or_default());
    }
}
