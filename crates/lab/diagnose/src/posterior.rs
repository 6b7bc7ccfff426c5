//! Evaluates one set of drivers against the times: the likelihood, averaged over all costs it might have.
//!
//! Costs are expressed as a common scale times *shares* of the mean time, one per driver, which add up to 1. Every
//! division into shares is equally likely a priori (a flat Dirichlet distribution). So sets of any size and drivers of
//! any unit are comparable, and costs are non-negative. With at most three drivers, the integral over shares has two
//! dimensions. It is summed on a grid, which needs no starting point and gives the same result every time.

use super::driver::{Amounts, Driver};
use super::grid::{self, Cell, Shares};
use super::noise::{Match, Noise};

/// The result of fitting one set of drivers.
#[derive(Debug, Clone)]
pub(super) struct Posterior {
    pub(super) drivers: Vec<Driver>,
    /// The logarithm of the likelihood averaged over the prior; −∞ if the roofline excludes all costs.
    pub(super) evidence: f64,
    /// The root of the mean squared relative error at the best costs.
    pub(super) misfit: f64,
    /// The likely noise under this explanation.
    pub(super) noise: f64,
    cells: Vec<(Cell, f64, Match)>,
    units: Vec<f64>,
}

/// Possible costs, with their relative weight.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) weight: f64,
    /// Seconds per occurrence of each driver.
    pub(super) costs: Shares,
}

/// Cells whose weight is below this fraction of the heaviest are not kept as samples.
const NEGLIGIBLE: f64 = 1e-4;

/// Nodes and weights that approximate a normal distribution (Gauss–Hermite, three nodes).
const NORMAL: [(f64, f64); 3] = [
    (-1.732_050_807_568_877_2, 1.0 / 6.0),
    (0.0, 2.0 / 3.0),
    (1.732_050_807_568_877_2, 1.0 / 6.0),
];

/// Tolerance for rounding of a cost that is exactly at its floor.
const ROUNDING: f64 = 1.0 - 1e-9;

impl Posterior {
    /// Integrates over all costs of at most three drivers, each with a non-zero count.
    pub(super) fn of(drivers: &[Driver], amounts: &[Amounts], noise: &Noise) -> Self {
        let units: Vec<f64> = drivers.iter().map(|driver| unit(*driver, amounts)).collect();
        let floors: Vec<f64> = drivers.iter().map(|driver| floor(*driver, amounts)).collect();
        // One row per measurement: the time of each driver if it took all of the mean time.
        let rows: Vec<Shares> = amounts
            .iter()
            .map(|amounts| {
                let mut row = [0.0; 3];
                for (index, driver) in drivers.iter().enumerate() {
                    row[index] = amounts.count(*driver) * units[index];
                }
                row
            })
            .collect();
        let cells = grid::resolve(drivers.len(), |shares| {
            let predictions = rows
                .iter()
                .map(|row| row.iter().zip(shares).map(|(part, share)| part * share).sum());
            let found = noise.hold(predictions);
            let scale = found.scale.exp() / ROUNDING;
            let possible =
                (0..drivers.len()).all(|index| scale * shares[index] * units[index] >= floors[index]);
            (
                if possible {
                    found.likelihood
                } else {
                    f64::NEG_INFINITY
                },
                found,
            )
        });
        let greatest = cells
            .iter()
            .map(|(_, likelihood, _)| *likelihood)
            .fold(f64::NEG_INFINITY, f64::max);
        let cells: Vec<_> = cells
            .into_iter()
            .map(|(cell, likelihood, found)| (cell, cell.volume * (likelihood - greatest).exp(), found))
            .filter(|(_, mass, _)| *mass > 0.0)
            .collect();
        let total: f64 = cells.iter().map(|(_, mass, _)| mass).sum();
        let squares = cells
            .iter()
            .map(|(.., found)| found.squares)
            .fold(f64::INFINITY, f64::min);
        Self {
            drivers: drivers.to_vec(),
            evidence: if total > 0.0 {
                greatest + total.ln()
            } else {
                f64::NEG_INFINITY
            },
            misfit: (squares / noise.measurements() as f64).sqrt(),
            noise: noise.likely(
                cells
                    .iter()
                    .map(|(_, mass, found)| mass * found.squares)
                    .sum::<f64>()
                    / total,
            ),
            cells,
            units,
        }
    }

    /// The possible costs; weights add up to 1.
    pub(super) fn samples(&self) -> Vec<Sample> {
        let heaviest = self.cells.iter().map(|(_, mass, _)| *mass).fold(0.0, f64::max);
        let heavy = self
            .cells
            .iter()
            .filter(|(_, mass, _)| *mass >= NEGLIGIBLE * heaviest);
        let total: f64 = heavy.clone().map(|(_, mass, _)| mass).sum();
        heavy
            .flat_map(|(cell, mass, found)| {
                NORMAL.map(|(node, weight)| {
                    let scale = (found.scale + node * found.scale_deviation).exp();
                    let mut costs = [0.0; 3];
                    for (cost, (share, unit)) in costs.iter_mut().zip(cell.shares.iter().zip(&self.units)) {
                        *cost = scale * share * unit;
                    }
                    Sample {
                        weight: mass / total * weight,
                        costs,
                    }
                })
            })
            .collect()
    }
}

/// The reciprocal of a driver's mean count.
fn unit(driver: Driver, amounts: &[Amounts]) -> f64 {
    let sum: f64 = amounts.iter().map(|amounts| amounts.count(driver)).sum();
    amounts.len() as f64 / sum
}

/// The least floor over the problems, which is a safe bound for all.
fn floor(driver: Driver, amounts: &[Amounts]) -> f64 {
    amounts
        .iter()
        .map(|amounts| amounts.floor(driver))
        .fold(f64::INFINITY, f64::min)
}
