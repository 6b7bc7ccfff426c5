//! The self-test from the command line, with few comparisons.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::common::{Place, TINY_SUITE, pitch, tiny_round};
use serde_json::Value;

fn read(place: &Place, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(place.path(name)).unwrap()).unwrap()
}

#[test]
fn few_synthetic_comparisons_are_counted_and_reproduced() {
    let place = Place::new();
    let run = |file: &str, seed: &str| {
        let ran = place.run(&["selftest", "--comparisons", "4", "--seed", seed, "--json", file]);
        // Four comparisons may miss a goal by chance.
        assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
        (ran, read(&place, file))
    };
    let (ran, first) = run("first.json", "3");
    for word in [
        "noisy neighbour",
        "5 % slower",
        "false adoption",
        "mean of runs",
        "goals held",
    ] {
        assert!(ran.out.contains(word), "{word}:\n{}", ran.out);
    }
    assert_eq!(first["synthetic"].as_array().unwrap().len(), 8 * 7);
    assert!(first["live"].as_array().unwrap().is_empty());
    for key in [
        "version",
        "date",
        "environment",
        "criteria",
        "measurement",
        "parameters",
    ] {
        assert!(!first[key].is_null(), "{key}");
    }
    let missed = first["goals"]
        .as_array()
        .unwrap()
        .iter()
        .any(|goal| goal["standing"] == "missed");
    assert_eq!(ran.code, Some(i32::from(missed)));
    assert_eq!(first["synthetic"], run("again.json", "3").1["synthetic"]);
    assert_ne!(first["synthetic"], run("other.json", "4").1["synthetic"]);
}

#[test]
#[ignore = "half a minute: a whole comparison"]
fn real_workers_are_compared_with_themselves() {
    let place = Place::new();
    let ran = place.run(&[
        "selftest",
        "--comparisons",
        "1",
        "--live",
        "1",
        "--json",
        "out.json",
    ]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
    assert!(ran.out.contains("this machine"), "{}", ran.out);
    let found = read(&place, "out.json");
    let [live] = &found["live-comparisons"].as_array().unwrap()[..] else {
        panic!("{found}");
    };
    let pairs = live["pairs"].as_u64().unwrap();
    assert!(pairs >= 4, "{live}");
    assert_eq!(
        live["process-effects"].as_array().unwrap().len() as u64,
        pairs,
        "{live}"
    );
    assert!(found["live-spread"].as_f64().unwrap() > 0.0);
    // A quarter of one is zero: effects that were not tried are not reported.
    assert!(
        found["synthetic"]
            .as_array()
            .unwrap()
            .iter()
            .all(|cell| cell["effect"] == 0.0)
    );
}

/// Whether it is found to be a regression depends on a quiet machine; `gauntlet selftest --live` counts how often
/// slowed workers are.
#[test]
fn a_worker_of_twice_the_time_is_compared_and_never_taken_for_faster() {
    let place = Place::new();
    // With shorter calls, the gaps between them would be as long as the calls, and the worker's clock would fail the
    // check.
    let suite = TINY_SUITE
        .replace("m = 16, n = 64, k = 128", "m = 64, n = 512, k = 2048")
        .replace("m = 8, n = 96, k = 256", "m = 96, n = 512, k = 2048");
    place.write("suite.toml", &suite);
    let program = env!("CARGO_BIN_EXE_gauntlet");
    let command = format!("command = [\"{program}\", \"worker\", \"cpu\", \"--slowed-by\", \"1\"]");
    let round = tiny_round(&pitch("slowed", "", &command)).replace("schedule = {  }\n", "");
    place.write("round.toml", &round);
    place.run(&["run", "round.toml", "--json", "out.json"]).expect(0);
    let judged = &read(&place, "out.json")["rounds"][0]["judged"][0];
    let last = judged["findings"].as_array().unwrap().last().unwrap();
    assert_eq!(last["gate"], "faster", "{judged}");
    assert!(
        judged["verdict"] != "adopt" && judged["verdict"] != "marginal",
        "{judged}"
    );
}

#[test]
fn the_neighbour_ends_with_its_input() {
    Place::new().run(&["worker", "cheat", "neighbour"]).expect(0);
}

#[test]
fn what_compares_nothing_is_refused() {
    let place = Place::new();
    let refused = place.run(&["selftest", "--comparisons", "0"]).expect(2);
    assert!(
        refused.folded().contains("a whole number from 1"),
        "{}",
        refused.err
    );
    place.run(&["worker", "cpu", "--slowed-by", "-1"]).expect(2);
    let stranger = place
        .run(&["selftest", "--honest", "--only", "no-such-worker"])
        .expect(2);
    assert!(stranger.folded().contains("no-such-worker"), "{}", stranger.err);
    assert!(stranger.folded().contains("numpy"), "{}", stranger.err);
    let alone = place.run(&["selftest", "--contested"]).expect(2);
    assert!(alone.folded().contains("--honest"), "{}", alone.err);
    for wrong in [["--effects", "many"], ["--runs", "0"], ["--budget", "0s"]] {
        place
            .run(&[&["selftest", "--power"], &wrong[..]].concat())
            .expect(2);
    }
    place.run(&["worker", "zoo", "no-such-worker"]).expect(2);
    let help = place.run(&["worker", "--help"]).expect(0).out;
    assert!(
        !help.contains("slowed"),
        "the option is for the self-test alone:\n{help}"
    );
}
