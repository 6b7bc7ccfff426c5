//! Who watches a round being played.

use gauntlet_stats::{Criteria, Interval};

use crate::finding::Finding;
use crate::outcome::{Judged, RoundReport};
use crate::panel::Ranking;
use crate::round::Round;

/// Told what happens while it happens. Every method has an empty default.
pub trait Observer {
    /// A round begins.
    fn round_begins(&self, _round: &Round) {}
    /// The panel has ranked the pitches.
    fn ranked(&self, _ranking: &Ranking) {}
    /// A candidate enters a gate.
    fn gate_begins(&self, _candidate: &str, _gate: &str) {}
    /// Something moved inside a gate, such as `case-2, wide`.
    fn progress(&self, _message: &str) {}
    /// A comparison has measured a further pair of processes.
    fn narrows(&self, _narrowing: &Narrowing) {}
    /// A gate is done.
    fn gate_ends(&self, _candidate: &str, _finding: &Finding) {}
    /// A candidate has its verdict.
    fn judged(&self, _judged: &Judged) {}
    /// Something worth knowing that is no finding.
    fn notice(&self, _message: &str) {}
    /// A round is over.
    fn round_ends(&self, _report: &RoundReport) {}
}

/// How far a comparison has come.
#[derive(Debug, Clone)]
pub struct Narrowing<'a> {
    /// Who is compared.
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

/// Sees nothing.
pub struct Blind;

impl Observer for Blind {}
