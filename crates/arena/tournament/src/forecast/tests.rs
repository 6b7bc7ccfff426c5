//! Scores and records over hand-made forecasts.

use std::collections::BTreeMap;

use gauntlet_stats::declared_interval;
use serde_json::json;

use super::*;
use crate::pitch::{Odds, Quantiles};
use gauntlet_judge::ExecutorKind;
use gauntlet_judge::Prediction;
use gauntlet_judge::Verdict;
use gauntlet_judge::ledger::{Entry, RunId};

fn forecast(author: &str, identity: &str, chances: &[(Verdict, f64)], claimed: f64) -> Forecast {
    Forecast {
        author: author.to_owned(),
        identity: identity.to_owned(),
        scope: Scope {
            executor: ExecutorKind::Replay,
            device: "b200".to_owned(),
            suite: "group-gemm".to_owned(),
        },
        round_digest: "digest".to_owned(),
        odds: Odds::try_from(chances.iter().copied().collect::<BTreeMap<_, _>>()).unwrap(),
        speedup: Quantiles {
            q10: claimed / 1.1,
            q50: claimed,
            q90: claimed * 1.1,
        },
        hours: 2.0,
        predicted: None,
        forbidden: false,
        changes_something: true,
        withdrawn: false,
        fallback: None,
    }
}

fn answer(forecast: Forecast, verdict: Verdict, found: Option<f64>) -> Answer {
    Answer {
        run: RunId::new("20260314-150926-a1b2c3"),
        round: "one".to_owned(),
        pitch: "a pitch".to_owned(),
        forecast,
        verdict,
        reason: "because".to_owned(),
        examined: true,
        found: found.map(|found| declared_interval(found, 1.0, 0.01).unwrap()),
    }
}

fn all(answers: &[Answer]) -> Forecasts {
    let mut forecasts = Forecasts::default();
    for answer in answers {
        forecasts.add(answer.clone());
    }
    forecasts
}

const SURE: &[(Verdict, f64)] = &[(Verdict::Adopt, 1.0)];

fn entry(answer: &Answer, sequence: u64) -> Entry {
    serde_json::from_value(json!({
        "sequence": sequence, "at": "2026-03-14T15:09:26Z", "run": answer.run, "kind": "verdict",
        "round": answer.round, "pitch": answer.pitch, "gate": null, "digest": "",
        "body": {
            "verdict": answer.verdict, "reason": answer.reason, "forecast": answer.forecast, "claim": {},
            "examined": answer.examined, "found": answer.found,
        },
    }))
    .unwrap()
}

#[test]
fn an_answer_survives_the_ledger() {
    let mut one = forecast(
        "Ada",
        "stages",
        &[(Verdict::Adopt, 0.7), (Verdict::Racy, 0.3)],
        1.7,
    );
    one.predicted = Some(Prediction {
        low: 0.3,
        middle: 1.1,
        high: 4.0,
        headroom: 9.0,
        accuracy: None,
    });
    one.fallback = Some(UntriedFallback {
        plan: "less".to_owned(),
        predicted: None,
        forbidden: true,
    });
    let one = answer(one, Verdict::Marginal, Some(1.01));
    assert_eq!(Answer::of_entry(&entry(&one, 1)), Some(one));
}

#[test]
fn records_of_earlier_versions_are_counted_and_not_scored() {
    let mut old = entry(
        &answer(forecast("Ada", "stages", SURE, 2.0), Verdict::Adopt, None),
        1,
    );
    let mut fallback = old.clone();
    old.record.body =
        json!({ "verdict": "adopt", "reason": "", "contestant": "Ada", "claim": { "found": 2.0 } });
    fallback.record.body = json!({ "verdict": "adopt", "reason": "", "contestant": "Ada", "claim": null });
    let mut otherwise = entry(
        &answer(forecast("Ada", "stages", SURE, 2.0), Verdict::Adopt, None),
        2,
    );
    otherwise.record.body["forecast"]["odds"] = json!("even");
    let mut unknown = otherwise.clone();
    unknown.record.body = json!({ "verdict": "shelved", "reason": "", "contestant": "Ada", "claim": {} });
    let mut unknown_fallback = unknown.clone();
    unknown_fallback.record.body["claim"] = json!(null);
    let forecasts = Forecasts::of_entries(&[old, fallback, otherwise, unknown, unknown_fallback]);
    assert_eq!(forecasts.iter().count(), 0);
    assert_eq!((forecasts.without_forecast, forecasts.unreadable), (1, 2));
}

#[test]
fn the_same_forecast_counts_once_by_its_latest_answer() {
    let stated = || forecast("Ada", "stages", SURE, 2.0);
    let played = [
        answer(stated(), Verdict::Inconclusive, Some(1.1)),
        answer(stated(), Verdict::Adopt, Some(1.5)),
        answer(stated(), Verdict::Regression, Some(0.9)),
        answer(stated(), Verdict::Blocked, None),
    ];
    let forecasts = all(&played);
    assert_eq!(forecasts.iter().collect::<Vec<_>>(), [&played[2]]);
    // Another claim, another device or another author makes it a different forecast.
    let mut elsewhere = stated();
    elsewhere.scope.device = "h200".to_owned();
    let others = [
        forecast("Ada", "stages", SURE, 1.9),
        elsewhere,
        forecast("Grace", "stages", SURE, 2.0),
    ];
    let mut many = played.to_vec();
    many.extend(others.map(|other| answer(other, Verdict::Adopt, None)));
    assert_eq!(all(&many).iter().count(), 4);
}

#[test]
fn a_lone_author_is_shrunk_toward_what_is_assumed() {
    // One claim of 2× that came true: (2 · ½ + 1) / 3 of the next claim is believed. One settled and not stopped: (2 ·
    // ¼ + 0) / 3. With two thirds of ln 2 believed, it missed by ln 2 / 3.
    let record = all(&[answer(
        forecast("Ada", "stages", SURE, 2.0),
        Verdict::Adopt,
        Some(2.0),
    )])
    .record_of("Ada");
    assert!((record.credibility - 2.0 / 3.0).abs() < 1e-9);
    assert!((record.stop_rate - 0.5 / 3.0).abs() < 1e-12);
    let variance = 2f64.ln().powi(2);
    assert!((record.error.powi(2) - (2.0 * variance + variance / 9.0) / 3.0).abs() < 1e-9);
    assert_eq!((record.settled, record.adopted, record.measured), (1, 1, 1));
    // An unknown author in the same field: (2 · ½ + 1) / 3 is expected of every author.
    let forecasts = all(&[answer(
        forecast("Ada", "stages", SURE, 2.0),
        Verdict::Adopt,
        Some(2.0),
    )]);
    assert!((forecasts.record_of("Grace").credibility - 2.0 / 3.0).abs() < 1e-9);
}

#[test]
fn records_move_both_ways_and_nobody_is_believed_beyond_their_word() {
    let after = |found: f64| {
        all(&[answer(
            forecast("Ada", "stages", SURE, 2.0),
            Verdict::Adopt,
            Some(found),
        )])
        .record_of("Ada")
    };
    assert!(after(0.9).credibility < 0.5 && after(1.9).credibility > 0.5);
    assert!((after(2.0).credibility - after(8.0).credibility).abs() < 1e-9);
    assert!(after(8.0).error > after(2.0).error, "and yet the miss counts");
    let modest = all(&[answer(
        forecast("Ada", "stages", SURE, 0.9),
        Verdict::Regression,
        Some(0.95),
    )]);
    assert!(modest.record_of("Ada").credibility > 0.5);
}

#[test]
fn void_and_open_verdicts_score_no_odds() {
    let forecasts = all(&[
        answer(
            forecast("Ada", "one", SURE, 2.0),
            Verdict::Inconclusive,
            Some(1.5),
        ),
        answer(forecast("Ada", "two", SURE, 2.0), Verdict::Blocked, None),
    ]);
    let ada = &forecasts.forecasters().authors[0];
    assert_eq!((ada.forecasts, ada.odds), (2, None));
    assert_eq!(
        ada.speedup.unwrap().measured,
        1,
        "an interval tests the quantiles whatever the verdict"
    );
}

#[test]
fn what_is_open_is_ranked_and_what_is_settled_is_not() {
    let mut cheap = answer(forecast("Ada", "cheap", SURE, 1.3), Verdict::Blocked, None);
    cheap.forecast.hours = 0.5;
    let costly = answer(forecast("Ada", "costly", SURE, 1.3), Verdict::Inconclusive, None);
    let done = answer(forecast("Ada", "done", SURE, 1.3), Verdict::Adopt, Some(1.3));
    let mut again = answer(forecast("Grace", "done", SURE, 1.4), Verdict::Blocked, None);
    again.examined = false;
    let mut idle = answer(forecast("Ada", "idle", SURE, 1.4), Verdict::Blocked, None);
    idle.forecast.changes_something = false;
    let revised = answer(forecast("Ada", "costly", SURE, 1.2), Verdict::Blocked, None);
    let latest = [costly, cheap, done, again, idle, revised];
    let open: Vec<_> = prospects(&latest, &latest[0].run, &all(&latest))
        .into_iter()
        .map(|one| one.roi.hours)
        .collect();
    assert_eq!(
        open,
        [0.5, 2.0],
        "the cheap one, and the costly one once, as last stated"
    );
}

#[test]
fn a_later_run_closes_what_an_earlier_one_left_open() {
    let open = answer(
        forecast("Ada", "stages", SURE, 1.3),
        Verdict::Inconclusive,
        Some(1.1),
    );
    let later = |verdict| Answer {
        run: RunId::new("20270101-000000-000000"),
        ..answer(forecast("Ada", "stages", SURE, 1.2), verdict, Some(1.1))
    };
    let count = |answers: &[Answer]| prospects(answers, &open.run, &all(answers)).len();
    assert_eq!(count(&[open.clone(), later(Verdict::Blocked)]), 1);
    assert_eq!(count(&[open.clone(), later(Verdict::Marginal)]), 0);
    assert_eq!(
        count(&[later(Verdict::Blocked)]),
        0,
        "it never came up in that run"
    );
    let mut withdrawn = open.clone();
    withdrawn.forecast.withdrawn = true;
    assert_eq!(count(&[withdrawn]), 0);
}

#[test]
fn what_its_own_record_refutes_elsewhere_comes_last() {
    let open = |author: &str, identity: &str, claim| {
        let forecast = forecast(author, identity, SURE, claim);
        answer(forecast, Verdict::Inconclusive, None)
    };
    let mut refuted = answer(
        forecast("Ada", "stages", SURE, 1.5),
        Verdict::Regression,
        Some(0.7),
    );
    refuted.forecast.scope.device = "another device".to_owned();
    refuted.round = "earlier".to_owned();
    let mut modest = open("Bea", "order", 1.05);
    modest.pitch = "b pitch".to_owned();
    let answers = [refuted, open("Ada", "stages", 1.5), modest];
    let found = prospects(&answers, &answers[0].run, &all(&answers));
    let names: Vec<_> = found.iter().map(|one| one.author.as_str()).collect();
    assert_eq!(names, ["Bea", "Ada"], "{found:?}");
    assert!(
        found[1].reason.starts_with("regression in earlier; here: "),
        "{}",
        found[1].reason
    );
}

#[test]
fn what_was_compared_once_is_not_forgotten() {
    let compared = answer(
        forecast("Ada", "stages", SURE, 2.0),
        Verdict::Inconclusive,
        Some(1.01),
    );
    let lately = answer(forecast("Ada", "stages", SURE, 2.0), Verdict::Blocked, None);
    let both = [compared, lately];
    let open = prospects(&both, &both[0].run, &all(&both));
    assert!(
        open[0].roi.chance == 1.0 && open[0].roi.speedup.mean < 0.02,
        "{open:?}"
    );
}

#[test]
fn an_untried_fallback_is_open_beside_its_pitch() {
    let mut barred = answer(forecast("Ada", "stages", SURE, 1.3), Verdict::Aborted, None);
    barred.forecast.fallback = Some(UntriedFallback {
        plan: "two stages".to_owned(),
        predicted: None,
        forbidden: false,
    });
    let names = |answer: &Answer| {
        let only = std::slice::from_ref(answer);
        let open = prospects(only, &answer.run, &all(only));
        open.into_iter().map(|one| one.pitch).collect::<Vec<_>>()
    };
    assert_eq!(names(&barred), ["a pitch", "a pitch (fallback)"]);
    // The fallback of a pitch that was examined and failed has already been tried.
    barred.verdict = Verdict::Inconclusive;
    assert_eq!(names(&barred), ["a pitch"]);
}
