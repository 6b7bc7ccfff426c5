//! The model's order of the schedules that a device accepts.

use gauntlet_device::Device;
use gauntlet_model::{HostTerm, MissingFigure, simulate};
use gauntlet_problem::Problem;
use gauntlet_schedule::{Schedule, accepts};
use rayon::prelude::*;
use serde::Serialize;

use crate::error::LabError;

/// A schedule with what the model expects of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ranked {
    /// Its place, from 1.
    pub rank: usize,
    /// The schedule.
    pub schedule: Schedule,
    /// The time that the model expects, in seconds.
    pub predicted: f64,
}

impl Ranked {
    /// What it is called while it is measured.
    pub fn name(&self) -> String {
        format!("number {} of the model's order", self.rank)
    }
}

/// Schedules simulated between two signs of life.
const CHUNK: usize = 1024;

/// What the model makes of a space.
#[derive(Debug, PartialEq)]
pub struct Ranking {
    /// The accepted points, the fastest by the model first.
    pub ranked: Vec<Ranked>,
    /// How many points were looked at.
    pub simulated: usize,
    /// How many of these were accepted.
    pub accepted: usize,
}

/// Ranks the accepted points. Of schedules that the model cannot tell apart the one with the fewest words unlike the
/// plainest is there, so that what is measured is not eight times the same. `go_on` is told how many points are done, and
/// ends the ranking by `false`; what was looked at by then is spread over the whole space, and is a chunk at least.
pub fn rank(
    points: &[Schedule],
    problem: &Problem,
    device: &Device,
    builds: &(dyn Fn(&Problem, &Schedule) -> bool + Sync),
    go_on: &dyn Fn(usize) -> bool,
) -> Result<Ranking, LabError> {
    let mut times: Vec<(f64, usize, usize)> = Vec::new();
    let mut simulated = 0;
    // Each chunk takes every so-manieth point.
    // A chunk takes one point in so many, so that each is spread over the whole space.
    let chunks = points.len().div_ceil(CHUNK).max(1);
    for chunk in 0..chunks {
        if !go_on(simulated) && chunk > 0 {
            break;
        }
        let places: Vec<usize> = (chunk..points.len()).step_by(chunks).collect();
        simulated += places.len();
        let timed = places
            .into_par_iter()
            .filter(|place| accepts(&points[*place], problem, device) && builds(problem, &points[*place]))
            .map(|place| {
                let seconds = simulate(problem, &points[place], device, HostTerm::default())?.seconds;
                let words = Schedule::baseline().changes_to(&points[place]).len();
                Ok((seconds, words, place))
            });
        times.extend(timed.collect::<Result<Vec<_>, MissingFigure>>()?);
    }
    let accepted = times.len();
    times.sort_by(|one, other| {
        one.0
            .total_cmp(&other.0)
            .then((one.1, one.2).cmp(&(other.1, other.2)))
    });
    times.dedup_by(|next, kept| next.0 == kept.0);
    let ranked = times
        .into_iter()
        .enumerate()
        .map(|(index, (predicted, _, place))| Ranked {
            rank: index + 1,
            schedule: points[place].clone(),
            predicted,
        });
    Ok(Ranking {
        ranked: ranked.collect(),
        simulated,
        accepted,
    })
}

#[cfg(test)]
mod tests {
    use gauntlet_problem::Suite;

    use super::*;
    use crate::tuning::space;

    #[test]
    fn the_order_rises_and_is_the_same_each_time() {
        let problem = Suite::builtin("group-gemm").unwrap().benchmark[3].problem.clone();
        let device = Device::builtin("b200").unwrap();
        let points: Vec<Schedule> = space(&problem, &device).into_iter().step_by(97).collect();
        let rank =
            |go_on: &dyn Fn(usize) -> bool| rank(&points, &problem, &device, &|_, _| true, go_on).unwrap();
        let all = rank(&|_| true);
        assert!(!all.ranked.is_empty() && all.ranked.len() <= all.accepted);
        assert!(all.accepted <= all.simulated && all.simulated == points.len());
        assert!(
            all.ranked
                .is_sorted_by(|one, next| one.predicted < next.predicted)
        );
        assert!(
            all.ranked
                .iter()
                .all(|one| accepts(&one.schedule, &problem, &device))
        );
        assert_eq!(
            all.ranked.iter().map(|one| one.rank).collect::<Vec<_>>(),
            Vec::from_iter(1..=all.ranked.len())
        );
        assert_eq!(rank(&|_| true), all);
        let cut_short = rank(&|_| false);
        assert!(!cut_short.ranked.is_empty());
        assert!(points.len() <= CHUNK || cut_short.simulated < points.len());
    }
}
