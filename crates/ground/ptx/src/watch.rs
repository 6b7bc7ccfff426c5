//! Watches accesses to memory for races: two accesses to the same bytes, of which one writes, that nothing orders.
//!
//! Each thread counts epochs, and knows of each other thread the last epoch that has ended before: its vector clock. Barriers,
//! fences with atomic accesses, and ends of launches hand on what threads know. Each word of memory keeps the accesses behind which
//! no other is ordered. So a race is found whatever the values are, and mostly in any order in which the accesses happen to come.
//!
//! It follows the memory consistency model of the PTX ISA, with these simplifications:
//!
//! - `volatile` accesses to global memory count as relaxed atomic ones, those to shared memory as ordinary ones;
//! - the scopes are the block and the device;
//! - a relaxed atomic access that sees another takes effect as an acquire at the next fence, `bar.sync` or `bar.warp.sync` of the thread;
//! - instructions for which lanes of a warp wait for each other, but which order no memory (`shfl.sync`, `mma.sync`, …), order reads
//!   before them with writes behind them, and all accesses before them with those behind a fence that follows them;
//! - copies of `cp.async` that arrive at a barrier count as awaited there;
//! - waits for bulk stores with and without `.read` are not told apart;
//! - of the readers of a word that are in no order, and of those that change it atomically, no more than some forty are kept, in global
//!   memory six.

mod clock;
mod divergence;
mod order;
mod report;
mod shadow;

use std::collections::HashMap;
use std::rc::Rc;

use crate::block::WARP;
use crate::thread::Who;
use clock::{Clock, Known};
use order::{Flag, Meeting, Phases};
use shadow::{Access, Ends, Shadow};

pub(crate) use divergence::Diverged;
pub(crate) use report::Found;
pub(crate) use shadow::Strength;

/// The kinds of groups whose ends a thread waits for: of its copies, of its bulk stores, of its warp's products.
const GROUPS: usize = 3;
pub(crate) const PRODUCTS: usize = 2;

/// Whether a lane has accessed memory since its warp last waited for all lanes, by the kind of wait.
const SINCE_EXECUTED: u8 = 1;
const SINCE_ORDERED: u8 = 2;
/// Whether a thread has accessed memory since its last fence.
const SINCE_FENCE: u8 = 4;

/// What is known of a thread.
#[derive(Debug, Default)]
struct Own {
    known: Known,
    /// Its current epoch.
    epoch: u32,
    since: u8,
    /// What it knew at its last fence for its block, and for all.
    released: [Option<Known>; 2],
    /// What relaxed accesses have seen since its last fence.
    acquired: Option<Known>,
    /// For each group that it has waited for, its epoch then.
    waited: [Vec<u32>; GROUPS],
    /// Groups of products that were closed.
    closed: usize,
    /// The instruction behind the last barrier at which it arrived.
    passed: usize,
}

impl Own {
    /// Takes effect of what relaxed accesses have seen.
    fn acquire(&mut self) {
        if let Some(acquired) = self.acquired.take() {
            self.known.join(&acquired);
        }
    }
}

/// A place in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// In the shared memory of a block of this size, by the offset there.
    Shared {
        block: usize,
        offset: usize,
        size: usize,
    },
    /// In an allocation of this size, by its index; whether it began without contents.
    Global {
        index: usize,
        offset: usize,
        size: usize,
        is_unwritten: bool,
    },
}

/// How a thread uses memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    Write,
    /// Writes what lies there already.
    Repeat,
    /// Both at once.
    Change,
    /// Both at once, whatever lies there.
    Exchange,
    /// Reads of the matrix unit and of copies, which may take along what nobody uses.
    Take,
}

/// What a copy was asked with.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub who: Who,
    pub at: usize,
    known: Known,
}

/// How the end of a copy or a product becomes known.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Group {
        who: Who,
        kind: usize,
        number: usize,
    },
    /// With the phase of a barrier of a block that has not ended.
    Phase {
        block: usize,
        barrier: u32,
    },
}

/// The memory's last accesses, and what threads know.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    threads: Vec<Vec<Own>>,
    /// The launch of each block.
    launches: Vec<usize>,
    shared: Vec<Shadow>,
    global: Vec<Shadow>,
    meetings: HashMap<(usize, u64), Meeting>,
    barriers: HashMap<(usize, u32), Phases>,
    /// How many barriers there were in each block.
    slots: Vec<usize>,
    clusters: HashMap<usize, Phases>,
    flags: HashMap<(Option<usize>, usize, usize), Flag>,
    divergence: divergence::Divergence,
    /// The first read of what nobody had written: it is told if nothing is found that explains it.
    pub unwritten: Option<Unwritten>,
}

/// A read of what nobody had written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unwritten {
    pub who: Who,
    pub at: usize,
    pub place: Place,
}

impl Watch {
    /// Notes a block that begins, when all launches below a number have ended.
    pub fn begin(&mut self, launch: usize, threads: usize, launches: usize) {
        let begin = Rc::new(Clock::behind(launches));
        let own = || Own {
            known: Known {
                seen: Rc::clone(&begin),
                ..Known::default()
            },
            epoch: 1,
            ..Own::default()
        };
        self.threads.push((0..threads).map(|_| own()).collect());
        self.launches.push(launch);
        self.shared.push(Shadow::default());
        self.slots.push(threads);
    }

    /// Notes that a thread knows that all launches below a number have ended.
    pub fn ended_before(&mut self, who: Who, launches: usize) {
        let own = &mut self.threads[who.block][who.thread];
        if own.known.seen.launches < launches {
            Rc::make_mut(&mut own.known.seen).launches = launches;
        }
    }

    /// Notes a thread's access to bytes of memory.
    pub fn access(
        &mut self,
        who: Who,
        at: usize,
        (place, count): (Place, usize),
        usage: Use,
        strength: Strength,
    ) -> Result<(), Found> {
        let own = &mut self.threads[who.block][who.thread];
        own.since |= SINCE_EXECUTED | SINCE_ORDERED | SINCE_FENCE;
        let access = Access {
            block: who.block as u32,
            slot: who.thread as u16,
            epoch: own.epoch,
            at: at as u32,
            mask: 0,
            writes: !matches!(usage, Use::Read | Use::Take),
            changes: matches!(usage, Use::Change | Use::Exchange),
            strength,
            ends: Ends::WithEpoch,
        };
        let known = own.known.clone();
        self.note((place, count), access, usage, &known, Some(who))
    }

    fn note(
        &mut self,
        (place, count): (Place, usize),
        access: Access,
        usage: Use,
        known: &Known,
        own: Option<Who>,
    ) -> Result<(), Found> {
        let (shadow, offset, size, is_global, is_unwritten) = match place {
            Place::Shared { block, offset, size } => (&mut self.shared[block], offset, size, false, true),
            Place::Global {
                index,
                offset,
                size,
                is_unwritten,
            } => {
                if self.global.len() <= index {
                    self.global.resize_with(index + 1, Shadow::default);
                }
                (&mut self.global[index], offset, size, true, is_unwritten)
            }
        };
        let (threads, launches) = (&self.threads, &self.launches);
        for (word, mask) in shadow.words(offset, count, size) {
            if is_unwritten && matches!(usage, Use::Read | Use::Change) && mask & !word.written != 0 {
                self.unwritten = self.unwritten.or(own.map(|who| Unwritten {
                    who,
                    at: access.at as usize,
                    place,
                }));
            }
            if access.writes {
                word.written |= mask;
            }
            let access = Access { mask, ..access };
            let before = |one: &Access| ordered(threads, launches, known, own, one);
            if let Some(earlier) = word.access((access, usage == Use::Repeat), is_global, before) {
                return Err(Found {
                    place,
                    count,
                    earlier,
                    now: access,
                });
            }
        }
        Ok(())
    }

    /// What a copy that a thread asks for may rely on.
    pub fn ask(&mut self, who: Who, at: usize) -> Asked {
        let known = self.publish(who);
        Asked { who, at, known }
    }

    /// What a warp's products may rely on: all that its lanes know.
    pub fn ask_of_warp(&mut self, block: usize, warp: usize, at: usize) -> Asked {
        let lanes = &self.threads[block][warp * WARP..][..WARP];
        let mut known = lanes[0].known.clone();
        for (lane, own) in lanes.iter().enumerate() {
            known.join(&own.known);
            known.set(block, warp * WARP + lane, own.epoch);
        }
        Asked {
            who: Who {
                block,
                thread: warp * WARP,
            },
            at,
            known,
        }
    }

    /// Notes an access of a copy or a product.
    pub fn asynchronous(
        &mut self,
        asked: &Asked,
        end: End,
        memory: (Place, usize),
        usage: Use,
    ) -> Result<(), Found> {
        let (block, slot, epoch, ends) = match end {
            End::Group { who, kind, number } => {
                (who.block, who.thread, number as u32, Ends::WithGroup(kind as u8))
            }
            End::Phase { block, barrier } => {
                let phases = self.phases(block, barrier);
                (block, phases.slot, phases.ended as u32 + 1, Ends::WithEpoch)
            }
        };
        let access = Access {
            block: block as u32,
            slot: slot as u16,
            epoch,
            at: asked.at as u32,
            mask: 0,
            writes: usage == Use::Write,
            changes: false,
            strength: Strength::Weak,
            ends,
        };
        self.note(memory, access, usage, &asked.known, None)
    }

    /// Notes that a thread has waited for all groups of a kind below a number.
    pub fn waited(&mut self, who: Who, kind: usize, groups: usize) {
        let own = &mut self.threads[who.block][who.thread];
        if own.waited[kind].len() < groups {
            own.waited[kind].resize(groups, own.epoch);
            own.since |= SINCE_EXECUTED | SINCE_ORDERED;
        }
    }

    /// The group of products that a warp has not closed.
    pub fn open_products(&self, who: Who) -> usize {
        self.threads[who.block][who.thread].closed
    }

    pub fn close_products(&mut self, who: Who) {
        self.threads[who.block][who.thread].closed += 1;
    }
}

/// Whether an access has ended before what is known, or before what a thread does now.
fn ordered(threads: &[Vec<Own>], launches: &[usize], known: &Known, own: Option<Who>, one: &Access) -> bool {
    let (block, slot) = (one.block as usize, one.slot as usize);
    let is_own = own.is_some_and(|own| (own.block, own.thread) == (block, slot));
    let epoch = match one.ends {
        Ends::WithEpoch => Some(one.epoch),
        Ends::WithGroup(kind) => threads[block][slot].waited[kind as usize]
            .get(one.epoch as usize)
            .copied(),
    };
    let has_ended = |epoch| is_own || known.knows(block, slot, epoch, !one.writes);
    epoch.is_some_and(has_ended) || launches[block] < known.seen.launches
}
