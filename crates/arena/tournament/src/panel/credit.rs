//! What a panellist's votes are worth, by how its earlier ones came true.

use std::collections::BTreeMap;

/// The weight of a panellist of whom nothing is known, in votes: two, as for the records of authors.
const UNKNOWN: f64 = 2.0;

/// The mean squared error of one who always says one half.
const OF_A_COIN: f64 = 0.25;

/// How the votes of panellists came true. A total of 7 of 10 counts as a chance of 70 % that the pitch is adopted, and is scored
/// by the squared error once it is known (Brier, "Verification of forecasts expressed in terms of probability", 1950).
#[derive(Debug, Clone, Default)]
pub struct PanelRecord(BTreeMap<String, Votes>);

#[derive(Debug, Clone, Copy, Default)]
struct Votes {
    count: f64,
    squared_errors: f64,
}

impl PanelRecord {
    /// Adds a vote, from 0 to 10, and whether the pitch was adopted.
    pub fn add(&mut self, panellist: &str, total: f64, adopted: bool) {
        let votes = self.0.entry(panellist.to_owned()).or_default();
        let outcome = if adopted { 1.0 } else { 0.0 };
        votes.count += 1.0;
        votes.squared_errors += (total / 10.0 - outcome).powi(2);
    }

    /// What a vote is worth beside others: 1 for one who is unknown or no better than a coin, more for a smaller error.
    pub fn credit(&self, panellist: &str) -> f64 {
        let Votes {
            count,
            squared_errors,
        } = self.0.get(panellist).copied().unwrap_or_default();
        let error = (UNKNOWN * OF_A_COIN + squared_errors) / (UNKNOWN + count);
        OF_A_COIN / error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_moves_towards_those_whose_votes_come_true() {
        let mut record = PanelRecord::default();
        assert_eq!(record.credit("nobody"), 1.0);
        for _ in 0..4 {
            record.add("right", 9.0, true);
            record.add("wrong", 9.0, false);
            record.add("coin", 5.0, true);
        }
        assert_eq!(record.credit("coin"), 1.0);
        // (2 · 0.25 + 4 · 0.01) / 6 = 0.09, and (2 · 0.25 + 4 · 0.81) / 6 = 0.6233.
        assert!((record.credit("right") - 0.25 / 0.09).abs() < 1e-12);
        assert!((record.credit("wrong") - 0.25 / (3.74 / 6.0)).abs() < 1e-12);
    }
}
