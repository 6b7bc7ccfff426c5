//! Worth it: the model's prediction compared with the claim, and the abort rules that need no measurement of the
//! candidate.
//!
//! The gate stops a candidate only by the candidate's own rules. A rule about the prediction applies only where
//! predictions were tested on the device and were accurate enough (see
//! [`Prediction::is_relied_on`](gauntlet_judge::Prediction::is_relied_on)). Elsewhere the gate reports the prediction and the
//! record of such predictions, and lets the candidate continue to the measurements.

use gauntlet_judge::gates::{Examination, Found, Gate};
use gauntlet_judge::{AbortRule, Evidence, ExaminationFailure, PREDICTED_SPEEDUP, Verdict};

use crate::predicted::predict;

/// The gate.
pub struct WorthIt;

impl Gate for WorthIt {
    fn name(&self) -> &'static str {
        "worth it"
    }

    fn examines_baselines(&self) -> bool {
        false
    }

    fn examine(&self, examination: &Examination) -> Result<Found, ExaminationFailure> {
        examined(examination)
    }
}

fn examined(examination: &Examination) -> Result<Found, ExaminationFailure> {
    let Some(proposal) = examination.proposal else {
        return Ok(Found::skip("a baseline claims nothing"));
    };
    let mut metrics = examination.metrics.clone();
    let prediction = predict(examination.setting, examination.baseline, examination.candidate);
    if let Some(prediction) = prediction {
        metrics.insert(PREDICTED_SPEEDUP.to_owned(), prediction.middle);
    }
    let evidence = prediction.map_or(Evidence::Reason, |prediction| {
        Evidence::Prediction(Box::new(prediction))
    });
    if let Some(reason) = AbortRule::first_met(examination.abort_rules(prediction), &metrics) {
        return Ok(Found::stop(Verdict::Aborted, reason, evidence));
    }
    let ignored = match prediction {
        Some(prediction) if !prediction.is_relied_on() => AbortRule::first_met(
            proposal.abort.iter().filter(|rule| rule.asks_the_model()),
            &metrics,
        ),
        _ => None,
    };
    let Some(prediction) = prediction else {
        return Ok(Found::skip(format!(
            "no prediction: the model does not cover {}, or a side is more than one schedule",
            examination.setting.device.name
        )));
    };
    let claim = proposal.claim;
    let standing = if claim > prediction.high {
        "above that"
    } else if claim < prediction.low {
        "below that"
    } else {
        "within that"
    };
    let mut reason = format!(
        "the model predicts {:.2}× ({:.2}…{:.2}, by the error of published models), and the claim of {:.2}× is {standing}; {}",
        prediction.middle,
        prediction.low,
        prediction.high,
        claim,
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
