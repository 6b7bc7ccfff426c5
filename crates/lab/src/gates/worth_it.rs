//! Worth it: the model's prediction beside the claim, and the abort rules that need no measurement of the candidate.
//!
//! The gate stops a pitch only by the pitch's own rules. A rule about the prediction counts only where predictions were
//! tested on the device and did well enough (see [`Accuracy::suffices`]); elsewhere the gate reports the prediction, says
//! what is on record of such predictions, and lets the pitch go on to be measured.

use gauntlet_model::{Accuracy, estimate, predicted_speedup};

use super::{Examination, Found, Gate, Trouble};
use crate::abort::{AbortRule, PREDICTED_SPEEDUP};
use crate::candidate::Candidate;
use crate::finding::{Evidence, Prediction};
use crate::round::Round;
use crate::verdict::Verdict;

/// The gate.
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
            metrics.insert(PREDICTED_SPEEDUP.to_owned(), prediction.middle);
        }
        let evidence = prediction.map_or(Evidence::Reason, Evidence::Prediction);
        if let Some(reason) = AbortRule::first_met(examination.abort_rules(prediction), &metrics) {
            return Ok(Found::stop(Verdict::Aborted, reason, evidence));
        }
        let ignored = match prediction {
            Some(prediction) if !prediction.is_relied_on() => {
                AbortRule::first_met(pitch.abort.iter().filter(|rule| rule.asks_the_model()), &metrics)
            }
            _ => None,
        };
        let Some(prediction) = prediction else {
            return Ok(Found::skip(format!(
                "no prediction: {} lacks the figures for one, or a side is more than one schedule",
                examination.round.device.name
            )));
        };
        let claim = pitch.claim.speedup;
        let standing = if claim.q50 > prediction.high {
            "above that"
        } else if claim.q50 < prediction.low {
            "below that"
        } else {
            "within that"
        };
        let mut reason = format!(
            "the model predicts {:.2}× ({:.2}…{:.2}; {}), and the claim of {:.2}× is {standing}; {}",
            prediction.middle,
            prediction.low,
            prediction.high,
            prediction.basis.sentence(),
            claim.q50,
            prediction.record(),
        );
        if prediction.is_relied_on() {
            reason += &format!("; no kernel could gain more than {:.1}×", prediction.headroom);
        }
        if let Some(ignored) = ignored {
            reason += &format!("; not applied for that reason: {ignored}");
        }
        Ok(Found::pass(reason, evidence))
    }
}

/// The model's prediction of a change. None where the device lacks the figures, or where a side runs something else than one
/// schedule.
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
        accuracy: Accuracy::of_suite(&round.device, &problems),
    })
}
