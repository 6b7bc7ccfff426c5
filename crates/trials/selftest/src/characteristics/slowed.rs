//! A worker that is slowed down by a known share.
//!
//! The delay of a request is the given share of what its calls took, and follows the last of them in one piece: a
//! delay after every call would change how the next call finds caches and clock, and would inject more than the share.
//! How much was really injected is measured in the same process, by requests with and without the delay in drawn order
//! ([`Slowed::trace`]).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gauntlet_parameters::Parameters;
use gauntlet_stats::median;
use gauntlet_worker::protocol::{CaseRequest, Description, Failure, Resources, Sample};
use gauntlet_worker::{Calls, Service};
use rand::RngExt;

use super::injected::Injected;

/// Requests with and without the delay, and calls in each.
const PAIRS_OF_REQUESTS: usize = 24;
const CALLS: usize = 8;

/// Wraps a service and lengthens its calls by a share of the time that they took.
pub struct Slowed<S> {
    honest: S,
    share: f64,
}

impl<S: Service> Slowed<S> {
    /// `share` is the additional time of each call, as a fraction of the call's time.
    pub fn new(honest: S, share: f64) -> Self {
        Self { honest, share }
    }

    /// The median call of a request, with the delay or without.
    fn median_call(&mut self, slowed: bool) -> Result<f64, Failure> {
        let calls = Calls {
            copies: vec![0; CALLS],
            ..Calls::default()
        };
        let samples = if slowed {
            self.time(calls)?
        } else {
            self.honest.time(calls)?
        };
        let times: Vec<f64> = samples.iter().map(|sample| sample.call).collect();
        Ok(median(&times))
    }
}

/// Spins for a share of what the calls took, and adds to each what its part of the delay really was.
fn slow_down(mut samples: Vec<Sample>, share: f64) -> Vec<Sample> {
    let together: f64 = samples.iter().map(|sample| sample.call).sum();
    if share <= 0.0 || together <= 0.0 {
        return samples;
    }
    let added = spin(Duration::from_secs_f64(together * share)) / together;
    for sample in &mut samples {
        let more = sample.call * added;
        sample.call += more;
        sample.kernel = sample.kernel.map(|kernel| kernel + more);
    }
    samples
}

impl<S: Service> Service for Slowed<S> {
    fn describe(&self) -> Description {
        self.honest.describe()
    }

    fn build(&mut self, case: &CaseRequest, parameters: &Parameters) -> Result<Resources, Failure> {
        self.honest.build(case, parameters)
    }

    fn load(&mut self, inputs: &[PathBuf], copies: usize) -> Result<u64, Failure> {
        self.honest.load(inputs, copies)
    }

    fn prepare(&mut self) -> Result<u64, Failure> {
        self.honest.prepare()
    }

    fn run(&mut self, copy: usize, poison: u8) -> Result<Sample, Failure> {
        let sample = self.honest.run(copy, poison)?;
        let mut slowed = slow_down(vec![sample.clone()], self.share);
        Ok(slowed.pop().unwrap_or(sample))
    }

    fn time(&mut self, calls: Calls) -> Result<Vec<Sample>, Failure> {
        Ok(slow_down(self.honest.time(calls)?, self.share))
    }

    /// Writes, in place of a timeline, what the delay does to the calls on the operands that are loaded.
    fn trace(&mut self, path: &Path) -> Result<u64, Failure> {
        let mut ratios = Vec::with_capacity(PAIRS_OF_REQUESTS);
        for _ in 0..PAIRS_OF_REQUESTS {
            let slowed_first = rand::rng().random();
            let first = self.median_call(slowed_first)?;
            let second = self.median_call(!slowed_first)?;
            let (slowed, plain) = if slowed_first {
                (first, second)
            } else {
                (second, first)
            };
            ratios.push((slowed / plain).ln());
        }
        Injected::of(&ratios, CALLS).write(path)
    }

    fn output(&mut self, path: &Path, index: usize) -> Result<u64, Failure> {
        self.honest.output(path, index)
    }
}

/// Keeps a processor busy, as a slower kernel would, and returns for how long, in seconds. Sleeping would be imprecise
/// by the scheduler's granularity and would let the clock rise.
fn spin(time: Duration) -> f64 {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
    start.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service whose calls take `CALL` each; it records the requests that it was asked for.
    struct Steady(Vec<Calls>);

    const CALL: f64 = 1e-3;

    impl Service for Steady {
        fn describe(&self) -> Description {
            unreachable!()
        }
        fn build(&mut self, _: &CaseRequest, _: &Parameters) -> Result<Resources, Failure> {
            unreachable!()
        }
        fn load(&mut self, _: &[PathBuf], _: usize) -> Result<u64, Failure> {
            unreachable!()
        }
        fn run(&mut self, _: usize, _: u8) -> Result<Sample, Failure> {
            unreachable!()
        }
        fn time(&mut self, calls: Calls) -> Result<Vec<Sample>, Failure> {
            let timed = |_: &usize| {
                let call = spin(Duration::from_secs_f64(CALL));
                Sample {
                    call,
                    kernel: Some(call / 2.0),
                    clock: None,
                    phases: Default::default(),
                }
            };
            let samples = calls.copies.iter().map(timed).collect();
            self.0.push(calls);
            Ok(samples)
        }
        fn output(&mut self, _: &Path, _: usize) -> Result<u64, Failure> {
            unreachable!()
        }
    }

    #[test]
    fn each_call_takes_longer_on_the_wall_as_reported() {
        let mut slowed = Slowed::new(Steady(Vec::new()), 0.5);
        let start = Instant::now();
        let calls = Calls {
            copies: vec![7, 8, 9],
            ..Calls::default()
        };
        let samples = slowed.time(calls.clone()).unwrap();
        let elapsed = start.elapsed().as_secs_f64();
        assert_eq!(slowed.honest.0, [calls], "the request is passed on as it came");
        assert_eq!(samples.len(), 3);
        let reported: f64 = samples.iter().map(|sample| sample.call).sum();
        assert!(reported <= elapsed, "{reported} s of {elapsed} s");
        for Sample { call, kernel, .. } in samples {
            assert!(call >= 1.5 * CALL, "{call}");
            assert!(kernel.unwrap() >= CALL, "{kernel:?}");
        }
    }

    #[test]
    fn every_call_of_a_request_gets_its_share_of_the_delay() {
        let sample = |call| Sample {
            call,
            kernel: None,
            clock: None,
            phases: Default::default(),
        };
        let slowed = slow_down(vec![sample(1e-4), sample(3e-4)], 0.5);
        let ratio = slowed[1].call / slowed[0].call;
        assert!((ratio - 3.0).abs() < 1e-9, "{ratio}");
        assert!(slowed[0].call >= 1.5e-4, "{}", slowed[0].call);
        let untouched = slow_down(vec![sample(1e-4)], 0.0);
        assert_eq!(untouched[0].call, 1e-4);
    }

    #[test]
    fn what_was_injected_is_at_least_the_delay() {
        let mut slowed = Slowed::new(Steady(Vec::new()), 0.25);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("injected.json");
        slowed.trace(&path).unwrap();
        let injected: Injected = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        // A disturbed machine stretches calls of either kind, so only the plain bookkeeping is asserted.
        assert_eq!(injected.calls, 2 * PAIRS_OF_REQUESTS * CALLS);
        assert!(injected.log_slowdown.is_finite() && injected.standard_error >= 0.0);
        assert_eq!(slowed.honest.0.len(), 2 * PAIRS_OF_REQUESTS);
    }
}
