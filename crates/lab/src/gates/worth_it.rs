//! Worth it: the model's prediction against the claim, and the abort rules that need no measurement of the
//! candidate.

use gauntlet_model::{estimate, predicted_speedup};

use super::{Examination, Found, Gate, Trouble};
use crate::abort::AbortRule;
use crate::candidate::Candidate;
use crate::finding::{Evidence, Prediction};
use crate::round::Round;
use crate::verdict::Verdict;

/// Stops a pitch only by the pitch's own rules: the estimate is too rough to refuse anything by itself.
pub struct WorthIt;

impl Gate for WorthIt {
    fn name(&self) -> &'static str {
        "worth it"
    }

    fn examines_baselines(&self) -> bool {
        false
    }

    fn examine(&self, examination: &Examination) -> Result<Found, Trouble> {
        let Some(pitch) = examination.pitch else {
            return Ok(Found::skip("a baseline claims nothing"));
        };
        let mut metrics = examination.metrics.clone();
        let prediction = predict(examination.round, examination.control, examination.candidate);
        if let Some(prediction) = prediction {
            metrics.insert("predicted.speedup".to_owned(), prediction.middle);
        }
        let evidence = prediction.map_or(Evidence::Reason, Evidence::Prediction);
        if let Some(reason) = AbortRule::first_met(&pitch.abort, &metrics) {
            return Ok(Found::stop(Verdict::Aborted, reason, evidence));
        }
        let Some(prediction) = prediction else {
            return Ok(Found::skip(format!(
                "no estimate: {} lacks the figures for one",
                examination.round.device.name
            )));
        };
        let claim = pitch.claim.speedup;
        let standing = if claim.q50 > prediction.high {
            "above the estimate"
        } else if claim.q50 < prediction.low {
            "below the estimate"
        } else {
            "within the estimate"
        };
        let reason = format!(
            "estimate {:.2}× ({:.2}…{:.2}; {}), claim {:.2}× is {standing}; no kernel could gain more than {:.1}×",
            prediction.middle,
            prediction.low,
            prediction.high,
            prediction.basis.sentence(),
            claim.q50,
            prediction.headroom,
        );
        Ok(Found::pass(reason, evidence))
    }
}

/// The model's view of a change; none where the device lacks the figures or something else than one schedule is run.
pub fn predict(round: &Round, control: &Candidate, candidate: &Candidate) -> Option<Prediction> {
    let is_scheduled = |side: &Candidate| side.command.is_none() && side.dispatch.is_none();
    if !is_scheduled(control) || !is_scheduled(candidate) {
        return None;
    }
    let problems: Vec<_> = round
        .benchmark_cases
        .iter()
        .map(|case| case.problem.clone())
        .collect();
    let speedup = predicted_speedup(&problems, &control.schedule, &candidate.schedule, &round.device).ok()?;
    let mut headrooms = Vec::new();
    for problem in &problems {
        let control = estimate(problem, &control.schedule, &round.device).ok()?;
        // A problem without work has no roofline to be far from.
        if control.roofline_seconds > 0.0 {
            headrooms.push((control.seconds / control.roofline_seconds).ln());
        }
    }
    let log_headroom = headrooms.iter().sum::<f64>() / headrooms.len().max(1) as f64;
    Some(Prediction {
        low: speedup.low,
        middle: speedup.middle,
        high: speedup.high,
        basis: speedup.basis,
        headroom: log_headroom.exp(),
    })
}
