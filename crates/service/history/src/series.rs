//! Series: the times of a kernel on a case over the commits of a repository, and the verdicts that join them.

use std::collections::BTreeMap;

use gauntlet_judge::ledger::{
    Commit, Index, Judged, JudgementRecord, Ledger, LedgerError, RunId, Speedup, Wanted,
};
use gauntlet_judge::{CaseTimes, ComparisonReport, Verdict};
use gauntlet_stats::{Arm, median};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::changes::changes;
use crate::surroundings::{circumstances, device_kind, stack};

/// A comparison of the ledger whose kernels are in a repository.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its run.
    pub run: RunId,
    /// When it was stored.
    pub at: Timestamp,
    /// What was found.
    pub report: ComparisonReport,
    /// The baseline's version and the candidate's, where they are in a repository.
    pub versions: [Option<Version>; 2],
}

impl Recorded {
    /// A comparison with its kernels in the order in which they were compared.
    pub fn of(run: RunId, at: Timestamp, record: &JudgementRecord, report: ComparisonReport) -> Self {
        let mut versions = [0, 1].map(|index| record.kernels.get(index).and_then(Version::of));
        // The kernel that the verdict is about comes last in the record.
        if report.side == Arm::Baseline {
            versions.reverse();
        }
        Self {
            run,
            at,
            report,
            versions,
        }
    }
}

/// The comparisons of a ledger with kernels in a repository, on one task or on all, in the order of the ledger.
///
/// # Errors
/// If the ledger cannot be read.
pub fn recorded(ledger: &Ledger, task: Option<&str>) -> Result<Vec<Recorded>, LedgerError> {
    let mut verdicts = Index::of(ledger)?.verdicts(&Wanted {
        task: task.map(str::to_owned),
        in_history: true,
        ..Wanted::default()
    })?;
    verdicts.reverse();
    read(ledger, &verdicts)
}

/// Those of these verdicts that are comparisons, read from the ledger in the same order.
///
/// # Errors
/// If the ledger cannot be read.
pub fn read(ledger: &Ledger, verdicts: &[Judged]) -> Result<Vec<Recorded>, LedgerError> {
    let mut recorded = Vec::new();
    for one in verdicts {
        let Some(judgement) = ledger.judgement(&one.run)? else {
            continue;
        };
        // Only comparisons have times of kernels.
        if let Ok(report) = ComparisonReport::deserialize(&judgement.document) {
            recorded.push(Recorded::of(one.run.clone(), one.at, &judgement, report));
        }
    }
    Ok(recorded)
}

/// A kernel as a commit has it, or as it was changed on top of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    commit: Commit,
    digest: String,
}

impl Version {
    fn of(kernel: &gauntlet_judge::ledger::JudgedKernel) -> Option<Self> {
        Some(Self {
            commit: kernel.commit.clone()?,
            digest: kernel.digest.clone(),
        })
    }

    /// The commit.
    pub fn commit(&self) -> &Commit {
        &self.commit
    }

    /// Whether both are the same code: of one commit, and if its file was changed, changed in the same way.
    fn is(&self, other: &Self) -> bool {
        self.commit == other.commit && (!self.commit.changed || self.digest == other.digest)
    }
}

/// The times of a kernel on a case over commits, on one kind of device with one stack.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Series {
    /// The task.
    pub task: String,
    /// Its case.
    pub case: String,
    /// The kernel as it is named at the root of the repository.
    pub kernel: String,
    /// The kind of device.
    pub device: String,
    /// The software that it was measured with, and the settings of the measurement.
    pub stack: BTreeMap<String, String>,
    /// Its points, in the order of the commits.
    pub points: Vec<Point>,
}

/// What is known of a kernel at a commit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Point {
    /// The commit.
    pub commit: String,
    /// Whether the file was not as the commit has it.
    pub changed: bool,
    /// When it was first measured.
    pub at: Timestamp,
    /// The middle one of its times, in seconds. Times of two days do not say which of two points is faster.
    pub seconds: f64,
    /// The runs that measured it.
    pub runs: Vec<RunId>,
    /// What pairs of processes say of it against the point before; none if the two were never compared.
    pub joint: Option<Joint>,
    /// Whether the times seem to change here: a place to look at, no verdict.
    pub perhaps_changed: bool,
}

/// A comparison of neighbouring points.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Joint {
    /// The run.
    pub run: RunId,
    /// The verdict on the whole task; none if it was given on the older point.
    pub verdict: Option<Verdict>,
    /// The speed-up on this case; none without an interval.
    pub speedup: Option<Speedup>,
}

/// A point with what it was made of.
struct Gathered {
    version: Version,
    at: Timestamp,
    times: Vec<f64>,
    runs: Vec<RunId>,
}

type Key = (String, String, String, String, BTreeMap<String, String>);

/// The series of these comparisons, which come in the order of the ledger. Points are in the order of `commits`; those of commits that
/// it does not hold are left out.
pub fn series(recorded: &[Recorded], commits: &[String]) -> Vec<Series> {
    let place: BTreeMap<&str, usize> = commits
        .iter()
        .enumerate()
        .map(|(place, commit)| (commit.as_str(), place))
        .collect();
    let mut gathered: BTreeMap<Key, Vec<Gathered>> = BTreeMap::new();
    for one in recorded {
        for (arm, version) in one.versions.iter().enumerate() {
            let known = version
                .as_ref()
                .filter(|it| place.contains_key(it.commit.id.as_str()));
            let Some(version) = known else { continue };
            for case in cases(&one.report) {
                let points = gathered.entry(key(one, version, case)).or_default();
                gather(points, version, one, [case.baseline, case.candidate][arm]);
            }
        }
    }
    let made = gathered.into_iter().map(|(key, mut points)| {
        points.sort_by_key(|point| (place.get(point.version.commit.id.as_str()).copied(), point.at));
        of_points(key, points, recorded)
    });
    made.collect()
}

fn cases(report: &ComparisonReport) -> &[CaseTimes] {
    report.comparison.as_ref().map_or(&[], |found| &found.cases)
}

fn key(one: &Recorded, version: &Version, case: &CaseTimes) -> Key {
    let report = &one.report;
    (
        report.task.clone(),
        case.case.clone(),
        version.commit.kernel.clone(),
        device_kind(&report.environment),
        stack(&circumstances(&report.environment, &report.version)),
    )
}

fn gather(points: &mut Vec<Gathered>, version: &Version, one: &Recorded, time: f64) {
    match points.iter_mut().find(|point| point.version.is(version)) {
        Some(point) => {
            point.times.push(time);
            if point.runs.last() != Some(&one.run) {
                point.runs.push(one.run.clone());
            }
        }
        None => points.push(Gathered {
            version: version.clone(),
            at: one.at,
            times: vec![time],
            runs: vec![one.run.clone()],
        }),
    }
}

fn of_points(key: Key, gathered: Vec<Gathered>, recorded: &[Recorded]) -> Series {
    let times: Vec<f64> = gathered.iter().map(|point| median(&point.times)).collect();
    let proposed = changes(&times);
    let (task, case, kernel, device, stack) = key;
    let mut points: Vec<Point> = Vec::with_capacity(gathered.len());
    for (index, point) in gathered.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| gathered.get(index));
        points.push(Point {
            commit: point.version.commit.id.clone(),
            changed: point.version.commit.changed,
            at: point.at,
            seconds: times[index],
            runs: point.runs.clone(),
            joint: before.and_then(|before| joint(before, point, &case, recorded)),
            perhaps_changed: proposed.contains(&index),
        });
    }
    Series {
        task,
        case,
        kernel,
        device,
        stack,
        points,
    }
}

/// The newest comparison of two points, whichever of them was the baseline.
fn joint(before: &Gathered, after: &Gathered, case: &str, recorded: &[Recorded]) -> Option<Joint> {
    let both = |one: &&Recorded| after.runs.contains(&one.run) && before.runs.contains(&one.run);
    recorded.iter().rev().filter(both).find_map(|one| {
        let [Some(baseline), Some(candidate)] = &one.versions else {
            return None;
        };
        let is_forward = before.version.is(baseline) && after.version.is(candidate);
        let is_backward = before.version.is(candidate) && after.version.is(baseline);
        if !is_forward && !is_backward {
            return None;
        }
        let comparison = one.report.comparison.as_ref()?;
        let problems = &comparison.assessment.problems;
        let found = problems.iter().find(|problem| problem.name == case);
        let speedup = found
            .and_then(|problem| problem.interval.as_ref())
            .map(|interval| {
                let [lower, upper] = match is_forward {
                    true => [interval.lower, interval.upper],
                    false => [-interval.upper, -interval.lower],
                };
                let estimate = if is_forward {
                    interval.estimate
                } else {
                    -interval.estimate
                };
                Speedup {
                    lower: lower.exp_m1(),
                    estimate: estimate.exp_m1(),
                    upper: upper.exp_m1(),
                }
            });
        Some(Joint {
            run: one.run.clone(),
            verdict: is_forward.then_some(one.report.verdict),
            speedup,
        })
    })
}
