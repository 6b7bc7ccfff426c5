//! Tournaments: pitches enter rounds, a panel ranks them, the judge examines them and gives verdicts, and the adopted
//! candidate becomes the next baseline.
//!
//! Data flow: files ([`Tournament::load`]) → [`play`] → panel → [`gauntlet_judge`] → verdicts and ledger →
//! [`TournamentReport`].
//!
//! ```
//! use std::path::Path;
//!
//! use gauntlet_tournament::{Overrides, Tournament};
//!
//! let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/b200/staircase.toml");
//! let tournament = Tournament::load(&file, &Overrides::default())?;
//! assert_eq!(tournament.rounds[0].pitches[0].name, "set-up-once");
//! # Ok::<(), gauntlet_entrants::EntrantError>(())
//! ```

mod claims;
mod errand;
mod error;
pub mod forecast;
mod messages;
mod observer;
mod outcome;
pub mod panel;
mod participants;
mod pitch;
mod play;
mod records;
mod round;
mod source;
mod tournament;

pub use errand::{Done, Elsewhere, Errand, Promise};
pub use error::TournamentError;
pub use messages::{
    Answering, Answers, Asking, Build, Deal, Lesson, Message, PROTOCOL, Phase, Pitching, Research, Voting,
};
pub use observer::RoundObserver;
pub use outcome::{BaselineReport, ClaimOutcome, Factor, Judged, PeerOutcome, RoundReport, TournamentReport};
pub use pitch::{
    Claim, Cost, Evidence as PitchEvidence, EvidenceKind, Fallback, Odds, PeerClaim, Pitch, Quantiles, Risk,
    RiskLevel,
};
pub use play::{Settings, play};
pub use records::{Notice, RoundEnded, RoundStarted, UnreadableRun, VerdictRecord};
pub use round::{Baseline, GivenScores, Overrides, PanelMember, Round, RoundFile, Weights, digest_of};
pub use tournament::{Tournament, TournamentFile};
