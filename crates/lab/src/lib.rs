//! The lab: pitches enter rounds, a panel ranks them, gates examine them cheapest first, verdicts fall, and a ledger
//! keeps all of it.
//!
//! The way of the data: files ([`Tournament::load`]) → [`play`] → panel → gates → [`Verdict`] → [`ledger`] →
//! [`TournamentReport`].

mod abort;
mod calibration;
mod candidate;
mod claims;
mod comparison;
mod error;
mod finding;
pub mod forecast;
pub mod gates;
pub mod instruments;
mod journal;
pub mod ledger;
mod observer;
mod operands;
mod outcome;
pub mod panel;
mod pitch;
mod plan;
mod play;
mod predicted;
mod round;
mod source;
mod sweep;
mod tournament;
mod traced;
pub mod tuning;
pub mod validation;
mod verdict;
mod workers;
mod workshop;

pub use abort::{AbortRule, Condition, METRICS, Metrics};
pub use calibration::{Thoroughness, calibrate};
pub use candidate::Candidate;
pub use comparison::{Around, CaseTimes, Comparison, Conduct, Look, Spent, Suspicion, Unaccounted, measure};
pub use error::LabError;
pub use finding::{CaseErrors, CaseFlaw, CaseViolation, Evidence, Finding, Outcome, Prediction, Profile};
pub use journal::Journal;
pub use observer::{Blind, Narrowing, Observer};
pub use outcome::{BaselineReport, ClaimOutcome, Judged, PeerOutcome, RoundReport, TournamentReport};
pub use pitch::{
    Claim, Cost, Evidence as PitchEvidence, EvidenceKind, Fallback, Odds, PeerClaim, Pitch, Quantiles, Risk,
    RiskLevel,
};
pub use plan::{Alone, CaseTime, Left, Plan, Step};
pub use play::{Settings, play};
pub use predicted::{HostCost, HostError};
pub use round::{
    Baseline, Correctness, ExecutorKind, GivenScores, Judge, Measurement, Overrides, Round, RoundFile,
    Weights, digest_of,
};
pub use source::{FileError, Source};
pub use sweep::{Fault, Sweep, SweepPoint, SweepReport, sweep};
pub use tournament::Tournament;
pub use traced::traced;
pub use verdict::Verdict;
pub use workers::{CudaWorker, Workers};
pub use workshop::Workshop;
