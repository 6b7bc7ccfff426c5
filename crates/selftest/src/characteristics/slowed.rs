//! A worker that is slowed down by a known share.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gauntlet_parameters::Parameters;
use gauntlet_worker::protocol::{CaseRequest, Description, Failure, Resources, Sample};
use gauntlet_worker::{Calls, Service};

/// Wraps a service and spins after each request for a share of the time that its computations took.
pub struct Slowed<S> {
    honest: S,
    share: f64,
}

impl<S: Service> Slowed<S> {
    /// `share` is the additional time of each call, as a fraction of the call's time.
    pub fn new(honest: S, share: f64) -> Self {
        Self { honest, share }
    }

    /// Spins once for all calls of a request, so that the honest service keeps all of their results, and adds to each
    /// call its part of that time.
    fn slow_down(&self, samples: Vec<Sample>) -> Vec<Sample> {
        let calls: f64 = samples.iter().map(|sample| sample.call).sum();
        spin(Duration::from_secs_f64(calls * self.share));
        let slowed = samples.into_iter().map(|sample| {
            let more = sample.call * self.share;
            Sample {
                call: sample.call + more,
                kernel: sample.kernel.map(|kernel| kernel + more),
                ..sample
            }
        });
        slowed.collect()
    }
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
        let more = spin(Duration::from_secs_f64(sample.call * self.share));
        Ok(Sample {
            call: sample.call + more,
            ..sample
        })
    }

    fn time(&mut self, calls: Calls) -> Result<Vec<Sample>, Failure> {
        let samples = self.honest.time(calls)?;
        Ok(self.slow_down(samples))
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

    /// A service whose calls take `CALL` each; it records the copies that it was asked for.
    struct Steady(Vec<usize>);

    const CALL: f64 = 4e-3;

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
            let timed = calls.copies.iter().map(|_| {
                let call = spin(Duration::from_secs_f64(CALL));
                Sample {
                    call,
                    kernel: Some(call / 2.0),
                    clock: None,
                    phases: Default::default(),
                }
            });
            let timed = timed.collect();
            self.0.extend(calls.copies);
            Ok(timed)
        }
        fn output(&mut self, _: &Path, _: usize) -> Result<u64, Failure> {
            unreachable!()
        }
    }

    #[test]
    fn each_call_takes_longer_on_the_wall_as_reported() {
        let mut slowed = Slowed::new(Steady(Vec::new()), 0.5);
        let start = Instant::now();
        let samples = slowed
            .time(Calls {
                copies: vec![7, 8, 9],
                phases: false,
            })
            .unwrap();
        let elapsed = start.elapsed().as_secs_f64();
        assert_eq!(slowed.honest.0, [7, 8, 9]);
        assert_eq!(samples.len(), 3);
        let reported: f64 = samples.iter().map(|sample| sample.call).sum();
        assert!(reported <= elapsed, "{reported} s of {elapsed} s");
        for Sample { call, kernel, .. } in samples {
            assert!(call >= 1.5 * CALL, "{call}");
            assert!(kernel.unwrap() >= CALL, "{kernel:?}");
        }
    }
}
