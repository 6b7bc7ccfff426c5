//! All comparisons on synthetic machines.

use gauntlet_judge::{Measurement, Observer};
use gauntlet_stats::Criteria;
use rayon::prelude::*;

use super::cell::{Cell, Judged};
use super::effect::Effect;
use super::estimator::Estimator;
use super::injected;
use super::noise::Noise;
use super::trial::Scene;

/// Runs every effect on every kind of noise: `comparisons` of a thing with itself, and fewer with an effect.
pub fn cells(
    criteria: &Criteria,
    plan: &Measurement,
    comparisons: usize,
    seed: u64,
    observer: &dyn Observer,
) -> Result<Vec<Cell>, gauntlet_stats::Error> {
    let mut cells = Vec::new();
    for noise in Noise::ALL {
        for effect in Effect::INJECTED {
            observer.progress(&format!("{} noise, {effect}", noise.name()));
            // Each comparison has its own random stream: the outcome does not depend on the thread that runs it, and
            // stays the same when other comparisons are added.
            let first = (cells.len() as u64) << 32;
            let scene = Scene {
                noise,
                effect,
                criteria,
                plan,
                estimator: Estimator::LowerQuartile,
            };
            let trials: Vec<Judged> = (0..injected(effect, comparisons) as u64)
                .into_par_iter()
                .map(|index| {
                    scene
                        .compare(seed, first + index)
                        .map(|trial| Judged::new(&trial, criteria))
                })
                .collect::<Result<_, _>>()?;
            cells.push(Cell::new(noise.name(), effect, &trials, criteria));
        }
    }
    cells.retain(|cell| cell.rules.iter().any(|tally| tally.comparisons > 0));
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use gauntlet_judge::Blind;
    use jiff::SignedDuration;

    use super::*;

    fn some(seed: u64) -> Vec<Cell> {
        let criteria = Criteria {
            looks: 4,
            open_ended: true,
            resamples: 200,
            ..Criteria::default()
        };
        let plan = Measurement {
            budget: SignedDuration::from_secs(10),
            ..Measurement::default()
        };
        cells(&criteria, &plan, 4, seed, &Blind).unwrap()
    }

    #[test]
    fn the_seed_decides_however_many_threads_there_are() {
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let many = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        let found = alone.install(|| some(3));
        assert_eq!(found, many.install(|| some(3)));
        assert_ne!(found, some(4));
    }

    #[test]
    fn every_effect_is_tried_on_every_kind() {
        let found = some(1);
        assert_eq!(found.len(), Noise::ALL.len() * Effect::INJECTED.len());
        for cell in &found {
            let expected = if cell.effect == Effect::NONE { 4 } else { 1 };
            assert!(
                cell.rules.iter().all(|tally| tally.comparisons == expected),
                "{}",
                cell.effect
            );
        }
    }
}
