//! The decision rules that are compared: the lab's own, and rival rules on exactly the same calls.
//!
//! Each rival takes all calls of both sides as they come. Most rivals ignore that calls of one process are correlated.

mod criterion;

use gauntlet_stats::{Criteria, Decision, mann_whitney_p_value, median, welch_p_value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::trial::Calls;

/// The p-value below which tests call a difference significant.
const SIGNIFICANCE: f64 = 0.05;

/// The number of calls per side in the rule of thumb.
const FEW_CALLS: usize = 7;

/// A decision rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The lab's: `gauntlet_stats::compare` at each planned look.
    Gauntlet,
    /// The lab's, if it ends at the last planned look and has spent all of its error by then.
    Planned,
    /// Welch's t-test on all calls: significant at 5 %, whatever the size of the difference.
    Welch,
    /// As `Welch`, and the ratio of means is at least the target, or at most −ε.
    WelchBySize,
    /// The rank-sum test of Mann & Whitney on all calls: significant at 5 %, whatever the size of the difference.
    MannWhitney,
    /// As `MannWhitney`, and the ratio of medians is at least the target, or at most −ε.
    MannWhitneyBySize,
    /// The ratio of the shortest calls is at least the target, or at most −ε.
    Minimum,
    /// The ratio of the means of the first 7 calls of the first process is at least the target, or at most −ε.
    MeanOfSeven,
    /// The ratio of the mean times of whole runs differs from 1 by more than its standard deviation, as hyperfine
    /// prints both.
    MeanOfRuns,
    /// The verdict of criterion.rs: improved or regressed.
    Criterion,
}

impl Rule {
    /// All rules but the lab's own.
    pub const RIVALS: [Self; 8] = [
        Self::Welch,
        Self::WelchBySize,
        Self::MannWhitney,
        Self::MannWhitneyBySize,
        Self::Minimum,
        Self::MeanOfSeven,
        Self::MeanOfRuns,
        Self::Criterion,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gauntlet => "Gauntlet",
            Self::Planned => "planned looks only",
            Self::Welch => "Welch",
            Self::WelchBySize => "Welch by size",
            Self::MannWhitney => "Mann–Whitney",
            Self::MannWhitneyBySize => "Mann–Whitney by size",
            Self::Minimum => "min of N",
            Self::MeanOfSeven => "mean of 7",
            Self::MeanOfRuns => "mean of runs",
            Self::Criterion => "criterion",
        }
    }
}

/// The decisions of all rivals, in the order of [`Rule::RIVALS`]. The seed is for criterion's bootstrap.
pub fn rivals(calls: &Calls, criteria: &Criteria, seed: u64) -> [Decision; Rule::RIVALS.len()] {
    let Calls {
        baseline,
        candidate,
        runs,
    } = calls;
    let means = log_ratio(mean(baseline), mean(candidate));
    let medians = log_ratio(median(baseline), median(candidate));
    let significant = |p_value: Option<f64>| p_value.is_some_and(|p_value| p_value < SIGNIFICANCE);
    let welch = significant(welch_p_value(baseline, candidate));
    let mann_whitney = significant(mann_whitney_p_value(baseline, candidate));
    Rule::RIVALS.map(|rule| match rule {
        Rule::Welch if welch => by_sign(means),
        Rule::WelchBySize if welch => by_size(means, criteria),
        Rule::MannWhitney if mann_whitney => by_sign(medians),
        Rule::MannWhitneyBySize if mann_whitney => by_size(medians, criteria),
        Rule::Minimum => by_size(log_ratio(least(baseline), least(candidate)), criteria),
        Rule::MeanOfSeven => by_size(log_ratio(mean(first(baseline)), mean(first(candidate))), criteria),
        Rule::MeanOfRuns => mean_of_runs(&runs[0], &runs[1]),
        Rule::Criterion => criterion::decide(baseline, candidate, seed),
        _ => Decision::Inconclusive,
    })
}

/// The decision of [`Rule::MeanOfRuns`] on the times of whole runs; undecided with fewer than two on a side.
fn mean_of_runs(baseline: &[f64], candidate: &[f64]) -> Decision {
    if baseline.len() < 2 || candidate.len() < 2 {
        return Decision::Inconclusive;
    }
    let relative_variance = |times: &[f64]| {
        let centre = mean(times);
        let squares: f64 = times.iter().map(|time| (time - centre).powi(2)).sum();
        squares / (times.len() - 1) as f64 / centre.powi(2)
    };
    let ratio = mean(baseline) / mean(candidate);
    let deviation = ratio * (relative_variance(baseline) + relative_variance(candidate)).sqrt();
    if (ratio - 1.0).abs() > deviation {
        by_sign(ratio.ln())
    } else {
        Decision::Inconclusive
    }
}

/// Faster means adoption and slower a regression, however small the difference.
fn by_sign(log_speedup: f64) -> Decision {
    if log_speedup > 0.0 {
        Decision::Adopt
    } else if log_speedup < 0.0 {
        Decision::Regression
    } else {
        Decision::Inconclusive
    }
}

/// Applies the lab's thresholds to a single number instead of an interval.
fn by_size(log_speedup: f64, criteria: &Criteria) -> Decision {
    if log_speedup >= criteria.log_target() {
        Decision::Adopt
    } else if log_speedup <= criteria.log_practically_zero().0 {
        Decision::Regression
    } else {
        Decision::Inconclusive
    }
}

fn log_ratio(baseline: f64, candidate: f64) -> f64 {
    baseline.ln() - candidate.ln()
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn first(times: &[f64]) -> &[f64] {
    &times[..times.len().min(FEW_CALLS)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use Decision::{Adopt, Inconclusive, Regression};

    /// Whole runs that differ by a percent.
    fn runs(centre: f64) -> Vec<f64> {
        [0.99, 1.0, 1.01].map(|run| run * centre).into()
    }

    /// Calls around 1 with a fixed pattern of ±`spread`, and calls of a side that takes `factor` as long.
    fn calls(count: usize, spread: f64, factor: f64) -> Calls {
        let baseline: Vec<f64> = (0..count)
            .map(|index| 1.0 + spread * ((index * 7 % 11) as f64 / 5.0 - 1.0))
            .collect();
        Calls {
            candidate: baseline.iter().map(|time| time * factor).collect(),
            baseline,
            runs: [runs(1.0), runs(factor)],
        }
    }

    fn said(calls: &Calls, rule: Rule) -> Decision {
        let place = Rule::RIVALS.iter().position(|rival| *rival == rule).unwrap();
        rivals(calls, &Criteria::default(), 1)[place]
    }

    #[test]
    fn a_great_difference_is_seen_by_all() {
        for (factor, expected) in [(0.9, Adopt), (1.1, Regression)] {
            for rule in Rule::RIVALS {
                assert_eq!(
                    said(&calls(110, 0.01, factor), rule),
                    expected,
                    "{rule:?} {factor}"
                );
            }
        }
    }

    #[test]
    fn no_difference_is_seen_by_none() {
        for rule in Rule::RIVALS {
            assert_eq!(said(&calls(110, 0.01, 1.0), rule), Inconclusive, "{rule:?}");
        }
    }

    #[test]
    fn tests_of_significance_have_no_notion_of_size() {
        // Half a percent, with so little noise that it is clearly significant.
        let slightly = calls(110, 0.001, 0.995);
        assert_eq!(said(&slightly, Rule::Welch), Adopt);
        assert_eq!(said(&slightly, Rule::MannWhitney), Adopt);
        for rule in [
            Rule::WelchBySize,
            Rule::MannWhitneyBySize,
            Rule::Minimum,
            Rule::MeanOfSeven,
            Rule::Criterion,
        ] {
            assert_eq!(said(&slightly, rule), Inconclusive, "{rule:?}");
        }
    }

    #[test]
    fn a_difference_within_the_noise_is_not_significant() {
        // 3 % between calls that scatter by 50 %: the point estimates see it, the tests do not.
        let noisy = calls(22, 0.5, 1.03);
        for rule in [
            Rule::Welch,
            Rule::WelchBySize,
            Rule::MannWhitney,
            Rule::MannWhitneyBySize,
            Rule::Criterion,
        ] {
            assert_eq!(said(&noisy, rule), Inconclusive, "{rule:?}");
        }
        assert_eq!(said(&noisy, Rule::Minimum), Regression);
        assert_eq!(said(&noisy, Rule::MeanOfSeven), Regression);
    }

    #[test]
    fn thresholds_are_the_labs() {
        let criteria = Criteria::default();
        for (factor, expected) in [
            (1.02, Adopt),
            (1.019, Inconclusive),
            (0.991, Inconclusive),
            (0.99, Regression),
        ] {
            assert_eq!(by_size(f64::ln_1p(factor - 1.0), &criteria), expected, "{factor}");
        }
    }

    #[test]
    fn whole_runs_decide_beyond_their_deviation() {
        // Relative deviations of about 1 % each side: 1.4 % together.
        assert_eq!(mean_of_runs(&runs(1.03), &runs(1.0)), Adopt);
        assert_eq!(mean_of_runs(&runs(1.0), &runs(1.03)), Regression);
        assert_eq!(mean_of_runs(&runs(1.01), &runs(1.0)), Inconclusive);
        assert_eq!(mean_of_runs(&[1.0], &runs(2.0)), Inconclusive);
    }

    #[test]
    fn the_rule_of_thumb_sees_seven_calls_and_the_minimum_one() {
        let mut odd = calls(110, 0.01, 1.0);
        odd.candidate[7..].fill(2.0);
        assert_eq!(said(&odd, Rule::MeanOfSeven), Inconclusive);
        odd.candidate[0] = 2.0;
        assert_eq!(said(&odd, Rule::MeanOfSeven), Regression);
        let mut lucky = calls(110, 0.01, 1.0);
        lucky.candidate[50] = 0.9;
        assert_eq!(said(&lucky, Rule::Minimum), Adopt);
    }
}
