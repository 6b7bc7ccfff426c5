//! What the blocks of a cluster do together.

use std::ops::Range;

use crate::block::{Block, State};
use crate::fault::Problem;
use crate::launch::Machine;
use crate::thread::Who;

impl Machine<'_> {
    /// The blocks of a block's cluster.
    fn cluster(&self, block: usize) -> Range<usize> {
        let Block { launch, rank, .. } = self.blocks[block];
        let first = block - rank as usize;
        first..first + self.launches[launch].cluster as usize
    }

    /// The index of the block with this rank in the same cluster.
    pub fn block_of_rank(&self, block: usize, rank: u32) -> Result<usize, Problem> {
        let mut cluster = self.cluster(block);
        let found = cluster.nth(rank as usize);
        found.ok_or_else(|| format!("no block of rank {rank} is in the cluster"))
    }

    /// Arrives at a barrier of a block of the cluster, after announcing bytes.
    pub fn arrive(&mut self, block: usize, barrier: u32, expected: u64, count: u64) -> Result<(), Problem> {
        if self.blocks[block].has_ended() {
            return Err(format!(
                "arrives at a barrier of block {}, which has ended",
                self.blocks[block].index
            ));
        }
        self.blocks[block].arrive(barrier, expected, count)?;
        self.watch_phases(block, barrier);
        self.happened();
        Ok(())
    }

    /// Arrives at the barrier of the cluster's threads.
    pub fn arrive_in_cluster(&mut self, who: Who, releases: bool) -> Result<(), Problem> {
        if self.has_arrived_in_cluster(who) {
            return Err("arrives at the cluster's barrier again before all others have arrived".to_owned());
        }
        self.blocks[who.block].threads[who.thread].cluster_arrivals += 1;
        let cluster = self.cluster(who.block).start;
        if let Some(watch) = self.watch.as_mut().filter(|_| releases) {
            watch.arrive_in_cluster(who, cluster);
        }
        self.end_cluster_phase(who.block);
        self.happened();
        Ok(())
    }

    /// Waits until all threads of the cluster that have not ended have arrived.
    pub fn wait_for_cluster(&mut self, who: Who) -> Result<(), Problem> {
        let thread = &mut self.blocks[who.block].threads[who.thread];
        if thread.cluster_arrivals == 0 {
            return Err("waits at the cluster's barrier without having arrived".to_owned());
        }
        if self.has_arrived_in_cluster(who) {
            self.blocks[who.block].set_state(who.thread, State::AtCluster);
        } else {
            let cluster = self.cluster(who.block).start;
            if let Some(watch) = &mut self.watch {
                watch.see_cluster_phase(who, cluster);
            }
        }
        self.happened();
        Ok(())
    }

    /// Whether a thread has arrived in the phase of its cluster's barrier that has not ended.
    fn has_arrived_in_cluster(&self, who: Who) -> bool {
        self.blocks[who.block].threads[who.thread].cluster_arrivals > self.cluster_phase(who.block)
    }

    /// Phases of the barrier of a block's cluster that have ended.
    fn cluster_phase(&self, block: usize) -> u64 {
        let first = self.cluster(block).start;
        self.cluster_phases.get(&first).copied().unwrap_or(0)
    }

    /// Ends the phase of the barrier of a block's cluster if all threads that have not ended have arrived.
    pub fn end_cluster_phase(&mut self, block: usize) {
        let (cluster, phase) = (self.cluster(block), self.cluster_phase(block));
        let left = || self.blocks[cluster.clone()].iter().flat_map(Block::left);
        if left().next().is_none() || left().any(|thread| thread.cluster_arrivals <= phase) {
            return;
        }
        self.cluster_phases.insert(cluster.start, phase + 1);
        if let Some(watch) = &mut self.watch {
            watch.end_cluster_phase(cluster.start);
            for block in cluster.clone() {
                for thread in 0..self.blocks[block].threads.len() {
                    if self.blocks[block].is_in(thread, State::AtCluster) {
                        watch.see_cluster_phase(Who { block, thread }, cluster.start);
                    }
                }
            }
        }
        for block in &mut self.blocks[cluster] {
            block.release_all(State::AtCluster);
        }
    }
}
