//! Faster: the paired comparison. The control is built and run beside the candidate, never a number from yesterday.

use gauntlet_model::limit;
use gauntlet_stats::{Assessment, Decision, Ground};

use super::{Examination, Executor, Found, Gate, NOT_HERE, Trouble};
use crate::comparison::{Comparison, compare_recorded};
use crate::finding::{Evidence, Outcome};
use crate::predicted::compare_predicted;
use crate::verdict::Verdict;

/// Gives the verdict of a candidate that came this far.
pub struct Faster;

impl Gate for Faster {
    fn name(&self) -> &'static str {
        "faster"
    }

    fn examines_baselines(&self) -> bool {
        false
    }

    fn measures(&self) -> bool {
        true
    }

    fn examine(&self, examination: &Examination) -> Result<Found, Trouble> {
        let (round, candidate) = (examination.round, examination.candidate);
        let comparison = match (examination.executor, &examination.comparison) {
            (Executor::Live(_), Some(comparison)) => comparison.clone(),
            (Executor::Compiled(_), _) => return Ok(Found::skip(NOT_HERE)),
            (Executor::Live(_), None) => return Ok(Found::skip("it was not measured")),
            (Executor::Predicted, _) => match compare_predicted(round, examination.control, candidate)? {
                Ok(comparison) => comparison,
                Err(reason) => {
                    return Ok(Found::stop(
                        Verdict::Blocked,
                        format!("left without a prediction: {reason}"),
                        Evidence::Reason,
                    ));
                }
            },
            (Executor::Recorded(record), _) => {
                match compare_recorded(record, round, examination.control, candidate)? {
                    Some(comparison) => comparison,
                    None => {
                        let reason = "the record holds no times of it, and none are invented";
                        return Ok(Found::stop(Verdict::Blocked, reason, Evidence::Reason));
                    }
                }
            }
        };
        if let Some(reason) = impossible(examination, &comparison).or_else(|| disbelieved(&comparison)) {
            return Ok(Found::stop(
                Verdict::Blocked,
                reason,
                Evidence::Comparison(Box::new(comparison)),
            ));
        }
        let verdict = Verdict::from(comparison.assessment.decision);
        let reason = sentence(&comparison);
        let outcome = if verdict == Verdict::Adopt {
            Outcome::Pass
        } else {
            Outcome::Stop(verdict)
        };
        Ok(Found {
            outcome,
            reason,
            evidence: Evidence::Comparison(Box::new(comparison)),
        })
    }
}

/// A time under the roofline is not a fast kernel but a broken measurement: the comparison is void.
fn impossible(examination: &Examination, comparison: &Comparison) -> Option<String> {
    let (cases, device) = (&examination.round.benchmark_cases, &examination.round.device);
    comparison.cases.iter().find_map(|times| {
        let case = cases.iter().find(|case| case.name == times.case)?;
        let limit = limit(&case.problem, device)?;
        let time = [times.baseline, times.candidate]
            .into_iter()
            .find(|time| *time < limit)?;
        Some(format!(
            "void: {} took {time:.3e} s where nothing on {} takes less than {limit:.3e} s",
            times.case, device.name,
        ))
    })
}

/// Times that cannot be believed decide nothing either.
fn disbelieved(comparison: &Comparison) -> Option<String> {
    let suspicion = comparison.conduct.as_ref()?.suspicion?;
    Some(format!("void: {suspicion}"))
}

fn sentence(comparison: &Comparison) -> String {
    let Assessment {
        suite,
        ground,
        smallest_visible_effect,
        decision,
        ..
    } = &comparison.assessment;
    let mut sentence = match suite {
        None => "numbers without an interval decide nothing".to_owned(),
        Some(interval) => format!(
            "{}speed-up {:+.1} % ({:+.1} … {:+.1} %)",
            if interval.origin.is_predicted() {
                "predicted "
            } else {
                ""
            },
            interval.estimate_fraction() * 100.0,
            interval.lower_fraction() * 100.0,
            interval.upper_fraction() * 100.0,
        ),
    };
    if let Ground::BrokenFloor { problems, .. } = ground {
        sentence.push_str(&format!("; under the floor on {}", problems.join(", ")));
    }
    if let (Some(effect), Decision::Inconclusive) = (smallest_visible_effect, decision) {
        let effect = effect * 100.0;
        sentence.push_str(&match comparison.predicted {
            Some(_) => {
                format!("; the model's own error is too wide to tell less than {effect:.0} % from nothing")
            }
            None => format!("; the smallest effect that could have been seen is {effect:.1} %"),
        });
    }
    if let Some(declared) = &comparison.declared {
        sentence.push_str(&format!("; bounds declared, not measured: {declared}"));
    }
    if let Some(early) = &comparison.ended_early {
        sentence.push_str(&format!("; {early}"));
    }
    sentence
}
