//! The lanes of a warp by their states.

use super::State;

/// The lanes of a warp in some states, as masks: turns ask for them often, and threads are spread over memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lanes {
    pub ready: u32,
    pub at_warp: u32,
    pub done: u32,
}

impl Lanes {
    /// Notes the state of a lane.
    pub fn set(&mut self, lane: usize, state: State) {
        let masks = [
            (&mut self.ready, State::Ready),
            (&mut self.at_warp, State::AtWarp),
            (&mut self.done, State::Done),
        ];
        for (mask, own) in masks {
            *mask = *mask & !(1 << lane) | u32::from(state == own) << lane;
        }
    }
}
