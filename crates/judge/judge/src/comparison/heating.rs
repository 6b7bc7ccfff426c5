//! The load before a slot in the sustained regime: ordinary requests to one side, back to back, until it has been under
//! load for long enough that the device's clock is the one that its power limit and its heat leave.
//!
//! Lengths and operands are drawn as for slots, and results are asked for after requests that cannot be told from the
//! others, so a worker does not know whether a request heats or is timed. The end is drawn too, since a worker can count
//! the time since its last pause. While a result is read and checked the device idles, so the load starts again afterwards.
//!
//! Between the calls of a held worker operands are written and moved, so that its device would idle through most of such a
//! load. If both sides offer it, the load is part of the slot's request instead ([`before_calls`]): before each call the
//! worker calls its kernel back to back on other operands. The worker then knows which request is a slot.

use rand::{Rng, RngExt};

use super::requests::{TimedRequest, draw_checks};
use super::slot::Slot;
use crate::runner::ExaminationFailure;

/// A load lasts up to this many times its least duration.
const LONGEST: f64 = 1.5;

/// The probability that a result is asked for in the load, if results of its slot could be asked for. The load then starts
/// again from the beginning, with the same chance of another result, so loads are about a sixth longer on average.
const CHECKED: f64 = 0.25;

/// A load before a further call of a slot is this many times as long as the pause since the call before: operands and results
/// are moved in it, and the device cools. So the device works for three quarters of the time.
const OVER_PAUSE: f64 = 3.0;

/// This many calls of a slot add little to the time of its first load, and are more precise than a single one.
const CALLS: usize = 4;

/// The least number of calls of a slot whose first load lasts `least` seconds: [`CALLS`], or as many as take no longer than that
/// load with the pauses of `pause` seconds between them and the further loads in these.
pub fn least_calls(least: f64, pause: f64) -> usize {
    ((least / ((1.0 + OVER_PAUSE) * pause)) as usize).clamp(1, CALLS)
}

/// Seconds of load right before each call of a slot: the least load before the first one, or up to half as much more, and
/// before each further one as long as the `pause` between two calls calls for.
pub fn before_calls(calls: usize, least: f64, pause: f64, rng: &mut impl Rng) -> Vec<f64> {
    let first = least * rng.random_range(1.0..=LONGEST);
    let further = (OVER_PAUSE * pause).clamp(0.0, least);
    (0..calls)
        .map(|call| if call == 0 { first } else { further })
        .collect()
}

/// How a side is loaded before a slot.
#[derive(Debug, Clone, Copy)]
pub struct LoadPlan {
    /// The least load, in seconds.
    pub seconds: f64,
    /// The probability that results of a slot are asked for.
    pub checking: f64,
}

/// What a load showed.
#[derive(Debug, Clone)]
pub struct Heated {
    /// The first request, which follows on a pause as a slot does in the isolated regime.
    pub first: Slot,
    /// The typical call of the last request, in seconds.
    pub last: f64,
    /// How many calls.
    pub calls: usize,
    /// Seconds of all calls, by the worker's reports.
    pub sum: f64,
    /// Seconds of all requests, by the coordinator's clock.
    pub exchanges: f64,
    /// Seconds from the start to the end of the load, without the time that results took.
    pub elapsed: f64,
}

impl Heated {
    fn beginning_with(first: Slot) -> Self {
        Self {
            first,
            last: 0.0,
            calls: 0,
            sum: 0.0,
            exchanges: 0.0,
            elapsed: 0.0,
        }
    }

    fn add(&mut self, slot: &Slot) {
        self.last = slot.typical;
        self.calls += slot.calls();
        self.sum += slot.sum;
        self.exchanges += slot.effort.exchange;
    }
}

/// When a stretch of load ends, and when a result is asked for, in seconds from its start.
struct Stretch {
    begun: f64,
    end: f64,
    check: Option<f64>,
}

impl Stretch {
    fn begin(plan: &LoadPlan, now: f64, rng: &mut impl Rng) -> Self {
        let end = plan.seconds * rng.random_range(1.0..=LONGEST);
        let check = rng.random_bool(CHECKED * plan.checking);
        Self {
            begun: now,
            end,
            check: check.then(|| rng.random_range(0.0..end)),
        }
    }
}

/// Loads a side. `opening` is the first request, without checks; `deal` makes further ones, and `turn` sends a request and
/// checks the results that it asks for. `clock` reads seconds.
pub fn heat(
    plan: &LoadPlan,
    opening: TimedRequest,
    rng: &mut impl Rng,
    clock: impl Fn() -> f64,
    mut deal: impl FnMut() -> TimedRequest,
    mut turn: impl FnMut(&TimedRequest) -> Result<Slot, ExaminationFailure>,
) -> Result<Heated, ExaminationFailure> {
    let mut so_far: Option<Heated> = None;
    let mut request = opening;
    let mut stretch = Stretch::begin(plan, clock(), rng);
    loop {
        let before = clock() - stretch.begun;
        let is_checked = stretch.check.is_some_and(|check| before >= check);
        if is_checked {
            request.checks = draw_checks(request.copies.len(), 1.0, rng);
        }
        let slot = turn(&request)?;
        let heated = so_far.get_or_insert_with(|| Heated::beginning_with(slot.clone()));
        heated.add(&slot);
        if is_checked {
            heated.elapsed += before + slot.effort.exchange;
            stretch = Stretch::begin(plan, clock(), rng);
        } else {
            let elapsed = clock() - stretch.begun;
            if elapsed >= stretch.end {
                heated.elapsed += elapsed;
                return Ok(heated.clone());
            }
        }
        request = deal();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::comparison::side::Effort;

    const REQUEST: f64 = 2e-3;

    fn request() -> TimedRequest {
        TimedRequest {
            copies: vec![0; 4],
            fresh: Vec::new(),
            checks: Vec::new(),
            is_slot: false,
            heat: Vec::new(),
        }
    }

    /// A slot of four calls that were as long as the request.
    fn slot(exchange: f64) -> Slot {
        let effort = Effort {
            exchange,
            cpu: None,
            waited: None,
        };
        Slot::of(vec![exchange / 5.0; 4], effort)
    }

    /// Loads a side for at least 20 ms; a result takes 30 ms. Also returns the numbers of the requests whose results were
    /// asked for, of all.
    fn loaded(checking: f64, seed: u64) -> (Heated, Vec<usize>, usize) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let plan = LoadPlan {
            seconds: 20e-3,
            checking,
        };
        let mut checked = Vec::new();
        let mut requests = 0;
        let now = Cell::new(5.0);
        let heated = heat(
            &plan,
            request(),
            &mut rng,
            || now.get(),
            request,
            |request| {
                now.set(now.get() + REQUEST);
                if !request.checks.is_empty() {
                    checked.push(requests);
                    now.set(now.get() + 30e-3);
                }
                requests += 1;
                Ok(slot(REQUEST))
            },
        );
        (heated.unwrap(), checked, requests)
    }

    #[test]
    fn a_side_is_under_load_for_a_time_drawn_anew() {
        for seed in 0..4 {
            let (heated, checked, requests) = loaded(0.0, seed);
            assert!(checked.is_empty());
            assert_eq!(heated.calls, 4 * requests);
            // Between the least duration and half as much again, and the request that goes on at the end.
            assert!((10..=16).contains(&requests), "{requests}");
            assert!((heated.elapsed - heated.exchanges).abs() < 1e-9, "{heated:?}");
            // A fifth of each request is not in any call.
            assert!((heated.sum / heated.exchanges - 0.8).abs() < 1e-9);
            assert!((heated.first.sum - 0.8 * heated.first.effort.exchange).abs() < 1e-9);
        }
    }

    #[test]
    fn a_load_before_calls_makes_up_for_the_pauses_between_them() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let heat = before_calls(3, 0.5, 0.01, &mut rng);
        assert!((0.5..=0.75).contains(&heat[0]), "{heat:?}");
        assert_eq!(heat[1..], [0.03; 2]);
        assert_ne!(
            before_calls(1, 0.5, 0.01, &mut rng)[0],
            heat[0],
            "each load is drawn"
        );
        // After long pauses no further load is longer than the first.
        assert_eq!(before_calls(2, 0.5, 9.0, &mut rng)[1], 0.5);
    }

    #[test]
    fn a_slot_has_some_calls_for_its_first_load() {
        assert_eq!(least_calls(0.5, 0.01), 4);
        assert_eq!(least_calls(0.5, 0.06), 2);
        assert_eq!(least_calls(0.5, 0.7), 1);
        assert_eq!(least_calls(0.5, 0.0), 4);
    }

    #[test]
    fn a_load_begins_anew_after_a_result() {
        let mut was_checked = false;
        for seed in 0..16 {
            let (heated, checked, requests) = loaded(1.0, seed);
            was_checked |= !checked.is_empty();
            // The whole load follows on the last result, and the time that results took is not part of it.
            let after = requests - checked.last().map_or(0, |last| last + 1);
            assert!((10..=16).contains(&after), "{checked:?} of {requests}");
            assert!((heated.elapsed - heated.exchanges).abs() < 1e-9, "{heated:?}");
        }
        assert!(was_checked);
    }
}
