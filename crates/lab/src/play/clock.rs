//! The round's budget for comparisons.

use std::time::Duration;

use crate::finding::Finding;
use crate::gates::{Faster, Gate};

/// The time left, shared among the candidates still to come.
pub struct Clock {
    left: Duration,
}

impl Clock {
    /// A whole budget.
    pub fn new(budget: Duration) -> Self {
        Self { left: budget }
    }

    /// What each of so many candidates may take.
    pub fn share(&self, candidates: usize) -> Duration {
        self.left / u32::try_from(candidates.max(1)).unwrap_or(u32::MAX)
    }

    /// Takes off what a candidate's comparison took.
    pub fn spend(&mut self, findings: &[Finding]) {
        // By its gate and not by its evidence: a comparison that a worker's death cut short took its time too.
        let compared = findings.iter().filter(|finding| finding.gate == Faster.name());
        let spent: f64 = compared.map(|finding| finding.seconds).sum();
        self.left = self.left.saturating_sub(Duration::from_secs_f64(spent));
    }
}
