//! Estimates where the time of a call goes, from measured times alone.
//!
//! A call's time is modelled as a sum of costs, each proportional to a count ([`Driver`]): the call itself, its groups,
//! tiles, waves, steps, operations, bytes. Every set of up to three drivers is an [`Explanation`]. It is compared with
//! the times under all costs it might have, non-negative and no lower than the device's roofline allows. Bayes' rule
//! gives its probability from three stated assumptions: how far a right explanation may be off ([`NOISE`]), that all
//! divisions of time among its drivers are equally likely, and that few drivers are as likely as many. Explanations
//! that the times do not exclude are kept, and all other results are averaged over them.
//!
//! `docs/explanation/diagnosis.md` has the formulas and the limits.
//!
//! Calls that take the same time whatever they compute:
//!
//! ```
//! use gauntlet_device::Device;
//! use gauntlet_diagnose::{Driver, Measurement, diagnose};
//! use gauntlet_problems::{Form, GroupedGemm, Operation, Schedule};
//!
//! let measurements = [[64, 512, 512], [256, 1024, 512], [512, 512, 2048], [1024, 1024, 1024]].map(|shape| Measurement {
//!     problem: Operation::GroupedGemm(GroupedGemm::new(Form::Plain, [shape])),
//!     seconds: 2e-3,
//!     spread: None,
//! });
//! let diagnosis = diagnose(&measurements, &Schedule::baseline(), &Device::builtin("b200")?)?;
//! let likeliest = &diagnosis.explanations[0];
//! assert!(likeliest.costs.iter().any(|cost| cost.driver == Driver::Constant));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod credible;
mod diagnosis;
mod driver;
mod error;
mod experiment;
mod grid;
mod hypotheses;
mod information;
mod lever;
mod noise;
mod posterior;
#[cfg(test)]
mod tests;
mod variants;

pub use credible::Credible;
pub use diagnosis::{
    Average, AverageShare, Cost, Diagnosis, Explanation, Fit, FitPart, Indistinct, Measurement,
};
pub use driver::{Driver, Kind};
pub use error::DiagnosisError;
pub use experiment::{Change, Experiment};
pub use lever::{Gain, Lever};
pub use noise::{NOISE, NOISE_WORTH};
pub use variants::{DriverChange, Variant, VariantChange, changes};

use gauntlet_device::Device;
use gauntlet_problems::Schedule;

use driver::Amounts;
use experiment::Rival;
use noise::Noise;
use posterior::{Posterior, Sample};

/// The probability that the right explanation is among those kept, provided that it was considered.
pub const KEPT: f64 = 0.95;

/// An explanation whose misfit exceeds this many times [`NOISE`] explains little.
const FAR_OFF: f64 = 2.0;

/// Diagnoses measured times. Tiles, waves and steps are counted with the schedule, on the device's processors.
///
/// # Errors
/// [`DiagnosisError`] if there are no times, if a time is not finite and positive, or if it is below the device's
/// roofline.
pub fn diagnose(
    measurements: &[Measurement],
    schedule: &Schedule,
    device: &Device,
) -> Result<Diagnosis, DiagnosisError> {
    let amounts = counted(measurements, schedule, device)?;
    let (drivers, indistinct) = hypotheses::distinct(&amounts);
    let weighed = weighed(measurements, &amounts, &drivers);
    let considered = weighed.len();
    let kept: Vec<Kept> = kept(weighed)
        .into_iter()
        .map(|(probability, posterior)| Kept {
            probability,
            samples: posterior.samples(),
            posterior,
        })
        .collect();
    let rivals: Vec<Rival<'_>> = kept.iter().map(Kept::rival).collect();
    Ok(Diagnosis {
        schedule: schedule.clone(),
        device: device.name.clone(),
        measurements: measurements.to_vec(),
        considered,
        explanations: kept.iter().map(|one| one.explanation(&amounts)).collect(),
        average: average(&kept, &drivers, &amounts),
        indistinct: indistinct
            .into_iter()
            .map(|(driver, like)| Indistinct { driver, like })
            .collect(),
        experiments: experiment::experiments(&rivals, measurements, schedule, device),
        unexplained: kept.iter().all(|one| one.posterior.misfit > FAR_OFF * NOISE),
    })
}

/// The counts of each problem.
fn counted(
    measurements: &[Measurement],
    schedule: &Schedule,
    device: &Device,
) -> Result<Vec<Amounts>, DiagnosisError> {
    if measurements.is_empty() {
        return Err(DiagnosisError::NoTimes);
    }
    let check = |(measurement, one): (usize, &Measurement)| {
        let seconds = one.seconds;
        if !(seconds.is_finite() && seconds > 0.0) {
            return Err(DiagnosisError::NotATime { measurement, seconds });
        }
        if let Some(spread) = one.spread.filter(|spread| !(0.0..=1.0).contains(spread)) {
            return Err(DiagnosisError::NotASpread { measurement, spread });
        }
        let amounts = Amounts::of(&one.problem, schedule, device);
        if amounts.count(Driver::Flops) <= 0.0 {
            return Err(DiagnosisError::NoWork { measurement });
        }
        if seconds < amounts.roofline {
            return Err(DiagnosisError::UnderTheRoofline {
                measurement,
                seconds,
                roofline: amounts.roofline,
                device: device.name.clone(),
            });
        }
        Ok(amounts)
    };
    measurements.iter().enumerate().map(check).collect()
}

/// Every explanation with its probability, likeliest first.
fn weighed(measurements: &[Measurement], amounts: &[Amounts], drivers: &[Driver]) -> Vec<(f64, Posterior)> {
    let noise = Noise::of(
        measurements
            .iter()
            .map(|measurement| (measurement.seconds, measurement.spread.unwrap_or(0.0))),
    );
    let mut problems: Vec<_> = measurements
        .iter()
        .map(|measurement| &measurement.problem)
        .collect();
    let mut seen = std::collections::HashSet::new();
    problems.retain(|problem| seen.insert(*problem));
    let all: Vec<_> = hypotheses::hypotheses(drivers, problems.len())
        .into_iter()
        .map(|one| (one.prior, Posterior::of(&one.drivers, amounts, &noise)))
        .collect();
    let greatest = all
        .iter()
        .map(|(_, one)| one.evidence)
        .fold(f64::NEG_INFINITY, f64::max);
    let mass = |prior: f64, one: &Posterior| prior * (one.evidence - greatest).exp();
    let total: f64 = all.iter().map(|(prior, one)| mass(*prior, one)).sum();
    let mut weighed: Vec<_> = all
        .into_iter()
        .map(|(prior, one)| (mass(prior, &one) / total, one))
        .collect();
    weighed.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    weighed
}

/// The fewest explanations that make up [`KEPT`].
fn kept(weighed: Vec<(f64, Posterior)>) -> Vec<(f64, Posterior)> {
    let mut sum = 0.0;
    weighed
        .into_iter()
        .take_while(|(probability, _)| {
            let needed = sum < KEPT;
            sum += probability;
            needed
        })
        .collect()
}

/// A kept explanation.
struct Kept {
    probability: f64,
    posterior: Posterior,
    samples: Vec<Sample>,
}

impl Kept {
    fn rival(&self) -> Rival<'_> {
        Rival {
            probability: self.probability,
            drivers: &self.posterior.drivers,
            samples: &self.samples,
            noise: self.posterior.noise,
        }
    }

    fn explanation(&self, amounts: &[Amounts]) -> Explanation {
        let drivers = &self.posterior.drivers;
        let cost = |(index, driver): (usize, &Driver)| Cost {
            driver: *driver,
            seconds: Credible::of(
                self.samples
                    .iter()
                    .map(|sample| (sample.costs[index], sample.weight)),
            ),
        };
        let costs: Vec<Cost> = drivers.iter().enumerate().map(cost).collect();
        Explanation {
            probability: self.probability,
            misfit: self.posterior.misfit,
            fits: amounts.iter().map(|amounts| self.fit(&costs, amounts)).collect(),
            gains: lever::gains(&[(drivers, &self.samples, 1.0)], amounts),
            costs,
        }
    }

    fn fit(&self, costs: &[Cost], amounts: &Amounts) -> Fit {
        let part = |(index, cost): (usize, &Cost)| FitPart {
            driver: cost.driver,
            seconds: cost.seconds.mean * amounts.count(cost.driver),
            share: Credible::of(self.samples.iter().map(|sample| {
                let seconds = |index: usize| sample.costs[index] * amounts.count(costs[index].driver);
                let all: f64 = (0..costs.len()).map(seconds).sum();
                (seconds(index) / all, sample.weight)
            })),
        };
        let parts: Vec<FitPart> = costs.iter().enumerate().map(part).collect();
        Fit {
            seconds: parts.iter().map(|part| part.seconds).sum(),
            parts,
        }
    }

    /// Samples with the seconds of the mean time that the drivers selected by `wanted` take, and that all drivers take.
    fn mean_seconds(
        &self,
        amounts: &[Amounts],
        wanted: impl Fn(Driver) -> bool,
    ) -> impl Iterator<Item = (f64, f64, f64)> {
        let counts: Vec<(f64, bool)> = self
            .posterior
            .drivers
            .iter()
            .map(|driver| {
                let sum: f64 = amounts.iter().map(|amounts| amounts.count(*driver)).sum();
                (sum / amounts.len() as f64, wanted(*driver))
            })
            .collect();
        self.samples.iter().map(move |sample| {
            let (mut part, mut all) = (0.0, 0.0);
            for (cost, (count, is_wanted)) in sample.costs.iter().zip(&counts) {
                all += cost * count;
                part += if *is_wanted { cost * count } else { 0.0 };
            }
            (part, all, self.probability * sample.weight)
        })
    }
}

fn average(kept: &[Kept], drivers: &[Driver], amounts: &[Amounts]) -> Average {
    let total: f64 = kept.iter().map(|one| one.probability).sum();
    let share = |driver: &Driver| {
        let all = || {
            kept.iter()
                .flat_map(|one| one.mean_seconds(amounts, |of| of == *driver))
        };
        let with = kept.iter().filter(|one| one.posterior.drivers.contains(driver));
        AverageShare {
            driver: *driver,
            // An empty sum of floats is −0.
            probability: with.fold(0.0, |sum, one| sum + one.probability) / total,
            share: Credible::of(all().map(|(part, all, weight)| (part / all, weight))),
            seconds: Credible::of(all().map(|(part, _, weight)| (part, weight))),
        }
    };
    let host = kept
        .iter()
        .flat_map(|one| one.mean_seconds(amounts, Driver::is_host));
    let each: Vec<_> = kept
        .iter()
        .map(|one| {
            (
                one.posterior.drivers.as_slice(),
                one.samples.as_slice(),
                one.probability,
            )
        })
        .collect();
    Average {
        shares: drivers.iter().map(share).collect(),
        host: Credible::of(host.map(|(part, all, weight)| (part / all, weight))),
        gains: lever::gains(&each, amounts),
    }
}
