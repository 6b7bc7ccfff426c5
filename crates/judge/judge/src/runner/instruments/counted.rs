//! The kernels of one call, and all counters of the one that takes the most time.

use std::collections::BTreeMap;
use std::path::Path;

use gauntlet_parameters::Parameters;
use gauntlet_stats::Arm;
use gauntlet_task::Case;
use gauntlet_worker::protocol::{CallActivity, Work};
use schemars::JsonSchema;
use serde::Serialize;

use super::launches::{self, DURATION, Launch};
use super::log_of;
use crate::evidence::{Candidate, JudgeError, Unreadable};
use crate::runner::{ExaminationFailure, Operands, Workshop};

/// Factor on timeouts. Nsight Compute repeats a launch some forty times for these sections, and restores its memory each time.
const SLOWED: u32 = 10;

/// What is read: more than a gate's rules name, since it is not known beforehand what bounds the kernel.
const SECTIONS: [&str; 8] = [
    "SpeedOfLight",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis",
    "MemoryWorkloadAnalysis_Tables",
    "WarpStateStats",
    "Occupancy",
    "LaunchStats",
    "SourceCounters",
];

/// How many bytes of a kernel's name a worker keeps; it cuts off the rest.
const KEPT_NAME: usize = 256;

/// The launches of one kernel in a call.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct KernelTimes {
    /// The kernel, as the compiler writes its name.
    pub kernel: String,
    /// How often it is launched.
    pub launches: usize,
    /// The sum of their times on the device in seconds, without a tool.
    pub seconds: f64,
}

/// What is known of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedCall {
    /// Its kernels, the one with the most time first; empty if the worker cannot say which they are.
    pub kernels: Vec<KernelTimes>,
    /// The name of the counted kernel, as its source writes it.
    pub kernel: String,
    /// Nsight Compute's counters of one launch of it by their own names: of the launch that takes longest.
    pub counters: BTreeMap<String, f64>,
}

/// Lists the kernels of a call, and reads the counters of the one with the most time, in two workers.
///
/// # Errors
/// If the operands cannot be written. A worker or a tool that fails is an inner error, in words.
pub fn count_call(
    workshop: &Workshop,
    profiler: &Path,
    case: &Case,
    candidate: &Candidate,
    schedule: &Parameters,
) -> Result<Result<CountedCall, Unreadable>, JudgeError> {
    let (_, operands) = Operands::write(workshop, case, case.inputs, rand::random())?;
    let kernels = match listed(workshop, case, candidate, schedule, operands.path()) {
        Ok(activity) => of_call(&activity),
        Err(ExaminationFailure::Judge(error)) => return Err(error),
        Err(failure) => {
            let why = failure.worker_error().map(ToString::to_string);
            return Ok(Err(why.unwrap_or_default()));
        }
    };
    let filter = kernels.first().map(|longest| named(&longest.kernel));
    let mut arguments = launches::table(&SECTIONS, &["--kernel-name-base", "mangled"]);
    if let Some(filter) = &filter {
        arguments.extend(["--kernel-name", filter]);
    }
    let mut worker = match workshop.start_under(candidate, profiler, &arguments, SLOWED) {
        Ok((worker, _)) => worker,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let ran = worker
        .build(&case.sizes, schedule)
        .and_then(|_| worker.load(&[operands.path()], 1))
        .and_then(|_| worker.prepare())
        .and_then(|_| worker.run(0))
        .map(|_| ());
    let ran = ran.and(worker.stop());
    let log = log_of(worker.folder(), launches::LOG);
    let launches = launches::read(&log).unwrap_or_default();
    Ok(match (longest(launches, kernels.first()), ran) {
        (Some(Launch { kernel, counters }), _) => Ok(CountedCall {
            kernels,
            kernel,
            counters,
        }),
        (None, Ok(())) => Err(launches::told(&log)),
        (None, Err(error)) => Err(format!("{}; {error}", launches::told(&log))),
    })
}

/// What the device does in a call that is not the first; none if the worker cannot say.
fn listed(
    workshop: &Workshop,
    case: &Case,
    candidate: &Candidate,
    schedule: &Parameters,
    operands: &Path,
) -> Result<CallActivity, ExaminationFailure> {
    let (mut worker, _) = workshop.start(Arm::Candidate, candidate)?;
    if !worker.tells_activity() {
        return Ok(CallActivity::default());
    }
    worker
        .build(&case.sizes, schedule)
        .and_then(|_| worker.load(&[operands], 1))
        .and_then(|_| worker.prepare())
        // The first call compiles and allocates.
        .and_then(|_| worker.run(0))
        .map_err(ExaminationFailure::Candidate)?;
    // Without CUPTI a worker refuses, and the kernel with the most time in all is counted.
    let calls = worker.activity(&[0]).unwrap_or_default();
    Ok(calls.into_iter().next().unwrap_or_default())
}

/// The kernels of a call, the one with the most time first.
fn of_call(call: &CallActivity) -> Vec<KernelTimes> {
    let mut kernels: BTreeMap<&str, (usize, i64)> = BTreeMap::new();
    for one in call.activities.iter().filter(|one| one.work == Work::Kernel) {
        let (launches, nanoseconds) = kernels.entry(&one.name).or_default();
        *launches += 1;
        *nanoseconds += one.end - one.start;
    }
    let mut kernels: Vec<KernelTimes> = kernels
        .into_iter()
        .map(|(kernel, (launches, nanoseconds))| KernelTimes {
            kernel: kernel.to_owned(),
            launches,
            seconds: nanoseconds as f64 * 1e-9,
        })
        .collect();
    kernels.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    kernels
}

/// Nsight Compute's filter for a kernel, whose name may have been cut off.
fn named(kernel: &str) -> String {
    let end = if kernel.len() < KEPT_NAME { "$" } else { "" };
    format!("regex:^{}{end}", kernel.replace('$', "\\$"))
}

/// Of the kernel's launches in the call, which was the last thing that the worker did, the one that took longest. If the kernels of the
/// call are not known, the longest launch of the kernel with the most time.
fn longest(launches: Vec<Launch>, kernel: Option<&KernelTimes>) -> Option<Launch> {
    let time = |launch: &Launch| launch.counters.get(DURATION).copied().unwrap_or_default();
    let chosen: Vec<Launch> = match kernel {
        Some(kernel) => {
            let before = launches.len().saturating_sub(kernel.launches);
            launches.into_iter().skip(before).collect()
        }
        None => {
            let mut sums: BTreeMap<String, f64> = BTreeMap::new();
            for launch in &launches {
                *sums.entry(launch.kernel.clone()).or_default() += time(launch);
            }
            let most = sums.into_iter().max_by(|one, other| one.1.total_cmp(&other.1))?.0;
            launches
                .into_iter()
                .filter(|launch| launch.kernel == most)
                .collect()
        }
    };
    chosen
        .into_iter()
        .max_by(|one, other| time(one).total_cmp(&time(other)))
}

#[cfg(test)]
mod tests {
    use gauntlet_worker::protocol::Activity;

    use super::*;

    fn launch(kernel: &str, nanoseconds: f64) -> Launch {
        Launch {
            kernel: kernel.to_owned(),
            counters: BTreeMap::from([(DURATION.to_owned(), nanoseconds)]),
        }
    }

    #[test]
    fn launches_before_the_call_do_not_count() {
        let launches = vec![launch("sum", 900.0), launch("sum", 5.0), launch("sum", 7.0)];
        let kernel = KernelTimes {
            kernel: "sum".to_owned(),
            launches: 2,
            seconds: 0.0,
        };
        let found = longest(launches, Some(&kernel)).unwrap();
        assert_eq!(found.counters[DURATION], 7.0);
    }

    #[test]
    fn without_a_list_the_kernel_with_the_most_time_in_all_is_taken() {
        let launches = vec![launch("once", 9.0), launch("often", 6.0), launch("often", 5.0)];
        let found = longest(launches, None).unwrap();
        assert_eq!((found.kernel.as_str(), found.counters[DURATION]), ("often", 6.0));
        assert_eq!(longest(Vec::new(), None), None);
    }

    #[test]
    fn the_kernels_of_a_call_are_added_up_by_name() {
        let activity = |work, name: &str, start, end| Activity {
            work,
            start,
            end,
            stream: 7,
            name: name.to_owned(),
        };
        let call = CallActivity {
            window: 100,
            activities: vec![
                activity(Work::Kernel, "small", 0, 10),
                activity(Work::Kernel, "large", 10, 40),
                activity(Work::Copy, "", 40, 90),
                activity(Work::Kernel, "small", 90, 100),
            ],
            left_out: 0,
        };
        let told: Vec<_> = of_call(&call)
            .into_iter()
            .map(|kernel| (kernel.kernel, kernel.launches))
            .collect();
        assert_eq!(told, [("large".to_owned(), 1), ("small".to_owned(), 2)]);
        assert_eq!(named("_Z3sum$0"), "regex:^_Z3sum\\$0$");
    }
}
