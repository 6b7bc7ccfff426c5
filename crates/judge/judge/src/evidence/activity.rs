//! What a GPU did in calls that were made after the timed ones, by its maker's tracing library.

use std::collections::{BTreeMap, BTreeSet};

use gauntlet_stats::median;
use gauntlet_worker::protocol::{Activity, CallActivity, Work};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many kernels are named, those with the longest time first.
const NAMED: usize = 3;

/// What the GPU did in each side's calls, traced after the timed ones. It decides nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct DeviceActivity {
    /// In the baseline's calls.
    pub baseline: SideActivity,
    /// In the candidate's calls.
    pub candidate: SideActivity,
}

/// What the GPU did in one side's calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SideActivity {
    /// By case, in the order of the suite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<CaseActivity>,
    /// Why some or all cases were not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untraced: Option<String>,
}

/// What the GPU did in the calls of a case. Numbers and times are medians over the calls, times in seconds. Tracing slows
/// launches, so gaps may be longer than in timed calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CaseActivity {
    /// The case.
    pub case: String,
    /// How many calls were traced.
    pub calls: usize,
    /// Kernels a call.
    pub kernels: f64,
    /// Copies of memory a call.
    pub copies: f64,
    /// Fills of memory a call.
    pub fills: f64,
    /// Streams with work of a call.
    pub streams: f64,
    /// The times of all work, added up; more than `busy` where work overlaps.
    pub work: f64,
    /// The time in which there was any work.
    pub busy: f64,
    /// From the start of the first work to the end of the last.
    pub span: f64,
    /// From the call's begin to its end on its stream, where events would be.
    pub window: f64,
    /// Work before the call's begin, where no event sees it: the most of any call.
    pub before: f64,
    /// Work after the call's end on its stream, which the events do not see: the most of any call.
    pub after: f64,
    /// The kernels with the longest time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub longest: Vec<KernelTime>,
    /// Work that is not in these figures, because a worker lists only so much: the most of any call.
    #[serde(default)]
    pub left_out: usize,
}

/// How long a kernel ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct KernelTime {
    /// Its name, as the compiler writes it.
    pub name: String,
    /// How often it was launched in all traced calls.
    pub launches: usize,
    /// Seconds in all traced calls, over the number of calls.
    pub seconds: f64,
}

impl CaseActivity {
    /// The figures of a case with at least one call.
    pub fn of(case: &str, calls: &[CallActivity]) -> Self {
        let over = |figure: &dyn Fn(&CallActivity) -> f64| calls.iter().map(figure).collect::<Vec<_>>();
        let typical = |figure: &dyn Fn(&CallActivity) -> f64| median(&over(figure));
        let most = |figure: &dyn Fn(&CallActivity) -> f64| over(figure).into_iter().fold(0.0, f64::max);
        let number = |work| {
            typical(&move |call: &CallActivity| {
                call.activities.iter().filter(|one| one.work == work).count() as f64
            })
        };
        let streams = |call: &CallActivity| {
            let streams: BTreeSet<u32> = call.activities.iter().map(|one| one.stream).collect();
            streams.len() as f64
        };
        Self {
            case: case.to_owned(),
            calls: calls.len(),
            kernels: number(Work::Kernel),
            copies: number(Work::Copy),
            fills: number(Work::Fill),
            streams: typical(&streams),
            work: typical(&|call| {
                call.activities
                    .iter()
                    .map(|one| seconds(one.start, one.end))
                    .sum()
            }),
            busy: typical(&|call| busy(&call.activities, i64::MIN, i64::MAX)),
            span: typical(&|call| span(&call.activities)),
            window: typical(&|call| seconds(0, end(call))),
            before: most(&|call| busy(&call.activities, i64::MIN, 0)),
            after: most(&|call| busy(&call.activities, end(call), i64::MAX)),
            longest: longest(calls),
            left_out: calls.iter().map(|call| call.left_out).max().unwrap_or(0),
        }
    }
}

fn end(call: &CallActivity) -> i64 {
    i64::try_from(call.window).unwrap_or(i64::MAX)
}

/// The seconds between two times in nanoseconds.
fn seconds(start: i64, end: i64) -> f64 {
    (end as f64 - start as f64) * 1e-9
}

/// The seconds between two times in which there was any work.
fn busy(activities: &[Activity], from: i64, to: i64) -> f64 {
    let mut parts: Vec<(i64, i64)> = activities
        .iter()
        .map(|one| (one.start.max(from), one.end.min(to)))
        .filter(|(start, end)| start < end)
        .collect();
    parts.sort_unstable();
    let mut sum = 0.0;
    let mut until = from;
    for (start, end) in parts {
        if end > until {
            sum += seconds(start.max(until), end);
            until = end;
        }
    }
    sum
}

/// The seconds from the start of the first work to the end of the last.
fn span(activities: &[Activity]) -> f64 {
    let first = activities.iter().map(|one| one.start).min();
    let last = activities.iter().map(|one| one.end).max();
    first.zip(last).map_or(0.0, |(first, last)| seconds(first, last))
}

fn longest(calls: &[CallActivity]) -> Vec<KernelTime> {
    let mut kernels: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    let all = calls.iter().flat_map(|call| &call.activities);
    for one in all.filter(|one| one.work == Work::Kernel) {
        let (launches, sum) = kernels.entry(&one.name).or_default();
        *launches += 1;
        *sum += seconds(one.start, one.end);
    }
    let mut kernels: Vec<_> = kernels.into_iter().collect();
    kernels.sort_by(|(_, (_, one)), (_, (_, other))| other.total_cmp(one));
    let named = kernels.into_iter().take(NAMED);
    named
        .map(|(name, (launches, sum))| KernelTime {
            name: name.to_owned(),
            launches,
            seconds: sum / calls.len() as f64,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn activity(work: Work, start: i64, end: i64, stream: u32, name: &str) -> Activity {
        Activity {
            work,
            start,
            end,
            stream,
            name: name.to_owned(),
        }
    }

    fn call(window: u64, activities: Vec<Activity>) -> CallActivity {
        CallActivity {
            window,
            activities,
            left_out: 0,
        }
    }

    fn nanoseconds(seconds: f64) -> f64 {
        (seconds * 1e9).round()
    }

    #[test]
    fn a_case_is_summed_up() {
        let usual = || {
            call(
                18_000,
                vec![
                    activity(Work::Fill, 1_000, 1_500, 7, ""),
                    activity(Work::Kernel, 2_000, 10_000, 7, "matmul"),
                    activity(Work::Kernel, 10_000, 12_000, 7, "add"),
                    // At the same time on another stream.
                    activity(Work::Kernel, 11_000, 16_000, 13, "add"),
                ],
            )
        };
        let mut odd = usual();
        odd.window = 30_000;
        odd.left_out = 4;
        // One call copies before its begin, and works on after its end.
        odd.activities
            .insert(0, activity(Work::Copy, -5_000, -2_000, 13, ""));
        odd.activities
            .push(activity(Work::Kernel, 29_000, 70_000, 13, "late"));
        let found = CaseActivity::of("softmax", &[usual(), odd, usual()]);
        assert_eq!(
            (found.calls, found.kernels, found.copies, found.fills),
            (3, 3.0, 0.0, 1.0)
        );
        assert_eq!((found.streams, found.left_out), (2.0, 4));
        let times = [
            found.work,
            found.busy,
            found.span,
            found.window,
            found.before,
            found.after,
        ];
        assert_eq!(
            times.map(nanoseconds),
            [15_500.0, 14_500.0, 15_000.0, 18_000.0, 3_000.0, 40_000.0]
        );
        let longest: Vec<_> = found
            .longest
            .iter()
            .map(|kernel| (kernel.name.as_str(), kernel.launches, nanoseconds(kernel.seconds)))
            .collect();
        assert_eq!(
            longest,
            [("late", 1, 13_667.0), ("matmul", 3, 8_000.0), ("add", 6, 7_000.0)]
        );
    }

    #[test]
    fn a_call_without_work_has_none() {
        let found = CaseActivity::of("nothing", &[call(2_000, Vec::new())]);
        assert_eq!(
            (found.kernels, found.busy, found.span, found.before, found.after),
            (0.0, 0.0, 0.0, 0.0, 0.0)
        );
        assert_eq!(nanoseconds(found.window), 2_000.0);
    }

    proptest! {
        /// The parts before, in and after the call add up to the whole, which is neither more than all work nor than the span.
        #[test]
        fn parts_add_up(
            window in 0_u64..3_000,
            work in proptest::collection::vec((-2_000_i64..4_000, 0_i64..2_000), 1..12),
        ) {
            let activities = work.iter().map(|(start, length)| activity(Work::Kernel, *start, start + length, 1, "k"));
            let one = call(window, activities.collect());
            let inside = busy(&one.activities, 0, window as i64);
            let found = CaseActivity::of("case", &[one]);
            let whole = found.before + inside + found.after;
            prop_assert!((whole - found.busy).abs() < 1e-12);
            prop_assert!(found.busy <= found.work + 1e-12);
            prop_assert!(found.busy <= found.span + 1e-12);
            let longest = work.iter().map(|(_, length)| *length).max().unwrap_or(0);
            prop_assert!(found.busy >= seconds(0, longest) - 1e-12);
        }
    }
}
