//! `gauntlet explain --problem`: tables, JSON, timelines, and refusals.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::common::{NORM_SUITE, Place, has_numpy};
use serde_json::Value;

/// Schedules of several kinds; those that a device refuses are left out.
const SCHEDULES: [&str; 6] = [
    "baseline",
    "stages = 4, order = \"static\"",
    "stages = 3, roles = \"specialised\", epilogue = \"staged\", order = \"sorted\", setup = \"once\"",
    "tile = [64, 64, 64], stages = 2",
    "tile = [128, 64, 64], stages = 2",
    "tile = [128, 128, 256], swap-ab = true, split-k = 2, stages = 2",
];

fn explained(place: &Place, problem: &str, schedule: &str, device: &str) -> Option<Vec<Value>> {
    let ran = place.run(&[
        "explain",
        "--problem",
        problem,
        "--schedule",
        schedule,
        "--device",
        device,
        "--host",
        "constant=20us,per-group=1us",
        "--json",
    ]);
    if ran.code == Some(2) {
        assert!(
            ran.folded().contains("does not accept this schedule"),
            "{}",
            ran.err
        );
        return None;
    }
    let ran = ran.expect(0);
    let value: Value = serde_json::from_str(&ran.out).unwrap();
    Some(value["cases"].as_array().unwrap().clone())
}

/// Checks that the roofline and the parts add up to the prediction, and that the interval contains it.
#[track_caller]
fn adds_up(case: &Value) {
    let seconds = case["seconds"].as_f64().unwrap();
    let parts = case["breakdown"]["parts"].as_array().unwrap();
    let parts: Vec<f64> = parts
        .iter()
        .map(|part| part["seconds"].as_f64().unwrap())
        .collect();
    let sum = case["breakdown"]["roofline"].as_f64().unwrap() + parts.iter().sum::<f64>();
    assert!(
        (sum - seconds).abs() <= 1e-3 * seconds,
        "{sum} and not {seconds}: {case}"
    );
    assert!(parts.iter().all(|seconds| *seconds >= 0.0), "{case}");
    let [low, high] = ["low", "high"].map(|end| case[end].as_f64().unwrap());
    assert!(low <= seconds && seconds <= high, "{low} … {high}: {case}");
}

#[test]
fn parts_add_up_everywhere() {
    let place = Place::new();
    for suite in ["group-gemm", "dual-gemm", "attention"] {
        for device in ["b200", "h200", "h100", "a100", "l4"] {
            let explanations = SCHEDULES
                .iter()
                .filter_map(|schedule| explained(&place, suite, schedule, device));
            let cases: Vec<_> = explanations.flatten().collect();
            assert!(
                !cases.is_empty(),
                "no schedule is accepted for {suite} on {device}"
            );
            cases.iter().for_each(adds_up);
        }
    }
}

#[test]
fn parts_add_up_on_small_and_odd_shapes() {
    let place = Place::new();
    for (suite, schedule) in [
        ("group-gemm", SCHEDULES[0]),
        ("dual-gemm", SCHEDULES[0]),
        ("attention", SCHEDULES[4]),
    ] {
        let list = place.run(&["suites", suite, "--json"]).expect(0).out;
        let list: Value = serde_json::from_str(&list).unwrap();
        for case in list["correctness"].as_array().unwrap() {
            let name = format!("{suite}/{}", case["name"].as_str().unwrap());
            explained(&place, &name, schedule, "b200")
                .iter()
                .flatten()
                .for_each(adds_up);
        }
    }
}

#[test]
fn a_case_is_told_as_a_table() {
    let place = Place::new();
    let text = place
        .run(&[
            "explain",
            "--problem",
            "group-gemm/case-1",
            "--host",
            "constant=1ms",
        ])
        .expect(0)
        .out;
    for words in [
        "roofline",
        "host",
        "prediction",
        "bar from published models",
        "host (change setup)",
    ] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    let suite = place.run(&["explain", "--problem", "group-gemm"]).expect(0).out;
    assert!(
        suite.contains("group-gemm: 4 cases") && suite.contains("case-4"),
        "{suite}"
    );
}

#[test]
fn two_schedules_are_held_against_each_other() {
    let place = Place::new();
    let compare = |problem: &str, more: &[&str]| {
        let mut arguments = vec![
            "explain",
            "--problem",
            problem,
            "--compare",
            "setup = \"once\"",
            "--host",
            "constant=1ms",
        ];
        arguments.extend(more);
        place.run(&arguments).expect(0).out
    };
    let text = compare("group-gemm/1", &[]);
    assert!(text.contains("difference") && text.contains("as fast"), "{text}");
    let text = compare("group-gemm", &[]);
    assert!(text.contains("geometric mean"), "{text}");
    let value: Value = serde_json::from_str(&compare("group-gemm/1", &["--json"])).unwrap();
    for side in ["cases", "compared"] {
        adds_up(&value[side][0]);
    }
    assert_eq!(value["compared"][0]["schedule"]["setup"], "once");
    // Words left out are as in the first schedule.
    assert_eq!(
        value["compared"][0]["schedule"]["stages"],
        value["cases"][0]["schedule"]["stages"]
    );
}

#[test]
fn a_timeline_is_a_trace_or_a_picture() {
    let place = Place::new();
    for file in ["call.json", "call.svg"] {
        place
            .run(&[
                "explain",
                "--problem",
                "group-gemm/case-3",
                "--schedule",
                "stages = 2",
                "--timeline",
                file,
            ])
            .expect(0);
    }
    let trace: Value = serde_json::from_slice(&std::fs::read(place.path("call.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|event| event["ph"] == "X"), "{trace}");
    let picture = std::fs::read_to_string(place.path("call.svg")).unwrap();
    assert!(picture.starts_with("<svg ") && picture.contains("group-gemm/case-3"));
    assert!(picture.len() < 500_000, "{} bytes", picture.len());
}

#[test]
fn what_cannot_be_explained_is_refused_with_a_remedy() {
    let place = Place::new();
    for (arguments, reason) in [
        (
            &["--problem", "group-gemm/case-9"][..],
            "the nearest is group-gemm/case-",
        ),
        (&["--problem", "grup-gemm"], "the nearest is group-gemm"),
        (&["--problem", "m=80 n=128 k=100"], "not a multiple of 16"),
        (
            &["--problem", "m=1000000 n=1000000 k=64"],
            "too large to be simulated",
        ),
        (
            &["--times", "times.csv", "--compare", "stages = 2"],
            "cannot be used with",
        ),
        (
            &["--problem", "group-gemm/1", "--schedule", "tile = [64, 64, 256]"],
            "mxf4nvf4 on sm_100a needs M = 128",
        ),
        (
            &["--problem", "group-gemm/1", "--compare", "tile = [64, 64, 256]"],
            "the nearest that it accepts",
        ),
        (
            &["--problem", "group-gemm/1", "--timeline", "call.png"],
            "in .json for a trace",
        ),
        (
            &["--problem", "group-gemm/1", "--timeline", "nowhere/call.svg"],
            "there is no folder nowhere",
        ),
        (
            &["--problem", "group-gemm", "--timeline", "call.svg"],
            "a suite was given",
        ),
        (
            &["--problem", "group-gemm/1", "--host", "95us"],
            "constant=95us,per-group=35us",
        ),
        (&["--problem", "group-gemm/1", "--device", "b20"], "b200"),
        (
            &["--problem", "group-gemm/1", "--device", "host"],
            "there is no model of CPUs",
        ),
        (&["--host", "constant=1us"], "--problem"),
    ] {
        let mut all = vec!["explain"];
        all.extend(arguments);
        let ran = place.run(&all).expect(2);
        assert!(ran.folded().contains(reason), "{arguments:?}: {}", ran.err);
    }
    assert!(!place.path("call.png").exists() && !place.path("call.svg").exists());
}

/// A CPU has no such counters, and `--task` alone names no kernel.
#[test]
fn a_kernel_on_the_cpu_is_refused_before_it_runs() {
    let place = Place::new();
    place
        .run(&["explain", "--problem", "group-gemm", "--task", "rms-norm"])
        .expect(2);
    if !has_numpy() {
        return;
    }
    place.write("suite.toml", NORM_SUITE);
    place.write("kernels.py", "def norm(x, weight):\n    return x\n");
    let ran = place
        .run(&["explain", "kernels.py:norm", "--task", "suite.toml"])
        .expect(2);
    let told = ran.folded();
    assert!(
        told.contains("kernels.py:norm runs on the CPU") && told.contains("`gauntlet time`"),
        "{told}"
    );
}
