//! Tuning and dispatch tables.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::common::{Place, TINY_SUITE, pitch, tiny_round};
use serde_json::Value;

fn json(place: &Place, arguments: &[&str]) -> Value {
    serde_json::from_str(&place.run(arguments).expect(0).out).unwrap()
}

/// A place with a suite.
fn place() -> Place {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place
}

#[test]
fn the_model_tunes_for_a_device_that_is_not_here() {
    let place = place();
    let arguments = [
        "tune",
        "--suite",
        "suite.toml",
        "--case",
        "two",
        "--executor",
        "model",
    ];
    let tuned = json(
        &place,
        &[&arguments[..], &["--device", "b200", "--json", "-"]].concat(),
    );
    assert_eq!(tuned["predicted"], true);
    let search = &tuned["cases"][0]["search"];
    assert!(search["accepted"].as_u64().unwrap() > 100, "{search}");
    let table = std::fs::read_to_string(place.path("dispatch.toml")).unwrap();
    for said in [
        "executor = \"model\"",
        "device = \"b200\"",
        "evidence = \"predicted\"",
        "case = \"two\"",
    ] {
        assert!(table.contains(said), "{said} is not in\n{table}");
    }
    let ran = place.run(&arguments).expect(2);
    assert!(ran.folded().contains("without a device"), "{}", ran.err);
}

#[test]
fn a_tuned_table_is_written_and_used() {
    let place = place();
    let budget = [
        // More than one candidate can use: the plan ends at its last look.
        "--budget",
        "1h",
        "--keep",
        "1",
        "--baseline",
        "tile = [256, 256, 512], split-k = 1",
    ];
    let tuned = [&["tune", "--suite", "suite.toml", "--case", "one"][..], &budget].concat();
    let ran = place.run(&tuned).expect(0);
    assert!(ran.out.contains("Written to dispatch.toml."), "{}", ran.out);
    let table = place.path("dispatch.toml");
    let text = std::fs::read_to_string(&table).unwrap();
    assert!(
        text.contains("executor = \"cpu\"") && text.contains("[entry.model-choice.schedule]"),
        "{text}"
    );

    // The table's own problem is found; the other one is too far away.
    let bench = [
        "bench",
        "baseline",
        "dispatch:dispatch.toml",
        "--suite",
        "suite.toml",
        "--budget",
        "100ms",
        "--warm",
    ];
    let out = place.run(&bench).expect(0).out;
    let words: Vec<_> = out.split_whitespace().collect();
    assert!(words.join(" ").contains("one, the same problem"), "{out}");

    let later = text.replace("version = 1", "version = 9");
    std::fs::write(&table, later).unwrap();
    let ran = place.run(&bench).expect(2);
    assert!(
        ran.folded()
            .contains("is of version 9 and this program reads version 1"),
        "{}",
        ran.err
    );
    std::fs::remove_file(&table).unwrap();
    assert!(place.run(&bench).expect(2).folded().contains("cannot be read"));
}

#[test]
fn a_budget_that_decides_nothing_is_refused_with_the_one_that_would() {
    let place = place();
    let tune = ["tune", "--suite", "suite.toml", "--budget", "1ms"];
    let ran = place.run(&tune).expect(2);
    let said = ran.folded();
    for phrase in [
        "a budget of 1ms is too short to decide anything",
        "needs 4 pairs",
        "give about",
        "fewer cases",
    ] {
        assert!(said.contains(phrase), "{phrase} is not in\n{}", ran.err);
    }
    assert!(!place.path("dispatch.toml").exists());
}

/// A table whose entries for the two tiny problems differ from any reasonable manual choice.
const TABLE: &str = r#"
version = 1
device = "host"
executor = "cpu"
gauntlet = "by hand"
made = "2026-11-21T00:00:00Z"

[[entry]]
case = "one"
problem = { family = "grouped-gemm", groups = [{ m = 16, n = 64, k = 128 }, { m = 5, n = 48, k = 64 }] }
schedule = { tile = [16, 64, 64], stages = 2 }
evidence = "measured"

[[entry]]
case = "two"
problem = { family = "grouped-gemm", groups = [{ m = 8, n = 96, k = 256 }] }
schedule = { tile = [16, 32, 128], stages = 3 }
evidence = "kept"
"#;

#[test]
fn a_round_takes_a_table_for_a_candidate() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place.write("table.toml", TABLE);
    let pitches = pitch("tuned", "", "dispatch = \"table.toml\"");
    place.write("round.toml", &tiny_round(&pitches));
    let report = json(&place, &["run", "round.toml", "--budget", "1s", "--json", "-"]);
    let judged = &report["rounds"][0]["judged"][0];
    let findings = judged["findings"].as_array().unwrap();
    let found = |gate: &str| findings.iter().find(|finding| finding["gate"] == gate).unwrap();
    for gate in ["feasible", "compiles", "right", "race-free"] {
        assert_eq!(
            found(gate)["outcome"],
            "pass",
            "{gate}: {}",
            found(gate)["reason"]
        );
    }
    // Each schedule of the table is tried on edge cases of its own depth, in addition to the suite's.
    let tried = found("right")["evidence"]["cases"].as_array().unwrap();
    let deep = tried
        .iter()
        .filter(|case| case["case"] == "deep, with tails")
        .count();
    assert_eq!(deep % 2, 0);
    assert!(deep >= 4, "{deep}");

    place.write(
        "round.toml",
        &tiny_round(&pitches.replace("table.toml", "gone.toml")),
    );
    let ran = place.run(&["run", "round.toml"]).expect(2);
    assert!(ran.folded().contains("cannot be read"), "{}", ran.err);
}
