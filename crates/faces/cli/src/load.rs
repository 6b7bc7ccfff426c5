//! How busy the machine is with other processes, which distort measured times.
//!
//! The kernel counts, for each processor, the time that any process ran (`/proc/stat`). The time of this program and
//! its workers is subtracted; the rest was used by other processes, including other virtual machines if the hypervisor
//! reports them (steal time). The load averages (`/proc/loadavg`) are reported too but not used for decisions: they lag
//! by a minute, and include this program.

use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::{Pid, SysconfVar, sysconf};
use schemars::JsonSchema;
use serde::Serialize;

/// The machine counts as busy if other processes take at least this share of the processors' time. Every thread of a
/// kernel waits for the slowest one, so a tenth taken from one processor lengthens a call by about as much.
const BUSY: f64 = 0.10;

/// How long the machine is observed before a measurement: a hundred of the kernel's clock ticks.
const SAMPLE: Duration = Duration::from_secs(1);

/// The remedy for a busy machine.
pub const REMEDY: &str = "stop the other programs, or wait until they end (`top` lists them)";

/// The load by other processes on the processors that this program may use.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Load {
    /// The share of the processors' time that other processes took; none if the system does not report it.
    pub other_processes: Option<f64>,
    /// The processors.
    pub processors: usize,
    /// The load averages over 1, 5 and 15 minutes; none if the system does not report them.
    pub load_averages: Option<[f64; 3]>,
}

impl Load {
    /// Observes the machine for a second, while this program is idle.
    pub fn sample() -> Self {
        let watch = Watch::start();
        sleep(SAMPLE);
        watch.stop()
    }

    /// Whether other processes took so much time that measured times are unreliable.
    pub fn is_busy(&self) -> bool {
        self.other_processes.is_some_and(|share| share >= BUSY)
    }

    /// The observation in words: `other processes took 97 % of the time of 2 processors (load averages 7.1, 6.8, 5.0)`.
    pub fn sentence(&self) -> String {
        let plural = if self.processors == 1 { "" } else { "s" };
        let mut sentence = match self.other_processes {
            Some(share) => format!(
                "other processes took {:.0} % of the time of {} processor{plural}",
                share * 100.0,
                self.processors
            ),
            None => "the system does not tell how busy its processors are".to_owned(),
        };
        if let Some([one, five, fifteen]) = self.load_averages {
            sentence += &format!(" (load averages {one:.1}, {five:.1}, {fifteen:.1})");
        }
        sentence
    }
}

/// An observation in progress.
pub struct Watch {
    began: Instant,
    /// Busy seconds of the processors, and the number of processors; none if the system does not report them.
    busy: Option<(f64, usize)>,
    /// CPU seconds of this program and its workers.
    own: f64,
}

impl Watch {
    /// Starts an observation.
    pub fn start() -> Self {
        Self {
            began: Instant::now(),
            busy: busy(),
            own: own(),
        }
    }

    /// The observation since the start. All workers must have ended, because the CPU time of running workers is not
    /// known.
    pub fn stop(&self) -> Load {
        let elapsed = self.began.elapsed().as_secs_f64();
        let found = self.busy.zip(busy());
        let other_processes = found.map(|((before, processors), (after, _))| {
            let others = (after - before) - (own() - self.own);
            (others / (elapsed * processors as f64)).clamp(0.0, 1.0)
        });
        Load {
            other_processes,
            processors: found.map_or_else(
                || std::thread::available_parallelism().map_or(1, usize::from),
                |((_, processors), _)| processors,
            ),
            load_averages: std::fs::read_to_string("/proc/loadavg")
                .ok()
                .and_then(|text| load_averages(&text)),
        }
    }
}

/// Busy seconds of the processors that this program may use, and their number.
fn busy() -> Option<(f64, usize)> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks_a_second = sysconf(SysconfVar::CLK_TCK).ok()?? as f64;
    let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
    let is_allowed = |processor| processor < CpuSet::count() && allowed.is_set(processor).unwrap_or(false);
    let (ticks, processors) = busy_ticks(&text, is_allowed)?;
    Some((ticks as f64 / ticks_a_second, processors))
}

/// CPU seconds of this program and of its workers that have ended.
fn own() -> f64 {
    [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN]
        .into_iter()
        .filter_map(|who| getrusage(who).ok())
        .flat_map(|usage| [usage.user_time(), usage.system_time()])
        .map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 * 1e-6)
        .sum()
}

/// The busy ticks of the allowed processors in `/proc/stat`, and their number; none if no processor is found.
fn busy_ticks(text: &str, is_allowed: impl Fn(usize) -> bool) -> Option<(u64, usize)> {
    let mut found = None;
    for line in text.lines() {
        let mut columns = line.split_ascii_whitespace();
        let name = columns.next().and_then(|name| name.strip_prefix("cpu"));
        // The line `cpu` without a number is the sum of the others.
        let Some(processor) = name.and_then(|number| number.parse().ok()) else {
            continue;
        };
        if !is_allowed(processor) {
            continue;
        }
        // user, nice, system, idle, iowait, irq, softirq, steal (proc_stat(5)); the later columns are included in user
        // and nice.
        let ticks: Vec<u64> = columns.take(8).map_while(|column| column.parse().ok()).collect();
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        let (sum, processors) = found.unwrap_or((0, 0));
        found = Some((sum + ticks.iter().sum::<u64>() - idle, processors + 1));
    }
    found
}

/// The three load averages at the beginning of `/proc/loadavg`.
fn load_averages(text: &str) -> Option<[f64; 3]> {
    let mut columns = text
        .split_ascii_whitespace()
        .map_while(|column| column.parse().ok());
    Some([columns.next()?, columns.next()?, columns.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  30 3 60 900 90 6 9 12 5 0\n\
                        cpu0 10 1 20 300 30 2 3 4 5 0\n\
                        cpu1 20 2 40 600 60 4 6 8 0 0\n\
                        intr 12345 0 0\nctxt 99\n";

    #[test]
    fn idle_time_and_forbidden_processors_do_not_count() {
        assert_eq!(busy_ticks(STAT, |_| true), Some((40 + 80, 2)));
        assert_eq!(busy_ticks(STAT, |processor| processor == 1), Some((80, 1)));
        assert_eq!(busy_ticks(STAT, |_| false), None);
        assert_eq!(busy_ticks("intr 1\n", |_| true), None);
        assert_eq!(busy_ticks("cpu0 nonsense\n", |_| true), Some((0, 1)));
    }

    #[test]
    fn load_averages_are_the_first_three_numbers() {
        assert_eq!(
            load_averages("7.12 6.80 5.01 9/812 4242\n"),
            Some([7.12, 6.80, 5.01])
        );
        assert_eq!(load_averages("7.12 6.80\n"), None);
    }

    #[test]
    fn a_tenth_of_the_time_makes_a_machine_busy() {
        let load = |other_processes| Load {
            other_processes,
            processors: 2,
            load_averages: Some([7.12, 6.8, 5.0]),
        };
        assert!(load(Some(0.97)).is_busy() && load(Some(0.10)).is_busy());
        assert!(!load(Some(0.09)).is_busy() && !load(None).is_busy());
        assert_eq!(
            load(Some(0.97)).sentence(),
            "other processes took 97 % of the time of 2 processors (load averages 7.1, 6.8, 5.0)"
        );
        let silent = Load {
            load_averages: None,
            processors: 1,
            ..load(None)
        };
        assert_eq!(
            silent.sentence(),
            "the system does not tell how busy its processors are"
        );
    }
}
