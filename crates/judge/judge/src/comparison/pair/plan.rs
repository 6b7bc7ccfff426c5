//! How the measurement of a case is divided: calls into slots, and blocks into loads.

use std::ops::Range;

use gauntlet_stats::BlockOrder;
use gauntlet_worker::protocol::HOLD;
use rand::rng;

use crate::comparison::heating::before_calls;
use crate::comparison::requests::{Deck, TimedRequest, draw_checks, length};

/// Target duration of a slot, filled with calls. On a shared two-core machine lone calls of 4…25 ms varied by 10 %
/// within a block, and slot medians by a third of that. A slot this long also hides the clock's resolution and the
/// message exchange.
pub const SLOT: f64 = 20e-3;

/// Target duration of a slot on a GPU. Slots of 20 ms were measured on an H200: three in four medians lay within 0.6 %
/// of their process's median. Slots of 8 ms were not measured; their scatter is assumed to grow by at most the square
/// root of the ratio, 1.6, to 1 %. A process has several slots for each case, and the interval narrows with the number
/// of pairs of processes, which can be larger when each pair is shorter.
pub const SLOT_ON_GPU: f64 = 8e-3;

/// Most calls in one slot; their times travel as text, a microsecond or two each.
pub const MAX_SAMPLES: usize = 4096;

/// The faster side fills a slot unless the slower side would then take this many slot durations. Both sides make the
/// same number of calls, so that message times are comparable. With only a few calls of a much faster side between
/// messages, its times could not be checked.
const MAX_SLOTS: f64 = 8.0;

/// What the requests of a case have in common.
pub struct Plan {
    /// Calls of a slot, about.
    pub target: usize,
    /// Most calls of a request.
    pub most: usize,
    /// The probability that results of a request are asked for.
    pub checking: f64,
    /// Seconds between two calls of a request, on the side where that is longer.
    pub pause: f64,
}

impl Plan {
    /// A request like those of slots, without checks.
    pub fn deal(&self, deck: &mut Deck) -> TimedRequest {
        deck.deal(length(self.target, self.most, &mut rng()), &mut rng())
    }

    /// The request of a slot, whose results are asked for with this probability. `load` has the least seconds of load before
    /// it, if that is part of the request.
    pub fn deal_slot(&self, deck: &mut Deck, checking: f64, load: Option<f64>) -> TimedRequest {
        let request = self.deal(deck);
        let calls = request.copies.len();
        let heat = load.map(|least| before_calls(calls, least, self.pause, &mut rng()));
        TimedRequest {
            checks: draw_checks(calls, checking, &mut rng()),
            is_slot: true,
            heat: heat.unwrap_or_default(),
            ..request
        }
    }
}

/// How many calls a slot of that many seconds has, given the seconds of a call of each side.
pub fn samples_for([one, other]: [f64; 2], slot: f64) -> usize {
    let call = one.min(other).max(one.max(other) / MAX_SLOTS);
    ((slot / call.max(1e-9)).ceil() as usize).clamp(1, MAX_SAMPLES)
}

/// A hold is lengthened if a host took this share of it to launch a call.
const NEARLY_LATE: f64 = 0.8;

/// A lengthened hold lasts this many times the longest launch time of the warm-up, since lone calls take longer to launch
/// than calls in a row.
const HOLD_OVER_HOST: f64 = 2.0;

/// No hold lasts longer: it delays each call.
const MAX_HOLD: f64 = 10e-3;

/// For how many seconds both sides are held back before each call, given the longest time in seconds that a host took to
/// launch a call behind a hold of [`HOLD`]. Launching that outlasts the hold is part of the time of the call. If not even the
/// longest hold would do, it stays as it is.
pub fn hold_for(host: f64) -> f64 {
    if !(NEARLY_LATE * HOLD..=MAX_HOLD).contains(&host) {
        return HOLD;
    }
    (HOLD_OVER_HOST * host).min(MAX_HOLD)
}

/// The fresh sets of each load, and its blocks: two loads if there are enough of both.
pub fn loads(sets: usize, orders: &[BlockOrder]) -> Vec<(Range<usize>, &[BlockOrder])> {
    if sets < 2 || orders.len() < 2 {
        return vec![(0..sets, orders)];
    }
    let (half, (before, after)) = (sets.div_ceil(2), orders.split_at(orders.len().div_ceil(2)));
    vec![(0..half, before), (half..sets, after)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_holds_as_many_calls_as_fill_it() {
        assert_eq!(samples_for([1.0; 2], SLOT), 1);
        assert_eq!(samples_for([1e-3; 2], SLOT), 20);
        assert_eq!(samples_for([0.0; 2], SLOT), MAX_SAMPLES);
        assert_eq!(samples_for([1e-3, 5e-4], SLOT), 40);
        assert_eq!(samples_for([1e-4, 1e-3], SLOT), 160, "no more than eight slots");
    }

    #[test]
    fn a_hold_lasts_longer_only_if_that_helps() {
        assert_eq!(hold_for(0.0), HOLD);
        assert_eq!(hold_for(0.16e-3), HOLD);
        assert_eq!(hold_for(0.65e-3), 1.3e-3);
        assert_eq!(hold_for(4e-3), 8e-3);
        assert_eq!(hold_for(7e-3), 10e-3);
        assert_eq!(hold_for(30e-3), HOLD);
    }

    #[test]
    fn a_second_load_brings_new_values_to_used_addresses() {
        let orders = [BlockOrder::Abba, BlockOrder::Baab, BlockOrder::Abba];
        let split = |sets, orders| {
            let parts = loads(sets, orders);
            parts
                .into_iter()
                .map(|(sets, orders)| (sets, orders.len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(split(8, &orders), [(0..4, 2), (4..8, 1)]);
        assert_eq!(split(2, &orders), [(0..1, 2), (1..2, 1)]);
        assert_eq!(split(1, &orders), [(0..1, 3)]);
        assert_eq!(split(4, &orders[..1]), [(0..4, 1)]);
    }
}
