//! A block: its threads, its shared memory, its barriers.

mod barriers;
mod lanes;
mod registers;
mod shape;

use std::collections::HashMap;
use std::ops::Range;

pub(crate) use barriers::Barrier;
pub(crate) use lanes::Lanes;
use registers::{OfThread, Registers};
pub(crate) use shape::Shape;

use crate::fault::Problem;
use crate::instruction::{
    BarrierVote, GroupProduct, Instruction, Operand, Operation, Own, SPECIALS, Special, VoteKind,
};
use crate::memory::{LOCAL, RANK_SHIFT, Shared, UNWRITTEN, local};
use crate::tensor_core::{Fences, TensorMemory};

pub(crate) const WARP: usize = 32;

/// Where a thread stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It can run.
    Ready,
    /// At an instruction that its warp executes as a whole.
    AtWarp,
    /// At a numbered barrier.
    AtBarrier(u64),
    /// At the cluster's barrier.
    AtCluster,
    Done,
}

#[derive(Debug)]
pub(crate) struct Thread {
    state: State,
    /// Number of closed copy groups: of copies by threads, and of copies to global memory.
    pub groups: [u64; 2],
    /// The groups of the copies that have not landed, by kind: a number for each copy.
    pub pending: [Vec<u64>; 2],
    /// How often it has arrived at its cluster's barrier.
    pub cluster_arrivals: u64,
    pub fences: Fences,
}

/// A warp-group product that may still read its operands, and the operand bytes that it read.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub product: GroupProduct,
    pub descriptors: Vec<u64>,
    pub operands: Vec<u8>,
    /// The instruction.
    pub issued: usize,
}

/// Products that the warp has not waited for: those of closed groups, and those of the open group.
#[derive(Debug, Default)]
pub(crate) struct Products {
    pub closed: Vec<Vec<InFlight>>,
    pub open: Vec<InFlight>,
}

#[derive(Debug)]
pub(crate) struct Block {
    /// The number of its launch.
    pub launch: usize,
    /// Whether this block still keeps the next launch from beginning.
    pub holds: bool,
    /// Its number in the grid.
    pub index: u32,
    pub rank: u32,
    shape: Shape,
    /// Whole warps: threads beyond those of the launch have ended from the start.
    pub threads: Vec<Thread>,
    pub registers: Registers,
    /// Each thread's own memory, one thread after another.
    local: Vec<u8>,
    local_bytes: usize,
    /// The lanes of each warp.
    lanes: Vec<Lanes>,
    pub shared: Shared,
    pub barriers: HashMap<u32, Barrier>,
    /// How often a phase of a barrier has ended, or a barrier has come or gone.
    pub barrier_changes: u64,
    /// Threads that have arrived at each numbered barrier, and how many it waits for if not for all.
    pub arrived: HashMap<u64, (u64, Option<u64>)>,
    /// What threads bring to numbered barriers at which they vote.
    ballots: HashMap<u64, Vec<(usize, BarrierVote, bool)>>,
    /// The pending products of each warp.
    pub products: Vec<Products>,
    pub tensor: TensorMemory,
}

impl Block {
    /// A block whose threads have as many registers and as many bytes of their own.
    pub fn new(
        launch: usize,
        shape: Shape,
        (registers, local_bytes): (usize, usize),
        shared_bytes: usize,
    ) -> Self {
        let threads = shape.block.iter().product::<u32>() as usize;
        let thread = |number| Thread {
            state: if number < threads {
                State::Ready
            } else {
                State::Done
            },
            groups: [0; 2],
            pending: [Vec::new(), Vec::new()],
            cluster_arrivals: 0,
            fences: Fences::default(),
        };
        let warps = threads.div_ceil(WARP);
        let all: Vec<Thread> = (0..warps * WARP).map(thread).collect();
        let mut lanes = vec![Lanes::default(); warps];
        for (number, thread) in all.iter().enumerate() {
            lanes[number / WARP].set(number % WARP, thread.state);
        }
        Self {
            launch,
            holds: true,
            index: shape.index,
            rank: shape.rank,
            shape,
            threads: all,
            registers: Registers::new(registers, warps),
            local: vec![UNWRITTEN; warps * WARP * local_bytes],
            local_bytes,
            lanes,
            shared: Shared::new(shared_bytes),
            barriers: HashMap::new(),
            barrier_changes: 0,
            arrived: HashMap::new(),
            ballots: HashMap::new(),
            products: (0..warps).map(|_| Products::default()).collect(),
            tensor: TensorMemory::default(),
        }
    }

    /// The value of an operand for one thread.
    #[inline]
    pub fn value(&self, thread: usize, operand: Operand) -> u64 {
        value(&self.registers.of(thread), operand, || {
            self.shape.specials(thread)
        })
    }

    /// The lanes of a warp.
    pub fn lanes(&self, warp: usize) -> &Lanes {
        &self.lanes[warp]
    }

    /// Whether a thread can run.
    pub fn is_ready(&self, thread: usize) -> bool {
        self.lanes[thread / WARP].ready >> (thread % WARP) & 1 == 1
    }

    /// Sets the time that its threads read.
    pub fn set_clock(&mut self, clock: u64) {
        self.shape.clock = clock;
    }

    /// The range of a thread's own memory.
    fn local_range(&self, thread: usize, address: u64, count: usize) -> Result<Range<usize>, Problem> {
        let begin = address.wrapping_sub(LOCAL) as usize;
        match begin.checked_add(count) {
            Some(end) if end <= self.local_bytes => {
                let own = thread * self.local_bytes;
                Ok(own + begin..own + end)
            }
            _ => Err(format!(
                "{count} bytes at {begin} of the thread's own memory (.local), which has {} bytes",
                self.local_bytes
            )),
        }
    }

    /// Bytes of a thread's own memory.
    pub fn local(&self, thread: usize, address: u64, count: usize) -> Result<&[u8], Problem> {
        Ok(&self.local[self.local_range(thread, address, count)?])
    }

    pub fn set_local(&mut self, thread: usize, address: u64, bytes: &[u8]) -> Result<(), Problem> {
        let range = self.local_range(thread, address, bytes.len())?;
        self.local[range].copy_from_slice(bytes);
        Ok(())
    }

    /// Whether a thread is in a state.
    pub fn is_in(&self, thread: usize, state: State) -> bool {
        self.threads[thread].state == state
    }

    /// The next instruction of a thread.
    pub fn next(&self, thread: usize) -> usize {
        self.lanes[thread / WARP].next[thread % WARP]
    }

    pub fn set_next(&mut self, thread: usize, at: usize) {
        self.lanes[thread / WARP].next[thread % WARP] = at;
    }

    /// The instruction that a thread is at: one that has arrived at a barrier waits behind that instruction.
    pub fn place(&self, thread: usize) -> usize {
        match self.threads[thread].state {
            State::AtBarrier(_) | State::AtCluster => self.next(thread) - 1,
            State::Ready | State::AtWarp | State::Done => self.next(thread),
        }
    }

    /// Whether all lanes of a warp that can run are in loops that wait for phases, none of which has ended since they asked.
    pub fn awaits_phase(&self, warp: usize) -> bool {
        self.lanes[warp].awaits == Some(self.barrier_changes)
    }

    /// Notes that this is so.
    pub fn await_phase(&mut self, warp: usize) {
        self.lanes[warp].awaits = Some(self.barrier_changes);
    }

    /// Changes the state of a thread.
    pub fn set_state(&mut self, thread: usize, state: State) {
        self.threads[thread].state = state;
        self.lanes[thread / WARP].set(thread % WARP, state);
    }

    /// Executes instructions that concern only this thread, at most `most`; returns how many.
    pub fn go_on(&mut self, thread: usize, instructions: &[Instruction], most: u32) -> u32 {
        let shape = self.shape;
        let next = &mut self.lanes[thread / WARP].next[thread % WARP];
        let registers = &mut self.registers.of_mut(thread);
        let value = |registers: &OfThread<&mut [u64]>, operand: Operand| {
            value(registers, operand, || shape.specials(thread))
        };
        for executed in 0..most {
            let Some(Instruction {
                guard,
                operation: Operation::Own(own),
                ..
            }) = instructions.get(*next)
            else {
                return executed;
            };
            *next += 1;
            if guard.is_some_and(|(register, set)| (registers.get(register) != 0) != set) {
                continue;
            }
            match own {
                Own::Compute { function, to, from } => {
                    // `from.map` is not inlined, which makes the interpreter a fifth slower.
                    let [first, second, third, fourth] = *from;
                    let computed = function([
                        value(registers, first),
                        value(registers, second),
                        value(registers, third),
                        value(registers, fourth),
                    ]);
                    registers.set(*to, computed);
                }
                Own::Join { to, from, bits } => {
                    let mask = u64::MAX >> (64 - bits);
                    let parts = from.iter().rev();
                    let joined =
                        parts.fold(0, |joined, part| joined << bits | value(registers, *part) & mask);
                    registers.set(*to, joined);
                }
                Own::Split { to, from, bits } => {
                    let (whole, mask) = (value(registers, *from), u64::MAX >> (64 - bits));
                    for (index, to) in to.iter().enumerate() {
                        registers.set(*to, whole >> (index as u32 * bits) & mask);
                    }
                }
                Own::Branch(target) => *next = *target,
                Own::Nothing => {}
            }
        }
        most
    }

    /// Executes an instruction that concerns only this thread, out of turn.
    pub fn execute_again(&mut self, thread: usize, instructions: &[Instruction], at: usize) {
        let next = self.next(thread);
        self.set_next(thread, at);
        self.go_on(thread, instructions, 1);
        self.set_next(thread, next);
    }

    /// The address within this block that an address of the cluster's shared memory means.
    ///
    /// # Errors
    /// If it is an address of another block.
    pub fn own_address(&self, address: u64) -> Result<u32, Problem> {
        let (address, rank) = local(address as u32);
        match rank == self.rank {
            true => Ok(address),
            false => Err(format!(
                "address {address} of the shared memory of the block of rank {rank} in the cluster, used as one of the own block's, \
                 whose rank is {}",
                self.rank
            )),
        }
    }

    /// The threads that have not ended.
    pub fn left(&self) -> impl Iterator<Item = &Thread> {
        let threads = self.threads.iter();
        threads.filter(|thread| thread.state != State::Done)
    }

    /// Whether all its threads have ended.
    pub fn has_ended(&self) -> bool {
        self.lanes.iter().all(|lanes| lanes.done == u32::MAX)
    }

    /// One thread arrives at a numbered barrier and may wait there.
    /// Returns whether those that wait go on.
    pub fn meet(&mut self, thread: usize, number: u64, threads: Option<u64>, waits: bool) -> bool {
        if waits {
            self.set_state(thread, State::AtBarrier(number));
        }
        let (arrived, expected) = self.arrived.entry(number).or_default();
        *arrived += 1;
        *expected = threads;
        self.release(number)
    }

    /// Lets the threads at a numbered barrier go on if all that it waits for have arrived; returns whether they have.
    fn release(&mut self, number: u64) -> bool {
        let alive: u32 = self.lanes.iter().map(|lanes| lanes.done.count_zeros()).sum();
        let Some((arrived, expected)) = self.arrived.get_mut(&number) else {
            return false;
        };
        if *arrived == 0 || *arrived < expected.unwrap_or(alive.into()) {
            return false;
        }
        *arrived = 0;
        self.tell_votes(number);
        self.release_all(State::AtBarrier(number));
        true
    }

    /// Notes what a thread brings to a barrier at which threads vote.
    pub fn vote(&mut self, thread: usize, number: u64, vote: BarrierVote, holds: bool) {
        let ballots = self.ballots.entry(number).or_default();
        ballots.push((thread, vote, holds));
    }

    fn tell_votes(&mut self, number: u64) {
        let ballots = self.ballots.remove(&number).unwrap_or_default();
        let holding = ballots.iter().filter(|(.., holds)| *holds).count();
        for (thread, vote, _) in &ballots {
            let told = match vote.kind {
                VoteKind::All => u64::from(holding == ballots.len()),
                VoteKind::Any => u64::from(holding > 0),
                VoteKind::Count => holding as u64,
            };
            self.registers.of_mut(*thread).set(vote.to, told);
        }
    }

    /// Lets all threads in a state go on.
    pub fn release_all(&mut self, waiting: State) {
        for thread in 0..self.threads.len() {
            if self.threads[thread].state == waiting {
                self.set_state(thread, State::Ready);
            }
        }
    }

    /// Ends a thread. Barriers of all threads no longer wait for it; returns those whose threads go on.
    pub fn end(&mut self, thread: usize) -> Vec<u64> {
        self.set_state(thread, State::Done);
        let numbers: Vec<u64> = self.arrived.keys().copied().collect();
        numbers
            .into_iter()
            .filter(|number| self.release(*number))
            .collect()
    }

    /// Whether a thread of the launch has ended.
    pub fn thread_has_ended(&self, thread: usize) -> bool {
        let launched = self.shape.block.iter().product::<u32>() as usize;
        thread < launched && self.threads[thread].state == State::Done
    }
}

/// The value of an operand for a thread with these registers.
#[inline]
fn value(
    registers: &OfThread<impl AsRef<[u64]>>,
    operand: Operand,
    specials: impl FnOnce() -> [u64; SPECIALS],
) -> u64 {
    match operand {
        Operand::Register(register) => registers.get(register),
        Operand::Constant(number) => number,
        Operand::Special(special) => specials()[special as usize],
        Operand::Shared(address) => {
            specials()[Special::RankInCluster as usize] << RANK_SHIFT | u64::from(address)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn shape(threads: u32) -> Shape {
        Shape {
            grid: [1; 3],
            block: [threads, 1, 1],
            index: 0,
            rank: 0,
            cluster: 1,
            clock: 0,
        }
    }

    #[test]
    fn threads_and_blocks_are_numbered_x_first() {
        let shape = Shape {
            grid: [2, 3, 1],
            block: [4, 2, 5],
            index: 5,
            rank: 0,
            cluster: 2,
            clock: 9,
        };
        let block = Block::new(0, shape, (1, 0), 0);
        assert_eq!(
            shape.specials(39),
            [3, 1, 4, 4, 2, 5, 1, 2, 0, 2, 3, 1, 7, 1, 0, 2, 0, 1, 9]
        );
        let done = block.threads.iter().filter(|thread| thread.state == State::Done);
        assert_eq!(done.count(), 24, "the last warp is not full");
    }

    #[test]
    fn a_thread_that_ends_is_not_waited_for() {
        let mut block = Block::new(0, shape(2), (1, 0), 64);
        block.meet(0, 0, None, true);
        assert_eq!(block.threads[0].state, State::AtBarrier(0));
        block.end(1);
        assert_eq!(block.threads[0].state, State::Ready);
    }

    #[test]
    fn a_phase_ends_with_its_last_arrival_or_byte() {
        let mut block = Block::new(0, shape(64), (1, 0), 64);
        block.initialise(1024, 2).unwrap();
        assert!(
            block.phase_has_ended(1024, 1).unwrap(),
            "the phase before the first"
        );
        block.arrive(1024, 16, 1).unwrap();
        block.arrive(1024, 0, 1).unwrap();
        assert!(!block.phase_has_ended(1024, 0).unwrap(), "bytes are missing");
        assert_eq!(
            block.arrive(1024, 0, 1).unwrap_err(),
            "more arrive at the barrier than the 2 it counts on"
        );
        block.complete(1024, 16).unwrap();
        assert!(block.phase_has_ended(1024, 0).unwrap());
        assert!(!block.phase_has_ended(1024, 1).unwrap());
        assert_eq!(
            block.arrive(1032, 0, 1).unwrap_err(),
            "no barrier was initialised at 1032"
        );
    }

    #[test]
    fn threads_that_meet_go_on_together() {
        let mut block = Block::new(0, shape(3), (1, 0), 64);
        block.meet(0, 1, Some(2), true);
        assert_eq!(block.threads[0].state, State::AtBarrier(1));
        block.meet(1, 1, Some(2), false);
        assert_eq!(block.threads[0].state, State::Ready);
        block.set_state(2, State::Done);
        block.meet(0, 0, None, true);
        block.meet(1, 0, None, true);
        assert!(
            block.threads[..2]
                .iter()
                .all(|thread| thread.state == State::Ready)
        );
    }
}
