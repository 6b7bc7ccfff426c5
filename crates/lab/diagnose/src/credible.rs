//! A value with a credible interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A mean, with the interval that contains the value with 90 % probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credible {
    /// The value is lower than this with 5 % probability.
    pub low: f64,
    /// The mean.
    pub mean: f64,
    /// The value is higher than this with 5 % probability.
    pub high: f64,
}

/// The probability outside of the interval on either side.
const TAIL: f64 = 0.05;

impl Credible {
    /// From weighted values; all 0 if there are none.
    pub(super) fn of(values: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut values: Vec<_> = values.collect();
        values.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let total: f64 = values.iter().map(|(_, weight)| weight).sum();
        let mean = values.iter().map(|(value, weight)| value * weight).sum::<f64>() / total;
        let Some((greatest, _)) = values.last().copied() else {
            return Self {
                low: 0.0,
                mean: 0.0,
                high: 0.0,
            };
        };
        let quantile = |level: f64| {
            let mut below = 0.0;
            values
                .iter()
                .find(|(_, weight)| {
                    below += weight;
                    below >= level * total
                })
                .map_or(greatest, |(value, _)| *value)
        };
        Self {
            low: quantile(TAIL),
            mean,
            high: quantile(1.0 - TAIL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_go_by_weight() {
        let credible = Credible::of([(3.0, 0.04), (1.0, 0.02), (2.0, 0.94)].into_iter());
        assert_eq!((credible.low, credible.high), (2.0, 2.0));
        assert!((credible.mean - 2.02).abs() < 1e-12);
        let credible = Credible::of((0..1000).map(|value| (f64::from(value), 1.0)));
        assert_eq!((credible.low, credible.mean, credible.high), (49.0, 499.5, 949.0));
    }
}
