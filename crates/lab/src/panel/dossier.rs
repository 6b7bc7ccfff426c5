//! What the panel has in front of it about one pitch.

use serde::{Deserialize, Serialize};

use crate::finding::Prediction;
use crate::pitch::Pitch;

/// A pitch and what is known about it before anything is built.
#[derive(Debug, Clone)]
pub struct Dossier<'a> {
    /// What the contestant says.
    pub pitch: &'a Pitch,
    /// The device's rules that it breaks, in words; empty if it may run.
    pub violations: Vec<String>,
    /// What the model expects of it and of any kernel at most, where there is a model.
    pub predicted: Option<Prediction>,
    /// How the contestant fared before.
    pub history: History,
}

/// What became of a contestant's earlier pitches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Pitches with a settled verdict.
    pub settled: usize,
    /// Of these, adopted.
    pub adopted: usize,
    /// Of these, the ones that came as far as a measured speed-up.
    pub claims: Vec<PastClaim>,
}

/// A claim that was put to the test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PastClaim {
    /// The claim's median speed-up.
    pub claimed: f64,
    /// The speed-up measured.
    pub measured: f64,
}
