//! Checks claims against results.

use gauntlet_worker::Record;

use crate::outcome::{ClaimOutcome, PeerOutcome};
use crate::pitch::Pitch;
use gauntlet_judge::Comparison;

/// Compares a pitch's claim with its comparison.
pub fn claim_outcome(pitch: &Pitch, comparison: Option<&Comparison>) -> ClaimOutcome {
    let claimed = pitch.claim.speedup;
    let assessment = comparison.map(|comparison| &comparison.assessment);
    let suite = assessment.and_then(|assessment| assessment.suite.as_ref());
    ClaimOutcome {
        claimed,
        found: suite.map(|interval| interval.estimate.exp()),
        refuted: assessment.and_then(|assessment| assessment.claim_refuted(claimed.q10 - 1.0)),
    }
}

/// Checks claims against other programs by the recorded times of both.
pub fn peer_outcomes(pitch: &Pitch, record: Option<&Record>) -> Vec<PeerOutcome> {
    let outcome = |claim: &crate::pitch::PeerClaim| {
        let found = record.and_then(|record| recorded_ratio(record, &pitch.name, &claim.peer));
        let slack = record
            .and_then(|record| record.uncertainty.as_ref())
            .map_or(0.0, |bound| bound.relative);
        // Each side may be off by the declared bound; the check assumes the errors that favour the claim.
        let contradicted = found.is_some_and(|found| found * (1.0 + slack) / (1.0 - slack) < claim.times);
        PeerOutcome {
            peer: claim.peer.clone(),
            claimed: claim.times,
            found,
            contradicted,
        }
    };
    pitch.claim.against.iter().map(outcome).collect()
}

/// The candidate's speed-up over the peer, over the cases for which both have times.
fn recorded_ratio(record: &Record, candidate: &str, peer: &str) -> Option<f64> {
    let (own, peer) = (&record.candidates.get(candidate)?.times, record.peers.get(peer)?);
    let logs: Vec<f64> = peer
        .iter()
        .filter_map(|(case, time)| Some((time / gauntlet_stats::median(own.get(case)?.as_slice())).ln()))
        .collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}
