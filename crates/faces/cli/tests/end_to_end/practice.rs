//! Rules of the practice over several pitches and rounds.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::common::{NORM_SUITE, Place, TINY_SUITE, interpreter, pitch, repository, tiny_round};
use serde_json::Value;

/// Plays files in a place, checks the exit code, and returns the rounds of the result.
fn play(place: &Place, command: &str, file: &str, code: i32) -> Vec<Value> {
    place.write("suite.toml", TINY_SUITE);
    place.run(&[command, file, "--json", "out.json"]).expect(code);
    let report: Value = serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap();
    let tournament = if command == "check" {
        &report["tournaments"][0]
    } else {
        &report
    };
    tournament["rounds"].as_array().unwrap().clone()
}

#[test]
fn what_a_fallback_settled_needs_new_evidence_too() {
    let place = Place::new();
    let first = pitch("bold", "cluster = [2, 1]", "").replace(
        "plan = \"keep the baseline\"",
        "plan = \"wider\", schedule = { cluster = [4, 1] }",
    );
    place.write(
        "one.toml",
        &tiny_round(&first).replace("name = \"tiny\"", "name = \"one\""),
    );
    let again = pitch("again", "cluster = [4, 1]", "");
    place.write(
        "two.toml",
        &tiny_round(&again).replace("name = \"tiny\"", "name = \"two\""),
    );
    place.write(
        "both.toml",
        "name = \"both\"\ntitle = \"\"\nrounds = [\"one.toml\", \"two.toml\"]\n",
    );
    let rounds = play(&place, "check", "both.toml", 1);
    assert_eq!(rounds[0]["judged"][1]["verdict"], "infeasible");
    let judged = &rounds[1]["judged"][0];
    assert_eq!(judged["verdict"], "blocked");
    assert!(
        judged["reason"]
            .as_str()
            .unwrap()
            .contains("judged infeasible in one"),
        "{judged}"
    );
}

#[test]
fn words_of_a_schedule_are_for_the_program_that_is_the_baseline() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_gauntlet");
    let round = tiny_round(&pitch("two-stages", "stages = 2", "")).replace(
        "[baseline.schedule]",
        &format!("[baseline]\ncommand = [\"{program}\", \"worker\", \"cpu\"]\n[baseline.schedule]"),
    );
    place.write("round.toml", &round);
    let feasible = play(&place, "check", "round.toml", 0)[0]["judged"][0]["findings"][0].clone();
    assert!(
        feasible["reason"]
            .as_str()
            .unwrap()
            .contains("a program of its own"),
        "{feasible}"
    );
}

#[test]
fn a_recorded_pitch_is_compared_with_what_it_builds_on() {
    let place = Place::new();
    place.write(
        "record.toml",
        "source = \"a test\"\nuncertainty = { relative = 0.001, why = \"a test\" }\n\
         [candidates]\n\
         baseline.times = { one = 100.0, two = 100.0 }\n\
         first.times = { one = 50.0, two = 50.0 }\n\
         second.times = { one = 60.0 }\n",
    );
    let pitches = pitch("first", "stages = 2", "") + &pitch("second", "stages = 3", "after = \"first\"");
    let round = tiny_round(&pitches).replace(
        "executor = \"cpu\"",
        "executor = \"replay\"\nrecord = \"record.toml\"",
    );
    place.write("round.toml", &round);
    let judged = play(&place, "run", "round.toml", 0)[0]["judged"].clone();
    assert_eq!(
        (&judged[0]["verdict"], &judged[1]["baseline"]),
        (&"adopt".into(), &"first".into())
    );
    assert_eq!(
        judged[1]["verdict"], "regression",
        "60 µs against 50 and not against 100"
    );
    assert!(
        judged[1]["reason"]
            .as_str()
            .unwrap()
            .contains("no times of both sides for two"),
        "{judged}"
    );
}

#[test]
fn what_quick_pairs_would_adopt_is_compared_once_more() {
    let Some(python) = interpreter() else { return };
    let place = Place::new();
    let (program, worker) = (
        env!("CARGO_BIN_EXE_gauntlet"),
        repository("examples/worker/rms_norm.py"),
    );
    let native = pitch("native", "stages = 2", "").replace(
        "schedule = { stages = 2 }",
        &format!("command = [\"{program}\", \"worker\", \"cpu\"]"),
    );
    let baseline = format!("[baseline]\ncommand = [\"{python}\", \"{}\"]", worker.display());
    let round = tiny_round(&native)
        .replace("suite.toml", "norm.toml")
        .replace("[baseline.schedule]\ntile = [16, 32, 64]", &baseline)
        .replace("looks = [2]\nopen-ended = false\nblocks = 1", "trust = \"quick\"")
        .replace("20s", "20m");
    place.write("norm.toml", NORM_SUITE);
    place.write("round.toml", &round);
    let rounds = play(&place, "run", "round.toml", 0);
    let judged = &rounds[0]["judged"][0];
    assert_eq!(judged["verdict"], "adopt", "{judged}");
    let findings = judged["findings"].as_array().unwrap();
    let faster = findings
        .iter()
        .find(|finding| finding["gate"] == "faster")
        .unwrap();
    let text = faster.to_string();
    assert!(!text.contains("\"trust\":\"quick\""), "{text}");
    assert!(text.contains("\"conduct\""), "{text}");
}

#[test]
fn a_pitch_in_an_open_folder_that_cannot_be_played_is_left_out_and_told() {
    let place = Place::new();
    let in_file = |name: &str, schedule: &str| pitch(name, schedule, "").replace("[[pitch]]", "");
    place.write("open/1-garbage.toml", "name = ");
    place.write("open/2-good.toml", &in_file("good", "tile = [16, 16, 64]"));
    place.write("open/3-again.toml", &in_file("good", "tile = [16, 32, 32]"));
    place.write(
        "open/4-stranger.toml",
        &in_file("stranger", "tyle = [16, 16, 64]"),
    );
    let round = tiny_round("").replace("suite.toml\"", "suite.toml\"\npitches = [\"open\"]");
    place.write("round.toml", &round);
    let rounds = play(&place, "check", "round.toml", 0);
    let ranked: Vec<_> = rounds[0]["judged"].as_array().unwrap().iter().collect();
    assert_eq!(ranked.len(), 1);
    assert_eq!(ranked[0]["name"], "good");
    let notices = rounds[0]["notices"].to_string();
    for file in [
        "1-garbage.toml",
        "3-again.toml",
        "4-stranger.toml",
        "this pitch is left out",
    ] {
        assert!(notices.contains(file), "{notices}");
    }
    // What the round's file names itself is its author's to mend.
    place.write(
        "round.toml",
        &round.replace("\"open\"", "\"open/1-garbage.toml\""),
    );
    place.run(&["check", "round.toml"]).expect(2);
}
