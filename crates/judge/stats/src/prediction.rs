//! How well a model predicts times: its error, and the cost of following it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::summary::mean;

/// A predicted and a measured time, in the same unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Predicted {
    /// The model's time.
    pub predicted: f64,
    /// The measured time.
    pub measured: f64,
}

/// How a model's times compare with measured ones, over shapes with several schedules each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Fit {
    /// The mean of |predicted / measured − 1|.
    pub mean_error: f64,
    /// The root of the mean square of ln(measured / predicted).
    pub log_deviation: f64,
    /// The standard deviation of ln(measured / predicted) between the schedules of one shape, pooled over shapes (each
    /// costs a degree of freedom).
    pub log_deviation_in_shape: f64,
    /// Spearman's rank correlation, the mean over shapes.
    pub rank_correlation: f64,
    /// [`regret`] of the first choice, the mean over shapes.
    pub regret_of_first: f64,
    /// [`regret`] of the best of the first eight, the mean over shapes.
    pub regret_of_eight: f64,
}

impl Fit {
    /// Compares; each inner list is one shape. NaN throughout without any point.
    pub fn of(shapes: &[Vec<Predicted>]) -> Self {
        let all = || shapes.iter().flatten();
        let errors: Vec<f64> = all()
            .map(|point| (point.predicted / point.measured - 1.0).abs())
            .collect();
        let squares: Vec<f64> = all().map(|point| log_ratio(point).powi(2)).collect();
        let over = |figure: fn(&[Predicted]) -> f64| {
            mean(&shapes.iter().map(|shape| figure(shape)).collect::<Vec<_>>())
        };
        Self {
            mean_error: mean(&errors),
            log_deviation: mean(&squares).sqrt(),
            log_deviation_in_shape: deviation_in_shape(shapes),
            rank_correlation: over(rank_correlation),
            regret_of_first: over(|shape| regret(shape, 1)),
            regret_of_eight: over(|shape| regret(shape, 8)),
        }
    }
}

/// Spearman's rank correlation of predicted with measured times: the correlation of ranks; ties share their mean rank.
/// NaN if all values of either side are equal.
pub fn rank_correlation(points: &[Predicted]) -> f64 {
    let predicted = ranks(points.iter().map(|point| point.predicted));
    let measured = ranks(points.iter().map(|point| point.measured));
    let middle = (points.len() as f64 + 1.0) / 2.0;
    let product = |left: &[f64], right: &[f64]| -> f64 {
        let pairs = left.iter().zip(right);
        pairs
            .map(|(left, right)| (left - middle) * (right - middle))
            .sum()
    };
    product(&predicted, &measured) / (product(&predicted, &predicted) * product(&measured, &measured)).sqrt()
}

/// How much longer the best of the first `choices` by prediction takes than the best of all, as a share of the latter.
pub fn regret(points: &[Predicted], choices: usize) -> f64 {
    let mut ordered = points.to_vec();
    ordered.sort_by(|left, right| left.predicted.total_cmp(&right.predicted));
    let best = |points: &[Predicted]| {
        let times = points.iter().map(|point| point.measured);
        times.fold(f64::INFINITY, f64::min)
    };
    best(&ordered[..choices.min(ordered.len())]) / best(&ordered) - 1.0
}

fn log_ratio(point: &Predicted) -> f64 {
    (point.measured / point.predicted).ln()
}

fn deviation_in_shape(shapes: &[Vec<Predicted>]) -> f64 {
    let (mut squares, mut freedom) = (0.0, 0);
    for shape in shapes.iter().filter(|shape| !shape.is_empty()) {
        let logs: Vec<f64> = shape.iter().map(log_ratio).collect();
        let middle = mean(&logs);
        squares += logs.iter().map(|log| (log - middle).powi(2)).sum::<f64>();
        freedom += logs.len() - 1;
    }
    (squares / freedom as f64).sqrt()
}

/// The rank of each value, from 1.
fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(pairs: &[(f64, f64)]) -> Vec<Predicted> {
        pairs
            .iter()
            .map(|(predicted, measured)| Predicted {
                predicted: *predicted,
                measured: *measured,
            })
            .collect()
    }

    #[test]
    fn ranks_by_hand() {
        // Ranks 1, 2, 3 against 1, 3, 2: 1 − 6·2 / (3·8).
        let close = |left: f64, right: f64| (left - right).abs() < 1e-12;
        let shape = points(&[(1.0, 10.0), (2.0, 30.0), (3.0, 20.0)]);
        assert!(close(rank_correlation(&shape), 0.5));
        assert!(close(
            rank_correlation(&points(&[(1.0, 9.0), (2.0, 4.0), (5.0, 1.0)])),
            -1.0
        ));
        // Tied predictions share rank 1.5: (−0.5, −0.5, 1) against (−1, 0, 1).
        let tied = points(&[(1.0, 1.0), (1.0, 2.0), (2.0, 3.0)]);
        assert!(close(rank_correlation(&tied), 1.5 / 3.0_f64.sqrt()));
        assert!(rank_correlation(&points(&[(1.0, 1.0), (1.0, 2.0)])).is_nan());
    }

    #[test]
    fn regret_is_what_following_the_model_costs() {
        let shape = points(&[(1.0, 12.0), (2.0, 11.0), (3.0, 10.0), (4.0, 20.0)]);
        assert!((regret(&shape, 1) - 0.2).abs() < 1e-12);
        assert!((regret(&shape, 2) - 0.1).abs() < 1e-12);
        assert_eq!(regret(&shape, 3), 0.0);
        assert_eq!(regret(&shape, 8), 0.0);
    }

    #[test]
    fn errors_that_schedules_share_are_no_errors_between_them() {
        // One shape is always twice, the other always half as long as predicted.
        let shapes = [
            points(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]),
            points(&[(2.0, 1.0), (4.0, 2.0)]),
        ];
        let fit = Fit::of(&shapes);
        assert!((fit.mean_error - (3.0 * 0.5 + 2.0 * 1.0) / 5.0).abs() < 1e-12);
        assert!((fit.log_deviation - 2.0_f64.ln()).abs() < 1e-12);
        assert!(fit.log_deviation_in_shape < 1e-12);
        assert!((fit.rank_correlation - 1.0).abs() < 1e-12);
        assert_eq!((fit.regret_of_first, fit.regret_of_eight), (0.0, 0.0));
    }

    proptest::proptest! {
        #[test]
        fn only_the_order_counts_for_ranks(
            times in proptest::collection::vec((0.1..10.0_f64, 0.1..10.0_f64), 2..12),
        ) {
            let shape = points(&times);
            let bent: Vec<_> = shape
                .iter()
                .map(|point| Predicted { predicted: point.predicted.powi(3), ..*point })
                .collect();
            proptest::prop_assert!((rank_correlation(&shape) - rank_correlation(&bent)).abs() < 1e-9);
            proptest::prop_assert!(rank_correlation(&shape).abs() <= 1.0 + 1e-9);
            proptest::prop_assert!(regret(&shape, 1) >= regret(&shape, 2));
            proptest::prop_assert_eq!(regret(&shape, times.len()), 0.0);
        }
    }
}
