//! The outcome of a comparison in one plain sentence.

use gauntlet_judge::{Comparison, Regime, Verdict};
use gauntlet_stats::{Criteria, Ground, percent, percent_interval, percent_span};

use crate::speedup::bound;

/// Which of two kernels is faster, by how much, and the verdict: `fast is faster than slow by 12.3 % [10.9 … 13.8]:
/// adopt`. The names are those of the baseline and the candidate. Load before the calls is said, as a verdict without it may
/// differ.
pub fn plainly(comparison: &Comparison, criteria: &Criteria, [baseline, candidate]: [&str; 2]) -> String {
    let verdict = Verdict::from(comparison.assessment.decision);
    if let (Ground::Design { .. }, Some(interval)) =
        (&comparison.assessment.ground, &comparison.assessment.suite)
    {
        let measured = percent_interval(interval);
        return format!(
            "the speed-up of {candidate} over {baseline} is {measured} in these measurements, which cannot decide: {verdict}"
        );
    }
    let said = match comparison.assessment.suite.as_ref() {
        None => format!("not enough was measured to say which of {baseline} and {candidate} is faster"),
        Some(interval) if interval.lower > 0.0 => {
            format!(
                "{candidate} is faster than {baseline} by {}",
                percent_span(interval)
            )
        }
        Some(interval) if interval.upper < 0.0 => {
            format!(
                "{candidate} is slower than {baseline} by {}",
                percent_span(interval)
            )
        }
        Some(_) if verdict == Verdict::ValidNegative => format!(
            "{candidate} is as fast as {baseline}: the difference is less than {}",
            bound(criteria.practically_zero).trim_start_matches('+')
        ),
        Some(interval) => format!(
            "it is not shown which of {baseline} and {candidate} is faster; {candidate} is between {} and {} faster",
            percent(interval.lower_fraction()),
            percent(interval.upper_fraction())
        ),
    };
    let typical = match comparison.assessment.ground {
        Ground::SlowPairs { .. } => " in the typical pair of processes, but not shown to be on average",
        _ => "",
    };
    let load = match comparison.regime {
        Some(Regime::Sustained) => " under sustained load",
        Some(Regime::Isolated) | None => "",
    };
    format!("{said}{load}{typical}: {verdict}")
}

#[cfg(test)]
mod tests {
    use gauntlet_stats::{Assessment, Block, DeclaredPair, Sample, compare, compare_declared};

    use super::*;

    fn said(baseline: f64, candidate: f64, uncertainty: f64) -> String {
        said_in(None, baseline, candidate, uncertainty)
    }

    fn said_in(regime: Option<Regime>, baseline: f64, candidate: f64, uncertainty: f64) -> String {
        let pair = DeclaredPair {
            baseline,
            candidate,
            relative_uncertainty: uncertainty,
        };
        let assessment = compare_declared(&[("one".to_owned(), pair)], &Criteria::default()).unwrap();
        said_of(assessment, regime)
    }

    fn said_of(assessment: Assessment, regime: Option<Regime>) -> String {
        let comparison = Comparison {
            assessment,
            cases: Vec::new(),
            regime,
            scope: None,
            looks: Vec::new(),
            seed: 0,
            conduct: None,
            declared: None,
            design: None,
            trust: gauntlet_judge::Trust::Watched,
            predicted: None,
            ended_early: None,
            spent: None,
        };
        plainly(&comparison, &Criteria::default(), ["slow", "fast"])
    }

    #[test]
    fn a_gain_that_rare_slow_pairs_may_undo_is_said_to_be_typical_only() {
        let block = |pair: usize| Block::new(pair, vec![if pair == 7 { 0.5 } else { 1.1 }], vec![1.0]);
        let blocks: Vec<Block> = (0..12).map(block).collect();
        let problems = [("one".to_owned(), Sample::from_blocks(&blocks).unwrap())];
        let found = compare(&problems, &Criteria::default(), 1, 1).unwrap();
        let said = said_of(found, None);
        assert!(
            said.starts_with("fast is faster than slow by 10.0 % [10.0 … 10.0] in the typical pair"),
            "{said}"
        );
        assert!(
            said.ends_with("but not shown to be on average: inconclusive"),
            "{said}"
        );
    }

    #[test]
    fn a_verdict_under_load_says_so() {
        assert_eq!(
            said_in(Some(Regime::Sustained), 1.12, 1.0, 0.005),
            "fast is faster than slow by 12.0 % [10.9 … 13.1] under sustained load: adopt"
        );
        let isolated = said_in(Some(Regime::Isolated), 1.12, 1.0, 0.005);
        assert_eq!(isolated, said(1.12, 1.0, 0.005));
    }

    #[test]
    fn the_direction_and_the_size_are_said() {
        assert_eq!(
            said(1.12, 1.0, 0.005),
            "fast is faster than slow by 12.0 % [10.9 … 13.1]: adopt"
        );
        assert_eq!(
            said(0.8, 1.0, 0.005),
            "fast is slower than slow by 20.0 % [19.2 … 20.8]: regression"
        );
        assert_eq!(
            said(1.0, 1.0, 0.001),
            "fast is as fast as slow: the difference is less than 1 %: valid negative"
        );
        assert_eq!(
            said(1.0, 1.0, 0.02),
            "it is not shown which of slow and fast is faster; fast is between −3.9 % and +4.1 % faster: inconclusive"
        );
    }
}
