//! What the panel has in front of it about one pitch.

use serde::{Deserialize, Serialize};

use crate::pitch::Pitch;

/// A pitch and what is known about it before anything is built.
#[derive(Debug, Clone)]
pub struct Dossier<'a> {
    /// What the contestant says.
    pub pitch: &'a Pitch,
    /// The device's rules that it breaks, in words; empty if it may run.
    pub violations: Vec<String>,
    /// What the model expects of it, where there is a model.
    pub predicted: Option<Prediction>,
    /// The baseline's estimated time over the roofline's: the most that any change of the kernel could bring.
    pub headroom: Option<f64>,
    /// How the contestant fared before.
    pub history: History,
}

/// A speed-up over the baseline as the model sees it, with its own error bar; 1.5 means one and a half times
/// as fast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// One chance in ten of less.
    pub low: f64,
    /// As likely more as less.
    pub middle: f64,
    /// One chance in ten of more.
    pub high: f64,
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
