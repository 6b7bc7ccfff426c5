//! The state of multiprocessors, blocks and warps.

use std::collections::VecDeque;

use gauntlet_tile_program::{BufferIndex, Filled};

use super::code::Code;
use super::record::Recorded;

/// One multiprocessor that represents all that do the same.
#[derive(Debug, Clone)]
pub(super) struct Processor {
    /// The first cluster that it represents.
    pub(super) cluster: usize,
    /// The number of clusters.
    pub(super) alike: usize,
    pub(super) blocks: Vec<Block>,
    /// When the copy path is free.
    pub(super) copies_free: f64,
    /// When the last copy was issued.
    pub(super) last_copy: f64,
    /// When the matrix unit is free.
    pub(super) products_free: f64,
    /// When the lanes that convert are free.
    pub(super) lanes_free: f64,
    /// When the path for results is free.
    pub(super) stores_free: f64,
    /// The end of the last product.
    pub(super) last_product: f64,
    /// The end of everything.
    pub(super) end: f64,
    pub(super) recorded: Recorded,
}

/// A block of threads on a multiprocessor.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// The kinds of its tiles known so far, and when each becomes known.
    pub(super) tiles: Vec<(usize, f64)>,
    /// Whether there are no further tiles.
    pub(super) closed: bool,
    pub(super) warps: Vec<Warps>,
    /// The slots of all buffers, one buffer after another.
    pub(super) slots: Vec<Slot>,
    /// How many wait at each meeting: that of the block, then one per role.
    pub(super) meetings: Vec<usize>,
    /// When the number of the next tile is available.
    pub(super) next_known: f64,
    /// Groups of warps that have not finished.
    pub(super) running: usize,
    /// Tiles that earlier blocks at this place have computed.
    pub(super) before: usize,
}

/// A slot of a buffer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slot {
    full: Side,
    empty: Side,
}

/// One of the two barriers of a slot.
#[derive(Debug, Clone, Copy, Default)]
struct Side {
    /// Completed uses.
    uses: usize,
    /// When the last of them was completed.
    at: f64,
    /// Signals received for the next use.
    signals: usize,
    latest: f64,
}

impl Side {
    fn signal(&mut self, use_number: usize, at: f64, needed: usize) -> bool {
        self.signals += 1;
        self.latest = self.latest.max(at);
        if self.signals < needed {
            return false;
        }
        *self = Self {
            uses: use_number + 1,
            at: self.latest,
            signals: 0,
            latest: 0.0,
        };
        true
    }

    fn since(&self, use_number: usize) -> Option<f64> {
        (self.uses > use_number).then_some(self.at)
    }
}

impl Slot {
    /// Records that the use is full at a time, once all have signalled.
    pub(super) fn fill(&mut self, use_number: usize, at: f64, needed: usize) -> bool {
        self.full.signal(use_number, at, needed)
    }

    /// Records that the use is over at a time, once all have signalled.
    pub(super) fn empty(&mut self, use_number: usize, at: f64, needed: usize) -> bool {
        self.empty.signal(use_number, at, needed)
    }

    /// When the use was or will be full; `None` if not known yet.
    pub(super) fn full_at(&self, use_number: usize) -> Option<f64> {
        self.full.since(use_number)
    }

    /// When the use was or will be over.
    pub(super) fn empty_at(&self, use_number: usize) -> Option<f64> {
        self.empty.since(use_number)
    }
}

/// The state of a group of warps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// Queued to continue.
    Ready,
    /// Waiting for a buffer to be filled or emptied.
    Parked(BufferIndex),
    /// Waiting at a meeting.
    Meeting(usize),
    Done,
}

/// Up to four warps of a role that do the same.
#[derive(Debug, Clone)]
pub(super) struct Warps {
    pub(super) role: usize,
    /// Whether the role's first warp is among them.
    pub(super) first: bool,
    pub(super) doing: Doing,
    /// The next instruction.
    pub(super) place: usize,
    pub(super) now: f64,
    /// Its queued time, if it is ready.
    pub(super) queued: f64,
    /// Tiles begun.
    pub(super) begun: usize,
    /// The kind of the present tile.
    pub(super) kind: usize,
    /// Steps of the tiles before.
    pub(super) steps_before: usize,
    pub(super) step: usize,
    /// The group whose descriptors are in use.
    pub(super) group: Option<usize>,
    /// When each product in progress is done.
    pub(super) products: VecDeque<f64>,
    pub(super) last_product: f64,
    /// When the copies of the open group have arrived.
    pub(super) open_copies: f64,
    /// When all copies have arrived.
    pub(super) last_copy: f64,
    pub(super) copy_groups: VecDeque<f64>,
    /// When the staging buffer has been read.
    pub(super) staging_read: f64,
}

impl Block {
    /// A block that begins with these tiles at the given time.
    pub(super) fn new(code: &Code, tiles: &[usize], at: f64, before: usize) -> Self {
        let warps: Vec<_> = code
            .roles
            .iter()
            .enumerate()
            .flat_map(|(role, text)| (0..text.groups).map(move |group| Warps::new(role, group == 0, at)))
            .collect();
        Self {
            tiles: tiles.iter().map(|&kind| (kind, at)).collect(),
            closed: false,
            running: warps.len(),
            warps,
            slots: vec![Slot::default(); code.slots],
            meetings: vec![0; 1 + code.roles.len()],
            next_known: at,
            before,
        }
    }

    /// The number of the slot for a use of a buffer.
    pub(super) fn slot(code: &Code, buffer: BufferIndex, use_number: usize) -> usize {
        code.first_slots[buffer] + use_number % code.buffers[buffer].slots.max(1)
    }
}

impl Warps {
    fn new(role: usize, first: bool, at: f64) -> Self {
        Self {
            role,
            first,
            doing: Doing::Ready,
            place: 0,
            now: at,
            queued: at,
            begun: 0,
            kind: 0,
            steps_before: 0,
            step: 0,
            group: None,
            products: VecDeque::new(),
            last_product: 0.0,
            open_copies: 0.0,
            last_copy: 0.0,
            copy_groups: VecDeque::new(),
            staging_read: 0.0,
        }
    }

    /// The number of the buffer use for the step `ahead` steps later, counted over all tiles of the block.
    pub(super) fn use_number(&self, filled: Filled, ahead: usize) -> usize {
        match filled {
            Filled::Step => self.steps_before + self.step + ahead,
            Filled::Tile => self.begun.saturating_sub(1),
        }
    }
}
