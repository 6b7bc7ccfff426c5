//! What changed from one variant to another.

use serde::{Deserialize, Serialize};

use super::credible::Credible;
use super::diagnosis::{Diagnosis, Measurement};
use super::driver::Driver;

/// A variant of the code with what its times say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// What it is called; none where there is but one.
    pub name: Option<String>,
    /// What its times say.
    pub diagnosis: Diagnosis,
}

/// Two variants side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantChange {
    /// The variant that comes first in the table of times.
    pub from: String,
    /// Another.
    pub to: String,
    /// Problems measured with both.
    pub problems: usize,
    /// The geometric mean over those of the time with the first over the time with the other.
    pub speedup: f64,
    /// Each driver's seconds of the mean time.
    pub drivers: Vec<DriverChange>,
}

/// A driver's part of the mean time with two variants, averaged over explanations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverChange {
    /// The driver.
    pub driver: Driver,
    /// Seconds with the first variant.
    pub before: Credible,
    /// Seconds with the other.
    pub after: Credible,
}

/// The first variant against each other one that was measured on any of the same problems.
pub fn changes(variants: &[Variant]) -> Vec<VariantChange> {
    let Some((first, others)) = variants.split_first() else {
        return Vec::new();
    };
    others.iter().filter_map(|other| change(first, other)).collect()
}

fn change(first: &Variant, other: &Variant) -> Option<VariantChange> {
    let logarithms: Vec<f64> = first
        .diagnosis
        .measurements
        .iter()
        .filter_map(|before| Some((before.seconds / matching(before, &other.diagnosis)?.seconds).ln()))
        .collect();
    if logarithms.is_empty() {
        return None;
    }
    let name = |variant: &Variant| variant.name.clone().unwrap_or_default();
    let seconds = |diagnosis: &Diagnosis, driver| {
        let share = diagnosis
            .average
            .shares
            .iter()
            .find(|share| share.driver == driver)?;
        Some(share.seconds)
    };
    let drivers = Driver::ALL.into_iter().filter_map(|driver| {
        Some(DriverChange {
            driver,
            before: seconds(&first.diagnosis, driver)?,
            after: seconds(&other.diagnosis, driver)?,
        })
    });
    Some(VariantChange {
        from: name(first),
        to: name(other),
        problems: logarithms.len(),
        speedup: (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp(),
        drivers: drivers.collect(),
    })
}

fn matching<'d>(measurement: &Measurement, diagnosis: &'d Diagnosis) -> Option<&'d Measurement> {
    diagnosis
        .measurements
        .iter()
        .find(|other| other.problem == measurement.problem)
}
