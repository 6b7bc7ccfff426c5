//! Bounded queues of panels between one producer and its consumers, for specialised roles.
//!
//! Each consumer has a lane with one slot per stage of the schedule. The panels are stored elsewhere, each behind its
//! own lock. The ring decides which thread may use a slot, so those locks are never contended.

use std::sync::{Condvar, Mutex};

use crate::pool::{lock, wait};

/// One step of one tile, ready in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Item {
    /// The tile's number.
    pub tile: usize,
    /// The step within the tile.
    pub step: usize,
}

/// The lanes of one producer.
#[derive(Debug)]
pub(crate) struct Ring {
    state: Mutex<State>,
    filled: Condvar,
    freed: Condvar,
}

#[derive(Debug)]
struct State {
    lanes: Vec<Lane>,
    /// A thread of the team panicked: waiting ends.
    aborted: bool,
}

#[derive(Debug)]
struct Lane {
    items: Vec<Item>,
    published: usize,
    released: usize,
    closed: bool,
}

impl Ring {
    /// `lanes` empty lanes of `slots` slots each.
    pub fn new(lanes: usize, slots: usize) -> Self {
        let lane = |_| Lane {
            items: vec![Item::default(); slots],
            published: 0,
            released: 0,
            closed: false,
        };
        let state = State {
            lanes: (0..lanes).map(lane).collect(),
            aborted: false,
        };
        Self {
            state: Mutex::new(state),
            filled: Condvar::new(),
            freed: Condvar::new(),
        }
    }

    /// Empties and opens all lanes, before a launch.
    pub fn reset(&self) {
        let mut state = lock(&self.state);
        state.aborted = false;
        for lane in &mut state.lanes {
            (lane.published, lane.released, lane.closed) = (0, 0, false);
        }
    }

    /// Producer: waits for a free slot in an open lane, starting with the lane after `last`. Returns lane and slot;
    /// `None` when all lanes are closed.
    pub fn claim(&self, last: usize) -> Option<(usize, usize)> {
        let mut state = lock(&self.state);
        loop {
            if state.aborted || state.lanes.iter().all(|lane| lane.closed) {
                return None;
            }
            let count = state.lanes.len();
            let free = (1..=count).map(|step| (last + step) % count).find(|lane| {
                let lane = &state.lanes[*lane];
                !lane.closed && lane.published - lane.released < lane.items.len()
            });
            match free {
                Some(lane) => {
                    return Some((lane, state.lanes[lane].published % state.lanes[lane].items.len()));
                }
                None => state = wait(&self.freed, state),
            }
        }
    }

    /// Producer: hands over the claimed slot of `lane`.
    pub fn publish(&self, lane: usize, item: Item) {
        let mut state = lock(&self.state);
        let lane = &mut state.lanes[lane];
        let slot = lane.published % lane.items.len();
        lane.items[slot] = item;
        lane.published += 1;
        drop(state);
        self.filled.notify_all();
    }

    /// Producer: marks the end of `lane`.
    pub fn close(&self, lane: usize) {
        lock(&self.state).lanes[lane].closed = true;
        self.filled.notify_all();
    }

    /// Consumer: waits for the next panel of `lane`. Returns it and its slot; `None` at the end.
    pub fn take(&self, lane: usize) -> Option<(Item, usize)> {
        let mut state = lock(&self.state);
        loop {
            let aborted = state.aborted;
            let own = &state.lanes[lane];
            let slot = own.released % own.items.len();
            if aborted {
                return None;
            } else if own.published > own.released {
                return Some((own.items[slot], slot));
            } else if own.closed {
                return None;
            }
            state = wait(&self.filled, state);
        }
    }

    /// Consumer: returns the slot that it took.
    pub fn release(&self, lane: usize) {
        lock(&self.state).lanes[lane].released += 1;
        self.freed.notify_all();
    }

    /// Ends all waiting, now and later.
    pub fn abort(&self) {
        lock(&self.state).aborted = true;
        self.filled.notify_all();
        self.freed.notify_all();
    }
}

/// Aborts waiting at all rings unless its thread completes its share. It must abort all rings, not only the thread's
/// own: a barrier may tell other threads of the panic first, and they then leave without serving their rings, whose
/// partners would wait forever.
#[derive(Debug)]
pub(crate) struct AbortUnlessDone<'a> {
    rings: &'a [Ring],
    done: bool,
}

impl<'a> AbortUnlessDone<'a> {
    pub fn new(rings: &'a [Ring]) -> Self {
        Self { rings, done: false }
    }

    /// Marks the share as complete.
    pub fn done(mut self) {
        self.done = true;
    }
}

impl Drop for AbortUnlessDone<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.rings.iter().for_each(Ring::abort);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items per lane; Miri is slow.
    const ITEMS: usize = if cfg!(miri) { 20 } else { 500 };

    /// Every item arrives, in order, and no slot is used by two threads at the same time.
    #[test]
    fn items_arrive_in_order_through_exclusive_slots() {
        for (lanes, slots) in [(1, 1), (1, 3), (3, 1), (3, 2)] {
            let ring = Ring::new(lanes, slots);
            let panels: Vec<Vec<Mutex<usize>>> = (0..lanes)
                .map(|_| (0..slots).map(|_| Mutex::new(0)).collect())
                .collect();
            for _ in 0..3 {
                ring.reset();
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        let guard = AbortUnlessDone::new(std::slice::from_ref(&ring));
                        let mut sent = vec![0; lanes];
                        let mut last = 0;
                        while let Some((lane, slot)) = ring.claim(last) {
                            last = lane;
                            if sent[lane] == ITEMS {
                                ring.close(lane);
                                continue;
                            }
                            *panels[lane][slot].try_lock().unwrap() = sent[lane];
                            ring.publish(
                                lane,
                                Item {
                                    tile: lane,
                                    step: sent[lane],
                                },
                            );
                            sent[lane] += 1;
                        }
                        guard.done();
                    });
                    for lane in 0..lanes {
                        let (ring, panels) = (&ring, &panels);
                        scope.spawn(move || {
                            let guard = AbortUnlessDone::new(std::slice::from_ref(ring));
                            let mut expected = 0;
                            while let Some((item, slot)) = ring.take(lane) {
                                assert_eq!(
                                    item,
                                    Item {
                                        tile: lane,
                                        step: expected
                                    }
                                );
                                assert_eq!(*panels[lane][slot].try_lock().unwrap(), expected);
                                expected += 1;
                                ring.release(lane);
                            }
                            assert_eq!(expected, ITEMS);
                            guard.done();
                        });
                    }
                });
            }
        }
    }

    #[test]
    fn a_panic_ends_the_waiting_of_the_others() {
        let ring = Ring::new(1, 1);
        std::thread::scope(|scope| {
            let consumer = scope.spawn(|| ring.take(0));
            let producer = scope.spawn(|| {
                let _guard = AbortUnlessDone::new(std::slice::from_ref(&ring));
                panic!("on purpose");
            });
            assert!(producer.join().is_err());
            assert_eq!(consumer.join().unwrap(), None);
        });
    }
}
