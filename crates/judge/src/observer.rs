//! Progress reports: what happens while a candidate is examined.

use gauntlet_stats::{Criteria, Interval};

use crate::evidence::Finding;

/// Told what happens while it happens. Every method has an empty default.
pub trait Observer {
    /// A candidate enters a gate.
    fn gate_begins(&self, _candidate: &str, _gate: &str) {}
    /// The paired comparison of a candidate begins or goes on.
    fn compares(&self, _candidate: &str) {}
    /// Something moved inside a gate, such as `case-2, wide`.
    fn progress(&self, _message: &str) {}
    /// A comparison has measured a further pair of processes.
    fn narrows(&self, _narrowing: &Narrowing) {}
    /// A gate is done.
    fn gate_ends(&self, _candidate: &str, _finding: &Finding) {}
    /// Something worth knowing that is not a finding.
    fn notice(&self, _message: &str) {}
}

/// How far a comparison has come.
#[derive(Debug, Clone)]
pub struct Narrowing<'a> {
    /// The candidate that is compared.
    pub candidate: &'a str,
    /// Pairs of processes measured.
    pub pairs: usize,
    /// The most that may be.
    pub most: usize,
    /// The suite's speed-up as it stands.
    pub interval: Interval,
    /// What will judge it.
    pub criteria: &'a Criteria,
}

/// Ignores everything.
pub struct Blind;

impl Observer for Blind {}
