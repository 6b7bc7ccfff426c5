//! Searches over a recorded space: how close to the optimum the search comes by how many evaluations.

use std::ops::ControlFlow;

use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use crate::recorded::RecordedSpace;
use crate::search::Search;

/// Numbers of evaluations after which a search is compared with the optimum.
const MARKS: [usize; 3] = [8, 32, 128];

/// What searches found after a number of evaluations.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Mark {
    /// Evaluations, of which some may have failed.
    pub evaluations: usize,
    /// The best time found, relative to the optimum: the median of all seeds. None if most found nothing that works.
    pub found: Option<f64>,
    /// The same of points chosen at random.
    pub random: Option<f64>,
}

/// The points that a search of this seed evaluates, in order.
pub fn evaluated(recorded: &RecordedSpace, seed: u64, evaluations: usize) -> Vec<usize> {
    let space = recorded.space();
    let explored =
        Search::new(&space, seed).explore(evaluations, |point| ControlFlow::Continue(recorded.times[point]));
    explored.into_iter().map(|(point, _)| point).collect()
}

/// Searches with the seeds 0, 1, …, and the medians of what they found after 8, 32, 128 and all evaluations.
pub fn replayed(recorded: &RecordedSpace, seeds: u64, evaluations: usize) -> Vec<Mark> {
    let evaluations = evaluations.min(recorded.points.len());
    let searched: Vec<Vec<usize>> = (0..seeds)
        .into_par_iter()
        .map(|seed| evaluated(recorded, seed, evaluations))
        .collect();
    let random: Vec<Vec<usize>> = (0..seeds)
        .map(|seed| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            sample(&mut random, recorded.points.len(), evaluations).into_vec()
        })
        .collect();
    let mut marks: Vec<usize> = MARKS.into_iter().filter(|mark| *mark < evaluations).collect();
    marks.push(evaluations);
    let of = |evaluations| Mark {
        evaluations,
        found: median(recorded, &searched, evaluations),
        random: median(recorded, &random, evaluations),
    };
    marks.into_iter().map(of).collect()
}

/// The median of the best times after so many evaluations, relative to the optimum.
fn median(recorded: &RecordedSpace, runs: &[Vec<usize>], evaluations: usize) -> Option<f64> {
    let optimum = recorded.optimum()?;
    let best = |run: &Vec<usize>| {
        let times = run
            .iter()
            .take(evaluations)
            .filter_map(|point| recorded.times[*point]);
        times.fold(f64::INFINITY, f64::min)
    };
    let mut found: Vec<f64> = runs.iter().map(|run| best(run) / optimum).collect();
    found.sort_by(f64::total_cmp);
    let (low, high) = (
        found.get(found.len().checked_sub(1)? / 2)?,
        found.get(found.len() / 2)?,
    );
    Some((low + high) / 2.0).filter(|median| median.is_finite())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recorded() -> RecordedSpace {
        let points = (0..20_u32).flat_map(|x| (0..20_u32).map(move |y| vec![json!(1 + x), json!(1 + y)]));
        let time = |index: u32| f64::from((index / 20).abs_diff(13) + (index % 20).abs_diff(4) + 1);
        RecordedSpace {
            parameters: vec!["x".to_owned(), "y".to_owned()],
            points: points.collect(),
            times: (0..400)
                .map(|index| (index % 11 != 5).then(|| time(index)))
                .collect(),
            objective: "time".to_owned(),
            unit: None,
        }
    }

    #[test]
    fn the_search_finds_more_than_chance_and_all_evaluations_find_the_optimum() {
        let recorded = recorded();
        let marks = replayed(&recorded, 11, 40);
        assert_eq!(
            marks.iter().map(|mark| mark.evaluations).collect::<Vec<_>>(),
            [8, 32, 40]
        );
        let last = &marks[2];
        assert!(last.found < last.random, "{last:?}");
        assert_eq!(replayed(&recorded, 11, 40), marks);
        let all = replayed(&recorded, 1, 1000);
        assert_eq!(
            all.last().map(|mark| (mark.evaluations, mark.found)),
            Some((400, Some(1.0)))
        );
    }

    #[test]
    fn a_run_that_found_nothing_is_infinitely_slow() {
        let mut recorded = recorded();
        recorded.times = (0..400).map(|index| (index == 7).then_some(1.0)).collect();
        assert_eq!(median(&recorded, &[vec![7], vec![3], vec![2]], 1), None);
        assert_eq!(median(&recorded, &[vec![7], vec![3], vec![7]], 1), Some(1.0));
    }
}
