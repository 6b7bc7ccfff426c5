//! One set of drivers held against the times: how well it does, averaged over all costs it might have.
//!
//! Costs are looked at as a common scale times *shares* of the mean time, one a driver, which add up to 1. Every
//! division into shares is equally likely beforehand (a flat Dirichlet distribution), so that sets of any size and
//! drivers of any unit are on the same footing, and non-negative. With at most three drivers the integral over shares has
//! two dimensions and is summed on a grid, which needs no starting point and is the same every time.

use super::driver::{Amounts, Driver};
use super::grid::{self, Cell, Shares};
use super::noise::{Match, Noise};

/// What the times say about one set of drivers.
#[derive(Debug, Clone)]
pub(super) struct Posterior {
    pub(super) drivers: Vec<Driver>,
    /// The logarithm of the likelihood averaged over the prior; −∞ where the roofline forbids all costs.
    pub(super) evidence: f64,
    /// The root of the mean squared relative error at the best costs.
    pub(super) misfit: f64,
    /// The noise that is likely under it.
    pub(super) noise: f64,
    cells: Vec<(Cell, f64, Match)>,
    units: Vec<f64>,
}

/// Costs that are possible, with their weight among all that are.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) weight: f64,
    /// Seconds of each driver, each time it occurs.
    pub(super) costs: Shares,
}

/// Cells that weigh less than this part of the heaviest are no samples.
const NEGLIGIBLE: f64 = 1e-4;

/// Nodes and weights that stand for a normal distribution (Gauss–Hermite, three nodes).
const NORMAL: [(f64, f64); 3] = [
    (-1.732_050_807_568_877_2, 1.0 / 6.0),
    (0.0, 2.0 / 3.0),
    (1.732_050_807_568_877_2, 1.0 / 6.0),
];

/// What rounding may take off a cost that is just at its floor.
const ROUNDING: f64 = 1.0 - 1e-9;

impl Posterior {
    /// Integrates over all costs of at most three drivers, none of which is always 0.
    pub(super) fn of(drivers: &[Driver], amounts: &[Amounts], noise: &Noise) -> Self {
        let units: Vec<f64> = drivers.iter().map(|driver| unit(*driver, amounts)).collect();
        let floors: Vec<f64> = drivers.iter().map(|driver| floor(*driver, amounts)).collect();
        // A row a measurement: what each driver would take if all of the mean time were its.
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

    /// The costs that are possible; weights add up to 1.
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

/// One over how often a driver occurs on average.
fn unit(driver: Driver, amounts: &[Amounts]) -> f64 {
    let sum: f64 = amounts.iter().map(|amounts| amounts.count(driver)).sum();
    amounts.len() as f64 / sum
}

/// The least cost in any of the problems, which surely holds.
fn floor(driver: Driver, amounts: &[Amounts]) -> f64 {
    amounts
        .iter()
        .map(|amounts| amounts.floor(driver))
        .fold(f64::INFINITY, f64::min)
}
