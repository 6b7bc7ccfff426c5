//! The last accesses to each word of memory.

use crate::block::WARP;

/// Bytes of a word.
pub(super) const WORD: usize = 4;

/// Most accesses of a word that are kept beside the last write: of more readers than that, or of more threads that change it
/// atomically, some are forgotten.
const MOST: usize = 40;
const MOST_GLOBAL: usize = 6;

/// How the end of an access becomes known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// With the thread's epoch, or with the phase of a barrier.
    WithEpoch,
    /// Once the thread has waited for a group of its copies, or its warp for a group of products.
    WithGroup(u8),
}

/// How an access may meet others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strength {
    Weak,
    /// Atomic for the threads of its block, or for all.
    Block,
    Device,
}

/// An access to bytes of a word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    /// The block, and the thread or the barrier there.
    pub block: u32,
    pub slot: u16,
    pub epoch: u32,
    /// The instruction.
    pub at: u32,
    /// The bytes; none for an empty place.
    pub mask: u8,
    pub writes: bool,
    /// Whether it reads and writes at once.
    pub changes: bool,
    pub strength: Strength,
    pub ends: Ends,
}

impl Access {
    const NONE: Self = Self {
        block: 0,
        slot: 0,
        epoch: 0,
        at: 0,
        mask: 0,
        writes: false,
        changes: false,
        strength: Strength::Weak,
        ends: Ends::WithEpoch,
    };

    /// Whether the two may not happen at the same time.
    fn conflicts(&self, other: &Self) -> bool {
        let strong = |one: &Self| match one.strength {
            Strength::Weak => false,
            Strength::Block => self.block == other.block,
            Strength::Device => true,
        };
        (self.writes || other.writes) && !(strong(self) && strong(other))
    }

    /// Whether this one changes what the other has left, both atomically: then it has seen the other (PTX ISA, observation order), and who
    /// is ordered behind this one is behind the other too.
    fn observes(&self, other: &Self) -> bool {
        self.changes && other.writes && !self.conflicts(other)
    }

    /// Whether lanes of one warp write with one instruction, of which one is the last (CUDA C++ Programming Guide, "SIMT Architecture").
    fn is_beside(&self, other: &Self) -> bool {
        let who = |one: &Self| (one.block, one.slot / WARP as u16, one.at);
        let is_plain = |one: &Self| one.writes && !one.changes && one.ends == Ends::WithEpoch;
        who(self) == who(other) && is_plain(self) && is_plain(other)
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.block, self.slot, self.epoch, self.at) == (other.block, other.slot, other.epoch, other.at)
            && (self.mask, self.writes) == (other.mask, other.writes)
            && (self.strength, self.ends) == (other.strength, other.ends)
    }
}

/// A word: accesses after which no other has come that is ordered behind them.
#[derive(Debug, Clone)]
pub(super) struct Word {
    first: [Access; 2],
    #[expect(
        clippy::box_collection,
        reason = "a word has to be small, and few have more than two accesses"
    )]
    more: Option<Box<Vec<Access>>>,
    /// Bytes that have been written.
    pub written: u8,
}

impl Word {
    pub const UNTOUCHED: Self = Self {
        first: [Access::NONE; 2],
        more: None,
        written: 0,
    };

    /// Notes an access, and whether it writes what lies there already; returns an earlier one that conflicts and is not ordered
    /// before it.
    pub fn access(
        &mut self,
        (new, repeats): (Access, bool),
        is_global: bool,
        ordered: impl Fn(&Access) -> bool,
    ) -> Option<Access> {
        if self.first[1].is_same(&new) {
            return None;
        }
        let mut free = None;
        let old = self
            .first
            .iter_mut()
            .chain(self.more.iter_mut().flat_map(|more| more.iter_mut()));
        for (place, one) in old.enumerate() {
            if one.mask == 0 {
                free = free.or(Some(place));
            }
            if one.mask & new.mask == 0 {
                continue;
            }
            let conflicts = one.conflicts(&new) && !(repeats && one.is_beside(&new));
            let covers = one.mask & !new.mask == 0 && (new.writes || !one.writes);
            if !conflicts && !covers {
                continue;
            }
            let before = new.observes(one) || ordered(one);
            if conflicts && !before {
                return Some(*one);
            }
            if covers && before {
                *one = Access::NONE;
                free = free.or(Some(place));
            }
        }
        let most = if is_global { MOST_GLOBAL } else { MOST };
        let more = self.more.as_ref().map_or(0, |more| more.len());
        match free {
            // The second place is where a repeated access is looked for.
            Some(0 | 1) | None if self.first[1].mask == 0 => self.first[1] = new,
            Some(0) => self.first[0] = std::mem::replace(&mut self.first[1], new),
            Some(1) => self.first[1] = new,
            Some(place) => {
                let old = std::mem::replace(&mut self.first[1], new);
                if let Some(one) = self.more.as_mut().and_then(|more| more.get_mut(place - 2)) {
                    *one = old;
                }
            }
            None => {
                let old = std::mem::replace(&mut self.first[1], new);
                let list = self.more.get_or_insert_default();
                if more < most {
                    list.push(old);
                } else if let Some(place) = list
                    .iter()
                    .position(|one| !one.writes || one.strength != Strength::Weak)
                {
                    list.remove(place);
                    list.push(old);
                }
            }
        }
        None
    }
}

/// The words of a piece of memory, made when the first is accessed.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    words: Vec<Word>,
}

impl Shadow {
    /// The words that `count` bytes at `begin` overlap, each with its bytes, of memory of `size` bytes.
    pub fn words(
        &mut self,
        begin: usize,
        count: usize,
        size: usize,
    ) -> impl Iterator<Item = (&mut Word, u8)> {
        if self.words.is_empty() {
            self.words = vec![Word::UNTOUCHED; size.div_ceil(WORD)];
        }
        let end = begin + count;
        let first = begin / WORD;
        let touched = &mut self.words[first..end.div_ceil(WORD)];
        touched.iter_mut().enumerate().map(move |(index, word)| {
            let at = (first + index) * WORD;
            let low = begin.saturating_sub(at).min(WORD);
            let high = (end - at).min(WORD);
            (word, (0xF_u8 << low) & (0xF_u8 >> (WORD - high)))
        })
    }
}
