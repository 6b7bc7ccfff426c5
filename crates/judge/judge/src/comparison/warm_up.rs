//! Warming up: calls that are not counted, until the calls of a side are steady.
//!
//! Compilers, clocks, page tables and allocators make the first calls of a process slower. That is no memory and no
//! cheat: it is measured, reported and excluded. Calls go on until two requests in a row agree; a side that never
//! becomes steady is measured all the same after a bounded time.

use super::slot::Slot;
use crate::evidence::Trust;

/// At least this many calls, or this many seconds, whichever comes first.
const CALLS: usize = 48;
const SECONDS: f64 = 0.25;

/// No more seconds than this.
const MAX_SECONDS: f64 = 1.0;

/// Seconds after which the warm-up of a kernel that is not watched ends in any case.
const MAX_QUICK_SECONDS: f64 = 0.1;

/// Two requests agree if their typical calls differ by at most this share.
const STEADY: f64 = 0.03;

/// The calls of one side so far.
#[derive(Debug, Clone, Default)]
pub struct WarmingUp {
    trust: Trust,
    calls: usize,
    seconds: f64,
    /// The typical call of each request.
    typical: Vec<f64>,
    /// What a call of the last request took of the time.
    turn: f64,
    /// Seconds of the last request for each of its calls, with what lay around them.
    whole: f64,
    /// Seconds between two calls of the last request, without a load.
    pause: f64,
    /// The most seconds that the host took for a call of the last request.
    host: f64,
}

impl WarmingUp {
    /// Before the first call.
    pub fn new(trust: Trust) -> Self {
        Self {
            trust,
            ..Self::default()
        }
    }

    /// Adds a request.
    pub fn note(&mut self, slot: &Slot) {
        self.calls += slot.calls();
        self.seconds += slot.effort.exchange;
        self.typical.push(slot.typical);
        self.turn = slot.turn();
        self.whole = slot.effort.exchange / slot.calls() as f64;
        self.host = slot.host;
        let loads: f64 = slot.loads.iter().map(|load| load.seconds).sum();
        self.pause = (slot.effort.exchange - slot.sum - loads) / slot.calls() as f64;
    }

    /// Whether the side is warm, or has had its time.
    pub fn is_over(&self) -> bool {
        if !self.trust.is_watched() && self.seconds >= MAX_QUICK_SECONDS {
            return true;
        }
        let [.., before, last] = self.typical[..] else {
            return false;
        };
        let steady = (last / before - 1.0).abs() <= STEADY;
        if !self.trust.is_watched() {
            return steady;
        }
        let enough = self.calls >= CALLS || self.seconds >= SECONDS;
        enough && steady || self.seconds >= MAX_SECONDS
    }

    /// The typical call of the last request, in seconds.
    pub fn call(&self) -> f64 {
        self.typical.last().copied().unwrap_or_default()
    }

    /// Seconds of the measuring time that a call of the last request took, for planning.
    pub fn turn(&self) -> f64 {
        self.turn
    }

    /// Seconds that a call of the last request took with all that lay around it.
    pub fn whole(&self) -> f64 {
        self.whole
    }

    /// Seconds between two calls of the last request without a load, with what comes before the first and after the last.
    pub fn pause(&self) -> f64 {
        self.pause
    }

    /// The most seconds that the host took for a call of the last request before it waited for the device, or 0 if it is not known.
    pub fn host(&self) -> f64 {
        self.host
    }

    /// How many calls.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// The slowest request over the last.
    pub fn factor(&self) -> f64 {
        let slowest = self.typical.iter().copied().fold(0.0, f64::max);
        slowest / self.call().max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_worker::Load;

    use super::*;
    use crate::comparison::side::Effort;

    /// Requests of five calls until the warm-up of a watched kernel is over.
    fn warm(call: impl Fn(usize) -> f64) -> WarmingUp {
        warm_in(Trust::Watched, call)
    }

    fn warm_in(trust: Trust, call: impl Fn(usize) -> f64) -> WarmingUp {
        let mut warming = WarmingUp::new(trust);
        for request in 0..1000 {
            if warming.is_over() {
                break;
            }
            let times: Vec<f64> = (0..5).map(|number| call(5 * request + number)).collect();
            let effort = Effort {
                exchange: times.iter().sum(),
                cpu: None,
                waited: None,
            };
            warming.note(&Slot::of(times, effort));
        }
        warming
    }

    #[test]
    fn calls_go_on_until_they_are_steady() {
        let steady = warm(|_| 1e-3);
        assert_eq!((steady.calls(), steady.factor()), (50, 1.0));
        let slow_at_first = warm(|call| if call < 30 { 3e-3 } else { 1e-3 });
        assert_eq!((slow_at_first.call(), slow_at_first.calls()), (1e-3, 50));
        assert!((slow_at_first.factor() - 3.0).abs() < 1e-9);
        let slow_for_long = warm(|call| 1e-3 * (1.0 + 5.0 * (-(call as f64) / 60.0).exp()));
        assert!((100..400).contains(&slow_for_long.calls()), "{slow_for_long:?}");
    }

    #[test]
    fn a_kernel_that_is_trusted_is_warm_when_two_requests_agree() {
        assert_eq!(warm_in(Trust::Quick, |_| 1e-3).calls(), 10);
        assert_eq!(
            warm_in(Trust::Quick, |_| 3.0).calls(),
            5,
            "a slow one after one request"
        );
        let restless = warm_in(Trust::Quick, |call| if call / 5 % 2 == 0 { 1e-3 } else { 2e-3 });
        assert!((0.1..0.12).contains(&restless.seconds), "{restless:?}");
    }

    #[test]
    fn a_pause_has_neither_calls_nor_loads_in_it() {
        let load = |seconds| Load {
            seconds,
            calls: 1,
            busy: seconds,
            active: None,
        };
        let effort = Effort {
            exchange: 10.0,
            cpu: None,
            waited: None,
        };
        let slot = Slot {
            loads: vec![load(1.0), load(3.0)],
            ..Slot::of(vec![0.5, 1.5], effort)
        };
        let mut warming = WarmingUp::default();
        warming.note(&slot);
        assert_eq!(warming.pause(), 2.0);
    }

    #[test]
    fn a_side_that_never_becomes_steady_has_a_bounded_time() {
        let restless = warm(|call| if call / 5 % 2 == 0 { 1e-3 } else { 2e-3 });
        assert!((1.0..1.1).contains(&restless.seconds));
        let long = warm(|_| 3.0);
        assert_eq!(long.calls(), 10);
    }
}
