use proptest::prelude::*;

use super::*;
use gauntlet_device::Accuracy;

use crate::forecast::TrackRecord;
use crate::panel::fixture::{dossier, pitch};
use crate::pitch::{Cost, Evidence, Odds};
use gauntlet_judge::Prediction;

fn with_odds(odds: &[(Verdict, f64)]) -> Pitch {
    let mut pitch = pitch("any");
    pitch.odds = Odds::try_from(odds.iter().copied().collect::<std::collections::BTreeMap<_, _>>()).unwrap();
    pitch
}

fn claiming(q10: f64, q50: f64, q90: f64) -> Pitch {
    let mut pitch = pitch("any");
    pitch.claim.speedup = Quantiles { q10, q50, q90 };
    pitch
}

#[test]
fn half_of_a_strangers_claim_is_believed() {
    let four_times = claiming(2.0, 4.0, 5.0);
    let score = speedup(&dossier(&four_times));
    assert!((score.value - 5.0).abs() < 1e-12, "{score:?}");
    assert!(
        score.reason.contains("4.00×") && score.reason.contains("2.00× expected"),
        "{}",
        score.reason
    );
    assert_eq!(speedup(&dossier(&claiming(0.5, 0.9, 1.0))).value, 0.0);
}

#[test]
fn a_record_moves_the_belief_both_ways() {
    let bold = claiming(2.0, 4.0, 5.0);
    let believing = |credibility| {
        let record = TrackRecord {
            credibility,
            ..TrackRecord::default()
        };
        speedup(&Dossier {
            record,
            ..dossier(&bold)
        })
        .value
    };
    // A half, a third and two thirds as shares of ln 4.
    for part in [0.5, 1.0 / 3.0, 2.0 / 3.0] {
        assert!((believing(part) - 10.0 * part).abs() < 1e-9);
    }
}

#[test]
fn the_feasibility_of_one_who_was_stopped_before_is_less() {
    let any = pitch("any");
    let with = |stop_rate| {
        let record = TrackRecord {
            settled: 2,
            stopped: 2,
            stop_rate,
            ..TrackRecord::default()
        };
        feasibility(&Dossier {
            record,
            ..dossier(&any)
        })
    };
    // An unknown author's pitches survive in three of four cases.
    assert_eq!(with(0.25).value, 9.0);
    assert_eq!(with(0.1).value, 9.0, "a clean record makes no work shorter");
    let (half, reason) = (with(0.625).value, with(0.625).reason);
    assert!(
        (half - 4.5).abs() < 1e-12 && reason.contains("2 of the author's 2"),
        "{half} {reason}"
    );
}

fn expecting(low: f64, middle: f64, high: f64, headroom: f64) -> Option<Prediction> {
    Some(Prediction {
        low,
        middle,
        high,
        headroom,
        accuracy: Some(Accuracy {
            points: 200,
            mean_error: Some(0.1),
            rank_correlation: [0.95; 2],
            regret: [0.02; 2],
            regret_of_constant_rule: None,
        }),
    })
}

#[test]
fn a_model_that_was_not_validated_moves_no_score() {
    let bold = claiming(2.0, 4.0, 5.0);
    let without = speedup(&dossier(&bold));
    let unvalidated = expecting(0.99, 1.0, 1.01, 1.0).map(|prediction| Prediction {
        accuracy: None,
        ..prediction
    });
    let with = speedup(&Dossier {
        predicted: unvalidated,
        ..dossier(&bold)
    });
    assert_eq!(with.value, without.value);
    assert!(
        with.reason.contains("the model's 1.00× does not count")
            && with.reason.contains("not validated on this device"),
        "{}",
        with.reason
    );
}

#[test]
fn a_sharp_model_outweighs_a_claim_and_the_roofline_caps_both() {
    let bold = claiming(2.0, 4.0, 5.0);
    let with = |predicted| {
        speedup(&Dossier {
            predicted,
            ..dossier(&bold)
        })
    };
    let (sharp, vague) = (
        with(expecting(0.99, 1.0, 1.01, 9.0)),
        with(expecting(0.2, 1.0, 5.0, 9.0)),
    );
    assert!(
        sharp.value < 0.1 && vague.value > sharp.value + 1.0,
        "{sharp:?} {vague:?}"
    );
    let capped = with(expecting(0.2, 1.0, 5.0, 1.1));
    assert!((capped.value - 10.0 * 1.1f64.ln() / 4f64.ln()).abs() < 1e-12);
    assert!(capped.reason.contains("capped at the 1.10×"), "{}", capped.reason);
    assert_eq!(with(expecting(0.2, 1.0, 5.0, 0.9)).value, 0.0);
}

#[test]
fn what_the_device_forbids_is_not_feasible_however_cheap() {
    let cheap = pitch("any");
    let broken = vec!["tile.m = 64: M must be 128".to_owned(), "another".to_owned()];
    let score = feasibility(&Dossier {
        violations: broken,
        ..dossier(&cheap)
    });
    assert_eq!(score.value, 0.0);
    assert!(
        score.reason.contains("tile.m = 64") && score.reason.contains("1 more"),
        "{}",
        score.reason
    );
}

#[test]
fn feasibility_follows_the_shark_tanks_judge() {
    for (hours, given) in [(0.5, 9.5), (16.0, 7.0), (28.0, 6.0), (160.0, 4.0)] {
        let mut costly = pitch("any");
        costly.cost = Cost { hours };
        let score = feasibility(&dossier(&costly)).value;
        assert!(
            (score - given).abs() < 0.7,
            "{hours} h: {score}, the judge gives {given}"
        );
    }
}

#[test]
fn no_risk_at_all_is_distrusted() {
    let mut certain = with_odds(&[(Verdict::Adopt, 1.0)]);
    certain.risk.level = RiskLevel::None;
    let mut modest = with_odds(&[(Verdict::Adopt, 0.9), (Verdict::Regression, 0.1)]);
    modest.risk.level = RiskLevel::Low;
    assert!(is_overconfident(&certain) && !is_overconfident(&modest));
    assert!(risk(&certain).value < risk(&modest).value);
    assert!(risk(&certain).reason.contains("35 %"));
}

#[test]
fn giving_up_by_ones_own_rules_is_no_harm() {
    let careful = with_odds(&[
        (Verdict::Aborted, 0.6),
        (Verdict::Marginal, 0.3),
        (Verdict::Incorrect, 0.1),
    ]);
    assert!((chance_of_harm(&careful) - 0.1).abs() < 1e-12);
}

#[test]
fn the_best_argued_pitch_gets_all_points_and_the_barest_almost_none() {
    let mut best = with_odds(&[(Verdict::Adopt, 0.6), (Verdict::Regression, 0.4)]);
    let said = |kind| Evidence {
        kind,
        text: "said".to_owned(),
    };
    best.evidence = [
        EvidenceKind::Measurement,
        EvidenceKind::Profile,
        EvidenceKind::Calculation,
    ]
    .map(said)
    .to_vec();
    best.claim.speedup = Quantiles {
        q10: 1.0,
        q50: 1.2,
        q90: 1.4,
    };
    assert!(
        (quality(&best).value - 10.0).abs() < 1e-12,
        "{:?}",
        quality(&best)
    );
    let mut barest = with_odds(&[(Verdict::Adopt, 1.0)]);
    barest.evidence = vec![said(EvidenceKind::Intuition)];
    barest.abort.clear();
    barest.fallback.schedule = None;
    barest.claim.speedup = Quantiles {
        q10: 2.0,
        q50: 2.0,
        q90: 2.0,
    };
    assert!(
        (quality(&barest).value - 0.4 - WORDS_FOR_FALLBACK).abs() < 1e-12,
        "{:?}",
        quality(&barest)
    );
}

proptest! {
    #[test]
    fn more_cost_never_raises_feasibility(hours in 0.0..2000.0f64, more in 0.0..2000.0f64) {
        let (mut cheap, mut costly) = (pitch("any"), pitch("any"));
        cheap.cost = Cost { hours };
        costly.cost = Cost { hours: hours + more };
        prop_assert!(feasibility(&dossier(&costly)).value <= feasibility(&dossier(&cheap)).value);
    }

    #[test]
    fn a_greater_claim_never_lowers_and_a_lower_roofline_never_raises_the_speedup(
        claimed in 0.5..8.0f64,
        factor in 1.0..4.0f64,
        headroom in 0.5..8.0f64,
        middle in 0.5..4.0f64,
    ) {
        // Equally wide ranges: a vaguer claim has less weight beside the model.
        let around = |middle: f64| claiming(middle / 1.2, middle, middle * 1.2);
        let (less, more) = (around(claimed), around(claimed * factor));
        let expecting = |headroom| expecting(middle / 1.3, middle, middle * 1.3, headroom);
        let of = |pitch, headroom| speedup(&Dossier { predicted: expecting(headroom), ..dossier(pitch) }).value;
        prop_assert!(of(&more, headroom) >= of(&less, headroom) - 1e-12);
        prop_assert!(of(&more, headroom / factor) <= of(&more, headroom) + 1e-12);
    }

    #[test]
    fn more_harm_never_raises_the_risk_score(harm in 0.01..1.0f64, part in 0.0..1.0f64) {
        let odds = |harm: f64| with_odds(&[(Verdict::Adopt, 1.0 - harm), (Verdict::Regression, harm)]);
        prop_assert!(risk(&odds(harm)).value <= risk(&odds(0.01 + (harm - 0.01) * part)).value + 1e-12);
    }

    #[test]
    fn every_score_lies_between_0_and_10(
        claimed in 0.01..100.0f64,
        hours in 0.0..1e6f64,
        credibility in 0.0..1.0f64,
        error in 0.01..3.0f64,
        stop_rate in 0.0..1.0f64,
        headroom in 0.1..100.0f64,
    ) {
        let mut any = claiming(claimed / 2.0, claimed, claimed * 2.0);
        any.cost = Cost { hours };
        let record = TrackRecord { credibility, error, stop_rate, ..TrackRecord::default() };
        let predicted = expecting(0.5, 1.0, 2.0, headroom);
        let all = scores(&Dossier { predicted, record, ..dossier(&any) });
        for score in [all.speedup, all.feasibility, all.risk, all.quality] {
            prop_assert!((0.0..=10.0).contains(&score.value), "{score:?}");
        }
    }
}
