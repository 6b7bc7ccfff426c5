//! Event by event: who is next in time does one thing.
//!
//! Every wait has an end that is known as soon as what is waited for has been started, so the events are the
//! beginnings of operations only. Whoever is parked waits for a start that nobody has made yet.
//!
//! A multiprocessor stands for all that are given the same tiles at the same time. Under fair sharing those behave
//! alike, so this is exact; what they ask of memory and cache is served together, first come, first served. Where their
//! next tiles differ, they part.

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

/// What is simulated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) code: &'a Code,
    /// By kind of tile.
    pub(super) costs: &'a [Costs],
    pub(super) machine: &'a Machine,
    pub(super) ideal: Ideal,
    /// Multiprocessors of a cluster.
    pub(super) width: usize,
    /// Whether a product spans two multiprocessors.
    pub(super) pair: bool,
    /// Whether spans are noted.
    pub(super) recording: bool,
}

/// What came of it, in cycles from the start of the first block.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// The end of everything.
    pub(super) end: f64,
    /// The end of the last product.
    pub(super) last_product: f64,
    /// Whether everyone came to the end of the program, as a proved one does.
    #[cfg(test)]
    pub(super) complete: bool,
    pub(super) processors: Vec<Processor>,
}

/// When memory, the second-level cache and the way for half sectors, which all share, are free.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shared {
    pub(super) cache_free: f64,
    pub(super) memory_free: f64,
    pub(super) halves_free: f64,
}

/// A place in line: non-negative times sort as their bits; ties go by number.
type Event = Reverse<(u64, u32, u16, u16)>;

/// Multiprocessors, blocks of one and groups of warps are few.
fn event(at: f64, processor: usize, block: usize, warps: usize) -> Event {
    Reverse((at.to_bits(), processor as u32, block as u16, warps as u16))
}

/// Instead of a group of warps: the whole block begins anew.
const WHOLE_BLOCK: usize = u16::MAX as usize;

/// Simulates the tiles as dealt.
pub(super) fn run(scene: Scene, deal: &Deal) -> Outcome {
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
        #[cfg(test)]
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
    /// Groups of warps that an operation has set going again.
    woken: Vec<usize>,
}

impl Engine<'_> {
    /// Lets a group of warps go on until it has to wait, is done, or another one is next in time.
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

    /// All that leads from one place of the text to another within a tile.
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

    /// Turns to the next tile of the block, which may have to be fetched first.
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

    /// Takes the block's next tile from the queue. Multiprocessors that get another kind part from those here.
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
                // The number was asked for when the tile before was begun.
                let known = place.next_known.max(now);
                place.tiles.push((kind, known));
                place.next_known = known + self.scene.costs[kind].counter;
            }
            None => place.closed = true,
        }
    }

    /// Leaves `count` clusters with this multiprocessor; the others go on as a new one, beginning with `next`.
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

    /// Puts a block for the next tile in the place of one that is done.
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
