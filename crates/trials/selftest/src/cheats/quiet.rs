//! How quiet the machine is: other programs on the same processors hide cheats by times.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

/// Above this share of waiting, cheats by times may end undecided or void.
const QUIET: f64 = 0.05;

/// How long threads that never sleep, one per processor, had to wait for a processor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Quiet {
    /// The number of threads.
    pub threads: usize,
    /// How long they ran, in seconds.
    pub seconds: f64,
    /// The share of that time in which they waited; `None` where the system does not report it.
    pub waited: Option<f64>,
}

impl Quiet {
    /// Keeps all processors busy for that long and measures how much processor time the threads get.
    pub fn measure(time: Duration) -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let waited: Vec<Option<f64>> = thread::scope(|scope| {
            let started: Vec<_> = (0..threads).map(|_| scope.spawn(|| busy(time))).collect();
            started
                .into_iter()
                .map(|thread| thread.join().ok().flatten())
                .collect()
        });
        let waited: Option<Vec<f64>> = waited.into_iter().collect();
        Self {
            threads,
            seconds: time.as_secs_f64(),
            waited: waited.map(|shares| shares.iter().sum::<f64>() / threads as f64),
        }
    }

    /// Whether no other program used much processor time; `None` where the system does not report it.
    pub fn is_quiet(&self) -> Option<bool> {
        self.waited.map(|share| share <= QUIET)
    }
}

impl fmt::Display for Quiet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, seconds, .. } = self;
        let Some(waited) = self.waited else {
            return write!(formatter, "how busy this machine is could not be measured");
        };
        let waited = waited * 100.0;
        write!(
            formatter,
            "{threads} busy threads waited {waited:.0} % of {seconds:.0} s for a processor: "
        )?;
        formatter.write_str(if self.is_quiet() == Some(true) {
            "this machine is quiet"
        } else {
            "other programs are running, so that cheats by times may end undecided or void instead of caught"
        })
    }
}

/// Computes for that long; returns the share of the time in which the thread was ready but another one ran.
fn busy(time: Duration) -> Option<f64> {
    let (start, before) = (Instant::now(), waited()?);
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
    let waited = waited()?.saturating_sub(before);
    Some((waited.as_secs_f64() / start.elapsed().as_secs_f64()).clamp(0.0, 1.0))
}

/// How long this thread has waited for a processor since its start; see `sched-stats` in the kernel's documentation.
fn waited() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = stat.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_a_share_and_is_said() {
        let measured = Quiet::measure(Duration::from_millis(20));
        assert!(measured.waited.is_none_or(|share| (0.0..=1.0).contains(&share)));
        let said = |waited| {
            Quiet {
                threads: 2,
                seconds: 2.0,
                waited,
            }
            .to_string()
        };
        assert_eq!(
            said(Some(0.01)),
            "2 busy threads waited 1 % of 2 s for a processor: this machine is quiet"
        );
        assert!(said(Some(0.5)).contains("waited 50 %") && said(Some(0.5)).contains("other programs"));
        assert!(said(None).contains("could not be measured"));
    }
}
