//! The recorded tournament, judged again: the known errors in the record must be found.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::{self, Place, repository};
use serde_json::Value;

fn replayed() -> Value {
    let place = Place::new();
    let file = repository("examples/shark-tank/replay.toml");
    place
        .run(&["run", file.to_str().unwrap(), "--json", "out.json"])
        .expect(0);
    serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap()
}

fn round<'v>(report: &'v Value, name: &str) -> &'v Value {
    let rounds = report["rounds"].as_array().unwrap();
    rounds
        .iter()
        .find(|round| round["name"] == name)
        .unwrap_or_else(|| panic!("no round {name}"))
}

fn judged<'v>(report: &'v Value, of: &str, name: &str) -> &'v Value {
    let judged = round(report, of)["judged"].as_array().unwrap();
    judged
        .iter()
        .find(|one| one["name"] == name)
        .unwrap_or_else(|| panic!("no pitch {name} in {of}"))
}

fn comparison(judged: &Value) -> &Value {
    let findings = judged["findings"].as_array().unwrap();
    let faster = findings
        .iter()
        .find(|finding| finding["gate"] == "faster")
        .unwrap();
    &faster["evidence"]
}

#[test]
fn the_record_is_judged_as_it_deserves() {
    let report = replayed();

    // Three stages were slower on every case, by more than the uncertainty of the recorded numbers.
    let stages = judged(&report, "b200-gemm-1", "pipeline-stages");
    assert_eq!(stages["verdict"], "regression");
    let problems = comparison(stages)["assessment"]["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 4);
    for problem in problems {
        assert!(problem["interval"]["upper"].as_f64().unwrap() < 0.0, "{problem}");
    }
    assert_eq!(stages["claim"]["refuted"], true);

    // A tile of 64 rows is refused, with the rule and values that satisfy it.
    let tile = judged(&report, "b200-gemm-1", "tile-size");
    assert_eq!(tile["verdict"], "infeasible");
    let reason = tile["reason"].as_str().unwrap();
    assert!(
        reason.contains("tile.m = 64: mxf4nvf4 on sm_100a needs M = 128 for one CTA"),
        "{reason}"
    );
    assert!(reason.contains("swap A and B"), "{reason}");

    // Candidates that were never measured get no verdict.
    for (of, name) in [
        ("b200-gemm-1", "tma-epilogue"),
        ("b200-gemm-2", "tma-epilogue"),
        ("b200-gemm-3", "tma-epilogue"),
        ("b200-gemm-1", "warp-specialisation"),
    ] {
        let one = judged(&report, of, name);
        assert_eq!(one["verdict"], "blocked", "{of} {name}");
        assert!(one["claim"]["found"].is_null(), "{of} {name} was given a time");
    }
    let last = judged(&report, "b200-gemm-3", "tma-epilogue")["reason"]
        .as_str()
        .unwrap();
    assert!(last.contains("baseline.epilogue-share < 0.03"), "{last}");
    assert_eq!(
        judged(&report, "b200-gemm-2", "pipeline-stages")["verdict"],
        "aborted"
    );

    // Judge 1 prints 8.4 and 5.6 where the weights give 8.575 and 5.25; 7.6 and 6.9 are rounded correctly.
    let flags = round(&report, "b200-gemm-1")["ranking"]["flags"].to_string();
    assert!(flags.contains("8.575") && flags.contains("5.25"), "{flags}");
    assert!(!flags.contains("7.575") && !flags.contains("6.875"), "{flags}");

    // +0.7 % from one number a side decides nothing; the fused softmax is incorrect; the claim of 16× is inverted.
    let three = judged(&report, "l4-sdpa-5-three-stages", "three-stages");
    assert_eq!(three["verdict"], "inconclusive");
    assert!(
        three["reason"]
            .as_str()
            .unwrap()
            .contains("one number a side has no interval")
    );
    assert_eq!(
        judged(&report, "l4-sdpa-4-fused-softmax", "fused-softmax")["verdict"],
        "incorrect"
    );
    let peers = judged(&report, "l4-sdpa-2-wmma", "wmma-pv")["peers"]
        .as_array()
        .unwrap();
    assert_eq!(peers[0]["contradicted"], true);
    assert!((peers[0]["found"].as_f64().unwrap() - 42.45 / 656.0).abs() < 1e-6);

    // With everything that its own log says, the baseline is incorrect, and that ends the round.
    let logged = round(&report, "l4-sdpa-6-three-stages-as-logged");
    assert!(
        logged["baseline"]["fault"]
            .as_str()
            .unwrap()
            .contains("incorrect")
    );
    assert_eq!(logged["judged"][0]["verdict"], "blocked");

    // Three rounds on the B200 without an adoption.
    assert!(
        round(&report, "b200-gemm-3")["notices"]
            .to_string()
            .contains("research")
    );
}

#[test]
fn a_requirement_that_is_not_reached_exits_with_one() {
    let place = Place::new();
    let file = repository("examples/shark-tank/replay.toml");
    let file = file.to_str().unwrap();
    place.run(&["run", file, "--require", "no-regression"]).expect(1);
    place.run(&["run", file, "--require", "adopt"]).expect(0);
}

#[test]
fn a_time_under_the_roofline_is_void() {
    let place = Place::new();
    place.write(
        "record.toml",
        "source = \"a clock that was stopped too early\"\n\
         [candidates.baseline]\ntimes = { case-3 = 20.0 }\n\
         [candidates.miracle]\ntimes = { case-3 = 0.5 }\n",
    );
    let round = common::tiny_round(&common::pitch("miracle", "stages = 2", ""))
        .replace(
            "\"cpu\"",
            "\"replay\"\nrecord = \"record.toml\"\ncases = [\"case-3\"]",
        )
        .replace("\"host\"", "\"b200\"")
        .replace("suite.toml", "group-gemm")
        .replace("tile = [16, 32, 64]", "tile = [128, 128, 256]");
    place.write("round.toml", &round);
    place.run(&["run", "round.toml", "--json", "out.json"]).expect(0);
    let report: Value = serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap();
    let miracle = &report["rounds"][0]["judged"][0];
    assert_eq!(miracle["verdict"], "blocked", "{miracle}");
    assert!(
        miracle["reason"]
            .as_str()
            .unwrap()
            .contains("void: case-3 took 5.000e-7 s"),
        "{miracle}"
    );
}

/// A pitch of the round below: its change, and additional fields.
fn stages_pitch(name: &str, stages: usize, more: &str) -> String {
    format!(
        "name = \"{name}\"
contestant = \"{name}\"
problem = \"none\"
change = \"more stages\"
schedule = {{ stages = {stages} }}
claim.speedup = {{ q10 = 1.0, q50 = 1.1, q90 = 5.0 }}
odds = {{ adopt = 0.4, marginal = 0.1, valid-negative = 0.2, inconclusive = 0.1, regression = 0.2 }}
cost.hours = 4
risk = {{ level = \"low\", why = \"none\" }}
evidence = [{{ kind = \"calculation\", text = \"none\" }}]
abort = []
fallback.plan = \"keep what there is\"
{more}"
    )
}

/// The second pitch builds on the first, whatever the outcome of the first: it is faster than the first, and slower
/// than the baseline. The third has a time below the roofline.
#[test]
fn what_is_slower_than_the_baseline_is_not_adopted_and_what_is_void_found_nothing() {
    let place = Place::new();
    place.write("slower.toml", &stages_pitch("slower", 2, ""));
    place.write(
        "better.toml",
        &stages_pitch("better", 3, "after = \"slower\"\nregardless = true\n"),
    );
    place.write("void.toml", &stages_pitch("void", 4, ""));
    place.write(
        "record.toml",
        "source = \"made up\"
uncertainty = { relative = 0.005, why = \"made up\" }
[candidates.baseline]
times = { case-1 = 373, case-2 = 372, case-3 = 173, case-4 = 156 }
[candidates.slower]
times = { case-1 = 500, case-2 = 500, case-3 = 230, case-4 = 210 }
[candidates.better]
times = { case-1 = 450, case-2 = 450, case-3 = 207, case-4 = 189 }
[candidates.void]
times = { case-1 = 1, case-2 = 1000, case-3 = 1000, case-4 = 1000 }
",
    );
    place.write(
        "round.toml",
        "name = \"chain\"
title = \"A step that is slower, and one on top of it\"
executor = \"replay\"
device = \"b200\"
suite = \"group-gemm\"
record = \"record.toml\"
pitches = [\"slower.toml\", \"better.toml\", \"void.toml\"]
baseline.schedule = { tile = [128, 128, 256], stages = 1 }
criteria = { target = 0.02, practically-zero = 0.01, floor = -0.05 }
",
    );
    place.run(&["run", "round.toml", "--json", "out.json"]).expect(0);
    let report: Value = serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap();
    let verdicts = ["slower", "better", "void"].map(|name| judged(&report, "chain", name)["verdict"].clone());
    assert_eq!(verdicts, ["regression", "adopt", "blocked"]);
    assert!(
        round(&report, "chain")["adopted"].is_null(),
        "{}",
        round(&report, "chain")["adopted"]
    );
    let void = &judged(&report, "chain", "void")["claim"];
    assert!(void["found"].is_null() && void["refuted"].is_null(), "{void}");
}
