//! Tuning, dispatch tables, and rounds played with the model.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::common::{Place, TINY_SUITE, pitch, repository, tiny_round};
use serde_json::Value;

fn json(place: &Place, arguments: &[&str]) -> Value {
    serde_json::from_str(&place.run(arguments).expect(0).out).unwrap()
}

/// A place with a round of two pitches: one makes the set-up once, the other is impossible on a B200.
fn place() -> Place {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    let pitches = pitch("once", "setup = \"once\"", "") + &pitch("odd", "tile = [96, 64, 256]", "");
    place.write(
        "round.toml",
        &tiny_round(&pitches).replace("[16, 32, 64]", "[128, 64, 128]"),
    );
    place
}

const PREDICTED: [&str; 6] = ["run", "round.toml", "--executor", "model", "--device", "b200"];

#[test]
fn a_predicted_round_is_marked_everywhere_and_measures_nothing() {
    let place = place();
    let ran = place
        .run(
            &[
                &PREDICTED[..],
                &["--host", "constant=1ms per-group=35us", "--html", "page.html"],
            ]
            .concat(),
        )
        .expect(0);
    for said in [
        "predicted by the model, nothing was run",
        "✓ adopt (predicted)",
        "✗ infeasible (predicted)",
        "→ adopted: once (predicted)",
        "What to do first (predicted)",
    ] {
        assert!(ran.out.contains(said), "{said} is not in\n{}", ran.out);
    }
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains("What to do first") && page.contains("<b>once</b> (predicted)"));

    let export = place.run(&["ledger", "export"]).expect(0).out;
    let records: Vec<Value> = export
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let verdicts: Vec<_> = records
        .iter()
        .filter(|record| record["kind"] == "verdict")
        .collect();
    assert_eq!(verdicts.len(), 2);
    assert!(
        verdicts
            .iter()
            .all(|verdict| verdict["body"]["predicted"] == true)
    );
    assert!(
        place
            .run(&["ledger", "list"])
            .expect(0)
            .out
            .contains("2 (2 predicted)")
    );

    let scored = json(&place, &["ledger", "forecasters", "--json"]);
    assert_eq!(scored["authors"].as_array().unwrap().len(), 0, "{scored}");
    place
        .run(&[&PREDICTED[..], &["--host", "constant=1ms", "--require", "adopt"]].concat())
        .expect(4);
}

#[test]
fn a_prediction_is_the_same_each_time_and_the_host_counts_once_only() {
    let place = place();
    let rounds = |arguments: &[&str]| {
        let report = json(&place, &[&PREDICTED[..], &["--json", "-"], arguments].concat());
        let mut rounds = report["rounds"].clone();
        for finding in rounds[0]["judged"][0]["findings"].as_array_mut().unwrap() {
            finding["seconds"] = Value::Null;
        }
        rounds[0]["judged"][0].clone()
    };
    let (once, again) = (
        rounds(&["--host", "constant=1ms"]),
        rounds(&["--host", "constant=1ms"]),
    );
    assert_eq!(once, again);
    assert_eq!(once["predicted"], true);
    let times = |judged: &Value| {
        let findings = judged["findings"].as_array().unwrap();
        let comparison = &findings.last().unwrap()["evidence"]["cases"][0];
        ["baseline", "candidate"].map(|side| comparison[side].as_f64().unwrap())
    };
    let [[with, once], [without, bare]] = [times(&once), times(&rounds(&[]))];
    assert!((with - without - 1e-3).abs() < 1e-12, "{with} {without}");
    assert_eq!(once, bare, "what is set up once costs no call");
    for gate in ["compiles", "right", "race-free"] {
        let findings = again["findings"].as_array().unwrap();
        let finding = findings.iter().find(|finding| finding["gate"] == gate).unwrap();
        assert_eq!(
            (&finding["outcome"], &finding["reason"]),
            (&"skip".into(), &"not run: predicted".into())
        );
    }
}

#[test]
fn the_plan_of_the_example_puts_the_host_first_where_it_counts() {
    let place = Place::new();
    let file = repository("examples/b200-predicted");
    let report = json(&place, &["run", file.to_str().unwrap(), "--json", "-"]);
    let first = |round: usize| report["rounds"][round]["plan"]["steps"][0]["pitch"].clone();
    assert_eq!(first(1), "host-setup");
    assert_ne!(first(0), "host-setup");
    let tile = report["rounds"][0]["judged"].as_array().unwrap();
    let tile = tile.iter().find(|judged| judged["name"] == "tile-64").unwrap();
    assert_eq!(tile["verdict"], "infeasible");
}

#[test]
fn a_host_that_makes_no_sense_is_refused() {
    let place = place();
    let ran = place
        .run(&[&PREDICTED[..], &["--host", "95us"]].concat())
        .expect(2);
    assert!(ran.err.contains("constant=95us,per-group=35us"), "{}", ran.err);
    let ran = place
        .run(&["run", "round.toml", "--host", "constant=95us"])
        .expect(2);
    assert!(ran.folded().contains("add --executor model"), "{}", ran.err);
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
