//! The model's order of the schedules that a device accepts.

use gauntlet_device::Device;
use gauntlet_parameters::Parameters;
use gauntlet_simulate::{HostTerm, NoEstimate, Subject};
use gauntlet_task::Sizes;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::TuningError;

/// A schedule with the model's prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Ranked {
    /// Its rank, from 1.
    pub rank: usize,
    /// The schedule.
    pub schedule: Parameters,
    /// The predicted time in seconds; none if the model does not cover the task or the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<f64>,
    /// Its log speed-up over the baseline in the screening, of a kernel's own parameters. It was used for the choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screened: Option<f64>,
}

impl Ranked {
    /// Its name during measurements.
    pub fn name(&self) -> String {
        match self.screened {
            Some(_) => format!("number {} of the screening", self.rank),
            None => format!("number {} of the model's order", self.rank),
        }
    }
}

/// Schedules simulated between two progress reports.
const CHUNK: usize = 1024;

/// The model's ranking of a space.
#[derive(Debug, PartialEq)]
pub struct Ranking {
    /// The accepted points, fastest first by the model.
    pub ranked: Vec<Ranked>,
    /// How many points were considered.
    pub simulated: usize,
    /// How many of these were accepted.
    pub accepted: usize,
}

/// Ranks the accepted points. Of schedules that the model cannot distinguish, only the one with the fewest words
/// different from the default is kept, so that equivalent schedules are not measured repeatedly. `go_on` receives the
/// number of points done, and returns `false` to end the ranking; the points done by then are spread over the whole
/// space, and are at least one chunk.
pub fn rank(
    points: &[Parameters],
    problem: &Sizes,
    device: &Device,
    builds: &(dyn Fn(&Sizes, &Parameters) -> bool + Sync),
    go_on: &dyn Fn(usize) -> bool,
) -> Result<Ranking, TuningError> {
    let mut times: Vec<(Option<f64>, usize, usize)> = Vec::new();
    let mut simulated = 0;
    // Each chunk takes points at a fixed stride, so that it is spread over the whole space.
    let chunks = points.len().div_ceil(CHUNK).max(1);
    for chunk in 0..chunks {
        if !go_on(simulated) && chunk > 0 {
            break;
        }
        let places: Vec<usize> = (chunk..points.len()).step_by(chunks).collect();
        simulated += places.len();
        let timed = places
            .into_par_iter()
            .filter(|place| problem.accepts(&points[*place], device) && builds(problem, &points[*place]))
            .map(|place| {
                let seconds = predicted(problem, &points[place], device)?;
                let table = problem.task().parameters();
                let changes = table.changes(&Parameters::new(), &points[place]).len();
                Ok((seconds, changes, place))
            });
        times.extend(timed.collect::<Result<Vec<_>, NoEstimate>>()?);
    }
    let accepted = times.len();
    times.sort_by(|one, other| {
        let [first, second] = [one.0, other.0].map(|seconds| seconds.unwrap_or(0.0));
        first
            .total_cmp(&second)
            .then((one.1, one.2).cmp(&(other.1, other.2)))
    });
    times.dedup_by(|next, kept| next.0.is_some() && next.0 == kept.0);
    let ranked = times
        .into_iter()
        .enumerate()
        .map(|(index, (predicted, _, place))| Ranked {
            rank: index + 1,
            schedule: points[place].clone(),
            predicted,
            screened: None,
        });
    Ok(Ranking {
        ranked: ranked.collect(),
        simulated,
        accepted,
    })
}

/// The predicted time; none if the model does not cover the task or the device, so that candidates rank by how few parameters they
/// change.
fn predicted(sizes: &Sizes, parameters: &Parameters, device: &Device) -> Result<Option<f64>, NoEstimate> {
    let simulated =
        Subject::of(sizes, parameters).and_then(|subject| subject.simulate(device, HostTerm::default()));
    match simulated {
        Ok(simulation) => Ok(Some(simulation.seconds)),
        Err(NoEstimate::NoModel { .. } | NoEstimate::NoModelOfDevice { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points;

    #[test]
    fn the_order_rises_and_is_the_same_each_time() {
        let problem = gauntlet_families::suite("group-gemm").unwrap().benchmark[3]
            .sizes
            .clone();
        let device = Device::builtin("b200").unwrap();
        let points: Vec<Parameters> = points(&problem, &device).into_iter().step_by(97).collect();
        let rank =
            |go_on: &dyn Fn(usize) -> bool| rank(&points, &problem, &device, &|_, _| true, go_on).unwrap();
        let all = rank(&|_| true);
        assert!(!all.ranked.is_empty() && all.ranked.len() <= all.accepted);
        assert!(all.accepted <= all.simulated && all.simulated == points.len());
        assert!(all.ranked.iter().all(|one| one.predicted.is_some()));
        assert!(
            all.ranked
                .is_sorted_by(|one, next| one.predicted < next.predicted)
        );
        assert!(
            all.ranked
                .iter()
                .all(|one| problem.accepts(&one.schedule, &device))
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
