//! Executes one instruction of one thread.

mod copies;

use crate::block::State;
use crate::copies::Kind;
use crate::fault::Problem;
use crate::instruction::{Address, BarrierOperation, Operand, Operation, Order, Register, Space};
use crate::launch::Machine;
use crate::memory::{LOCAL, RANK_SHIFT, SHARED_WINDOW, aligned, local, number};
use crate::module::PARAMETER;
use crate::watch::Use;

/// How a thread continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Continues,
    /// It waits for something that is not there yet: other threads run first.
    Yields,
    /// It waits for the phase of a barrier of its block, which has not ended.
    AwaitsPhase,
}

/// A thread of a launch: the index of its block among those that run, and its number in the block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who {
    pub block: usize,
    pub thread: usize,
}

impl Machine<'_> {
    /// Executes the thread's next instruction, except warp-wide instructions and those handled by `Block::go_on`.
    pub fn step(&mut self, who: Who) -> Result<Turn, Problem> {
        let launch = &self.launches[self.blocks[who.block].launch];
        let at = self.blocks[who.block].next(who.thread);
        let Some(instruction) = launch.kernel.instructions.get(at) else {
            return Err("execution runs over the end".to_owned());
        };
        self.blocks[who.block].set_next(who.thread, at + 1);
        if let Some((register, set)) = instruction.guard
            && (self.value(who, Operand::Register(register)) != 0) != set
        {
            return Ok(Turn::Continues);
        }
        match &instruction.operation {
            Operation::Own(_) => {}
            Operation::Load {
                space,
                bytes,
                extends,
                order,
                to,
                from,
            } => self.load(who, (*space, *bytes, *extends), *order, to, *from)?,
            Operation::Store {
                space,
                bytes,
                order,
                to,
                from,
            } => self.store(who, (*space, *bytes), *order, *to, from)?,
            Operation::Change {
                space,
                bytes,
                order,
                function,
                reads,
                old,
                to,
                from,
            } => {
                let (space, address) = located(*space, self.address(who, *to));
                aligned(address, *bytes)?;
                let before = number(self.read(who, space, address, *bytes)?);
                let usage = if *reads { Use::Change } else { Use::Exchange };
                self.watch_access(who, (space, address, *bytes), usage, *order)?;
                let [value, other] = from.map(|one| self.value(who, one));
                let after = function([before, value, other, 0]);
                self.write(who, space, address, &after.to_le_bytes()[..*bytes])?;
                self.set(who, *old, before);
            }
            Operation::Exit => self.exit(who)?,
            Operation::Trap => return Err("the kernel ends the launch with an error here".to_owned()),
            Operation::OrderMemory { scope, is_sequential } => {
                if let Some(watch) = &mut self.watch {
                    watch.fence(who, *scope, *is_sequential);
                }
            }
            Operation::Fence => self.blocks[who.block].shared.fence(who.thread as u32),
            Operation::LetNextBegin => self.let_next_begin(who.block),
            Operation::WaitForBefore if self.before_has_ended(who.block) => {
                if let Some(watch) = &mut self.watch {
                    watch.ended_before(who, self.blocks[who.block].launch);
                }
            }
            Operation::WaitForBefore => {
                self.blocks[who.block].set_next(who.thread, at);
                return Ok(Turn::Yields);
            }
            Operation::Barrier(operation) => return self.barrier(who, operation),
            Operation::Meet {
                number,
                threads,
                waits,
                is_aligned: _,
                vote,
            } => {
                let (number, threads) = (
                    self.value(who, *number),
                    threads.map(|threads| self.value(who, threads)),
                );
                if let Some(vote) = vote {
                    let holds = (self.value(who, vote.from) != 0) != vote.is_negated;
                    self.blocks[who.block].vote(who.thread, number, *vote, holds);
                }
                if let Some(watch) = &mut self.watch {
                    watch.meet(who, number, at, *waits);
                }
                if self.blocks[who.block].meet(who.thread, number, threads, *waits) {
                    self.watch_release(who.block, number)?;
                }
                self.happened();
            }
            Operation::ArriveInCluster { releases } => self.arrive_in_cluster(who, *releases)?,
            Operation::WaitForCluster => self.wait_for_cluster(who)?,
            Operation::MapAddress { to, from, rank } => {
                let from = self.value(who, *from);
                let (address, _) = local(from as u32);
                let window = from >> 32 << 32;
                let rank = self.value(who, *rank) << RANK_SHIFT;
                self.set(who, *to, window | rank | u64::from(address));
            }
            Operation::Copy(operation) => self.copy(who, operation)?,
            Operation::Map(operation) => self.map_operation(who, operation)?,
            Operation::Tensor(operation) => self.tensor_operation(who, at, operation)?,
            Operation::Warp(_) => {
                let block = &mut self.blocks[who.block];
                block.set_next(who.thread, at);
                block.set_state(who.thread, State::AtWarp);
            }
        }
        Ok(Turn::Continues)
    }

    pub fn value(&self, who: Who, operand: Operand) -> u64 {
        self.blocks[who.block].value(who.thread, operand)
    }

    fn set(&mut self, who: Who, register: Register, bits: u64) {
        let registers = &mut self.blocks[who.block].registers;
        registers.of_mut(who.thread).set(register, bits);
    }

    pub fn address(&self, who: Who, address: Address) -> u64 {
        self.value(who, address.base).wrapping_add(address.offset)
    }

    /// The address in its own block's shared memory that a thread names.
    fn shared_address(&self, who: Who, address: Address) -> Result<u32, Problem> {
        self.blocks[who.block].own_address(self.address(who, address))
    }

    /// The block in whose shared memory an address of the cluster lies, and the address within that block.
    pub fn cluster_address(&self, who: Who, address: Address) -> Result<(usize, u32), Problem> {
        let (address, rank) = local(self.address(who, address) as u32);
        Ok((self.block_of_rank(who.block, rank)?, address))
    }

    fn load(
        &mut self,
        who: Who,
        (space, bytes, extends): (Space, usize, bool),
        order: Order,
        to: &[Register],
        from: Address,
    ) -> Result<(), Problem> {
        let (space, address) = located(space, self.address(who, from));
        let all = bytes * to.len();
        aligned(address, all)?;
        let read = self.read(who, space, address, all)?;
        // At most 32 bytes.
        let mut numbers = [0; 8];
        for (to, bytes) in numbers.iter_mut().zip(read.chunks(bytes)) {
            *to = number(bytes);
            if extends {
                let unused = 64 - 8 * bytes.len() as u32;
                *to = ((*to << unused) as i64 >> unused) as u64;
            }
        }
        self.watch_access(who, (space, address, all), Use::Read, order)?;
        for (to, number) in to.iter().zip(numbers) {
            self.set(who, *to, number);
        }
        Ok(())
    }

    fn store(
        &mut self,
        who: Who,
        (space, bytes): (Space, usize),
        order: Order,
        to: Address,
        from: &[Operand],
    ) -> Result<(), Problem> {
        let (space, address) = located(space, self.address(who, to));
        aligned(address, bytes * from.len())?;
        // At most 32 bytes.
        let mut stored = [0; 32];
        for (stored, from) in stored.chunks_exact_mut(bytes).zip(from) {
            stored.copy_from_slice(&self.value(who, *from).to_le_bytes()[..bytes]);
        }
        let stored = &stored[..bytes * from.len()];
        let repeats = !order.is_atomic
            && self.watch.is_some()
            && self.read(who, space, address, stored.len())? == stored;
        let usage = if repeats { Use::Repeat } else { Use::Write };
        self.write(who, space, address, stored)?;
        self.watch_access(who, (space, address, stored.len()), usage, order)
    }

    pub fn read(&self, who: Who, space: Space, address: u64, bytes: usize) -> Result<&[u8], Problem> {
        match space {
            Space::Global | Space::Generic => self.memory.read(address, bytes),
            Space::Shared => {
                let block = &self.blocks[who.block];
                block.shared.read(block.own_address(address)?, bytes)
            }
            Space::Local => self.blocks[who.block].local(who.thread, address, bytes),
            Space::Parameter => {
                let parameter = self.launches[self.blocks[who.block].launch].parameter;
                let begin = address.wrapping_sub(PARAMETER) as usize;
                let found = parameter.get(begin..begin.saturating_add(bytes));
                found.ok_or_else(|| format!("{bytes} bytes at {begin} of parameters of {}", parameter.len()))
            }
        }
    }

    pub fn write(&mut self, who: Who, space: Space, address: u64, stored: &[u8]) -> Result<(), Problem> {
        self.happened();
        match space {
            Space::Global | Space::Generic => {
                self.note_change(who, address, stored.len())?;
                self.memory.write(address, stored)
            }
            Space::Shared => {
                let block = &mut self.blocks[who.block];
                let address = block.own_address(address)?;
                block.shared.write(who.thread as u32, address, stored)
            }
            Space::Local => self.blocks[who.block].set_local(who.thread, address, stored),
            Space::Parameter => Err("parameters are only read".to_owned()),
        }
    }

    /// The lowest `bytes` bytes of each operand, one operand after another.
    fn bytes(&self, who: Who, bytes: usize, from: &[Operand]) -> Vec<u8> {
        from.iter()
            .flat_map(|one| self.value(who, *one).to_le_bytes().into_iter().take(bytes))
            .collect()
    }

    fn exit(&mut self, who: Who) -> Result<(), Problem> {
        let thread = &self.blocks[who.block].threads[who.thread];
        if !thread.pending[Kind::ToGlobal as usize].is_empty() {
            return Err("ends while its bulk stores may still read the block's memory".to_owned());
        }
        self.end(who)?;
        match self.blocks[who.block].has_ended() {
            true => self.blocks[who.block].tensor.check_end(),
            false => Ok(()),
        }
    }

    fn barrier(&mut self, who: Who, operation: &BarrierOperation) -> Result<Turn, Problem> {
        match operation {
            BarrierOperation::Initialise { barrier, arrivals } => {
                let (barrier, arrivals) = (self.shared_address(who, *barrier)?, self.value(who, *arrivals));
                self.blocks[who.block].initialise(barrier, arrivals)?;
                self.watch_phases(who.block, barrier);
            }
            BarrierOperation::Invalidate { barrier } => {
                let barrier = self.shared_address(who, *barrier)?;
                self.blocks[who.block].invalidate(barrier);
            }
            BarrierOperation::Expect { barrier, expected } => {
                let (block, barrier) = self.cluster_address(who, *barrier)?;
                let expected = self.value(who, *expected);
                self.blocks[block].expect(barrier, expected)?;
            }
            BarrierOperation::Arrive {
                barrier,
                expected,
                count,
            } => {
                let (block, barrier) = self.cluster_address(who, *barrier)?;
                let expected = expected.map_or(0, |expected| self.value(who, expected));
                let count = self.value(who, *count);
                if let Some(watch) = &mut self.watch {
                    watch.arrive(who, block, barrier);
                }
                self.arrive(block, barrier, expected, count)?;
            }
            BarrierOperation::Test {
                ended,
                barrier,
                parity,
            } => {
                let (barrier, parity) = (self.shared_address(who, *barrier)?, self.value(who, *parity));
                let has_ended = self.blocks[who.block].phase_has_ended(barrier, parity)?;
                self.set(who, *ended, u64::from(has_ended));
                if let Some(watch) = self.watch.as_mut().filter(|_| has_ended) {
                    watch.see_phase(who, barrier);
                }
                return Ok(if has_ended {
                    Turn::Continues
                } else {
                    Turn::AwaitsPhase
                });
            }
        }
        self.happened();
        Ok(Turn::Continues)
    }
}

/// The memory and the address in it that a generic address means; any other address as it is.
pub(crate) fn located(space: Space, address: u64) -> (Space, u64) {
    match space {
        Space::Generic if (SHARED_WINDOW..PARAMETER).contains(&address) => {
            (Space::Shared, address - SHARED_WINDOW)
        }
        Space::Generic | Space::Parameter if (LOCAL..SHARED_WINDOW).contains(&address) => {
            (Space::Local, address)
        }
        Space::Generic if address >= PARAMETER => (Space::Parameter, address),
        Space::Generic => (Space::Global, address),
        named => (named, address),
    }
}
