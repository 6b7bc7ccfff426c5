//! What orders accesses: barriers, lanes that wait for each other, fences and atomic accesses.

use std::rc::Rc;

use super::clock::{Clock, Known};
use super::{Asked, Own, Place, SINCE_EXECUTED, SINCE_FENCE, SINCE_ORDERED, Use, Watch};
use crate::block::{Lanes, WARP};
use crate::instruction::{Order, Scope};
use crate::thread::Who;

/// What those who have arrived somewhere know.
#[derive(Debug, Default)]
struct Gathered {
    known: Known,
    /// What was added last: threads mostly know the same.
    last: Known,
}

impl Gathered {
    fn add(&mut self, who: Who, own: &mut Own) {
        let has = |last: &Option<Rc<Clock>>, own: &Option<Rc<Clock>>| own.is_none() || is_same(last, own);
        let is_known = Rc::ptr_eq(&self.last.seen, &own.known.seen)
            && has(&self.last.executed, &own.known.executed)
            && has(&self.last.fenced, &own.known.fenced);
        if !is_known {
            self.known.join(&own.known);
            self.last = own.known.clone();
        }
        self.known.set(who.block, who.thread, own.epoch);
        own.epoch += 1;
    }

    fn take(&mut self) -> Known {
        self.last = Known::default();
        let mut known = std::mem::take(&mut self.known);
        known.tidy();
        known
    }
}

fn is_same(one: &Option<Rc<Clock>>, other: &Option<Rc<Clock>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Rc::ptr_eq(one, other),
        _ => false,
    }
}

/// A thread that has arrived at a numbered barrier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub thread: usize,
    pub at: usize,
    waits: bool,
}

/// A numbered barrier of a block.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    gathered: Gathered,
    pub arrived: Vec<Arrival>,
}

/// A barrier in shared memory, or that of a cluster.
#[derive(Debug, Default)]
pub(super) struct Phases {
    /// Its place among those whose epochs are known: its epochs are its phases.
    pub slot: usize,
    gathered: Gathered,
    /// What was known at the end of its last phase.
    done: Known,
    pub ended: u64,
}

/// What is handed on by an atomic location.
#[derive(Debug, Default)]
pub(super) struct Flag {
    device: Option<Known>,
    /// Within this block only.
    block: Option<(usize, Known)>,
}

impl Watch {
    /// Lanes of a warp wait for each other; whether that orders memory, or only ends their reads.
    pub fn gather_lanes(&mut self, block: usize, warp: usize, mask: u32, orders: bool) {
        let since = if orders { SINCE_ORDERED } else { SINCE_EXECUTED };
        let lanes = &mut self.threads[block][warp * WARP..][..WARP];
        let Some(first) = Lanes::of(mask).next() else {
            return;
        };
        let is_known = |own: &Own| {
            let (one, other) = (&own.known, &lanes[first].known);
            own.since & since == 0
                && Rc::ptr_eq(&one.seen, &other.seen)
                && is_same(&one.executed, &other.executed)
                && (!orders || is_same(&one.fenced, &other.fenced))
        };
        if Lanes::of(mask).all(|lane| is_known(&lanes[lane])) {
            return;
        }
        let (mut gathered, mut acquired) = (Gathered::default(), Known::default());
        for lane in Lanes::of(mask) {
            let thread = warp * WARP + lane;
            match &lanes[lane].acquired {
                Some(known) if !orders => acquired.join(known),
                _ => lanes[lane].acquire(),
            }
            gathered.add(Who { block, thread }, &mut lanes[lane]);
            lanes[lane].since &= if orders { SINCE_FENCE } else { !SINCE_EXECUTED };
        }
        let known = gathered.take();
        let executed = (!orders).then(|| {
            let mut executed = known.executed.clone().unwrap_or_default();
            Rc::make_mut(&mut executed).join(&known.seen);
            Rc::make_mut(&mut executed).join(&acquired.seen);
            executed
        });
        for lane in Lanes::of(mask) {
            match &executed {
                None => lanes[lane].known = known.clone(),
                Some(executed) => lanes[lane].known.executed = Some(Rc::clone(executed)),
            }
        }
    }

    /// Notes that a thread has arrived at a numbered barrier.
    pub fn meet(&mut self, who: Who, number: u64, at: usize, waits: bool) {
        let own = &mut self.threads[who.block][who.thread];
        own.acquire();
        own.passed = at + 1;
        let meeting = self.meetings.entry((who.block, number)).or_default();
        meeting.gathered.add(who, own);
        meeting.arrived.push(Arrival {
            thread: who.thread,
            at,
            waits,
        });
    }

    /// Notes that a numbered barrier lets its threads go on.
    pub fn release(&mut self, block: usize, number: u64) {
        let Some(meeting) = self.meetings.get_mut(&(block, number)) else {
            return;
        };
        let known = meeting.gathered.take();
        for arrival in meeting.arrived.drain(..).filter(|arrival| arrival.waits) {
            let own = &mut self.threads[block][arrival.thread];
            own.known = known.clone();
            own.since &= SINCE_FENCE;
        }
    }

    pub(super) fn phases(&mut self, block: usize, barrier: u32) -> &mut Phases {
        let slots = &mut self.slots[block];
        self.barriers.entry((block, barrier)).or_insert_with(|| {
            *slots += 1;
            Phases {
                slot: *slots - 1,
                ..Phases::default()
            }
        })
    }

    /// Notes that a thread arrives at a barrier in shared memory.
    pub fn arrive(&mut self, who: Who, block: usize, barrier: u32) {
        self.phases(block, barrier);
        let own = &mut self.threads[who.block][who.thread];
        if let Some(phases) = self.barriers.get_mut(&(block, barrier)) {
            phases.gathered.add(who, own);
        }
    }

    /// Notes that the tensor core arrives at a barrier, behind what a thread knew.
    pub fn arrive_later(&mut self, asked: &Asked, block: usize, barrier: u32) {
        self.phases(block, barrier).gathered.known.join(&asked.known);
    }

    /// Notes how many phases of a barrier have ended; none once it has been initialised.
    pub fn end_phases(&mut self, block: usize, barrier: u32, ended: u64) {
        let phases = self.phases(block, barrier);
        if ended == 0 && phases.ended > 0 {
            // Initialised anew: what was known at its old phases stays known.
            self.barriers.remove(&(block, barrier));
        } else if ended > phases.ended {
            phases.ended = ended;
            let gathered = phases.gathered.take();
            phases.done.join(&gathered);
            let slot = phases.slot;
            phases.done.set(block, slot, ended as u32);
            phases.done.tidy();
        }
    }

    /// Notes that a thread has seen the end of a barrier's last phase.
    pub fn see_phase(&mut self, who: Who, barrier: u32) {
        if let Some(phases) = self.barriers.get(&(who.block, barrier)) {
            self.threads[who.block][who.thread].known.join(&phases.done);
        }
    }

    /// Notes that a thread arrives at the barrier of its cluster, whose first block is given.
    pub fn arrive_in_cluster(&mut self, who: Who, cluster: usize) {
        let own = &mut self.threads[who.block][who.thread];
        self.clusters.entry(cluster).or_default().gathered.add(who, own);
    }

    pub fn end_cluster_phase(&mut self, cluster: usize) {
        let phases = self.clusters.entry(cluster).or_default();
        let gathered = phases.gathered.take();
        phases.done.join(&gathered);
    }

    pub fn see_cluster_phase(&mut self, who: Who, cluster: usize) {
        if let Some(phases) = self.clusters.get(&cluster) {
            self.threads[who.block][who.thread].known.join(&phases.done);
        }
    }

    /// What a thread knows now, handed on.
    pub(super) fn publish(&mut self, who: Who) -> Known {
        let own = &mut self.threads[who.block][who.thread];
        let mut known = own.known.clone();
        known.set(who.block, who.thread, own.epoch);
        own.epoch += 1;
        known
    }

    /// Notes a fence; whether it is in one order with all others of its kind.
    pub fn fence(&mut self, who: Who, scope: Scope, is_sequential: bool) {
        let own = &mut self.threads[who.block][who.thread];
        own.acquire();
        // What another lane has seen before its warp voted on it, say, is behind each lane's fence.
        if let Some(executed) = own.known.executed.take() {
            Rc::make_mut(&mut own.known.seen).join(&executed);
        }
        let known = self.publish(who);
        let own = &mut self.threads[who.block][who.thread];
        own.since &= !SINCE_FENCE;
        own.released[0] = Some(known.clone());
        if scope == Scope::Device {
            if is_sequential {
                own.known.fenced = Some(Rc::clone(&known.seen));
            }
            own.released[1] = Some(known);
        }
    }

    /// Whether a thread has accessed nothing since its last fence.
    pub fn is_at_fence(&self, who: Who) -> bool {
        self.threads[who.block][who.thread].since & SINCE_FENCE == 0
    }

    /// Notes what an atomic access hands on, and what it is handed. Right behind a fence it hands on itself too: who sees it is behind it.
    pub fn synchronise(&mut self, who: Who, place: Place, usage: Use, order: Order, at_fence: bool) {
        let key = match place {
            Place::Shared { block, offset, .. } => (Some(block), 0, offset),
            Place::Global { index, offset, .. } => (None, index, offset),
        };
        if usage != Use::Write
            && let Some(flag) = self.flags.get(&key)
        {
            let own = &mut self.threads[who.block][who.thread];
            let of_block = flag.block.as_ref().filter(|(block, _)| *block == who.block);
            for known in flag.device.iter().chain(of_block.map(|(_, known)| known)) {
                match order.acquires {
                    true => own.known.join(known),
                    false => own.acquired.get_or_insert_default().join(known),
                }
            }
        }
        if usage == Use::Read {
            return;
        }
        let own = &mut self.threads[who.block][who.thread];
        let mut released = own.released.clone();
        if at_fence && released.iter().any(Option::is_some) {
            let of_both = released.iter_mut().flatten();
            of_both.for_each(|known| known.set(who.block, who.thread, own.epoch));
            own.epoch += 1;
        }
        let [mut block, mut device] = released;
        if order.releases {
            let known = self.publish(who);
            if order.scope == Scope::Device {
                device = Some(known.clone());
            }
            block = Some(known);
        }
        if let Some(fenced) = &self.threads[who.block][who.thread].known.fenced {
            device.get_or_insert_default().join(&Known {
                seen: Rc::clone(fenced),
                ..Known::default()
            });
        }
        if block.is_none() && device.is_none() && !self.flags.contains_key(&key) {
            return;
        }
        let flag = self.flags.entry(key).or_default();
        if usage == Use::Write {
            *flag = Flag::default();
        }
        if let Some(device) = device {
            flag.device.get_or_insert_default().join(&device);
        }
        if let Some(block) = block {
            match &mut flag.block {
                Some((of, known)) if *of == who.block => known.join(&block),
                other => *other = Some((who.block, block)),
            }
        }
    }
}
