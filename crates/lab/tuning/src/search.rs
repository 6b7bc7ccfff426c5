//! The search for the fastest point of a space by few evaluations.
//!
//! After a few points that lie far apart, a forest is fitted to the logarithms of the times, and the point with the
//! largest expected improvement is evaluated next, among the neighbours of the fastest points and others at random.
//! The points are listed, so a space may have any restrictions.

mod forest;
mod space;

use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{Continuous, ContinuousCDF, Normal};

use self::forest::Forest;
pub use self::space::Space;

/// Points evaluated before a model is fitted.
const FIRST: usize = 6;

/// Points at random among which the one farthest from those evaluated is taken, until a model is fitted.
const SPREAD: usize = 20;

/// The fastest points whose neighbours are considered.
const CENTRES: usize = 5;

/// Points at random that are considered beside the neighbours.
const OTHERS: usize = 600;

/// A search in progress: [`Search::explore`] evaluates the points that it proposes.
pub struct Search<'a> {
    space: &'a Space,
    random: ChaCha8Rng,
    /// Points that were told, with the logarithm of the time; none for those that failed.
    told: Vec<(usize, Option<f64>)>,
    /// Points that were given out.
    given: Vec<bool>,
}

impl<'a> Search<'a> {
    /// A search that makes the same choices whenever the seed and the times are the same.
    pub fn new(space: &'a Space, seed: u64) -> Self {
        Self {
            space,
            random: ChaCha8Rng::seed_from_u64(seed),
            told: Vec::new(),
            given: vec![false; space.len()],
        }
    }

    /// Evaluates at most `most` points, one after the other; `evaluate` is given the index of a point, and returns its
    /// time, none if the point failed, or ends the search. Returns the points with their times, in order.
    pub fn explore(
        &mut self,
        most: usize,
        mut evaluate: impl FnMut(usize) -> ControlFlow<(), Option<f64>>,
    ) -> Vec<(usize, Option<f64>)> {
        let mut explored = Vec::new();
        while explored.len() < most
            && let Some(point) = self.propose()
            && let ControlFlow::Continue(time) = evaluate(point)
        {
            self.tell(point, time);
            explored.push((point, time));
        }
        explored
    }

    /// The index of the point to evaluate next; none if all were given.
    fn propose(&mut self) -> Option<usize> {
        let fresh: Vec<usize> = (0..self.space.len())
            .filter(|point| !self.given[*point])
            .collect();
        if fresh.is_empty() {
            return None;
        }
        let has_times = self.told.iter().any(|(_, time)| time.is_some());
        let point = if self.told.len() < FIRST || !has_times {
            self.far(&fresh)
        } else {
            self.promising(&fresh)
        };
        self.given[point] = true;
        Some(point)
    }

    /// The result of a point: its positive time in any unit, or none if it failed.
    pub fn tell(&mut self, point: usize, time: Option<f64>) {
        let time = time.filter(|time| *time > 0.0 && time.is_finite());
        self.given[point] = true;
        self.told.push((point, time.map(f64::ln)));
    }

    /// Of some fresh points at random, the one farthest from all that were told.
    fn far(&mut self, fresh: &[usize]) -> usize {
        let spread = if self.told.is_empty() { 1 } else { SPREAD };
        let mut farthest = (f64::MIN, fresh[0]);
        for _ in 0..spread {
            let point = fresh[self.random.random_range(0..fresh.len())];
            let distances = self
                .told
                .iter()
                .map(|(told, _)| self.space.distance(*told, point));
            let nearest = distances.fold(f64::MAX, f64::min);
            if nearest > farthest.0 {
                farthest = (nearest, point);
            }
        }
        farthest.1
    }

    /// The fresh point with the largest expected improvement.
    fn promising(&mut self, fresh: &[usize]) -> usize {
        // A failed point counts as the slowest, so that the search turns away from where points fail.
        let slowest = self
            .told
            .iter()
            .filter_map(|(_, time)| *time)
            .fold(f64::MIN, f64::max);
        let values: Vec<f64> = self
            .told
            .iter()
            .map(|(_, time)| time.unwrap_or(slowest))
            .collect();
        let rows: Vec<&[f64]> = self
            .told
            .iter()
            .map(|(point, _)| self.space.features(*point))
            .collect();
        let forest = Forest::grow(&rows, &values, self.space.columns(), &mut self.random);
        let fastest = values.iter().copied().fold(f64::MAX, f64::min);
        let scores: Vec<(f64, usize)> = self
            .candidates(fresh, &values)
            .into_iter()
            .map(|point| {
                let (mean, deviation) = forest.predict(self.space.features(point));
                (expected_improvement(fastest, mean, deviation), point)
            })
            .collect();
        let best = scores.iter().map(|(score, _)| *score).fold(f64::MIN, f64::max);
        let ties: Vec<usize> = scores
            .iter()
            .filter(|(score, _)| *score >= best)
            .map(|(_, point)| *point)
            .collect();
        ties[self.random.random_range(0..ties.len())]
    }

    /// Fresh neighbours of the fastest points, and others at random, each once.
    fn candidates(&mut self, fresh: &[usize], values: &[f64]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
        let centres: Vec<usize> = order
            .iter()
            .take(CENTRES)
            .map(|index| self.told[*index].0)
            .collect();
        let is_near = |point: &usize| {
            centres
                .iter()
                .any(|centre| self.space.are_neighbours(*centre, *point))
        };
        let mut candidates: Vec<usize> = fresh.iter().copied().filter(is_near).collect();
        candidates.extend((0..OTHERS).map(|_| fresh[self.random.random_range(0..fresh.len())]));
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }
}

/// How much less than `fastest` a normally distributed value is expected to be, counting more as no improvement.
fn expected_improvement(fastest: f64, mean: f64, deviation: f64) -> f64 {
    if deviation < 1e-9 {
        return (fastest - mean).max(0.0);
    }
    let normal = Normal::standard();
    let score = (fastest - mean) / deviation;
    deviation * (score * normal.cdf(score) + normal.pdf(score))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A valley along a product of two parameters, as of threads in a block, where every seventh point fails.
    fn valley() -> (Space, Vec<Option<f64>>) {
        let mut points: Vec<Vec<Value>> = Vec::new();
        let mut times = Vec::new();
        for x in 0..10 {
            for y in 0..10 {
                for mode in ["plain", "staged", "split"] {
                    points.push(vec![json!(1 << x), json!(1 << y), json!(mode)]);
                    let distance = f64::from((x + y - 9_i32).abs() + (x - 6).abs());
                    let factor = if mode == "staged" { 1.0 } else { 1.7 };
                    let fails = times.len() % 7 == 3;
                    times.push((!fails).then_some(factor * (1.0 + distance)));
                }
            }
        }
        (Space::of(&points), times)
    }

    fn best(space: &Space, times: &[Option<f64>], seed: u64, evaluations: usize) -> f64 {
        let mut search = Search::new(space, seed);
        let explored = search.explore(evaluations, |point| ControlFlow::Continue(times[point]));
        explored
            .iter()
            .filter_map(|(_, time)| *time)
            .fold(f64::MAX, f64::min)
    }

    #[test]
    fn the_fastest_of_hundreds_is_found_by_few_evaluations() {
        let (space, times) = valley();
        let fastest = times.iter().flatten().copied().fold(f64::MAX, f64::min);
        let found = (0..20)
            .filter(|seed| best(&space, &times, *seed, 60) <= fastest)
            .count();
        // Choosing 60 of 300 points at random finds it in a fifth of the runs.
        assert!(found >= 15, "{found} of 20");
    }

    #[test]
    fn every_point_is_given_once_and_the_choices_depend_on_the_seed_alone() {
        let (space, times) = valley();
        let order = |seed| Search::new(&space, seed).explore(40, |point| ControlFlow::Continue(times[point]));
        assert_eq!(order(3), order(3));
        assert_ne!(order(3), order(4));
        let small = Space::of(&[vec![json!(1)], vec![json!(2)], vec![json!(4)]]);
        let all = Search::new(&small, 0).explore(9, |_| ControlFlow::Continue(None));
        let mut all: Vec<usize> = all.into_iter().map(|(point, _)| point).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
    }

    #[test]
    fn what_may_be_faster_is_worth_more_than_what_is_surely_slower() {
        assert!(expected_improvement(1.0, 1.1, 0.5) > expected_improvement(1.0, 1.1, 0.0));
        assert_eq!(expected_improvement(1.0, 0.75, 0.0), 0.25);
        assert_eq!(expected_improvement(1.0, 2.0, 0.0), 0.0);
    }
}
