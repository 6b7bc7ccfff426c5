//! Progress reports: what happens while a round is played.

use gauntlet_judge::{Blind, Observer};

use crate::messages::Message;
use crate::outcome::{Judged, RoundReport};
use crate::panel::Ranking;
use crate::round::Round;

/// Receives a round's events beyond the examination of each candidate. Every method has an empty default.
pub trait RoundObserver: Observer {
    /// A round begins.
    fn round_begins(&self, _round: &Round) {}
    /// The panel has ranked the pitches.
    fn ranked(&self, _ranking: &Ranking) {}
    /// A contestant or a panellist is asked something.
    fn asks(&self, _who: &str, _what: &str) {}
    /// There is an answer, or none.
    fn answered(&self, _message: &Message) {}
    /// A candidate has its verdict.
    fn judged(&self, _judged: &Judged) {}
    /// A round is over.
    fn round_ends(&self, _report: &RoundReport) {}
}

impl RoundObserver for Blind {}
