//! Where the time of a comparison went.

use std::fmt;
use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the time of a comparison's pairs went, in elapsed seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Spent {
    /// How many pairs.
    pub pairs: usize,
    /// Making operands and writing them to files.
    pub operands: f64,
    /// Starting workers and ending them.
    pub workers: f64,
    /// Builds, loads, warming up and first calls.
    pub preparing: f64,
    /// Timed calls.
    pub measuring: f64,
    /// The load before timed calls, in the sustained regime.
    #[serde(default)]
    pub heating: f64,
    /// Checking results, and that the operands' files are unchanged.
    pub results: f64,
}

impl Spent {
    /// All of it, in seconds.
    pub fn total(&self) -> f64 {
        self.operands + self.workers + self.preparing + self.measuring + self.heating + self.results
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.pairs += other.pairs;
        self.operands += other.operands;
        self.workers += other.workers;
        self.preparing += other.preparing;
        self.measuring += other.measuring;
        self.heating += other.heating;
        self.results += other.results;
    }
}

impl fmt::Display for Spent {
    /// The average time of a pair.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = vec![
            ("operands", self.operands),
            ("starts and ends of workers", self.workers),
            ("builds and loads", self.preparing),
            ("timed calls", self.measuring),
            ("results", self.results),
        ];
        if self.heating > 0.0 {
            parts.insert(3, ("load before timed calls", self.heating));
        }
        let of_one = |seconds: f64| seconds / self.pairs.max(1) as f64;
        let all = of_one(self.total());
        write!(formatter, "a pair took {all:.1} s")?;
        for (index, (what, seconds)) in parts.into_iter().enumerate() {
            let before = if index == 0 { ": " } else { ", " };
            write!(formatter, "{before}{what} {:.2}", of_one(seconds))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_averaged() {
        let mut spent = Spent::default();
        for measuring in [1.0, 2.0] {
            spent += Spent {
                pairs: 1,
                operands: 0.25,
                measuring,
                ..Spent::default()
            };
        }
        assert_eq!(
            spent.to_string(),
            "a pair took 1.8 s: operands 0.25, starts and ends of workers 0.00, builds and loads 0.00, timed calls 1.50, \
             results 0.00"
        );
        spent.heating = 4.0;
        assert!(
            spent.to_string().starts_with("a pair took 3.8 s")
                && spent
                    .to_string()
                    .contains("load before timed calls 2.00, timed calls 1.50"),
            "{spent}"
        );
    }
}
