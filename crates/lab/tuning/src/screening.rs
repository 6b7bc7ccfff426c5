//! The screening of a kernel's own parameters, which no model ranks: a search proposes points one after the other, each
//! is measured by one quick pair of processes beside the baseline, and the search is told what came of it. The fastest
//! go on to the heats.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use gauntlet_judge::{
    Candidate, ExaminationFailure, Measurement, Observer, PairedComparison, Setting, Workshop,
};
use gauntlet_parameters::Parameters;
use gauntlet_task::Case;
use serde_json::Value;

use crate::error::TuningError;
use crate::final_round::fault;
use crate::outcome::{Failed, Screening, Search};
use crate::ranking::Ranked;
use crate::search;
use crate::{KernelSpace, Time, Tuning, setting_of};

/// The fraction of a case's time that the screening may use; the heats and the final have the rest.
const SCREENING_PART: f64 = 0.5;

/// What came of a point.
enum Looked {
    /// Its log speed-up over the baseline.
    Faster(f64),
    /// It failed, for this reason.
    Failed(String),
}

/// The points of a kernel that are measured further, fastest first, and how they were found.
pub fn screened(
    tuning: &Tuning,
    kernel: &KernelSpace,
    case: &Case,
    baseline: &Candidate,
    time: Option<&Time>,
    observer: &dyn Observer,
) -> Result<(Vec<Ranked>, Search), TuningError> {
    let points: Vec<Parameters> = (kernel.points)(&case.sizes)
        .iter()
        .map(|point| kernel.table.complete(point))
        .collect();
    let setting = setting_of(case, tuning.device, &Measurement::quick());
    let (mut longest, mut failure, mut count) = (Duration::ZERO, Ok(()), 0);
    let screening = screen(&points, &baseline.schedule, kernel, |point| {
        let Some(time) = time else {
            return ControlFlow::Break(());
        };
        let spent = time.begun.elapsed() + longest;
        if observer.is_interrupted() || (count > 0 && spent > time.allowed.mul_f64(SCREENING_PART)) {
            return ControlFlow::Break(());
        }
        count += 1;
        observer.progress(&format!(
            "{}: screening point {count} of {}",
            case.name,
            points.len()
        ));
        let start = Instant::now();
        let one = tuning.candidate(format!("point {count} of the screening"), point);
        let looked = look(
            time.workshop,
            &case.name,
            &setting,
            baseline.clone(),
            one,
            observer,
        );
        longest = longest.max(start.elapsed());
        // Workers that an interruption ended say nothing of the point.
        match looked {
            _ if observer.is_interrupted() => ControlFlow::Break(()),
            Ok(looked) => ControlFlow::Continue(looked),
            Err(error) => {
                failure = Err(error);
                ControlFlow::Break(())
            }
        }
    });
    failure?;
    let (mut ranked, screening) = screening;
    ranked.truncate(tuning.keep);
    let search = Search {
        points: points.len(),
        simulated: 0,
        accepted: points.len(),
        told_apart: points.len(),
        screening: Some(screening),
    };
    Ok((ranked, search))
}

/// One quick pair of processes.
fn look(
    workshop: &Workshop,
    case_name: &str,
    setting: &Setting,
    baseline: Candidate,
    one: Candidate,
    observer: &dyn Observer,
) -> Result<Looked, TuningError> {
    let pair = PairedComparison::new(workshop, setting, baseline, one, rand::random());
    // The first pair is measured no matter how little time there is.
    let estimate = pair.and_then(|mut pair| {
        pair.advance(Duration::ZERO, observer)?;
        Ok(pair.estimate())
    });
    Ok(match estimate {
        Ok(Some(estimate)) => Looked::Faster(estimate),
        Ok(None) => Looked::Failed("its pair gave no times".to_owned()),
        // Nothing can be measured beside a baseline that fails.
        Err(ExaminationFailure::Baseline(error)) => {
            return Err(TuningError::BaselineFails {
                case: case_name.to_owned(),
                reason: error.to_string(),
            });
        }
        Err(failure) => Looked::Failed(fault(failure)?),
    })
}

/// Searches the points, and ranks those that worked by their speed. The baseline counts as looked at, since every point
/// is measured beside it.
fn screen(
    points: &[Parameters],
    baseline: &Parameters,
    kernel: &KernelSpace,
    mut look: impl FnMut(&Parameters) -> ControlFlow<(), Looked>,
) -> (Vec<Ranked>, Screening) {
    let rows: Vec<Vec<Value>> = points.iter().map(row).collect();
    let space = search::Space::of(&rows);
    let mut search = search::Search::new(&space, kernel.seed);
    if let Some(known) = points.iter().position(|point| point == baseline) {
        search.tell(known, Some(1.0));
    }
    let mut failed = Vec::new();
    let explored = search.explore(kernel.evaluations, |index| {
        let looked = look(&points[index])?;
        ControlFlow::Continue(match looked {
            Looked::Faster(log) => Some((-log).exp()),
            Looked::Failed(fault) => {
                let schedule = points[index].clone();
                failed.push(Failed { schedule, fault });
                None
            }
        })
    });
    let screening = Screening {
        seed: kernel.seed,
        looked_at: explored.len(),
        failed,
    };
    let mut worked: Vec<(usize, f64)> = explored
        .into_iter()
        .filter_map(|(index, time)| Some((index, time?)))
        .collect();
    worked.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let ranked = worked
        .into_iter()
        .enumerate()
        .map(|(place, (index, time))| Ranked {
            rank: place + 1,
            schedule: points[index].clone(),
            predicted: None,
            screened: Some(-time.ln()),
        });
    (ranked.collect(), screening)
}

/// The values of a point in the form that a search takes.
fn row(point: &Parameters) -> Vec<Value> {
    let values = point.iter();
    values
        .map(|(_, value)| serde_json::to_value(value).unwrap_or_default())
        .collect()
}

#[cfg(test)]
mod tests {
    use gauntlet_parameters::{Domain, Parameter, Table};
    use gauntlet_task::Sizes;

    use super::*;
    use crate::recorded::RecordedSpace;

    /// 6 × 5 points of which every ninth fails, with the same times in both forms.
    fn planted() -> (Vec<Parameters>, RecordedSpace) {
        let (mut points, mut times) = (Vec::new(), Vec::new());
        for warps in 0..6_usize {
            for rows in 0..5_usize {
                points.push(
                    Parameters::new()
                        .with("ROWS", 1 + rows)
                        .with("WARPS", 1_usize << warps),
                );
                let time = 1.0 + (warps.abs_diff(4) + rows.abs_diff(1)) as f64;
                times.push((points.len() % 9 != 0).then_some(time));
            }
        }
        let recorded = RecordedSpace {
            parameters: vec!["ROWS".to_owned(), "WARPS".to_owned()],
            points: points.iter().map(row).collect(),
            times,
            objective: "time".to_owned(),
            unit: None,
        };
        (points, recorded)
    }

    fn with_kernel<T>(seed: u64, evaluations: usize, run: impl FnOnce(&KernelSpace) -> T) -> T {
        let row = |name: &'static str| Parameter::new(name, Domain::number(1, 64), 1_usize.into(), "");
        let table = Table::new("softmax.cu:softmax", vec![row("ROWS"), row("WARPS")]);
        run(&KernelSpace {
            table: &table,
            candidate: &|point| Candidate::new("", point.clone()),
            points: &|_: &Sizes| Vec::new(),
            seed,
            evaluations,
        })
    }

    #[test]
    fn a_replay_and_a_screening_propose_the_same_points_for_the_same_times() {
        let (points, recorded) = planted();
        let mut order = Vec::new();
        let nobody = Parameters::new();
        let (ranked, screening) = with_kernel(7, 20, |kernel| {
            screen(&points, &nobody, kernel, |point| {
                let index = points.iter().position(|other| other == point).unwrap_or_default();
                order.push(index);
                ControlFlow::Continue(match recorded.times[index] {
                    Some(time) => Looked::Faster(-time.ln()),
                    None => Looked::Failed("it computes something else".to_owned()),
                })
            })
        });
        assert_eq!(order, crate::replay::evaluated(&recorded, 7, 20));
        assert_ne!(order, crate::replay::evaluated(&recorded, 8, 20));
        let fails = order
            .iter()
            .filter(|index| recorded.times[**index].is_none())
            .count();
        assert_eq!((screening.looked_at, screening.failed.len()), (20, fails));
        assert_eq!(ranked.len(), 20 - fails);
        assert!(ranked.is_sorted_by(|one, next| one.screened >= next.screened && one.rank < next.rank));
        let best = order
            .iter()
            .filter_map(|index| recorded.times[*index])
            .fold(f64::MAX, f64::min);
        assert!((ranked[0].screened.unwrap() + best.ln()).abs() < 1e-12);
    }

    #[test]
    fn the_baseline_is_known_and_an_early_end_keeps_what_was_seen() {
        let (points, _) = planted();
        let mut seen = Vec::new();
        let (ranked, screening) = with_kernel(1, 100, |kernel| {
            screen(&points, &points[3], kernel, |point| {
                seen.push(point.clone());
                match seen.len() {
                    ..=29 => ControlFlow::Continue(Looked::Faster(0.0)),
                    _ => ControlFlow::Break(()),
                }
            })
        });
        assert!(!seen.contains(&points[3]) && seen.len() == 29, "{}", seen.len());
        assert_eq!((ranked.len(), screening.looked_at), (29, 29));
        let (ranked, _) = with_kernel(1, 100, |kernel| {
            screen(&points, &points[3], kernel, |_| match seen.pop() {
                Some(_) if seen.len() > 20 => ControlFlow::Continue(Looked::Faster(0.0)),
                _ => ControlFlow::Break(()),
            })
        });
        assert_eq!(ranked.len(), 8);
    }
}
