//! Counts of problems and results.

use std::collections::BTreeMap;
use std::fmt;

use gauntlet_kernels_cuda::plan::Variant;
use gauntlet_task::ErrorMeasures;
use serde::Serialize;

use super::kernels::Step;
use super::trial::Failure;

/// Failures that are kept with all details needed to reproduce them; the rest are only counted.
const KEPT: usize = 50;

/// Results by schedule.
#[derive(Debug, Serialize)]
pub struct Tally {
    schedules: Vec<Line>,
    /// Variants without a usable kernel, with the error.
    no_kernels: BTreeMap<String, String>,
    /// The first failures.
    failures: Vec<Failure>,
}

/// Counts for one schedule.
#[derive(Debug, Default, Serialize)]
struct Line {
    name: String,
    words: String,
    /// Problems that the schedule has a kernel for, counted once per result format.
    problems: usize,
    /// Results compared.
    comparisons: usize,
    /// Elements compared in all results.
    elements: usize,
    /// Results equal to the rounded oracle in every element compared.
    bit_equal: usize,
    largest_nrmse: f64,
    largest_bias: f64,
    failed: usize,
}

impl Tally {
    pub fn new(steps: &[Step]) -> Self {
        let line = |step: &Step| Line {
            name: step.name.clone(),
            words: step.schedule.to_string(),
            ..Line::default()
        };
        Self {
            schedules: steps.iter().map(line).collect(),
            no_kernels: BTreeMap::new(),
            failures: Vec::new(),
        }
    }

    /// Counts a problem for a schedule.
    pub fn tried(&mut self, step: &Step) {
        self.line(step, |line| line.problems += 1);
    }

    /// Counts a problem whose kernel does not compile or does not fit.
    pub fn without_kernel(&mut self, step: &Step, variant: &Variant, why: &str) {
        self.line(step, |line| line.failed += 1);
        self.no_kernels.entry(variant.to_string()).or_insert_with(|| {
            eprintln!("WRONG: {}: {why}", step.name);
            format!("{}: {why}", step.name)
        });
    }

    /// Counts a comparison.
    pub fn compared(&mut self, step: &Step, errors: &ErrorMeasures) {
        self.line(step, |line| {
            line.comparisons += 1;
            line.elements += errors.compared;
            line.bit_equal += usize::from(errors.unequal == 0 && errors.unwritten == 0);
            line.largest_nrmse = line.largest_nrmse.max(errors.nrmse);
            line.largest_bias = line.largest_bias.max(errors.mean_signed.abs());
        });
    }

    /// Counts a failure.
    pub fn failed(&mut self, step: &Step, failure: Failure) {
        self.line(step, |line| line.failed += 1);
        eprintln!(
            "WRONG: {}, {}, {}: {}",
            failure.case, failure.kernel, failure.inputs, failure.fault
        );
        if self.failures.len() < KEPT {
            self.failures.push(failure);
        }
    }

    /// How many comparisons found something wrong, and how many problems had no kernel.
    pub fn failures(&self) -> usize {
        self.schedules.iter().map(|line| line.failed).sum()
    }

    /// How many comparisons there were.
    pub fn comparisons(&self) -> usize {
        self.schedules.iter().map(|line| line.comparisons).sum()
    }

    fn line(&mut self, step: &Step, change: impl FnOnce(&mut Line)) {
        if let Some(line) = self.schedules.iter_mut().find(|line| line.name == step.name) {
            change(line);
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{:40} {:>9} {:>12} {:>10} {:>10} {:>10} {:>7}",
            "schedule", "problems", "comparisons", "bit-equal", "NRMSE ≤", "bias ≤", "wrong"
        )?;
        for line in &self.schedules {
            writeln!(
                formatter,
                "{:40} {:>9} {:>12} {:>10} {:>10.1e} {:>10.1e} {:>7}",
                line.name,
                line.problems,
                line.comparisons,
                line.bit_equal,
                line.largest_nrmse,
                line.largest_bias,
                line.failed
            )?;
        }
        for why in self.no_kernels.values() {
            writeln!(formatter, "WRONG: {why}")?;
        }
        for failure in &self.failures {
            writeln!(
                formatter,
                "WRONG: {}, {} ({}), {}, seed {}: {}",
                failure.case, failure.schedule, failure.kernel, failure.inputs, failure.seed, failure.fault
            )?;
        }
        Ok(())
    }
}
