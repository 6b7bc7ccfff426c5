//! Transfers between memory and a multiprocessor, and their arrival times.

use gauntlet_tile_program::{BufferIndex, Contents, CopyMethod, Filled};

use super::Place;
use crate::gpu::costs::Transfer;
use crate::gpu::record::Row;
use crate::gpu::state::Block;
use crate::timeline::Activity;

impl Place<'_> {
    pub(super) fn load(&mut self, buffer: BufferIndex, ahead: usize, copy: CopyMethod) {
        let costs = self.costs();
        let transfers = match self.scene.code.buffers[buffer].contents {
            Contents::Queries => costs.queries,
            _ => costs.operands,
        };
        let (transfer, share) = match copy {
            CopyMethod::Bulk => (transfers[0], 1.0),
            CopyMethod::Asynchronous | CopyMethod::Registers => (transfers[1], 1.0 / self.groups()),
        };
        let filled = self.scene.code.buffers[buffer].filled;
        let first = filled == Filled::Tile || self.warps().step + ahead == 0;
        let there = self.read(&transfer, share, self.scene.ideal.fill && first);
        let issue = if self.scene.ideal.copy {
            0.0
        } else {
            transfer.issue * share
        };
        let warps = self.warps_mut();
        warps.now += issue;
        match copy {
            CopyMethod::Bulk => {
                let use_number = self.use_number(buffer, ahead);
                self.slot_mut(buffer, use_number).fill(use_number, there, 1);
                self.wake(buffer);
            }
            CopyMethod::Asynchronous => {
                warps.open_copies = warps.open_copies.max(there);
                warps.last_copy = warps.last_copy.max(there);
            }
            CopyMethod::Registers => warps.now = warps.now.max(there),
        }
        let slot = Block::slot(self.scene.code, buffer, self.use_number(buffer, ahead));
        let start = self.warps().now - issue;
        self.note(Row::Slot(self.block, slot), Activity::Load, start, there);
    }

    /// When data read from memory arrive.
    fn read(&mut self, transfer: &Transfer, share: f64, at_once: bool) -> f64 {
        let now = self.warps().now;
        // If the matrix unit has worked since the last copy was issued, copies and products overlap in this loop.
        let beside = self.processor.products_free > self.processor.last_copy;
        let busy = if beside && !self.scene.ideal.contention {
            self.scene.machine.beside_products
        } else {
            1.0
        };
        let start = now.max(self.processor.copies_free);
        let served = self.serve(transfer, share);
        if at_once {
            return now;
        }
        self.processor.last_copy = now;
        self.processor.copies_free = start + transfer.occupation * share * busy;
        served.max(start + transfer.arrival * share * busy) + transfer.latency
    }

    /// When cache and memory have served, in order of arrival, this multiprocessor and all those it represents.
    fn serve(&mut self, transfer: &Transfer, share: f64) -> f64 {
        let now = self.warps().now;
        let alike = self.alike() * share;
        let machine = self.scene.machine;
        let mut served = now;
        if transfer.cached > 0.0 {
            self.shared.cache_free =
                self.shared.cache_free.max(now) + transfer.cached * alike / machine.cache_rate;
            served = self.shared.cache_free;
        }
        if transfer.memory > 0.0 {
            self.shared.memory_free =
                self.shared.memory_free.max(now) + transfer.memory * alike / machine.memory_rate;
            served = served.max(self.shared.memory_free);
        }
        served
    }

    /// When half sectors, queued with those of all other multiprocessors, have been written. Unlike other stores, which
    /// are buffered in the cache, they delay the writing warps (measured).
    fn halves_leave(&mut self, transfer: &Transfer, share: f64) -> f64 {
        let now = self.warps().now;
        if transfer.halves == 0.0 {
            return now;
        }
        let bytes = transfer.halves * self.alike() * share;
        self.shared.halves_free =
            self.shared.halves_free.max(now) + bytes / self.scene.machine.half_sectors_together;
        self.shared.halves_free
    }

    /// The number of multiprocessors that do the same at the same time and have a tile.
    fn alike(&self) -> f64 {
        (self.processor.alike * self.scene.width) as f64 * self.costs().filled
    }

    pub(super) fn store(&mut self, from: Option<BufferIndex>, to: Option<BufferIndex>) {
        let share = 1.0 / self.groups();
        let staged = |buffer: Option<BufferIndex>| {
            buffer.is_some_and(|buffer| self.scene.code.buffers[buffer].contents == Contents::Staging)
        };
        let costs = *self.costs();
        if staged(from) {
            let written = self.write(&costs.bulk_store, share);
            self.warps_mut().now = written;
            return;
        }
        self.warps_mut().now += costs.take * share;
        if staged(to) {
            self.warps_mut().now += costs.stage * share;
        } else {
            let written = self.write(&costs.store, share);
            self.warps_mut().now = written;
        }
        self.warps_mut().now += costs.reduce * share;
    }

    /// When results have left; they reach memory one latency later.
    pub(super) fn write(&mut self, transfer: &Transfer, share: f64) -> f64 {
        let start = self.warps().now.max(self.processor.stores_free);
        let left = (start + transfer.occupation * share).max(self.halves_leave(transfer, share));
        self.processor.stores_free = left;
        let served = self.serve(transfer, share).max(left);
        self.processor.end = self.processor.end.max(served + transfer.latency);
        self.note(Row::Results, Activity::Store, start, left);
        left
    }
}
