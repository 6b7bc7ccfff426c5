//! What the panel has in front of it about one pitch.

use crate::forecast::{Grounds, Roi, TrackRecord};
use crate::pitch::Pitch;
use gauntlet_judge::Prediction;

/// A pitch and what is known about it before anything is built.
#[derive(Debug, Clone)]
pub struct Dossier<'a> {
    /// What the author says.
    pub pitch: &'a Pitch,
    /// The device's rules that it breaks, in words; empty if it may run.
    pub violations: Vec<String>,
    /// What the model predicts, where there is a model. It counts only where it may be relied on.
    pub predicted: Option<Prediction>,
    /// How the author fared before.
    pub record: TrackRecord,
}

impl Dossier<'_> {
    /// What an expectation rests on before anything is measured.
    pub(super) fn grounds(&self) -> Grounds<'_> {
        Grounds {
            odds: Some(&self.pitch.odds),
            claimed: Some(self.pitch.claim.speedup),
            predicted: self.predicted,
            found: None,
            forbidden: !self.violations.is_empty(),
            hours: self.pitch.cost.hours,
            record: self.record,
        }
    }

    /// What an hour spent on the pitch is expected to bring.
    pub(super) fn roi(&self) -> Option<Roi> {
        self.grounds().roi()
    }
}
