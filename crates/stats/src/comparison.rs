//! The whole comparison: a suite's evidence in, an assessment with its ground out.

use serde::{Deserialize, Serialize};

use crate::floor::{examine_declared, examine_measured};
use crate::verdict::{claim_refuted, decide, smallest_visible_effect};
use crate::{
    Bootstrap, Criteria, Decision, DeclaredPair, Distribution, Error, FloorFinding, Interval, Resampling,
    Sample, declared_interval, declared_suite,
};

/// What a comparison came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// The decision on the suite, floors included.
    pub decision: Decision,
    /// What the decision rests on.
    pub ground: Ground,
    /// The geometric mean speed-up over the suite; none without enough evidence.
    pub suite: Option<Interval>,
    /// Each problem, in the order given.
    pub problems: Vec<ProblemFinding>,
    /// The smallest speed-up that the suite's interval could have told from none, as a fraction.
    pub smallest_visible_effect: Option<f64>,
}

/// What a decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "on", rename_all = "kebab-case")]
pub enum Ground {
    /// The suite's interval.
    SuiteInterval,
    /// A suite that would have been adopted or marginal, but is a regression on these problems.
    BrokenFloor {
        /// Names of the problems under the floor.
        problems: Vec<String>,
        /// What the suite's interval alone would have said.
        otherwise: Decision,
    },
    /// There is no interval, hence nothing to decide on.
    NoInterval,
}

/// One problem of the suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProblemFinding {
    /// The problem's name in the suite.
    pub name: String,
    /// Its speed-up, at the same confidence as the suite's and not corrected for the number of problems.
    pub interval: Option<Interval>,
    /// How it stands to the floor.
    pub floor: FloorFinding,
    /// Holm's adjusted p-value of "under the floor"; only for measured problems.
    pub adjusted_p_value: Option<f64>,
}

impl Assessment {
    /// Whether the suite's interval refutes a claim, by the rule of [`claim_refuted`](crate::claim_refuted);
    /// none without an interval.
    pub fn claim_refuted(&self, lowest_claimed: f64) -> Option<bool> {
        self.suite
            .as_ref()
            .map(|interval| claim_refuted(interval, lowest_claimed))
    }

    /// The problems that may be under the floor without evidence that they are: worth a warning.
    pub fn possibly_broken(&self) -> Vec<&str> {
        self.named(FloorFinding::PossiblyBroken)
    }

    fn named(&self, floor: FloorFinding) -> Vec<&str> {
        let found = self.problems.iter().filter(|problem| problem.floor == floor);
        found.map(|problem| problem.name.as_str()).collect()
    }
}

/// Judges measured samples of named problems at a planned look (counting from 1) of the criteria.
///
/// # Errors
/// Criteria that make no sense, a look that was not planned, samples that give no interval (see
/// [`Bootstrap::new`]).
pub fn compare(
    problems: &[(String, Sample)],
    criteria: &Criteria,
    look: usize,
    seed: u64,
) -> Result<Assessment, Error> {
    criteria.validate()?;
    let confidence = criteria.look_plan()?.confidence_at(look)?;
    let samples: Vec<Sample> = problems.iter().map(|(_, sample)| sample.clone()).collect();
    let bootstrap = Bootstrap::new(
        &samples,
        Resampling {
            resamples: criteria.resamples,
            seed,
        },
    )?;
    let interval = |distribution: &Distribution| distribution.interval(confidence);
    let intervals: Vec<Interval> = bootstrap
        .problems
        .iter()
        .map(interval)
        .collect::<Result<_, _>>()?;
    let floors = examine_measured(&bootstrap.problems, &intervals, criteria, confidence);
    let findings =
        problems
            .iter()
            .zip(intervals)
            .zip(floors)
            .map(|(((name, _), interval), (p_value, floor))| ProblemFinding {
                name: name.clone(),
                interval: Some(interval),
                floor,
                adjusted_p_value: Some(p_value),
            });
    Ok(assess(
        Some(interval(&bootstrap.suite)?),
        findings.collect(),
        criteria,
    ))
}

/// Judges recorded single numbers by their declared uncertainty: worst-case bounds, so neither looks nor Holm
/// apply.
///
/// # Errors
/// Criteria that make no sense, no problem, a pair without bounds (see [`declared_interval`]).
pub fn compare_declared(
    problems: &[(String, DeclaredPair)],
    criteria: &Criteria,
) -> Result<Assessment, Error> {
    criteria.validate()?;
    let bounds =
        |pair: &DeclaredPair| declared_interval(pair.baseline, pair.candidate, pair.relative_uncertainty);
    let intervals: Vec<Interval> = problems
        .iter()
        .map(|(_, pair)| bounds(pair))
        .collect::<Result<_, _>>()?;
    let suite = declared_suite(&intervals)?;
    let findings = problems
        .iter()
        .zip(intervals)
        .map(|((name, _), interval)| ProblemFinding {
            name: name.clone(),
            floor: examine_declared(&interval, criteria),
            interval: Some(interval),
            adjusted_p_value: None,
        });
    Ok(assess(Some(suite), findings.collect(), criteria))
}

/// The assessment of problems without an interval of any kind (one number a side, or fewer than 2 processes):
/// inconclusive, with that as its ground.
pub fn without_interval(problems: &[String], criteria: &Criteria) -> Assessment {
    let finding = |name: &String| ProblemFinding {
        name: name.clone(),
        interval: None,
        floor: FloorFinding::Unknown,
        adjusted_p_value: None,
    };
    assess(None, problems.iter().map(finding).collect(), criteria)
}

fn assess(suite: Option<Interval>, problems: Vec<ProblemFinding>, criteria: &Criteria) -> Assessment {
    let decision = decide(suite.as_ref(), criteria);
    let ground = if suite.is_some() {
        Ground::SuiteInterval
    } else {
        Ground::NoInterval
    };
    let smallest_visible_effect = suite.as_ref().map(smallest_visible_effect);
    let mut assessment = Assessment {
        decision,
        ground,
        suite,
        problems,
        smallest_visible_effect,
    };
    let broken = assessment.named(FloorFinding::Broken);
    if matches!(decision, Decision::Adopt | Decision::Marginal) && !broken.is_empty() {
        let problems = broken.into_iter().map(String::from).collect();
        assessment.ground = Ground::BrokenFloor {
            problems,
            otherwise: decision,
        };
        assessment.decision = Decision::Regression;
    }
    assessment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(pairs: &[(f64, f64)], relative_uncertainty: f64) -> Assessment {
        let pair = |(baseline, candidate): &(f64, f64)| {
            let name = format!("{baseline} to {candidate}");
            (
                name,
                DeclaredPair {
                    baseline: *baseline,
                    candidate: *candidate,
                    relative_uncertainty,
                },
            )
        };
        compare_declared(&pairs.iter().map(pair).collect::<Vec<_>>(), &Criteria::default()).unwrap()
    }

    #[test]
    fn a_small_recorded_gain_is_inconclusive() {
        let gain = declared(&[(100.7, 100.0)], 0.01);
        assert_eq!(
            (gain.decision, &gain.ground),
            (Decision::Inconclusive, &Ground::SuiteInterval)
        );
        assert!((gain.smallest_visible_effect.unwrap() - (1.01 / 0.99 - 1.0)).abs() < 1e-12);
        assert_eq!(gain.problems[0].adjusted_p_value, None);

        let bare = without_interval(&["sdpa".to_owned()], &Criteria::default());
        assert_eq!(
            (bare.decision, &bare.ground),
            (Decision::Inconclusive, &Ground::NoInterval)
        );
        assert_eq!(bare.problems[0].floor, FloorFinding::Unknown);
        assert_eq!(
            (bare.claim_refuted(0.5), bare.smallest_visible_effect),
            (None, None)
        );
    }

    #[test]
    fn recorded_floors_are_broken_held_or_in_doubt() {
        let suite = declared(&[(2.0, 1.0), (0.8, 1.0), (0.95, 1.0), (1.0, 1.0)], 0.01);
        let floors: Vec<FloorFinding> = suite.problems.iter().map(|problem| problem.floor).collect();
        use FloorFinding::{Broken, Held, PossiblyBroken};
        assert_eq!(floors, [Held, Broken, PossiblyBroken, Held]);
        assert_eq!(suite.decision, Decision::Regression);
        let problems = vec!["0.8 to 1".to_owned()];
        assert_eq!(
            suite.ground,
            Ground::BrokenFloor {
                problems,
                otherwise: Decision::Adopt
            }
        );
    }

    #[test]
    fn a_broken_floor_leaves_other_decisions_alone() {
        let slower = declared(&[(0.5, 1.0), (1.0, 1.0)], 0.01);
        assert_eq!(
            (slower.decision, slower.ground),
            (Decision::Regression, Ground::SuiteInterval)
        );
        let open = declared(&[(0.8, 1.0), (1.25, 1.0)], 0.02);
        assert_eq!(
            (open.decision, open.ground),
            (Decision::Inconclusive, Ground::SuiteInterval)
        );
        assert_eq!(open.problems[0].floor, FloorFinding::Broken);
    }

    #[test]
    fn unplanned_looks_and_wrong_criteria_are_refused() {
        let criteria = Criteria {
            looks: 2,
            ..Criteria::default()
        };
        assert_eq!(
            compare(&[], &criteria, 3, 0),
            Err(Error::UnplannedLook { look: 3, looks: 2 })
        );
        assert_eq!(compare(&[], &criteria, 1, 0), Err(Error::EmptySuite));
        let criteria = Criteria {
            target: 0.0,
            ..Criteria::default()
        };
        assert!(matches!(
            compare_declared(&[], &criteria),
            Err(Error::Criterion { name: "target", .. })
        ));
    }

    #[test]
    fn assessments_survive_a_file() {
        let assessment = declared(&[(2.0, 1.0), (0.8, 1.0)], 0.01);
        let text = toml::to_string(&assessment).unwrap();
        assert_eq!(toml::from_str::<Assessment>(&text).unwrap(), assessment);
    }
}
