//! Pitches and judges for the panel's tests.

use crate::forecast::TrackRecord;
use crate::panel::Dossier;
use crate::pitch::Pitch;
use crate::round::{GivenScores, PanelMember, Weights};

/// An average pitch: 1.2× claimed, one hour, 20 % odds of harm, an abort rule and a concrete fallback.
pub(crate) fn pitch(name: &str) -> Pitch {
    let text = format!(
        r#"
        name = "{name}"
        author = "someone"
        problem = "slow"
        change = "another stage"
        schedule = {{ stages = 2 }}
        claim.speedup = {{ q10 = 1.05, q50 = 1.2, q90 = 1.4 }}
        odds = {{ adopt = 0.5, valid-negative = 0.3, regression = 0.2 }}
        cost.hours = 1
        risk = {{ level = "low", why = "little" }}
        evidence = [{{ kind = "calculation", text = "counted" }}]
        abort = [{{ when = "predicted.speedup < 0.9", why = "pointless" }}]
        fallback = {{ plan = "two stages", schedule = {{ stages = 1 }} }}
        "#
    );
    toml::from_str(&text).unwrap()
}

/// A pitch about which nothing else is known.
pub(super) fn dossier(pitch: &Pitch) -> Dossier<'_> {
    Dossier {
        pitch,
        violations: Vec::new(),
        predicted: None,
        record: TrackRecord::default(),
    }
}

/// A judge with the usual weights.
pub(super) fn judge(name: &str, scores: &[(&str, GivenScores)]) -> PanelMember {
    PanelMember {
        name: name.to_owned(),
        weights: Weights {
            speedup: 0.40,
            feasibility: 0.25,
            risk: 0.20,
            quality: 0.15,
        },
        scores: scores
            .iter()
            .map(|(pitch, given)| ((*pitch).to_owned(), *given))
            .collect(),
    }
}

/// Scores for speed-up, feasibility, risk and quality, and the printed total.
pub(super) fn scores([speedup, feasibility, risk, quality]: [f64; 4], printed: Option<f64>) -> GivenScores {
    GivenScores {
        speedup: Some(speedup),
        feasibility: Some(feasibility),
        risk: Some(risk),
        quality: Some(quality),
        printed,
    }
}
