//! The whole comparison: from a suite's evidence to an assessment with its ground.

use crate::floor::{examine_bounds, examine_measured};
use crate::verdict::{decide, smallest_visible_effect};
use crate::{
    Assessment, Block, ClockCheck, Criteria, Decision, DeclaredPair, Effects, Error, FloorFinding, Ground,
    Interval, LookNumber, Origin, PredictedPair, ProblemFinding, Resampling, Sample, SignFlip, SlowPairs,
    declared_interval, declared_suite, needed_processes, predicted_interval, predicted_suite,
};

/// Judges measured samples of named problems at a look of the criteria's plan.
///
/// # Errors
/// Criteria that make no sense, a look that was not planned, samples that give no interval (see
/// [`Effects::of`]).
pub fn compare(
    problems: &[(String, Sample)],
    criteria: &Criteria,
    look: impl Into<LookNumber>,
    seed: u64,
) -> Result<Assessment, Error> {
    criteria.validate()?;
    let confidence = criteria.look_plan()?.confidence_at(look)?;
    let samples: Vec<Sample> = problems.iter().map(|(_, sample)| sample.clone()).collect();
    let effects = Effects::of(&samples)?;
    let intervals: Vec<Interval> = effects
        .problems
        .iter()
        .map(|effect| effect.interval(confidence))
        .collect::<Result<_, _>>()?;
    let floors = examine_measured(&effects.problems, &intervals, criteria, confidence);
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
    let suite = effects.suite.interval(confidence)?;
    let clock = ClockCheck::of(&suite, &samples, confidence)?;
    let resampling = Resampling {
        resamples: criteria.resamples,
        seed,
    };
    let sign_flip = SignFlip::new(effects.suite.process_effects(), resampling)?;
    let slow_pairs = SlowPairs::of(&effects.suite, confidence);
    let assessment = assess(Some(suite), findings.collect(), criteria).with_slow_pairs(slow_pairs, criteria);
    let needed_processes = match (assessment.decision, &assessment.ground) {
        (Decision::Inconclusive, Ground::SuiteInterval) => {
            needed_processes(&effects.suite, criteria, confidence)
        }
        _ => None,
    };
    Ok(Assessment {
        sign_flip_p_value: Some(sign_flip.two_sided),
        needed_processes,
        clock,
        ..assessment
    })
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
            floor: examine_bounds(&interval, criteria),
            interval: Some(interval),
            adjusted_p_value: None,
        });
    Ok(assess(Some(suite), findings.collect(), criteria))
}

/// Judges predicted times by the model's own error. Neither looks nor Holm apply: nothing was drawn at random.
///
/// # Errors
/// Criteria that make no sense, no problem, a pair without an interval (see [`predicted_interval`]).
pub fn compare_predicted(
    problems: &[(String, PredictedPair)],
    criteria: &Criteria,
) -> Result<Assessment, Error> {
    criteria.validate()?;
    let pairs: Vec<PredictedPair> = problems.iter().map(|(_, pair)| *pair).collect();
    let suite = predicted_suite(&pairs, criteria.confidence)?;
    let mut findings = Vec::new();
    for (name, pair) in problems {
        let interval = predicted_interval(pair, criteria.confidence)?;
        findings.push(ProblemFinding {
            name: name.clone(),
            floor: examine_bounds(&interval, criteria),
            interval: Some(interval),
            adjusted_p_value: None,
        });
    }
    Ok(assess(Some(suite), findings, criteria))
}

/// The most batches into which the calls of a process are cut. Ten give Student's bound nine degrees of freedom, and are
/// long enough that neighbouring calls, which resemble each other, mostly fall into the same batch.
const BATCHES: usize = 10;

/// The calls of one process a side, in seconds and in the order measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Calls {
    /// Of the baseline.
    pub baseline: Vec<f64>,
    /// Of the candidate.
    pub candidate: Vec<f64>,
}

/// Judges the calls of a single process a side.
///
/// The calls of each side are cut into at most ten contiguous batches, and batch k of one side is compared with batch k of
/// the other. The interval covers further calls of the same two processes only: how much another process would differ
/// cannot be known from one. So it decides nothing, unless a bound is `declared` within which, as a fraction, the typical
/// call of any other process would lie (see [`declared_interval`]): the interval is widened by it, and decides.
///
/// # Errors
/// Criteria that make no sense, no problem, a time that is not positive and finite, a declared bound outside (0, 1).
pub fn compare_calls(
    problems: &[(String, Calls)],
    criteria: &Criteria,
    declared: Option<f64>,
    seed: u64,
) -> Result<Assessment, Error> {
    let criteria = &Criteria {
        looks: 1,
        ..criteria.clone()
    };
    let counts = problems
        .iter()
        .flat_map(|(_, calls)| [calls.baseline.len(), calls.candidate.len()]);
    let batches = counts.min().unwrap_or_default().min(BATCHES);
    if batches < 2 {
        criteria.validate()?;
        let names: Vec<String> = problems.iter().map(|(name, _)| name.clone()).collect();
        return Ok(without_interval(&names, criteria));
    }
    let mut samples = Vec::new();
    for (name, calls) in problems {
        let batch = |times: &[f64], index: usize| {
            times[index * times.len() / batches..(index + 1) * times.len() / batches].to_vec()
        };
        let blocks: Vec<Block> = (0..batches)
            .map(|index| {
                Block::new(
                    index,
                    batch(&calls.baseline, index),
                    batch(&calls.candidate, index),
                )
            })
            .collect();
        samples.push((name.clone(), Sample::from_blocks(&blocks)?));
    }
    let mut found = compare(&samples, criteria, 1, seed)?;
    found.sign_flip_p_value = None;
    found.slow_pairs = None;
    let confidence = criteria.confidence;
    let intervals = found
        .suite
        .iter_mut()
        .chain(found.problems.iter_mut().filter_map(|one| one.interval.as_mut()));
    for interval in intervals {
        match declared {
            None => interval.origin = Origin::Calls { confidence, batches },
            Some(uncertainty) => {
                // The worst case of both sides, as between two recorded numbers.
                let slack = declared_interval(1.0, 1.0, uncertainty)?.upper;
                interval.lower -= slack;
                interval.upper += slack;
                interval.origin = Origin::Declared;
            }
        }
    }
    if declared.is_none() {
        return Ok(found.undecided(
            "one process a side: the interval covers only calls of these two processes, and another pair of processes can \
             differ by more",
        ));
    }
    let examined = found.problems.into_iter().map(|problem| ProblemFinding {
        floor: problem
            .interval
            .as_ref()
            .map_or(FloorFinding::Unknown, |interval| {
                examine_bounds(interval, criteria)
            }),
        adjusted_p_value: None,
        ..problem
    });
    Ok(assess(found.suite, examined.collect(), criteria))
}

/// The assessment of problems without any interval (one number a side, or fewer than 2 processes): inconclusive, on the
/// ground that there is no interval.
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
        sign_flip_p_value: None,
        needed_processes: None,
        clock: None,
        slow_pairs: None,
    };
    let broken = assessment.named(FloorFinding::Broken);
    // An inconclusive comparison stays so: it goes on, or passes no requirement anyway.
    let would_pass = matches!(
        decision,
        Decision::Adopt | Decision::Marginal | Decision::ValidNegative
    );
    if would_pass && !broken.is_empty() {
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
mod tests;
