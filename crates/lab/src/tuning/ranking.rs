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

/// The accepted points, the fastest by the model first, and how many were accepted. Of schedules that the model cannot
/// tell apart the one with the fewest words unlike the plainest is there, so that what is measured is not eight times
/// the same.
pub fn rank(
    points: &[Schedule],
    problem: &Problem,
    device: &Device,
    builds: &(dyn Fn(&Problem, &Schedule) -> bool + Sync),
    progress: &dyn Fn(usize),
) -> Result<(Vec<Ranked>, usize), LabError> {
    let mut times: Vec<(f64, usize, usize)> = Vec::new();
    for (chunk, some) in points.chunks(CHUNK).enumerate() {
        progress(chunk * CHUNK);
        let timed = some
            .par_iter()
            .enumerate()
            .filter(|(_, schedule)| accepts(schedule, problem, device) && builds(problem, schedule))
            .map(|(index, schedule)| {
                let seconds = simulate(problem, schedule, device, HostTerm::default())?.seconds;
                let words = Schedule::baseline().changes_to(schedule).len();
                Ok((seconds, words, chunk * CHUNK + index))
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
    Ok((ranked.collect(), accepted))
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
        let (ranked, accepted) = rank(&points, &problem, &device, &|_, _| true, &|_| {}).unwrap();
        assert!(!ranked.is_empty() && ranked.len() <= accepted && accepted <= points.len());
        assert!(ranked.is_sorted_by(|one, next| one.predicted < next.predicted));
        assert!(ranked.iter().all(|one| accepts(&one.schedule, &problem, &device)));
        assert_eq!(
            ranked.iter().map(|one| one.rank).collect::<Vec<_>>(),
            Vec::from_iter(1..=ranked.len())
        );
        assert_eq!(
            rank(&points, &problem, &device, &|_, _| true, &|_| {}).unwrap(),
            (ranked, accepted)
        );
    }
}
