//! Where the lanes of a warp are.

use super::{State, WARP};

/// The lanes of a warp: masks of those in some states, and the next instruction of each. Every turn asks for them, also of warps
/// that only wait, so they lie together and not with the rest of each thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lanes {
    pub ready: u32,
    pub at_warp: u32,
    pub done: u32,
    pub next: [usize; WARP],
    /// The changes of barriers so far when all lanes that can run last found that they have to wait for another one.
    pub awaits: Option<u64>,
}

impl Lanes {
    /// Notes the state of a lane.
    pub fn set(&mut self, lane: usize, state: State) {
        self.awaits = None;
        let masks = [
            (&mut self.ready, State::Ready),
            (&mut self.at_warp, State::AtWarp),
            (&mut self.done, State::Done),
        ];
        for (mask, own) in masks {
            *mask = *mask & !(1 << lane) | u32::from(state == own) << lane;
        }
    }

    /// The numbers of the lanes of a mask.
    pub fn of(mask: u32) -> impl Iterator<Item = usize> {
        (0..WARP).filter(move |lane| mask >> lane & 1 == 1)
    }

    /// The lanes that wait at a warp's instruction.
    pub fn waiting_at(&self, at: usize) -> u32 {
        let lanes = Self::of(self.at_warp).filter(|lane| self.next[*lane] == at);
        lanes.fold(0, |mask, lane| mask | 1 << lane)
    }
}
