//! The event loop: the group of warps that is next in time does one thing.
//!
//! The end of every wait is known as soon as the awaited operation has started, so the only events are the starts of
//! operations. A parked group waits for an operation that has not been started yet.
//!
//! One simulated multiprocessor represents all that get the same tiles at the same time. Under fair sharing they behave
//! alike, so this is exact; their requests to memory and cache are served together, first come, first served. When
//! their next tiles differ, they are simulated separately.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::code::{Code, Instruction};
use super::costs::Costs;
use super::deal::{Deal, Queue};
use super::ideal::Ideal;
use super::machine::Machine;
use super::operations::Place;
use super::record::{Noted, Recorded, Row};
use super::state::{Block, Doing, Processor};
use crate::timeline::Activity;

/// The input of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The program.
    pub code: &'a Code,
    /// Costs by kind of tile.
    pub costs: &'a [Costs],
    /// The device.
    pub machine: &'a Machine,
    /// The mechanisms that cost no time.
    pub ideal: Ideal,
    /// Multiprocessors of a cluster.
    pub width: usize,
    /// Whether a product spans two multiprocessors.
    pub pair: bool,
    /// Whether spans are recorded.
    pub recording: bool,
}

/// The result, in cycles from the start of the first block.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The end of everything.
    pub end: f64,
    /// The end of the last product.
    pub last_product: f64,
    /// Whether every group of warps reached the end of the program.
    pub complete: bool,
    pub(super) processors: Vec<Processor>,
}

impl Outcome {
    /// Clusters of multiprocessors that had tiles.
    pub fn clusters(&self) -> usize {
        self.processors.iter().map(|processor| processor.alike).sum()
    }
}

/// When memory, the second-level cache and the path for half sectors, which all multiprocessors share, are free.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shared {
    pub(super) cache_free: f64,
    pub(super) memory_free: f64,
    pub(super) halves_free: f64,
}

/// A place in the queue: the bits of non-negative times sort like their values; ties go by number.
type Event = Reverse<(u64, u32, u16, u16)>;

/// The numbers of multiprocessors, blocks per multiprocessor and groups of warps are small.
fn event(at: f64, processor: usize, block: usize, warps: usize) -> Event {
    Reverse((at.to_bits(), processor as u32, block as u16, warps as u16))
}

/// Stands for the start of a whole block in place of a group of warps.
const WHOLE_BLOCK: usize = u16::MAX as usize;

/// Simulates the assigned tiles.
pub fn run(scene: Scene, deal: &Deal) -> Outcome {
    let mut engine = Engine {
        scene,
        processors: Vec::with_capacity(2 * deal.shares.len()),
        shared: Shared::default(),
        queue: deal.queue.clone(),
        one_each: deal.one_each,
        events: BinaryHeap::new(),
        woken: Vec::new(),
    };
    let start = if scene.ideal.fill {
        0.0
    } else {
        scene.machine.block_start
    };
    for share in &deal.shares {
        let blocks = share
            .blocks
            .iter()
            .map(|tiles| Block::new(scene.code, tiles, start, 0))
            .collect();
        let processor = engine.processors.len();
        engine.processors.push(Processor {
            cluster: share.cluster,
            alike: share.alike,
            blocks,
            copies_free: 0.0,
            last_copy: 0.0,
            products_free: 0.0,
            lanes_free: 0.0,
            stores_free: 0.0,
            last_product: 0.0,
            end: 0.0,
            recorded: Recorded::new(scene.recording),
        });
        for block in 0..share.blocks.len() {
            engine.enqueue_block(processor, block);
        }
    }
    while let Some(Reverse((at, processor, block, warps))) = engine.events.pop() {
        let (processor, block, warps) = (processor as usize, usize::from(block), usize::from(warps));
        if warps == WHOLE_BLOCK {
            engine.next_block(processor, block, f64::from_bits(at));
        } else {
            engine.go_on(processor, block, warps);
        }
    }
    let last = |of: fn(&Processor) -> f64| engine.processors.iter().map(of).fold(0.0, f64::max);
    Outcome {
        end: last(|processor| processor.end),
        last_product: last(|processor| processor.last_product),
        complete: engine
            .processors
            .iter()
            .all(|processor| processor.blocks.iter().all(|block| block.running == 0)),
        processors: engine.processors,
    }
}

struct Engine<'a> {
    scene: Scene<'a>,
    processors: Vec<Processor>,
    shared: Shared,
    queue: Queue,
    one_each: bool,
    events: BinaryHeap<Event>,
    /// Groups of warps that an operation has resumed.
    woken: Vec<usize>,
}

impl Engine<'_> {
    /// Runs a group of warps until it has to wait, is done, or another one is next in time.
    fn go_on(&mut self, processor: usize, block: usize, warps: usize) {
        let code = self.scene.code;
        loop {
            let state = &self.processors[processor].blocks[block].warps[warps];
            let Some(&instruction) = code.roles[state.role].instructions.get(state.place) else {
                return self.finish(processor, block, warps);
            };
            match instruction {
                Instruction::Do(operation) => {
                    self.woken.clear();
                    let place = Place {
                        scene: &self.scene,
                        shared: &mut self.shared,
                        processor: &mut self.processors[processor],
                        woken: &mut self.woken,
                        block,
                        warps,
                    };
                    let parked = place.run(operation).is_none();
                    for woken in 0..self.woken.len() {
                        self.enqueue(processor, block, self.woken[woken]);
                    }
                    if parked {
                        return;
                    }
                }
                Instruction::NextTile { otherwise } => self.next_tile(processor, block, warps, otherwise),
                _ => self.jump(processor, block, warps, instruction),
            }
            let state = &mut self.processors[processor].blocks[block].warps[warps];
            let later = |Reverse((next, ..)): &Event| *next < state.now.to_bits();
            if self.events.peek().is_some_and(later) {
                state.queued = state.now;
                return self.enqueue(processor, block, warps);
            }
        }
    }

    /// Executes the instructions that change the place in the program within a tile.
    fn jump(&mut self, processor: usize, block: usize, warps: usize, instruction: Instruction) {
        let state = &mut self.processors[processor].blocks[block].warps[warps];
        let steps = self.scene.costs[state.kind].steps;
        let next = state.place + 1;
        state.place = match instruction {
            Instruction::FirstStep { otherwise } => {
                state.step = 0;
                if steps == 0 { otherwise } else { next }
            }
            Instruction::NextStep { again, limit } => {
                if state.step + 1 < steps.min(limit) {
                    state.step += 1;
                    again
                } else {
                    next
                }
            }
            Instruction::FirstTime => {
                state.step = 0;
                next
            }
            Instruction::NextTime { again, times } => {
                state.step += 1;
                if state.step < times { again } else { next }
            }
            Instruction::UnlessAhead { ahead, otherwise } => {
                if state.step + ahead < steps {
                    next
                } else {
                    otherwise
                }
            }
            Instruction::UnlessFirst { otherwise } => {
                if state.first {
                    next
                } else {
                    otherwise
                }
            }
            Instruction::Jump { to } => to,
            Instruction::NextTile { .. } | Instruction::Do(_) => next,
        };
    }

    /// Moves to the block's next tile, which may have to be fetched first.
    fn next_tile(&mut self, processor: usize, block: usize, warps: usize, otherwise: usize) {
        let begun = self.processors[processor].blocks[block].warps[warps].begun;
        if begun == self.processors[processor].blocks[block].tiles.len() {
            self.fetch(processor, block, warps);
        }
        let simulated = &mut self.processors[processor];
        let place = &mut simulated.blocks[block];
        let state = &mut place.warps[warps];
        let Some(&(kind, known)) = place.tiles.get(begun) else {
            state.place = otherwise;
            return;
        };
        if begun > 0 {
            state.steps_before += self.scene.costs[state.kind].steps;
        }
        let costs = &self.scene.costs[kind];
        let start = state.now;
        state.now = state.now.max(known) + costs.lookup;
        if self.scene.code.roles[state.role].copies && state.group != Some(costs.group) {
            state.now += costs.descriptors;
        }
        state.group = Some(costs.group);
        state.kind = kind;
        state.begun += 1;
        state.step = 0;
        state.place += 1;
        simulated.recorded.note(Noted {
            row: Row::Warps(block, warps),
            activity: Activity::Lookup,
            start,
            end: state.now,
            tile: place.before + begun,
            step: None,
        });
    }

    /// Takes the block's next tile from the queue. Multiprocessors that get another kind are split off.
    fn fetch(&mut self, processor: usize, block: usize, warps: usize) {
        let place = &self.processors[processor].blocks[block];
        if place.closed || self.one_each {
            return;
        }
        let (wanted, now) = (self.processors[processor].alike, place.warps[warps].now);
        let taken = self.queue.take(wanted);
        if let Some((_, count)) = taken
            && count < wanted
        {
            self.part(processor, count, (block, warps), now);
        }
        let place = &mut self.processors[processor].blocks[block];
        match taken {
            Some((kind, _)) => {
                // The number was requested when the previous tile began.
                let known = place.next_known.max(now);
                place.tiles.push((kind, known));
                place.next_known = known + self.scene.costs[kind].counter;
            }
            None => place.closed = true,
        }
    }

    /// Leaves `count` clusters with this multiprocessor; the others continue as a new one that begins with `next`.
    fn part(&mut self, processor: usize, count: usize, next: (usize, usize), now: f64) {
        let stays = &mut self.processors[processor];
        let mut goes = stays.clone();
        goes.alike = stays.alike - count;
        goes.cluster += count;
        stays.alike = count;
        let number = self.processors.len();
        for (block, place) in goes.blocks.iter().enumerate() {
            for (warps, state) in place.warps.iter().enumerate() {
                if state.doing == Doing::Ready && (block, warps) != next {
                    self.events.push(event(state.queued, number, block, warps));
                }
            }
        }
        self.events.push(event(now, number, next.0, next.1));
        self.processors.push(goes);
    }

    /// The end of a group of warps, and perhaps of its block.
    fn finish(&mut self, processor: usize, block: usize, warps: usize) {
        let simulated = &mut self.processors[processor];
        let place = &mut simulated.blocks[block];
        let now = place.warps[warps].now;
        place.warps[warps].doing = Doing::Done;
        place.running -= 1;
        simulated.end = simulated.end.max(now);
        if place.running == 0 && self.one_each {
            self.next_block(processor, block, now);
        }
    }

    /// Replaces a finished block by one for the next tile.
    fn next_block(&mut self, processor: usize, block: usize, now: f64) {
        let wanted = self.processors[processor].alike;
        let Some((kind, count)) = self.queue.take(wanted) else {
            return;
        };
        if count < wanted {
            self.part(processor, count, (block, WHOLE_BLOCK), now);
        }
        let machine = self.scene.machine;
        let start = now
            + if self.scene.ideal.fill {
                0.0
            } else {
                machine.block_start
            };
        let place = &mut self.processors[processor].blocks[block];
        let before = place.before + place.tiles.len();
        *place = Block::new(self.scene.code, &[kind], start, before);
        self.enqueue_block(processor, block);
    }

    fn enqueue_block(&mut self, processor: usize, block: usize) {
        for warps in 0..self.processors[processor].blocks[block].warps.len() {
            self.enqueue(processor, block, warps);
        }
    }

    fn enqueue(&mut self, processor: usize, block: usize, warps: usize) {
        let at = self.processors[processor].blocks[block].warps[warps].queued;
        self.events.push(event(at, processor, block, warps));
    }
}
