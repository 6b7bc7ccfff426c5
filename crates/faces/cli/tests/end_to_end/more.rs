//! Pairs that are added to an undecided comparison, and the conditions under which they are not.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{NORM_SUITE, Place, Ran, names};
use crate::compiled::library;

const TABLE: &str = "rms_norm.arguments = ['x', 'weight', 'y', 'rows', 'columns']\n";

const KERNEL: &str = "libkernel.so:rms_norm";

/// A folder in which a kernel and itself were compared by `command` for as long as one pair takes; none without a C compiler.
fn compared(command: &[&str]) -> Option<Place> {
    let place = Place::new();
    place.write("suite.toml", NORM_SUITE);
    if !library(&place, "crates/judge/hosts/library/tests/rms_norm.c", Some(TABLE)) {
        return None;
    }
    let rest = [
        "--task",
        "suite.toml",
        "--budget",
        "1ms",
        "--warm",
        "--json",
        "result.json",
    ];
    let ran = place.run(&[command, &rest[..]].concat());
    assert!(
        ran.out
            .contains("`gauntlet compare --more 3 result.json` adds pairs"),
        "{}{}",
        ran.out,
        ran.err
    );
    Some(place)
}

fn written(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn pairs_of_batches(result: &Value) -> Vec<u64> {
    let batches = result["kept"]["observations"]["batches"].as_array().unwrap();
    batches
        .iter()
        .map(|batch| batch["pairs"].as_u64().unwrap())
        .collect()
}

/// Undecided or not, as the machine's noise has it.
#[track_caller]
fn added(place: &Place, arguments: &[&str]) -> Ran {
    let ran = place.run(&[&["compare", "--more"], arguments].concat());
    assert!(matches!(ran.code, Some(0 | 4)), "{}{}", ran.out, ran.err);
    ran
}

#[test]
fn more_pairs_are_judged_together_with_those_before_at_the_next_look() {
    let Some(place) = compared(&["compare", KERNEL, KERNEL]) else {
        return;
    };
    let file = place.path("result.json");
    let before = written(&file);
    assert_eq!(pairs_of_batches(&before), [1]);
    assert_eq!(before["comparison"]["looks"], json!([]));

    let ran = added(&place, &["1", "result.json", "--json", "copy.json"]);
    let after = written(&file);
    assert_eq!(
        after,
        written(&place.path("copy.json")),
        "which is valid by its schema"
    );
    assert_eq!(
        pairs_of_batches(&after),
        [1, 3],
        "the first look is at four pairs"
    );
    let looks = after["comparison"]["looks"].as_array().unwrap();
    assert!(
        looks.iter().all(|look| look["processes"] == json!(4)),
        "{looks:?}"
    );
    // An undecided comparison may end with a closing look at the same pairs.
    let closing = looks.iter().filter(|look| look["closing"] == json!(true)).count();
    let is_undecided = looks[0]["decision"] == json!("inconclusive");
    assert_eq!(looks.len(), 1 + closing, "{looks:?}");
    assert!(closing <= usize::from(is_undecided), "{looks:?}");
    let blocks = |result: &Value| {
        result["comparison"]["cases"][0]["blocks"]
            .as_array()
            .unwrap()
            .clone()
    };
    assert_eq!(blocks(&after)[..3], blocks(&before)[..]);
    assert_eq!(blocks(&after).len(), 12);
    let batches = &after["kept"]["observations"]["batches"];
    assert_eq!(batches[0], before["kept"]["observations"]["batches"][0]);
    assert_ne!(batches[1]["seed"], batches[0]["seed"], "operands are new");
    assert_eq!(after["comparison"]["seed"], before["comparison"]["seed"]);
    assert!(ran.out.contains("measured in 2 parts: 1 from 20"), "{}", ran.out);
    place.run(&["report", "result.json"]).expect(0);
}

#[test]
fn the_result_of_judge_goes_on_with_the_findings_of_its_other_gates() {
    let Some(place) = compared(&["judge", KERNEL, "--baseline", KERNEL]) else {
        return;
    };
    let file = place.path("result.json");
    let gates = |result: &Value| -> Vec<Value> {
        let findings = result["findings"].as_array().unwrap();
        findings.iter().map(|finding| finding["gate"].clone()).collect()
    };
    let before = written(&file);
    added(&place, &["3", "result.json"]);
    let after = written(&file);
    assert_eq!(gates(&after), gates(&before));
    assert!(gates(&after).len() > 2);
    assert_eq!(after["findings"][1], before["findings"][1]);
    assert_eq!(pairs_of_batches(&after), [1, 3]);
}

/// Refuses to add pairs, in these words, and leaves the result as it is.
#[track_caller]
fn refused(place: &Place, phrases: &[&str]) {
    let file = place.path("result.json");
    let before = std::fs::read(&file).unwrap();
    let ran = place.run(&["compare", "--more", "9", "result.json"]).expect(2);
    names(&ran, phrases);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn nothing_is_added_under_other_conditions() {
    let Some(place) = compared(&["compare", KERNEL, KERNEL]) else {
        return;
    };
    let with = |name: &str, text: &str, phrases: &[&str]| {
        let path = place.path(name);
        let before = std::fs::read(&path).unwrap();
        place.write(name, text);
        refused(&place, phrases);
        std::fs::write(&path, before).unwrap();
    };
    let other = NORM_SUITE.replace("512", "513");
    with(
        "suite.toml",
        &other,
        &["the cases of the task have changed", "suite.toml has changed"],
    );
    with(
        "suite.toml",
        &format!("{NORM_SUITE}# "),
        &["suite.toml has changed", "cannot be combined"],
    );
    with(
        "libkernel.toml",
        &format!("{TABLE}# "),
        &["libkernel.toml has changed", "compare anew"],
    );
    place.write("libkernel.c", "");
    refused(&place, &["libkernel.c is new"]);
    std::fs::remove_file(place.path("libkernel.c")).unwrap();
    let mut of_other_threads = place.command(&["compare", "--more", "9", "result.json"]);
    let ran = Ran::of(of_other_threads.env("GAUNTLET_THREADS", "2").output().unwrap()).expect(2);
    names(&ran, &["GAUNTLET_THREADS was 1 and is 2"]);

    let edited = |edit: fn(&mut Value), phrases: &[&str]| {
        let mut result = written(&place.path("result.json"));
        edit(&mut result);
        with("result.json", &result.to_string(), phrases);
    };
    edited(
        |result| result["kept"]["conditions"]["program"] = json!(""),
        &["the program is another build"],
    );
    edited(
        |result| result["version"] = json!("0.0.1"),
        &["gauntlet was 0.0.1 and is "],
    );
    edited(
        |result| result["criteria"]["target"] = json!(0.03),
        &["the criteria have changed"],
    );
    edited(
        |result| result["kept"]["conditions"]["measurement"]["looks"] = json!([2, 3]),
        &["the plan of the measurement has changed"],
    );
    edited(
        |result| result["kept"]["observations"]["batches"][0]["pairs"] = json!(2),
        &["does not match its pairs"],
    );
    edited(
        |result| result["kept"] = Value::Null,
        &["holds no pairs that more could be added to"],
    );
    edited(
        |result| {
            result["comparison"]["looks"] =
                json!([{ "processes": 1, "interval": null, "decision": "adopt" }]);
            result["comparison"]["assessment"]["decision"] = json!("adopt");
        },
        &["is decided"],
    );
}

#[test]
fn a_fixed_number_of_pairs_stays_fixed() {
    let place = Place::new();
    place.write("suite.toml", NORM_SUITE);
    let fixed = [
        "--task",
        "suite.toml",
        "--budget",
        "1ms",
        "--pairs",
        "6",
        "--json",
        "result.json",
    ];
    let ran = place.run(&[&["compare", "builtin", "builtin"], &fixed[..]].concat());
    assert!(!ran.out.contains("--more"), "{}", ran.out);
    refused(&place, &["was measured with --pairs"]);
}

#[test]
fn what_cannot_go_on_is_named() {
    let place = Place::new();
    place.write("other.json", r#"{"schema": "gauntlet/run/2"}"#);
    for (arguments, phrases) in [
        (&["9", "nowhere.json"][..], &["nowhere.json cannot be read"][..]),
        (&["9", "other.json"], &["not a whole gauntlet/run/2"]),
        (&["0", "result.json"], &["give a whole number from 1 to 1000"]),
        (
            &["9", "result.json", "--regime", "sustained"],
            &["cannot be used with"],
        ),
        (
            &["9", "result.json", "--task", "rms-norm"],
            &["cannot be used with"],
        ),
        (&["9", "builtin", "stages=2"], &["cannot be used with"]),
        (&["9", "result.json", "--budget", "9s"], &["cannot be used with"]),
    ] {
        names(
            &place.run(&[&["compare", "--more"], arguments].concat()).expect(2),
            phrases,
        );
    }
}
