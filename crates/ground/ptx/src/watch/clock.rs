//! What a thread knows of others: a vector clock, shared between the threads that know the same.

use std::rc::Rc;

/// For threads (and barriers in shared memory), the last of their epochs that has ended before; by block, in ascending order. The
/// threads of a block mostly know the same and share one vector.
#[derive(Debug, Clone, Default)]
pub(super) struct Clock {
    parts: Vec<(usize, Rc<Vec<u32>>)>,
    /// All launches below this number have ended.
    pub launches: usize,
}

impl Clock {
    /// Of what begins when all launches below a number have ended.
    pub fn behind(launches: usize) -> Self {
        Self {
            parts: Vec::new(),
            launches,
        }
    }

    /// The epochs of one part of a block, 0 if nothing is known.
    pub fn get(&self, block: usize, slot: usize) -> u32 {
        let part = self.parts.iter().find(|(of, _)| *of == block);
        part.and_then(|(_, epochs)| epochs.get(slot))
            .copied()
            .unwrap_or(0)
    }

    pub fn set(&mut self, block: usize, slot: usize, epoch: u32) {
        let place = self.parts.partition_point(|(of, _)| *of < block);
        if self.parts.get(place).is_none_or(|(of, _)| *of != block) {
            self.parts.insert(place, (block, Rc::default()));
        }
        let epochs = Rc::make_mut(&mut self.parts[place].1);
        if epochs.len() <= slot {
            epochs.resize(slot + 1, 0);
        }
        epochs[slot] = epochs[slot].max(epoch);
    }

    /// Adds what another clock knows.
    pub fn join(&mut self, other: &Self) {
        self.launches = self.launches.max(other.launches);
        for (block, theirs) in &other.parts {
            let place = self.parts.partition_point(|(of, _)| of < block);
            match self.parts.get_mut(place).filter(|(of, _)| of == block) {
                None => self.parts.insert(place, (*block, Rc::clone(theirs))),
                Some((_, own)) if Rc::ptr_eq(own, theirs) || is_within(theirs, own) => {}
                Some((_, own)) if is_within(own, theirs) => *own = Rc::clone(theirs),
                Some((_, own)) => {
                    let own = Rc::make_mut(own);
                    own.resize(own.len().max(theirs.len()), 0);
                    for (own, theirs) in own.iter_mut().zip(theirs.iter()) {
                        *own = (*own).max(*theirs);
                    }
                }
            }
        }
    }

    /// Whether the other clock knows all that this one does.
    pub fn is_within(&self, other: &Self) -> bool {
        let knows = |(block, epochs): &(usize, Rc<Vec<u32>>)| {
            let theirs = other.parts.iter().find(|(of, _)| of == block);
            theirs.is_some_and(|(_, theirs)| Rc::ptr_eq(theirs, epochs) || is_within(epochs, theirs))
        };
        self.launches <= other.launches && self.parts.iter().all(knows)
    }
}

fn is_within(one: &[u32], other: &[u32]) -> bool {
    let known = |(slot, epoch): (usize, &u32)| *epoch <= other.get(slot).copied().unwrap_or(0);
    one.iter().enumerate().all(known)
}

fn join_some(own: &mut Option<Rc<Clock>>, other: &Option<Rc<Clock>>) {
    match (own, other) {
        (_, None) => {}
        (Some(own), Some(other)) if Rc::ptr_eq(own, other) || other.is_within(own) => {}
        (Some(own), Some(other)) => Rc::make_mut(own).join(other),
        (own, Some(other)) => *own = Some(Rc::clone(other)),
    }
}

/// What is known of others' accesses.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// Accesses that happened before, in the order of the memory model.
    pub seen: Rc<Clock>,
    /// Reads that have ended before, which is enough for a write behind them: instructions that lanes execute together wait for the
    /// lanes' reads and order no memory (PTX ISA, `shfl.sync` beside `bar.warp.sync`). None if no more than `seen`.
    pub executed: Option<Rc<Clock>>,
    /// What was known at the sequentially consistent fences, of any thread, that happened before; none if there were none. All such
    /// fences are in one order (PTX ISA, Fence-SC): a thread that sees a later atomic access, whichever thread made it, and then
    /// fences, comes after them.
    pub fenced: Option<Rc<Clock>>,
}

impl Known {
    /// Adds what another knows.
    pub fn join(&mut self, other: &Self) {
        if !Rc::ptr_eq(&self.seen, &other.seen) && !other.seen.is_within(&self.seen) {
            Rc::make_mut(&mut self.seen).join(&other.seen);
        }
        join_some(&mut self.executed, &other.executed);
        join_some(&mut self.fenced, &other.fenced);
    }

    /// Adds an epoch of a thread or barrier.
    pub fn set(&mut self, block: usize, slot: usize, epoch: u32) {
        Rc::make_mut(&mut self.seen).set(block, slot, epoch);
    }

    /// Forgets what is known twice.
    pub fn tidy(&mut self) {
        if self
            .executed
            .as_ref()
            .is_some_and(|executed| executed.is_within(&self.seen))
        {
            self.executed = None;
        }
    }

    /// Whether an epoch has ended before; `read` if it is enough that its reads have.
    pub fn knows(&self, block: usize, slot: usize, epoch: u32, read: bool) -> bool {
        self.seen.get(block, slot) >= epoch
            || read
                && self
                    .executed
                    .as_ref()
                    .is_some_and(|executed| executed.get(block, slot) >= epoch)
    }
}
