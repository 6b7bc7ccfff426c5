//! The round's budget for comparisons.

use std::time::Duration;

/// The remaining time, shared among the remaining candidates.
pub struct Clock {
    left: Duration,
}

impl Clock {
    /// The whole budget.
    pub fn new(budget: Duration) -> Self {
        Self { left: budget }
    }

    /// The share of each candidate.
    pub fn share(&self, candidates: usize) -> Duration {
        self.left / u32::try_from(candidates.max(1)).unwrap_or(u32::MAX)
    }

    /// Subtracts the time of a comparison, whatever its result.
    pub fn spend(&mut self, spent: Duration) {
        self.left = self.left.saturating_sub(spent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_leaves_the_others_share() {
        let mut clock = Clock::new(Duration::from_secs(60));
        assert_eq!(clock.share(3), Duration::from_secs(20));
        clock.spend(Duration::from_secs(10));
        assert_eq!(clock.share(1), Duration::from_secs(50));
        assert_eq!(clock.share(2), Duration::from_secs(25));
        clock.spend(Duration::from_secs(90));
        assert_eq!(clock.share(1), Duration::ZERO);
        assert_eq!(clock.share(0), Duration::ZERO);
    }
}
