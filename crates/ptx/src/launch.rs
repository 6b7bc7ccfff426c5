//! A launch: all its blocks at once, in an order drawn from a seed.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::block::{Block, State, Thread, WARP};
use crate::collective::Warp;
use crate::copies::Copy;
use crate::fault::{Fault, Problem};
use crate::instruction::Operation;
use crate::memory::Memory;
use crate::module::Kernel;
use crate::thread::{Turn, Who};

/// Most instructions that a thread executes before others have their turn.
const TURN: u32 = 400;
/// So many turns of each warp without a store, an arrival or a copy are taken for waiting in vain: no loop of a kernel that
/// computes is as long.
const QUIET_TURNS: usize = 200;

/// How a kernel is launched.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'p> {
    /// Blocks.
    pub blocks: u32,
    /// Blocks of a cluster.
    pub cluster: u32,
    /// Threads of a block, a multiple of 32.
    pub threads: u32,
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// The kernel's parameter.
    pub parameter: &'p [u8],
    /// What decides the order in which things happen.
    pub seed: u64,
}

/// Runs a launch to its end.
///
/// # Errors
/// If it does not fit the kernel, a thread does what it must not, or nobody can go on.
pub fn run(kernel: &Kernel, launch: &Launch<'_>, memory: &mut Memory) -> Result<(), Fault> {
    let refused = |problem: String| Err(Fault::Launch(problem));
    if launch.parameter.len() != kernel.parameter_bytes {
        return refused(format!(
            "a parameter of {} bytes for a kernel that takes {}",
            launch.parameter.len(),
            kernel.parameter_bytes
        ));
    }
    if !launch.threads.is_multiple_of(WARP as u32)
        || launch.cluster == 0
        || !launch.blocks.is_multiple_of(launch.cluster)
    {
        return refused(format!(
            "{} blocks in clusters of {} with {} threads: clusters are whole, and so are warps",
            launch.blocks, launch.cluster, launch.threads
        ));
    }
    let shared_bytes = (kernel.static_bytes + launch.shared_bytes) as usize;
    let block = |index| {
        let place = [index, index % launch.cluster, launch.blocks];
        Block::new(place, launch.threads, kernel.registers, shared_bytes)
    };
    let mut machine = Machine {
        kernel,
        parameter: launch.parameter,
        cluster: launch.cluster as usize,
        blocks: (0..launch.blocks).map(block).collect(),
        memory,
        copies: Vec::new(),
        cluster_arrivals: vec![0; (launch.blocks / launch.cluster) as usize],
        random: ChaCha8Rng::seed_from_u64(launch.seed),
        quiet: 0,
    };
    machine.run()
}

/// A launch while it runs.
pub(crate) struct Machine<'m> {
    pub kernel: &'m Kernel,
    pub parameter: &'m [u8],
    pub blocks: Vec<Block>,
    pub memory: &'m mut Memory,
    /// Copies that were asked for and have not landed.
    pub copies: Vec<Copy>,
    cluster: usize,
    /// Threads that have arrived at each cluster's barrier.
    cluster_arrivals: Vec<usize>,
    random: ChaCha8Rng,
    /// Turns since anything happened that somebody may wait for.
    quiet: usize,
}

impl Machine<'_> {
    /// Lets warps go on and copies land, whichever is drawn, until all threads are done.
    fn run(&mut self) -> Result<(), Fault> {
        let warps_a_block = self.blocks.first().map_or(0, |block| block.threads.len() / WARP);
        let mut warps: Vec<_> = (0..self.blocks.len() * warps_a_block)
            .map(|index| (index / warps_a_block, index % warps_a_block))
            .collect();
        while !warps.is_empty() || !self.copies.is_empty() {
            let drawn = self.random.random_range(0..warps.len() + self.copies.len());
            if drawn >= warps.len() {
                let index = drawn - warps.len();
                let block = self.blocks[self.copies[index].block].index;
                self.land(index)
                    .map_err(|problem| Fault::Copy { block, problem })?;
                continue;
            }
            let (block, warp) = warps[drawn];
            self.turn(block, warp)?;
            if self
                .lanes(block, warp)
                .iter()
                .all(|thread| thread.state == State::Done)
            {
                warps.swap_remove(drawn);
            }
            if self.quiet > QUIET_TURNS * (warps.len() + 1) && self.copies.is_empty() {
                return Err(Fault::Deadlock(self.waiting()));
            }
        }
        Ok(())
    }

    /// Something happened that somebody may wait for.
    pub fn happened(&mut self) {
        self.quiet = 0;
    }

    fn lanes(&self, block: usize, warp: usize) -> &[Thread] {
        &self.blocks[block].threads[warp * WARP..][..WARP]
    }

    /// Each lane that can goes on for a while; then the warp does at once what all of its lanes have come to.
    fn turn(&mut self, block: usize, warp: usize) -> Result<(), Fault> {
        self.quiet += 1;
        let most = self.random.random_range(1..=TURN);
        for thread in warp * WARP..(warp + 1) * WARP {
            for _ in 0..most {
                let Block { threads, .. } = &self.blocks[block];
                let (state, at) = (threads[thread].state, threads[thread].next);
                if state != State::Ready {
                    break;
                }
                let turn = self.step(Who { block, thread });
                match turn.map_err(|problem| self.fault(block, thread, at, problem))? {
                    Turn::Continues => {}
                    Turn::Yields => break,
                }
            }
        }
        let lanes = self.lanes(block, warp);
        let at = lanes[0].next;
        if lanes
            .iter()
            .all(|lane| lane.state == State::AtWarp && lane.next == at)
            && let Operation::Warp(operation) = &self.kernel.instructions[at].operation
        {
            let executed = Warp {
                block: &mut self.blocks[block],
                index: warp,
                at,
            }
            .execute(operation);
            executed.map_err(|problem| self.fault(block, warp * WARP, at, problem))?;
            for lane in &mut self.blocks[block].threads[warp * WARP..][..WARP] {
                lane.state = State::Ready;
                lane.next = at + 1;
            }
            self.happened();
        }
        Ok(())
    }

    /// Does a copy that was asked for.
    pub fn land(&mut self, index: usize) -> Result<(), Problem> {
        let copy = self.copies.swap_remove(index);
        self.happened();
        copy.land(self.memory, &mut self.blocks[copy.block])
    }

    /// The place of a block of the same cluster.
    pub fn block_of_rank(&self, who: Who, rank: u32) -> Result<usize, Problem> {
        match (rank as usize) < self.cluster {
            true => Ok(who.block / self.cluster * self.cluster + rank as usize),
            false => Err(format!("rank {rank} of a cluster of {}", self.cluster)),
        }
    }

    pub fn arrive_in_cluster(&mut self, who: Who) {
        self.cluster_arrivals[who.block / self.cluster] += 1;
        self.happened();
    }

    /// Waits until all threads of the cluster have arrived.
    pub fn wait_for_cluster(&mut self, who: Who) {
        let cluster = who.block / self.cluster;
        let blocks = cluster * self.cluster..(cluster + 1) * self.cluster;
        self.blocks[who.block].threads[who.thread].state = State::AtCluster;
        let threads = || {
            self.blocks[blocks.clone()]
                .iter()
                .flat_map(|block| &block.threads)
        };
        let all = threads().count();
        if self.cluster_arrivals[cluster] == all && threads().all(|thread| thread.state == State::AtCluster) {
            self.cluster_arrivals[cluster] = 0;
            for thread in self.blocks[blocks]
                .iter_mut()
                .flat_map(|block| &mut block.threads)
            {
                thread.state = State::Ready;
            }
        }
        self.happened();
    }

    fn fault(&self, block: usize, thread: usize, at: usize, problem: Problem) -> Fault {
        let (line, text) = self.kernel.place(at);
        Fault::Thread {
            block: self.blocks[block].index,
            thread: thread as u32,
            line,
            text,
            problem,
        }
    }

    /// Where threads wait, those of a warp together.
    fn waiting(&self) -> String {
        let mut places: Vec<String> = Vec::new();
        for block in &self.blocks {
            for (index, lanes) in block.threads.chunks(WARP).enumerate() {
                let waiting = lanes.iter().filter(|lane| lane.state != State::Done);
                let mut at: Vec<_> = waiting.map(Thread::place).collect();
                at.dedup();
                for at in at.into_iter().take(2) {
                    let (line, text) = self.kernel.place(at);
                    places.push(format!(
                        "block {} warp {index} at line {line}, `{text}`",
                        block.index
                    ));
                }
            }
        }
        let shown = places.len().min(16);
        let more = if places.len() > shown {
            format!("; and {} more", places.len() - shown)
        } else {
            String::new()
        };
        format!("{}{more}", places[..shown].join("; "))
    }
}
