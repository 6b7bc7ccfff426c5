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
        self.happened();
        Ok(())
    }

    pub fn arrive_in_cluster(&mut self, who: Who) {
        let first = self.cluster(who.block).start;
        *self.cluster_arrivals.entry(first).or_default() += 1;
        self.happened();
    }

    /// Waits until all threads of the cluster have arrived.
    pub fn wait_for_cluster(&mut self, who: Who) {
        self.blocks[who.block].threads[who.thread].state = State::AtCluster;
        let cluster = self.cluster(who.block);
        let threads = || {
            self.blocks[cluster.clone()]
                .iter()
                .flat_map(|block| &block.threads)
        };
        let all = threads().count();
        let arrived = self.cluster_arrivals.get(&cluster.start).copied().unwrap_or(0);
        if arrived == all && threads().all(|thread| thread.state == State::AtCluster) {
            self.cluster_arrivals.remove(&cluster.start);
            for thread in self.blocks[cluster]
                .iter_mut()
                .flat_map(|block| &mut block.threads)
            {
                thread.state = State::Ready;
            }
        }
        self.happened();
    }
}
