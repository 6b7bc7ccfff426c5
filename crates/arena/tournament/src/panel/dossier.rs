//! The panel's information about one pitch.

use crate::forecast::{Grounds, Roi, TrackRecord};
use crate::pitch::Pitch;
use gauntlet_judge::Prediction;

/// A pitch and what is known about it before anything is built.
#[derive(Debug, Clone)]
pub struct Dossier<'a> {
    /// The pitch itself.
    pub pitch: &'a Pitch,
    /// The device's rules that it breaks, in words; empty if it can run.
    pub violations: Vec<String>,
    /// The model's prediction, if there is a model. It counts only where it may be relied on.
    pub predicted: Option<Prediction>,
    /// The author's track record.
    pub record: TrackRecord,
}

impl Dossier<'_> {
    /// The inputs of an expectation before anything is measured.
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

    /// The expected return on an hour spent on the pitch.
    pub(super) fn roi(&self) -> Option<Roi> {
        self.grounds().roi()
    }
}
