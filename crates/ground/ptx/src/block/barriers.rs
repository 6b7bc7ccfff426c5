//! Barriers in shared memory (mbarrier).

use super::Block;
use crate::fault::Problem;

/// A barrier in shared memory (mbarrier).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Barrier {
    arrivals: u64,
    left: u64,
    /// Bytes announced minus bytes that have arrived.
    bytes: i64,
    /// Phases that have ended.
    ended: u64,
}

impl Block {
    pub fn initialise(&mut self, barrier: u32, arrivals: u64) -> Result<(), Problem> {
        crate::memory::aligned(u64::from(barrier), 8)?;
        self.shared.read(barrier, 8)?;
        let fresh = Barrier {
            arrivals,
            left: arrivals,
            bytes: 0,
            ended: 0,
        };
        self.barriers.insert(barrier, fresh);
        self.barrier_changes += 1;
        Ok(())
    }

    pub fn invalidate(&mut self, barrier: u32) {
        self.barriers.remove(&barrier);
        self.barrier_changes += 1;
    }

    pub fn phase_has_ended(&self, barrier: u32, parity: u64) -> Result<bool, Problem> {
        let found = self.barriers.get(&barrier).ok_or_else(|| no_barrier(barrier))?;
        Ok(found.ended % 2 != parity & 1)
    }

    /// Phases of a barrier that have ended; none if it is no barrier.
    pub fn phases(&self, barrier: u32) -> Option<u64> {
        self.barriers.get(&barrier).map(|barrier| barrier.ended)
    }

    /// A barrier of the block that still expects bytes, and how many.
    pub fn expects_bytes(&self) -> Option<(u32, i64)> {
        let expects = self.barriers.iter().filter(|(_, barrier)| barrier.bytes != 0);
        expects.map(|(address, barrier)| (*address, barrier.bytes)).min()
    }

    /// Announces `expected` more bytes, then counts `count` arrivals.
    pub fn arrive(&mut self, address: u32, expected: u64, count: u64) -> Result<(), Problem> {
        let barrier = self.barrier(address)?;
        barrier.bytes += expected as i64;
        barrier.left = barrier.left.checked_sub(count).ok_or_else(|| {
            format!(
                "more arrive at the barrier than the {} it counts on",
                barrier.arrivals
            )
        })?;
        let ended = barrier.end_phase();
        self.barrier_changes += u64::from(ended);
        Ok(())
    }

    /// Announces bytes.
    pub fn expect(&mut self, address: u32, bytes: u64) -> Result<(), Problem> {
        self.barrier(address)?.bytes += bytes as i64;
        Ok(())
    }

    fn barrier(&mut self, address: u32) -> Result<&mut Barrier, Problem> {
        self.barriers.get_mut(&address).ok_or_else(|| no_barrier(address))
    }

    /// Counts bytes that a copy has delivered.
    pub fn complete(&mut self, address: u32, bytes: usize) -> Result<(), Problem> {
        let barrier = self.barrier(address)?;
        barrier.bytes -= bytes as i64;
        let ended = barrier.end_phase();
        self.barrier_changes += u64::from(ended);
        Ok(())
    }
}

impl Barrier {
    /// Begins the next phase if all threads have arrived and all bytes are there; returns whether they are.
    fn end_phase(&mut self) -> bool {
        let ends = self.left == 0 && self.bytes == 0;
        if ends {
            self.ended += 1;
            self.left = self.arrivals;
        }
        ends
    }
}

fn no_barrier(address: u32) -> Problem {
    format!("no barrier was initialised at {address}")
}
