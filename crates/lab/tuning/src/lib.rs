//! Tuning: which schedule a device should use for each problem of a suite.
//!
//! The space of a device's schedules is pruned by its constraints and ranked by the model. The parameters of a user's
//! kernel, which no model knows, are searched instead ([`search`]), by quick pairs. The best of the ranking or of this
//! screening are measured beside the baseline, and half of them drop out in each heat. The finalists are measured
//! again, on pairs of processes that took no part in the choice, so that the choice does not flatter the figures;
//! choosing the fastest of the finalists still does, a little. If the device is not present, the model's ranking is the
//! only result, and is marked as such.
//!
//! The model's choice for a device that is not present, among schedules with tiles of one size:
//!
//! ```
//! use std::time::Duration;
//!
//! use gauntlet_device::Device;
//! use gauntlet_judge::{Blind, Measurement};
//! use gauntlet_parameters::Parameters;
//! use gauntlet_tuning::{Tuning, tune};
//!
//! let mut suite = gauntlet_families::suite("group-gemm")?;
//! suite.benchmark.truncate(1);
//! let table = suite.benchmark[0].sizes.task().parameters();
//! let tile = Parameters::parse("tile = [128, 128, 128]")?;
//! let tuning = Tuning {
//!     suite: &suite,
//!     device: &Device::builtin("h200")?,
//!     workshop: None,
//!     baseline: table.complete(&Parameters::new()),
//!     tuned: &[],
//!     builds: &|_, schedule| schedule.get("tile") == tile.get("tile"),
//!     kernel: None,
//!     keep: 3,
//!     measurement: Measurement::quick(),
//!     budget: Duration::ZERO,
//! };
//! let tuned = tune(&tuning, &Blind, |_| Ok(()))?;
//! let first = tuned[0].first.as_ref().ok_or("no schedule is accepted")?;
//! assert!(first.predicted.is_some() && !tuned[0].measured);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod budget;
mod error;
mod final_round;
mod heats;
mod outcome;
mod ranking;
pub mod recorded;
pub mod replay;
mod screening;
pub mod search;
pub mod validation;

use std::time::{Duration, Instant};

use gauntlet_device::Device;
use gauntlet_parameters::{Parameters, Table};
use gauntlet_stats::Criteria;
use gauntlet_task::{Case, Sizes, Suite};

use self::budget::{Paces, RANKING_PART};
use self::final_round::{Measuring, Verdict};
use self::ranking::{Ranked, rank};
use self::screening::screened;
use gauntlet_gates::compare_predicted;
use gauntlet_judge::Candidate;
use gauntlet_judge::Observer;
use gauntlet_judge::Workshop;
use gauntlet_judge::{Measurement, Setting};

pub use error::TuningError;
pub use outcome::{Contender, Failed, Finalist, Screening, Search, TunedCase, Winner, table};

/// The inputs of a tuning.
pub struct Tuning<'a> {
    /// The suite; each of its benchmark cases is tuned separately.
    pub suite: &'a Suite,
    /// The target device.
    pub device: &'a Device,
    /// The workshop that runs candidates; none if the model alone decides.
    pub workshop: Option<&'a Workshop>,
    /// The baseline.
    pub baseline: Parameters,
    /// Cases that were tuned before, and are not tuned again.
    pub tuned: &'a [TunedCase],
    /// Whether the workshop's executor has a kernel for a schedule that the device accepts.
    pub builds: &'a (dyn Fn(&Sizes, &Parameters) -> bool + Sync),
    /// The parameters of the workshop's kernel, if they are its own and not those of its task. No model ranks them.
    pub kernel: Option<KernelSpace<'a>>,
    /// How many candidates of the ranking are measured.
    pub keep: usize,
    /// How they are measured.
    pub measurement: Measurement,
    /// Time for all cases together, from the first timed pair to the last verdict; a tuning that measures nothing has
    /// no limit.
    pub budget: Duration,
}

impl Tuning<'_> {
    /// A point as a candidate.
    fn candidate(&self, name: impl Into<String>, point: &Parameters) -> Candidate {
        match self.kernel {
            Some(kernel) => Candidate {
                name: name.into(),
                ..(kernel.candidate)(point)
            },
            None => Candidate::new(name, point.clone()),
        }
    }
}

/// The parameters of a kernel with a table of its own.
#[derive(Clone, Copy)]
pub struct KernelSpace<'a> {
    /// The table.
    pub table: &'a Table,
    /// The kernel with these values, as a candidate of any name.
    pub candidate: &'a (dyn Fn(&Parameters) -> Candidate + Sync),
    /// The values that can be tried for a case: those that its restrictions allow.
    pub points: &'a (dyn Fn(&Sizes) -> Vec<Parameters> + Sync),
    /// What the search's choices at random follow from.
    pub seed: u64,
    /// How many points the search looks at, at most.
    pub evaluations: usize,
}

/// Tunes case after case; `decided` is called for each case as soon as it is decided.
///
/// # Errors
/// [`TuningError::ShortBudget`] before anything is ranked, if the budget is too short to decide anything.
pub fn tune(
    tuning: &Tuning,
    observer: &dyn Observer,
    mut decided: impl FnMut(&TunedCase) -> Result<(), TuningError>,
) -> Result<Vec<TunedCase>, TuningError> {
    let start = Instant::now();
    let suite = &tuning.suite.benchmark;
    let baselines: Vec<Candidate> = suite
        .iter()
        .map(|case| {
            if let Some(kernel) = tuning.kernel {
                let complete = kernel.table.complete(&tuning.baseline);
                return Ok(tuning.candidate("baseline", &complete));
            }
            let complete = case.sizes.task().parameters().complete(&tuning.baseline);
            let schedule = baseline(&complete, case, tuning.device)?;
            Ok(tuning.candidate("baseline", &schedule))
        })
        .collect::<Result<_, TuningError>>()?;
    let paces = tuning
        .workshop
        .map(|workshop| Paces::measure(tuning, &baselines, workshop, observer))
        .transpose()?;
    let mut cases = Vec::new();
    for (index, (case, baseline)) in suite.iter().zip(baselines).enumerate() {
        if let Some(known) = tuning.tuned.iter().find(|known| known.case == case.name) {
            cases.push(known.clone());
            continue;
        }
        let time = tuning.workshop.zip(paces.as_ref()).map(|(workshop, paces)| Time {
            workshop,
            begun: Instant::now(),
            allowed: paces.share(index, tuning.budget.saturating_sub(start.elapsed())),
            pace: paces.of(index),
        });
        let tuned = tune_case(tuning, case, baseline, time, observer);
        // Its workers were ended, which says nothing of the schedules.
        if observer.is_interrupted() {
            break;
        }
        let tuned = tuned?;
        decided(&tuned)?;
        cases.push(tuned);
    }
    Ok(cases)
}

/// The time of a measured case.
struct Time<'a> {
    workshop: &'a Workshop,
    begun: Instant,
    allowed: Duration,
    /// The time of a pair of processes.
    pace: Duration,
}

impl Time<'_> {
    fn left(&self) -> Duration {
        self.allowed.saturating_sub(self.begun.elapsed())
    }

    /// Whether the model may still use time, or only measurements may.
    fn is_for_the_model(&self) -> bool {
        self.begun.elapsed() < self.allowed.mul_f64(RANKING_PART)
    }
}

fn tune_case(
    tuning: &Tuning,
    case: &Case,
    baseline: Candidate,
    time: Option<Time>,
    observer: &dyn Observer,
) -> Result<TunedCase, TuningError> {
    let device = tuning.device;
    let (chosen, search) = match tuning.kernel {
        Some(kernel) => screened(tuning, &kernel, case, &baseline, time.as_ref(), observer)?,
        None => ranked(tuning, case, time.as_ref(), observer)?,
    };
    let Some(first) = chosen.first().cloned() else {
        let reason = match &search.screening {
            Some(screening) => format!(
                "none of the {} points that were looked at works",
                screening.looked_at
            ),
            None => "no schedule of the space is accepted".to_owned(),
        };
        return Ok(TunedCase::kept(case, baseline.schedule, search, reason));
    };
    let setting = setting_of(case, device, &tuning.measurement);
    match time {
        None => predicted(&setting, case, baseline, first, search),
        Some(time) => {
            let start = Instant::now();
            let measuring = Measuring {
                candidate: &|ranked| tuning.candidate(ranked.name(), &ranked.schedule),
                workshop: time.workshop,
                setting: &setting,
                baseline: &baseline,
                first: &tuning.candidate(first.name(), &first.schedule),
                pace: time.pace,
                observer,
            };
            let verdict = measuring.run(&chosen, time.left())?;
            Ok(measured(case, &baseline, first, search, verdict, start.elapsed()))
        }
    }
}

/// The points that are measured, best first by the model.
fn ranked(
    tuning: &Tuning,
    case: &Case,
    time: Option<&Time>,
    observer: &dyn Observer,
) -> Result<(Vec<Ranked>, Search), TuningError> {
    let device = tuning.device;
    let points: Vec<Parameters> = points(&case.sizes, device);
    let for_the_model = || time.is_none_or(Time::is_for_the_model);
    let ranking = rank(&points, &case.sizes, device, tuning.builds, &|done| {
        observer.progress(&format!(
            "{}: {done} of {} schedules simulated",
            case.name,
            points.len()
        ));
        for_the_model()
    })?;
    let search = Search {
        points: points.len(),
        simulated: ranking.simulated,
        accepted: ranking.accepted,
        told_apart: ranking.ranked.len(),
        screening: None,
    };
    let chosen = ranking.ranked.into_iter().take(tuning.keep).collect();
    Ok((chosen, search))
}

/// Every point of the tuning space, whether or not the device accepts it, always in the same order. All parameters are
/// explicit, so that a point can be compared for equality with the baseline too.
fn points(sizes: &Sizes, device: &Device) -> Vec<Parameters> {
    let parameters = sizes.task().parameters();
    let space = sizes.tuning_space(device);
    space
        .combinations()
        .map(|point| parameters.complete(&point))
        .collect()
}

/// One case alone, with the usual rules.
fn setting_of(case: &Case, device: &Device, measurement: &Measurement) -> Setting {
    let suite = Suite {
        name: case.name.clone(),
        description: format!("tuning {}", case.name),
        correctness: Vec::new(),
        benchmark: vec![case.clone()],
        notes: Vec::new(),
    };
    Setting::new(device.clone(), &suite, measurement.clone(), Criteria::default())
}

/// The baseline in a form that the device accepts for the problem: itself, or the nearest schedule that keeps every
/// rule.
fn baseline(wanted: &Parameters, case: &Case, device: &Device) -> Result<Parameters, TuningError> {
    let violations = case.sizes.violations(wanted, device);
    let Some(violation) = violations.first() else {
        return Ok(wanted.clone());
    };
    let nearest = violation.remedies.first();
    nearest
        .map(|remedy| remedy.parameters.clone())
        .ok_or_else(|| TuningError::NoBaseline {
            case: case.name.clone(),
            rule: violation.to_string(),
        })
}

/// The model's result without measurements.
fn predicted(
    setting: &Setting,
    case: &Case,
    baseline: Candidate,
    first: Ranked,
    search: Search,
) -> Result<TunedCase, TuningError> {
    let comparison = compare_predicted(
        setting,
        &baseline,
        &Candidate::new("first", first.schedule.clone()),
    )?;
    let interval = comparison.ok().and_then(|comparison| comparison.assessment.suite);
    let Some(interval) = interval.filter(|interval| interval.estimate > 0.0) else {
        let reason = "the model expects nothing to be faster than the baseline";
        return Ok(TunedCase::kept(case, baseline.schedule, search, reason));
    };
    let winner = Winner {
        schedule: first.schedule.clone(),
        rank: first.rank,
        speedup: interval,
        over_first: None,
    };
    Ok(TunedCase {
        winner: Some(winner),
        first: Some(first),
        ..TunedCase::kept(case, baseline.schedule, search, "predicted: nothing was measured")
    })
}

fn measured(
    case: &Case,
    baseline: &Candidate,
    first: Ranked,
    search: Search,
    verdict: Verdict,
    took: Duration,
) -> TunedCase {
    let kept = TunedCase::kept(case, baseline.schedule.clone(), search, verdict.reason);
    TunedCase {
        winner: verdict.winner,
        first: Some(first),
        contenders: verdict.contenders,
        finalists: verdict.finalists,
        measured: true,
        measured_seconds: took.as_secs_f64(),
        ..kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_accepts_some_of_its_space_and_the_order_is_fixed() {
        for name in ["host", "a100", "h200", "b200"] {
            let device = if name == "host" {
                Device::host()
            } else {
                Device::builtin(name).unwrap()
            };
            for suite in ["group-gemm", "attention"] {
                let sizes = &gauntlet_families::suite(suite).unwrap().benchmark[0].sizes;
                let points = points(sizes, &device);
                assert_eq!(points, super::points(sizes, &device));
                let some = points.iter().filter(|point| sizes.accepts(point, &device));
                assert!(some.take(9).count() == 9, "{name}, {suite}");
            }
        }
    }
}
