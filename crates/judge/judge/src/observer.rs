//! Progress reports: what happens while a candidate is examined.

use gauntlet_stats::{Criteria, Interval};

use crate::evidence::Finding;

/// Receives events while they happen, from one thread or several. Every method has an empty default.
pub trait Observer: Sync {
    /// A candidate enters a gate.
    fn gate_begins(&self, _candidate: &str, _gate: &str) {}
    /// The paired comparison of a candidate begins or continues.
    fn compares(&self, _candidate: &str) {}
    /// Progress inside a gate, such as `case-2, wide`.
    fn progress(&self, _message: &str) {}
    /// A comparison has measured a further pair of processes.
    fn narrows(&self, _narrowing: &Narrowing) {}
    /// A gate has finished.
    fn gate_ends(&self, _candidate: &str, _finding: &Finding) {}
    /// Whether the comparison is to end now, with what was measured so far.
    fn is_interrupted(&self) -> bool {
        false
    }
    /// Something worth knowing that is not a finding.
    fn notice(&self, _message: &str) {}
}

/// How far a comparison has come.
#[derive(Debug, Clone)]
pub struct Narrowing<'a> {
    /// The compared candidate.
    pub candidate: &'a str,
    /// Pairs of processes measured.
    pub pairs: usize,
    /// The number of pairs at which it is evaluated next.
    pub next_look: usize,
    /// The suite's speed-up so far.
    pub interval: Interval,
    /// The criteria that will judge it.
    pub criteria: &'a Criteria,
}

/// Ignores everything.
pub struct Blind;

impl Observer for Blind {}
