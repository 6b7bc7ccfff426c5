//! The order in which to make the pitched changes: first the change with the largest predicted gain over the baseline,
//! then repeatedly the best change on top of those, until no change gains more than a negligible amount.

use gauntlet_stats::{Interval, percent, speedup_fraction};
use gauntlet_task::Case;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::TournamentError;
use crate::pitch::Pitch;
use crate::round::Round;
use gauntlet_gates::compare_predicted;
use gauntlet_judge::Candidate;

/// An order of the pitched changes, as the model predicts it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Plan {
    /// The baseline's predicted time of each case, in seconds.
    pub baseline: Vec<CaseTime>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The gain of each change alone, the largest first.
    pub alone: Vec<Alone>,
    /// The changes that are left out, and why.
    pub left: Vec<Left>,
}

/// The predicted time of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CaseTime {
    /// The case.
    pub case: String,
    /// Seconds per call.
    pub seconds: f64,
}

/// One change, made on top of those before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Step {
    /// The pitch.
    pub pitch: String,
    /// The words that it changes at this step, such as `stages: 1 → 3`.
    pub words: Vec<String>,
    /// Its gain over the step before, over the suite.
    pub gain: Interval,
    /// The gain of all steps so far over the baseline.
    pub gain_so_far: Interval,
    /// Each case's time after it.
    pub cases: Vec<CaseTime>,
}

/// The gain of a change on the baseline alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Alone {
    /// The pitch.
    pub pitch: String,
    /// Its gain over the suite.
    pub gain: Interval,
    /// Each case's time with it.
    pub cases: Vec<CaseTime>,
}

/// A change that is in no step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Left {
    /// The pitch.
    pub pitch: String,
    /// Why.
    pub reason: String,
}

/// The effect of a change on the candidate it is applied to.
enum Prospect {
    /// It is possible, with this result.
    Gains(Box<Candidate>, Outlook),
    /// It is impossible, or changes nothing.
    Nothing(String),
}

struct Outlook {
    gain: Interval,
    cases: Vec<CaseTime>,
}

impl Plan {
    /// The plan of a round; none if the model has no prediction for its baseline.
    pub fn of(round: &Round, baseline: &Candidate) -> Result<Option<Self>, TournamentError> {
        let Some(start) = outlook(round, baseline, baseline)? else {
            return Ok(None);
        };
        let threshold = round.setting.criteria.practically_zero;
        let mut alone = Vec::new();
        for pitch in &round.pitches {
            if let Prospect::Gains(_, Outlook { gain, cases }) = prospect(round, baseline, pitch)? {
                alone.push(Alone {
                    pitch: pitch.name.clone(),
                    gain,
                    cases,
                });
            }
        }
        alone.sort_by(|one, other| other.gain.estimate.total_cmp(&one.gain.estimate));

        let mut steps: Vec<Step> = Vec::new();
        let mut current = baseline.clone();
        let mut waiting: Vec<&Pitch> = round.pitches.iter().collect();
        while let Some((place, candidate, next)) = best(round, &current, &waiting)? {
            if speedup_fraction(next.gain.estimate) <= threshold {
                break;
            }
            let pitch = waiting.remove(place);
            let Some(so_far) = outlook(round, baseline, &candidate)? else {
                break;
            };
            let words = round
                .setting
                .parameters
                .changes(&current.schedule, &candidate.schedule);
            steps.push(Step {
                pitch: pitch.name.clone(),
                words: words.iter().map(ToString::to_string).collect(),
                gain: next.gain,
                gain_so_far: so_far.gain,
                cases: next.cases,
            });
            current = candidate;
        }
        let mut left = Vec::new();
        for pitch in waiting {
            left.push(Left {
                pitch: pitch.name.clone(),
                reason: match prospect(round, &current, pitch)? {
                    Prospect::Gains(_, outlook) => format!(
                        "after these it would bring {}",
                        percent(outlook.gain.estimate_fraction())
                    ),
                    Prospect::Nothing(reason) => reason,
                },
            });
        }
        Ok(Some(Self {
            baseline: start.cases,
            steps,
            alone,
            left,
        }))
    }
}

/// The change that gains most on `control`; ties go to the first pitched.
fn best(
    round: &Round,
    baseline: &Candidate,
    pitches: &[&Pitch],
) -> Result<Option<(usize, Candidate, Outlook)>, TournamentError> {
    let mut best: Option<(usize, Candidate, Outlook)> = None;
    for (place, pitch) in pitches.iter().enumerate() {
        let Prospect::Gains(candidate, outlook) = prospect(round, baseline, pitch)? else {
            continue;
        };
        let most = best.as_ref().map(|(.., known)| known.gain.estimate);
        if most.is_none_or(|most| outlook.gain.estimate > most) {
            best = Some((place, *candidate, outlook));
        }
    }
    Ok(best)
}

fn prospect(round: &Round, baseline: &Candidate, pitch: &Pitch) -> Result<Prospect, TournamentError> {
    let nothing = |reason: &str| Ok(Prospect::Nothing(reason.to_owned()));
    if pitch.command.is_some() || pitch.dispatch.is_some() {
        return nothing("it is no change of a schedule");
    }
    let candidate = baseline.changed(&pitch.name, &pitch.schedule);
    if !candidate.differs_from(baseline) {
        return nothing("the steps already have every word of it");
    }
    let device = &round.setting.device;
    let broken = |case: &Case| {
        let violations = case.sizes.violations(&candidate.schedule, device);
        violations.into_iter().next()
    };
    if let Some(violation) = round.setting.benchmark_cases.iter().find_map(broken) {
        return Ok(Prospect::Nothing(format!(
            "it cannot be built then: {}",
            violation.rule
        )));
    }
    Ok(match outlook(round, baseline, &candidate)? {
        Some(outlook) => Prospect::Gains(Box::new(candidate), outlook),
        None => Prospect::Nothing("the model has nothing to say of it".to_owned()),
    })
}

fn outlook(
    round: &Round,
    baseline: &Candidate,
    candidate: &Candidate,
) -> Result<Option<Outlook>, TournamentError> {
    let Ok(comparison) = compare_predicted(&round.setting, baseline, candidate)? else {
        return Ok(None);
    };
    let cases = comparison.cases.into_iter().map(|times| CaseTime {
        case: times.case,
        seconds: times.candidate,
    });
    let cases = cases.collect();
    Ok(comparison.assessment.suite.map(|gain| Outlook { gain, cases }))
}
