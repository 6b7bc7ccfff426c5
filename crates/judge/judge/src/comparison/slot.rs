//! A request for timed calls, as reported by the worker and as seen by the coordinator.

use gauntlet_stats::{median, typical_call};
use gauntlet_worker::protocol::{BETWEEN, HOST, Sample as Timing};
use gauntlet_worker::{Load, Stepped};

use super::side::Effort;
use crate::runner::ExaminationFailure;

/// One slot of one side.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// Each call in order, as reported, in seconds.
    pub times: Vec<f64>,
    /// The lower quartile of the calls. What a side gains by calls of uneven length is charged to it, see
    /// [`charge`](super::conduct).
    pub typical: f64,
    /// All calls together.
    pub sum: f64,
    /// The duration and CPU time of the exchange.
    pub effort: Effort,
    /// The median clock in MHz, where every call has one.
    pub clock: Option<f64>,
    /// Time that the worker reports to have spent on its calls before and after them: on operands and results.
    pub between: f64,
    /// Each call by the coordinator's clock, in seconds; empty unless the coordinator stepped through the calls.
    pub seen: Vec<f64>,
    /// Seconds by the coordinator's clock that moving operands to a GPU and results back takes around a call, the mean; zero
    /// unless the coordinator stepped through calls on a GPU.
    pub moving: f64,
    /// The load before each call; empty unless it was part of the request.
    pub loads: Vec<Load>,
    /// The most seconds that the host says that it took for a call before it waited for the device; 0 unless calls are clocked on
    /// the device.
    pub host: f64,
    /// How many calls took the host longer than the hold before them.
    pub late: usize,
}

/// A slot of calls that are clocked one by one may take this many times its planned duration, with what is done around the
/// calls: a slot of fewer calls would be less precise.
const MAX_AROUND: f64 = 4.0;

/// Subtracting a handshake leaves at least this share of a call.
const LEAST: f64 = 0.1;

impl Slot {
    /// Reads a worker's report.
    ///
    /// # Errors
    /// If the calls add up to more than the coordinator's own clock saw.
    pub fn new(timed: &[Timing], effort: Effort) -> Result<Self, ExaminationFailure> {
        let clocks: Option<Vec<f64>> = timed.iter().map(|timing| timing.clock).collect();
        let slot = Self {
            clock: clocks.map(|clocks| median(&clocks)),
            between: timed.iter().filter_map(|timing| timing.phases.get(BETWEEN)).sum(),
            host: timed
                .iter()
                .filter_map(|timing| timing.phases.get(HOST))
                .fold(0.0, |most, host| most.max(*host)),
            ..Self::of(timed.iter().map(|timing| timing.call).collect(), effort)
        };
        if slot.sum > effort.exchange {
            return Err(ExaminationFailure::Void(format!(
                "a worker reports calls of {:.6} s together in an exchange that took {:.6} s",
                slot.sum, effort.exchange
            )));
        }
        Ok(slot)
    }

    /// Reads the calls of a held worker.
    ///
    /// # Errors
    /// If a call is reported as longer than the coordinator's own clock saw it.
    pub fn stepped(stepped: &Stepped, effort: Effort) -> Result<Self, ExaminationFailure> {
        let times: Vec<f64> = stepped.samples.iter().map(|sample| sample.call).collect();
        let longer = times.iter().zip(&stepped.seen).find(|(time, seen)| time > seen);
        if let Some((time, seen)) = longer {
            return Err(ExaminationFailure::Void(format!(
                "a worker reports a call of {time:.6} s in an exchange that took {seen:.6} s"
            )));
        }
        Ok(Self {
            seen: stepped.seen.clone(),
            moving: stepped.moving.iter().sum::<f64>() / stepped.moving.len().max(1) as f64,
            loads: stepped.loads.clone(),
            host: stepped.host,
            late: stepped.late,
            ..Self::of(times, effort)
        })
    }

    /// A slot of these calls.
    pub fn of(times: Vec<f64>, effort: Effort) -> Self {
        Self {
            typical: typical_call(&times),
            sum: times.iter().sum(),
            times,
            effort,
            clock: None,
            between: 0.0,
            seen: Vec::new(),
            moving: 0.0,
            loads: Vec::new(),
            host: 0.0,
            late: 0,
        }
    }

    /// Whether the coordinator clocked each call.
    pub fn is_stepped(&self) -> bool {
        !self.seen.is_empty()
    }

    /// Seconds by the coordinator's clock that have to hold the calls: those of each call, or of the whole exchange.
    pub fn elapsed(&self) -> f64 {
        if self.is_stepped() {
            self.seen.iter().sum()
        } else {
            self.effort.exchange
        }
    }

    /// Seconds of the measuring time for each call, for planning: the typical call, by the coordinator's clock where it clocks
    /// each. What is done around calls counts beyond [`MAX_AROUND`].
    pub fn turn(&self) -> f64 {
        let whole = self.effort.exchange / self.calls() as f64;
        let typical = match self.is_stepped() {
            true => typical_call(&self.seen),
            false => self.typical,
        };
        typical.max(whole / MAX_AROUND)
    }

    /// What the coordinator's typical call takes beyond the reported one, in seconds; none if it did not clock each call.
    pub fn handshake(&self) -> Option<f64> {
        self.is_stepped().then(|| typical_call(&self.seen) - self.typical)
    }

    /// Each call by the coordinator's clock without a handshake of this many seconds, or as reported if it did not clock
    /// each call.
    pub fn clocked(&self, handshake: f64) -> Vec<f64> {
        if !self.is_stepped() {
            return self.times.clone();
        }
        let without = |seen: &f64| (seen - handshake).max(LEAST * seen);
        self.seen.iter().map(without).collect()
    }

    /// The typical call by the coordinator's clock without a handshake of this many seconds. At least a share of
    /// the reported call is left. A share of what the clock saw would be too much: the handshake may be many times as long as the call.
    pub fn typical_clocked(&self, handshake: f64) -> f64 {
        (typical_call(&self.seen) - handshake).max(LEAST * self.typical)
    }

    /// How many calls.
    pub fn calls(&self) -> usize {
        self.times.len()
    }

    /// How much longer the mean call is than the typical one, as a share of the typical one, without a handshake of this many
    /// seconds.
    pub fn unevenness(&self, handshake: f64) -> f64 {
        unevenness(&self.clocked(handshake))
    }

    /// The same by the worker's reports.
    pub fn reported_unevenness(&self) -> f64 {
        unevenness(&self.times)
    }
}

/// How much longer the mean of some calls is than the typical one, as a share of the typical one.
fn unevenness(calls: &[f64]) -> f64 {
    calls.iter().sum::<f64>() / (calls.len() as f64 * typical_call(calls)) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(call: f64) -> Timing {
        Timing {
            call,
            kernel: None,
            clock: None,
            phases: Default::default(),
        }
    }

    #[test]
    fn a_call_longer_than_the_coordinator_saw_it_is_refused() {
        let effort = Effort {
            exchange: 9.0,
            cpu: None,
            waited: None,
        };
        let stepped = Stepped {
            samples: [1.0, 3.0].map(timing).into(),
            seen: vec![1.5, 3.5],
            moving: vec![0.25, 0.5],
            results: Vec::new(),
            loads: Vec::new(),
            host: 0.0,
            late: 0,
        };
        let slot = Slot::stepped(&stepped, effort).unwrap();
        assert_eq!((slot.elapsed(), slot.moving), (5.0, 0.375));
        assert!((1.5..3.5).contains(&slot.turn()), "{}", slot.turn());
        let long = Effort {
            exchange: 40.0,
            ..effort
        };
        assert_eq!(Slot::stepped(&stepped, long).unwrap().turn(), 5.0);
        assert_eq!(slot.clocked(0.5), [1.0, 3.0]);
        // A tenth of a call is left.
        assert_eq!(slot.clocked(3.0)[0], 0.1 * 1.5);
        let spread = Stepped {
            samples: [2.0, 2.0].map(timing).into(),
            ..stepped
        };
        assert!(matches!(
            Slot::stepped(&spread, effort),
            Err(ExaminationFailure::Void(_))
        ));
    }

    #[test]
    fn calls_longer_than_the_exchange_are_refused() {
        let effort = Effort {
            exchange: 6.5,
            cpu: None,
            waited: None,
        };
        let slot = Slot::new(&[1.0, 3.0, 2.0].map(timing), effort).unwrap();
        assert_eq!((slot.sum, slot.calls()), (6.0, 3));
        assert!((1.0..2.0).contains(&slot.typical), "{slot:?}");
        assert!((slot.unevenness(0.0) - (2.0 / slot.typical - 1.0)).abs() < 1e-12);
        assert!(matches!(
            Slot::new(&[timing(4.0), timing(3.0)], effort),
            Err(ExaminationFailure::Void(_))
        ));
    }
}
