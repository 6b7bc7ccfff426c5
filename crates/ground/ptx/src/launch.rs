//! Launches: all blocks run concurrently, in an order drawn from a seed.

mod cluster;
mod description;
mod watched;

use std::collections::{BTreeSet, HashMap};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::block::{Block, Lanes, Shape, State, Thread, WARP};
use crate::changed_maps::ChangedMaps;
use crate::collective::Warp;
use crate::copies::{Awaited, Copy, Kind, Way};
use crate::fault::{Fault, Problem};
use crate::instruction::{Operation, WarpOperation};
use crate::memory::Memory;
use crate::module::Kernel;
use crate::tensor_core::Queues;
use crate::thread::{Turn, Who};
use crate::watch::Watch;

pub use description::Launch;

/// A thread executes 2^0 to 2^9 instructions in a turn before others continue: some threads run far ahead, and some
/// stop between any two instructions.
const TURN_POWERS: u32 = 9;
/// A copy lands after 2^0 to 2^12 draws, so that some overtake all others and some come last. It may land earlier if all
/// threads have waited for `PATIENT_TURNS` turns of each warp.
const DELAY_POWERS: u32 = 12;
/// Every eighth copy by a thread lands only when the thread waits for it. A loop that computes for long between a copy and
/// its wait outlasts any delay, which would hide a missing wait.
const AWAITED: u32 = 8;
const PATIENT_TURNS: usize = 4;
/// One in so many times, what an adversary holds back goes on although others could: they may be waiting for it in a loop that stores.
const RARELY: usize = 64;
/// After this many turns of each warp without a store, an arrival or a copy, the launch counts as deadlocked: no loop
/// of a kernel that computes is as long.
const QUIET_TURNS: usize = 200;

/// Runs launches in order, each queued behind the one before, to the end; `seed` decides the order of events.
///
/// # Errors
/// If a launch does not fit its kernel, a thread does something forbidden, or no thread can make progress.
pub fn run(launches: &[Launch<'_>], memory: &mut Memory, seed: u64) -> Result<(), Fault> {
    started(launches, memory, seed, Adversary::Nothing, None)
}

/// Runs launches as [`run`] does, and watches their accesses to memory: two accesses of which one writes and that nothing orders, a
/// read of what nobody has written, and a barrier that some threads go around are faults, whatever comes out. `seed` also decides
/// whether a warp of each block is starved or all copies come late.
///
/// # Errors
/// As of [`run`], and if something of that kind is found.
pub fn watch(launches: &[Launch<'_>], memory: &mut Memory, seed: u64) -> Result<(), Fault> {
    let adversary = match seed % 3 {
        0 => Adversary::Nothing,
        1 => Adversary::StarvesWarps,
        _ => Adversary::DelaysCopies,
    };
    started(launches, memory, seed, adversary, Some(Box::default()))
}

/// What goes on as late as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Adversary {
    Nothing,
    /// One warp of each block mostly runs only when the others wait.
    StarvesWarps,
    DelaysCopies,
}

fn started(
    launches: &[Launch<'_>],
    memory: &mut Memory,
    seed: u64,
    adversary: Adversary,
    watch: Option<Box<Watch>>,
) -> Result<(), Fault> {
    launches.iter().try_for_each(Launch::check)?;
    for global in launches.iter().flat_map(|launch| &launch.kernel.globals) {
        memory.define(global);
    }
    let mut machine = Machine {
        launches,
        begun: Vec::new(),
        blocks: Vec::new(),
        warps: Vec::new(),
        memory,
        copies: Vec::new(),
        cluster_phases: HashMap::new(),
        queues: Queues::default(),
        changed_maps: ChangedMaps::default(),
        watch,
        adversary,
        starved: seed,
        random: ChaCha8Rng::seed_from_u64(seed),
        clock: 0,
        quiet: 0,
    };
    // What was read before anyone wrote it is behind other faults than races.
    let ended = match (machine.run(), machine.unwritten()) {
        (Ok(()), Some(unwritten)) => Err(unwritten),
        (Err(fault), Some(unwritten)) if !fault.is_race() => Err(unwritten),
        (ended, _) => ended,
    };
    // What a run has written, the next one may read.
    memory.end_run();
    ended
}

/// The progress of a launch.
#[derive(Debug)]
struct Begun {
    /// Threads that have not ended.
    threads: usize,
    /// Blocks that do not yet allow the next launch to begin.
    holding: usize,
}

/// The state of running launches.
pub(crate) struct Machine<'m> {
    pub launches: &'m [Launch<'m>],
    /// The progress of each launch that has begun.
    begun: Vec<Begun>,
    /// The blocks of all launches that have begun.
    pub blocks: Vec<Block>,
    /// The warps that have not ended: the block's index and the warp's number in it.
    warps: Vec<(usize, usize)>,
    pub memory: &'m mut Memory,
    /// Copies that were requested and have not landed.
    pub copies: Vec<Copy>,
    /// Phases of a cluster's barrier that have ended, by the cluster's first block.
    cluster_phases: HashMap<usize, u64>,
    /// Operations that the tensor cores have not carried out.
    pub queues: Queues,
    /// Tensor maps that threads have changed.
    pub changed_maps: ChangedMaps,
    /// What is known of accesses to memory, if they are watched.
    pub watch: Option<Box<Watch>>,
    adversary: Adversary,
    /// Decides which warp of a block is starved.
    starved: u64,
    random: ChaCha8Rng,
    /// Number of draws so far, which serves as the time.
    clock: u64,
    /// Turns since the last event that a thread may wait for.
    quiet: usize,
}

impl Machine<'_> {
    /// Runs warps, lands copies and begins launches in random order until everything is done.
    fn run(&mut self) -> Result<(), Fault> {
        loop {
            let (warps, copies) = (self.warps.len(), self.copies.len());
            let (operations, begins) = (self.queues.active(), usize::from(self.next_may_begin()));
            let choices = warps + copies + operations + begins;
            if choices == 0 {
                return Ok(());
            }
            let drawn = self.random.random_range(0..choices);
            self.clock += 1;
            let all_wait = self.all_wait();
            if drawn < warps {
                let starves = self.adversary == Adversary::StarvesWarps && self.is_starved(drawn);
                if starves && !all_wait && self.draw(RARELY) > 0 {
                    // Turns that nobody takes count too: the warp runs once the others wait.
                    self.quiet += 1;
                    continue;
                }
                self.turn_of(drawn)?;
            } else if drawn < warps + copies {
                let is_late = self.adversary == Adversary::DelaysCopies && self.draw(RARELY) > 0;
                if (is_late || self.copies[drawn - warps].due > self.clock) && !all_wait {
                    continue;
                }
                let block = self.blocks[self.copies[drawn - warps].block].index;
                let landed = self.land(drawn - warps);
                landed.map_err(|problem| Fault::Copy { block, problem })?;
            } else if drawn < warps + copies + operations {
                let next = drawn - warps - copies;
                if self.queues.is_due(next, self.clock, all_wait) {
                    self.carry_out(next)?;
                }
            } else {
                self.begin();
            }
            let is_idle = self.copies.is_empty() && self.queues.active() == 0;
            let idle = is_idle && !self.next_may_begin();
            if idle && self.quiet > QUIET_TURNS * (self.warps.len() + 1) {
                return Err(Fault::Deadlock(self.waiting()));
            }
        }
    }

    /// Whether a warp is the one of its block that runs only when the others wait.
    fn is_starved(&self, place: usize) -> bool {
        let (block, warp) = self.warps[place];
        let warps = self.blocks[block].threads.len() / WARP;
        (self.starved / 3) as usize % warps == warp
    }

    /// Whether no warp has done anything for a while that another may wait for.
    fn all_wait(&self) -> bool {
        let warps = self.warps.len();
        warps == 0 || self.quiet > PATIENT_TURNS * warps
    }

    fn next_may_begin(&self) -> bool {
        let next = self.begun.len();
        match (self.launches.get(next), next.checked_sub(1)) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(launch), Some(before)) if launch.overlaps => self.begun[before].holding == 0,
            (Some(_), Some(before)) => self.has_ended(before),
        }
    }

    /// Whether all threads of a launch have ended and its copies have landed.
    fn has_ended(&self, launch: usize) -> bool {
        let of_launch = |copy: &Copy| self.blocks[copy.block].launch == launch;
        self.begun[launch].threads == 0
            && !self.copies.iter().any(of_launch)
            && !self.queues.any(|block| self.blocks[block].launch == launch)
    }

    /// Begins the blocks of the next launch.
    fn begin(&mut self) {
        let number = self.begun.len();
        let launch = &self.launches[number];
        let shared_bytes = match launch.shared_bytes {
            0 => launch.kernel.variable_bytes,
            dynamic => launch.kernel.static_bytes + dynamic,
        } as usize;
        let (running, threads) = (launch.running(), launch.threads());
        let blocks = running.len();
        let launches = self.ended_before(number);
        for index in running {
            let shape = Shape {
                grid: launch.grid,
                block: launch.block,
                index,
                rank: index % launch.cluster,
                cluster: launch.cluster,
                clock: 0,
            };
            let warps = 0..(threads as usize).div_ceil(WARP);
            self.warps.extend(warps.map(|warp| (self.blocks.len(), warp)));
            let block = Block::new(number, shape, launch.kernel.takes(), shared_bytes);
            if let Some(watch) = &mut self.watch {
                watch.begin(number, block.threads.len(), launches);
            }
            self.blocks.push(block);
        }
        self.begun.push(Begun {
            threads: blocks * threads as usize,
            holding: blocks,
        });
        self.happened();
    }

    /// Notes that a block allows the next launch to begin, or has ended.
    pub fn let_next_begin(&mut self, block: usize) {
        let block = &mut self.blocks[block];
        if std::mem::replace(&mut block.holds, false) {
            self.begun[block.launch].holding -= 1;
            self.happened();
        }
    }

    /// Whether the previous launch has ended, if this one may have begun before its end.
    pub fn before_has_ended(&self, block: usize) -> bool {
        let launch = self.blocks[block].launch;
        match launch.checked_sub(1) {
            Some(before) if self.launches[launch].overlaps => self.has_ended(before),
            _ => true,
        }
    }

    pub fn end(&mut self, who: Who) -> Result<(), Problem> {
        let released = self.blocks[who.block].end(who.thread);
        released
            .into_iter()
            .try_for_each(|number| self.watch_release(who.block, number))?;
        let block = &mut self.blocks[who.block];
        self.begun[block.launch].threads -= 1;
        if block.has_ended() {
            self.let_next_begin(who.block);
            self.watch_end(who.block)?;
        }
        self.end_cluster_phase(who.block);
        self.happened();
        Ok(())
    }

    fn turn_of(&mut self, place: usize) -> Result<(), Fault> {
        let (block, warp) = self.warps[place];
        self.turn(block, warp)?;
        if self.blocks[block].lanes(warp).done == u32::MAX {
            self.warps.swap_remove(place);
        }
        Ok(())
    }

    pub fn kernel(&self, block: usize) -> &Kernel {
        self.launches[self.blocks[block].launch].kernel
    }

    /// Notes an event that a thread may wait for.
    pub fn happened(&mut self) {
        self.quiet = 0;
    }

    /// The time.
    pub fn now(&self) -> u64 {
        self.clock
    }

    /// A random number below `count`.
    pub fn draw(&mut self, count: usize) -> usize {
        self.random.random_range(0..count)
    }

    /// When something that was requested now may happen at the earliest; one in `AWAITED` only when all threads wait.
    pub fn delay(&mut self) -> u64 {
        match self.draw(AWAITED as usize) {
            0 => u64::MAX,
            _ => self.clock + (1 << self.random.random_range(0..=DELAY_POWERS)),
        }
    }

    pub fn lanes(&self, block: usize, warp: usize) -> &[Thread] {
        &self.blocks[block].threads[warp * WARP..][..WARP]
    }

    /// Lets each ready lane run for a while; then executes the warp-wide instruction if all lanes have reached it.
    fn turn(&mut self, block: usize, warp: usize) -> Result<(), Fault> {
        self.quiet += 1;
        let most = 1_u32 << self.random.random_range(0..=TURN_POWERS);
        if self.blocks[block].awaits_phase(warp) && !self.all_wait() {
            return Ok(());
        }
        self.blocks[block].set_clock(self.clock);
        let (changes, mut await_phase) = (self.blocks[block].barrier_changes, 0);
        for lane in 0..WARP {
            // A lane may release one behind it.
            let thread = warp * WARP + lane;
            if self.blocks[block].is_ready(thread) {
                let awaits = self.go_on(Who { block, thread }, most)?;
                await_phase |= u32::from(awaits) << lane;
            }
        }
        let own = &mut self.blocks[block];
        if await_phase != 0 && await_phase == own.lanes(warp).ready && changes == own.barrier_changes {
            own.await_phase(warp);
        }
        let kernel = self.launches[self.blocks[block].launch].kernel;
        let lanes = self.blocks[block].lanes(warp);
        let places = Lanes::of(lanes.at_warp).map(|lane| lanes.next[lane]);
        let places: BTreeSet<usize> = places.collect();
        for at in places {
            let Operation::Warp(operation) = &kernel.instructions[at].operation else {
                continue;
            };
            let Some(lanes) = self.together(block, warp, at, operation) else {
                continue;
            };
            self.watch_lanes((block, warp), operation, lanes);
            let executed = match operation {
                WarpOperation::Tensor(operation) => self.tensor_warp_operation((block, warp), operation),
                WarpOperation::PublishMap { to, from } => {
                    self.publish_map((block, warp), [*to, *from]).map(|()| true)
                }
                _ => Warp {
                    block: &mut self.blocks[block],
                    index: warp,
                    at,
                    kernel,
                    lanes,
                }
                .execute(operation)
                .map(|()| true),
            };
            let watched = self.watch_warp((block, warp), operation, at);
            let executed = executed.and_then(|executed| watched.map(|()| executed));
            if !executed.map_err(|problem| self.fault(block, warp * WARP, at, problem))? {
                continue;
            }
            let block = &mut self.blocks[block];
            for lane in Lanes::of(lanes) {
                let thread = warp * WARP + lane;
                block.set_next(thread, at + 1);
                block.set_state(thread, State::Ready);
            }
            self.happened();
        }
        Ok(())
    }

    /// The lanes that execute a warp's instruction, as a mask, if all of them have reached it: those of the
    /// instruction's mask that have not ended, or all lanes if it has no mask.
    fn together(&self, block: usize, warp: usize, at: usize, operation: &WarpOperation) -> Option<u32> {
        let lanes = self.blocks[block].lanes(warp);
        let waiting = lanes.waiting_at(at);
        let Some(mask) = operation.mask() else {
            return (waiting == u32::MAX).then_some(waiting);
        };
        let first = Lanes::of(waiting).next()?;
        let named = self.blocks[block].value(warp * WARP + first, mask) as u32;
        let together = named & !lanes.done;
        // A lane that executes an instruction whose mask does not name it would wait forever.
        (together & !waiting == 0 && together >> first & 1 == 1).then_some(together)
    }

    /// Lets a thread run for at most `most` instructions; returns whether it has only gone around a loop that waits for a phase. One
    /// that asks for a phase in passing is elsewhere when it asks again.
    fn go_on(&mut self, who: Who, most: u32) -> Result<bool, Fault> {
        let began = self.blocks[who.block].next(who.thread);
        let mut left = most;
        while left > 0 && self.blocks[who.block].is_ready(who.thread) {
            let block = &mut self.blocks[who.block];
            let instructions = &self.launches[block.launch].kernel.instructions;
            left -= block.go_on(who.thread, instructions, left);
            if left == 0 {
                break;
            }
            left -= 1;
            let at = block.next(who.thread);
            let turn = self.step(who);
            match turn.map_err(|problem| self.fault(who.block, who.thread, at, problem))? {
                Turn::Continues => {}
                Turn::Yields => break,
                Turn::AwaitsPhase => return Ok(began == at + 1),
            }
        }
        Ok(false)
    }

    /// Requests a copy from or to a block's shared memory, which lands later.
    pub fn ask(&mut self, who: Who, block: usize, way: Way, awaited: Awaited) {
        let delay = 1 << self.random.random_range(0..=DELAY_POWERS);
        let is_late = match awaited {
            Awaited::Group {
                kind: Kind::OfThread, ..
            } => self.random.random_range(0..AWAITED) == 0,
            _ => false,
        };
        if let Awaited::Group { thread, kind, number } = awaited {
            self.blocks[block].threads[thread].pending[kind as usize].push(number);
        }
        let due = if is_late { u64::MAX } else { self.clock + delay };
        let at = self.blocks[who.block].next(who.thread) - 1;
        let asked = self.watch.as_mut().map(|watch| Box::new(watch.ask(who, at)));
        self.copies.push(Copy {
            due,
            asked,
            block,
            way: Box::new(way),
            awaited,
        });
        self.happened();
    }

    /// Lands a requested copy.
    pub fn land(&mut self, index: usize) -> Result<(), Problem> {
        let copy = self.copies.swap_remove(index);
        if let Awaited::Group { thread, kind, number } = copy.awaited {
            let pending = &mut self.blocks[copy.block].threads[thread].pending[kind as usize];
            if let Some(place) = pending.iter().position(|one| *one == number) {
                pending.swap_remove(place);
            }
        }
        self.happened();
        if copy.asked.is_some() {
            return self.land_watched(&copy);
        }
        copy.land(self.memory, &mut self.blocks)
    }

    pub fn fault(&self, block: usize, thread: usize, at: usize, problem: Problem) -> Fault {
        Fault::Thread {
            block: self.blocks[block].index,
            thread: thread as u32,
            spot: self.kernel(block).spot(at),
            problem,
        }
    }

    /// Describes where threads wait, grouped by warp.
    fn waiting(&self) -> String {
        let mut places: Vec<String> = Vec::new();
        for (place, block) in self.blocks.iter().enumerate() {
            for index in 0..block.threads.len() / WARP {
                let waiting = Lanes::of(!block.lanes(index).done);
                let mut at: Vec<_> = waiting.map(|lane| block.place(index * WARP + lane)).collect();
                at.dedup();
                for at in at.into_iter().take(2) {
                    let spot = self.kernel(place).spot(at);
                    places.push(format!("block {} warp {index} at {spot}", block.index));
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
