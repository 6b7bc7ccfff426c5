//! Changes from one variant of the code to another.

use gauntlet_device::Device;
use gauntlet_problems::Operation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::credible::Credible;
use super::diagnose;
use super::diagnosis::{Average, Diagnosis, Measurement};
use super::driver::Driver;
use super::error::DiagnosisError;

/// A variant of the code with its diagnosis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name; `None` if there is only one variant.
    pub name: Option<String>,
    /// The diagnosis of its times.
    pub diagnosis: Diagnosis,
}

/// A comparison of two variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VariantChange {
    /// The first variant in the table of times.
    pub from: String,
    /// The other variant.
    pub to: String,
    /// The number of problems measured with both.
    pub problems: usize,
    /// The time with the first variant over the time with the other; the geometric mean over those problems.
    pub speedup: f64,
    /// Each driver's seconds of the mean time over those problems.
    pub drivers: Vec<DriverChange>,
}

/// A driver's part of the mean time under two variants, averaged over explanations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriverChange {
    /// The driver.
    pub driver: Driver,
    /// Seconds with the first variant.
    pub before: Credible,
    /// Seconds with the other.
    pub after: Credible,
}

/// Compares the first variant with each other one that was measured on at least one of the same problems. Measurements
/// of only one of the two do not count, and repeated measurements of a problem have no extra weight.
///
/// # Errors
/// As [`diagnose`]; no errors if both variants were diagnosed on that device.
pub fn changes(variants: &[Variant], device: &Device) -> Result<Vec<VariantChange>, DiagnosisError> {
    let Some((first, others)) = variants.split_first() else {
        return Ok(Vec::new());
    };
    let compared = others.iter().map(|other| change(first, other, device));
    compared.filter_map(Result::transpose).collect()
}

fn change(
    first: &Variant,
    other: &Variant,
    device: &Device,
) -> Result<Option<VariantChange>, DiagnosisError> {
    let (before, after): (Vec<_>, Vec<_>) = distinct(&first.diagnosis)
        .into_iter()
        .filter_map(|problem| {
            let merged = |variant: &Variant| merged(&variant.diagnosis, problem);
            Some((merged(first)?, merged(other)?))
        })
        .unzip();
    if before.is_empty() {
        return Ok(None);
    }
    let logarithms = before
        .iter()
        .zip(&after)
        .map(|(before, after)| (before.seconds / after.seconds).ln());
    let speedup = (logarithms.sum::<f64>() / before.len() as f64).exp();
    let name = |variant: &Variant| variant.name.clone().unwrap_or_default();
    let problems = before.len();
    let before = averaged(&first.diagnosis, before, device)?;
    let after = averaged(&other.diagnosis, after, device)?;
    let seconds = |average: &Average, driver| {
        let share = average.shares.iter().find(|share| share.driver == driver)?;
        Some(share.seconds)
    };
    let drivers = Driver::ALL.into_iter().filter_map(|driver| {
        Some(DriverChange {
            driver,
            before: seconds(&before, driver)?,
            after: seconds(&after, driver)?,
        })
    });
    Ok(Some(VariantChange {
        from: name(first),
        to: name(other),
        problems,
        speedup,
        drivers: drivers.collect(),
    }))
}

/// The problems measured, each once.
fn distinct(diagnosis: &Diagnosis) -> Vec<&Operation> {
    let mut problems: Vec<&Operation> = Vec::new();
    for measurement in &diagnosis.measurements {
        if !problems.contains(&&measurement.problem) {
            problems.push(&measurement.problem);
        }
    }
    problems
}

/// A problem's times merged into one: their geometric mean, with its standard error if all errors are known. `None` if
/// the problem was not measured.
fn merged(diagnosis: &Diagnosis, problem: &Operation) -> Option<Measurement> {
    let times: Vec<&Measurement> = diagnosis
        .measurements
        .iter()
        .filter(|measurement| measurement.problem == *problem)
        .collect();
    if let [time] = times[..] {
        return Some(time.clone());
    }
    let count = Some(times.len() as f64).filter(|count| *count > 0.0)?;
    let logarithms = times.iter().map(|time| time.seconds.ln());
    let squares: Option<f64> = times.iter().map(|time| Some(time.spread?.powi(2))).sum();
    Some(Measurement {
        problem: problem.clone(),
        seconds: (logarithms.sum::<f64>() / count).exp(),
        spread: squares.map(|squares| squares.sqrt() / count),
    })
}

/// The parts of the mean of the shared problems' times. If the variant has further measurements, the shared ones are
/// diagnosed separately: parts of means over different problems are not comparable.
fn averaged(
    diagnosis: &Diagnosis,
    shared: Vec<Measurement>,
    device: &Device,
) -> Result<Average, DiagnosisError> {
    let others = |measurement| !shared.contains(measurement);
    if shared.len() == diagnosis.measurements.len() && !diagnosis.measurements.iter().any(others) {
        return Ok(diagnosis.average.clone());
    }
    Ok(diagnose(&shared, &diagnosis.schedule, device)?.average)
}
