//! Forecasts over whole runs: the recorded tournament's scores, computed by hand; the panel's knowledge of earlier
//! runs; the open candidates.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::{Place, TINY_SUITE, pitch, repository, tiny_round};
use serde_json::Value;

fn json(place: &Place, arguments: &[&str]) -> Value {
    serde_json::from_str(&place.run(arguments).expect(0).out).unwrap()
}

fn replay(place: &Place) -> Value {
    let file = repository("examples/shark-tank/replay.toml");
    json(place, &["run", file.to_str().unwrap(), "--json", "-"])
}

#[track_caller]
fn near(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    assert!((value - expected).abs() < 1e-9, "{value} and not {expected}");
}

fn of<'v>(forecasters: &'v Value, author: &str) -> &'v Value {
    let all = forecasters["authors"].as_array().unwrap();
    all.iter().find(|one| one["author"] == author).unwrap()
}

/// Five forecasts of the record are settled: three stages (regression), the tile of 64 rows twice (infeasible), two
/// buffers (adopt) and the fused softmax (incorrect). The constant forecast: each of nine verdicts counted once more
/// than it occurred, so regression, adopt and incorrect 2/14, infeasible 3/14, five others 1/14. The squares add up to
/// (3 · 4 + 9 + 5 · 1) / 196 = 26/196, and its Brier score is 26/196 − 2p + 1 with the p of the outcome: 166/196 for p
/// = 2/14, 138/196 for p = 3/14; over the five, (3 · 166 + 2 · 138) / 5 / 196 = 774/980.
/// 138/196 where p = 3/14; over the five, (3 · 166 + 2 · 138) / 5 / 196 = 774/980.
#[test]
fn the_record_is_scored_as_by_hand() {
    let place = Place::new();
    replay(&place);
    let scored = json(&place, &["ledger", "forecasters", "--json"]);
    let (rare, often, all) = (166.0 / 196.0, 138.0 / 196.0, 774.0 / 980.0);

    // Pipeline Stages forecast adopt with certainty and got a regression. Brier 1 + 1 = 2; −ln(0.01 / 9).
    let stages = &of(&scored, "Pipeline Stages")["odds"];
    assert_eq!(stages["settled"], 1);
    near(&stages["brier"], 2.0);
    near(&stages["logarithmic"], 900f64.ln());
    near(&stages["skill"], 1.0 - 2.0 / rare);
    // With a single forecast there is no resolution and no uncertainty: the whole score is calibration.
    near(&stages["parts"]["calibration"], 2.0);
    near(&stages["parts"]["uncertainty"], 0.0);

    // Tile Size Tuning gave infeasible zero probability, twice. 0.7² + 0.1² + 0.15² + 0.05² + 1² = 1.525 and 0.8² +
    // 0.15² + 0.05² + 1² = 1.665.
    let tiles = &of(&scored, "Tile Size Tuning")["odds"];
    near(&tiles["brier"], (1.525 + 1.665) / 2.0);
    near(&tiles["logarithmic"], 900f64.ln());
    near(&tiles["skill"], 1.0 - 1.595 / often);

    // Attention log: two buffers, adopt at 0.5 (0.5² + 0.3² + 0.1² + 0.1² = 0.36); the fused softmax, incorrect at 0.3
    // (0.4² + 0.2² + 0.1² + 0.7² = 0.70).
    let attention = &of(&scored, "Attention log")["odds"];
    assert_eq!(attention["settled"], 2);
    near(&attention["brier"], 0.53);
    let log = |odds: f64| -(0.99 * odds + 0.01 / 9.0).ln();
    near(&attention["logarithmic"], (log(0.5) + log(0.3)) / 2.0);
    near(&attention["skill"], 1.0 - 0.53 / rare);
    // Others: 2, 1.525 and 1.665, and the constant forecast for two more: (5.19 + 2 · 774/980) / 5. This has the weight
    // of two next to its own 0.36 and 0.70.
    let others = (5.19 + 2.0 * all) / 5.0;
    near(&attention["shrunk-brier"], (1.06 + 2.0 * others) / 4.0);
    near(
        &attention["shrunk-skill"],
        1.0 - (1.06 + 2.0 * others) / 4.0 / all,
    );
    // Its parts, verdict by verdict, in bins of a fifth. Adopt 0.5 yes and 0.4 no share a bin and so does each other
    // verdict's pair but incorrect (0.1 no, 0.3 yes) and valid negative (0.3 and 0.2, both no): calibration
    // (0.45 − 0.5)² + (0.25 − 0)² + (0.1 − 0)² + (0.1² + 0.7²) / 2 = 0.325. Both outcomes differ: uncertainty ¼ twice.
    let parts = &attention["parts"];
    near(&parts["calibration"], 0.325);
    near(&parts["uncertainty"], 0.5);
    near(&parts["resolution"], 0.325 + 0.5 - 0.53);

    near(
        &scored["field"]["odds"]["brier"],
        (0.36 + 0.70 + 1.525 + 1.665 + 2.0) / 5.0,
    );
    near(&scored["field"]["odds"]["skill"], 1.0 - 1.25 / all);
    let ranked: Vec<_> = scored["authors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["author"])
        .collect();
    assert_eq!(
        ranked[..3],
        ["Attention log", "Tile Size Tuning", "Pipeline Stages"]
    );
}

/// Three stages had claims of 1.5, 1.65 and 1.8×; the finding is the geometric mean of four ratios of recorded times.
#[test]
fn the_claimed_speedup_is_scored_as_by_hand() {
    let place = Place::new();
    replay(&place);
    let scored = json(&place, &["ledger", "forecasters", "--json"]);
    let stages = &of(&scored, "Pipeline Stages")["speedup"];
    let found = [(373.0, 488.0), (372.0, 462.0), (173.0, 249.0), (156.0, 228.0)]
        .map(|(before, after): (f64, f64)| (before / after).ln())
        .iter()
        .sum::<f64>()
        / 4.0;
    let [q10, q50, q90] = [1.5f64.ln(), 1.65f64.ln(), 1.8f64.ln()];
    assert_eq!(
        (&stages["measured"], &stages["coverage"]),
        (&1.into(), &0.0.into())
    );
    near(&stages["bias"], q50 - found);
    for (loss, expected) in stages["pinball"].as_array().unwrap().iter().zip([
        0.9 * (q10 - found),
        0.5 * (q50 - found),
        0.1 * (q90 - found),
    ]) {
        near(loss, expected);
    }
    // The whole claimed distribution lies above the finding: the gap below it, then (1 − F)² under a line from 1 to ½
    // with mean (1 + ½ + ¼) / 3, and one from ½ to 0 with mean ¼ / 3.
    let (least, most) = (q50 - 1.25 * (q50 - q10), q50 + 1.25 * (q90 - q50));
    let crps = (least - found) + (q50 - least) * 1.75 / 3.0 + (most - q50) * 0.25 / 3.0;
    near(&stages["crps"], crps);
    near(&stages["skill"], 1.0 - crps / -found);

    // The part of the next claim's logarithm that is believed: none of 1.65× came true; for the attention log all of
    // 1.05× (found 3.77× and 1.16×), and some of 1.05× (found 656/655) and of 1.075× (found +0.7 % and +0.8 %). Two
    // halves stand for the field.
    let some = (656.0f64 / 655.0).ln() / 1.05f64.ln();
    let little = THREE_STAGES.map(|(before, after): (f64, f64)| (before / after).ln());
    let little = (little[0] + little[1]) / 2.0 / 1.075f64.ln();
    let attention = 1.0 + 1.0 + some + little;
    let record = |author| &of(&scored, author)["record"]["credibility"];
    near(
        record("Pipeline Stages"),
        (0.0 + 2.0 * (attention + 1.0) / 6.0) / 3.0,
    );
    near(
        record("Attention log"),
        (attention + 2.0 * (0.0 + 1.0) / 3.0) / 6.0,
    );
}

/// Recorded microseconds before and after, at both lengths.
const THREE_STAGES: [(f64, f64); 2] = [(698.37, 693.25), (6672.38, 6617.06)];

#[test]
fn played_again_it_is_ranked_the_same_and_counted_once() {
    let place = Place::new();
    let (first, once) = (
        replay(&place),
        place.run(&["ledger", "forecasters"]).expect(0).out,
    );
    let (second, twice) = (
        replay(&place),
        place.run(&["ledger", "forecasters"]).expect(0).out,
    );
    for round in 0..first["rounds"].as_array().unwrap().len() {
        assert_eq!(
            first["rounds"][round]["ranking"],
            second["rounds"][round]["ranking"]
        );
    }
    assert_eq!(first["prospects"], second["prospects"]);
    assert_eq!(once, twice);
    assert!(
        once.contains("Attention log") && once.contains("the field") && once.contains("Brier:"),
        "{once}"
    );
}

#[test]
fn the_panel_knows_what_became_of_earlier_runs() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    let refused = pitch("bold", "cluster = [2, 1]", "");
    place.write(
        "first.toml",
        &tiny_round(&refused).replace("\"tiny\"", "\"first\""),
    );
    let later = pitch("modest", "cluster = [4, 1]", "");
    place.write(
        "second.toml",
        &tiny_round(&later).replace("\"tiny\"", "\"second\""),
    );
    let record = |place: &Place| {
        let report = json(place, &["run", "second.toml", "--json", "-"]);
        report["rounds"][0]["ranking"]["standings"][0]["record"].clone()
    };
    let unknown = record(&place);
    assert_eq!(
        (&unknown["settled"], &unknown["stop-rate"]),
        (&0.into(), &0.25.into())
    );
    place.run(&["run", "first.toml"]).expect(0);
    let known = record(&place);
    // The earlier outcome of its own file is not known, but that of the other file is: (2 · ¼ + 1) / 3 instead of ¼.
    assert_eq!((&known["settled"], &known["stopped"]), (&1.into(), &1.into()));
    near(&known["stop-rate"], 0.5);
}

#[test]
fn what_to_try_next_is_one_command_away() {
    let place = Place::new();
    place.run(&["ledger", "next"]).expect(2);
    let report = replay(&place);
    let next = json(&place, &["ledger", "next", "--json"]);
    assert_eq!(next, report["prospects"]);
    let names: Vec<_> = next
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["pitch"].as_str().unwrap())
        .collect();
    // A comparison with the open interval +2 to +32 % is worth more than any claim; withdrawn and settled ones are not
    // listed.
    assert_eq!(names[0], "wmma-pv");
    for gone in ["pipeline-stages", "tile-size", "two-stages", "fused-softmax"] {
        assert!(!names.contains(&gone), "{names:?}");
    }
    let text = place.run(&["ledger", "next"]).expect(0).out;
    assert!(text.contains("wmma-pv") && text.contains("%/h:"), "{text}");
    let run = report["run"].as_str().unwrap();
    assert_eq!(json(&place, &["ledger", "next", run, "--json"]), next);
    place.run(&["ledger", "next", "no-such-run"]).expect(2);
}
