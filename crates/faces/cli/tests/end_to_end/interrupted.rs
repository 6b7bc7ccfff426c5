//! A signal keeps what was measured, and `--resume` goes on with it.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::common::{NORM_SUITE, Place, Ran, TINY_SUITE, names};
use crate::resilience::{PATIENCE, start, temporary_folders, workers};

/// After this many starts of worker processes a comparison has measured a pair for certain: each pair starts two, and the examinations
/// before the first pair start fewer than these.
const PROCESSES: usize = 24;

/// More pairs than are measured before the signal, so that no look decides.
const MANY: [&str; 4] = ["--pairs", "1000", "--warm", "--quick"];

fn norms() -> Place {
    let place = Place::new();
    place.write("suite.toml", NORM_SUITE);
    place
}

fn wait_for(coordinator: &mut Child, mut happened: impl FnMut(u32) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happened(coordinator.id()) {
        assert!(Instant::now() < deadline, "it did not get so far");
        assert!(coordinator.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Starts a command, and sends it a signal once it has measured pairs.
fn interrupted(place: &Place, arguments: &[&str], signal: Signal) -> Ran {
    let mut coordinator = start(place, arguments);
    let mut seen = BTreeSet::new();
    wait_for(&mut coordinator, |id| {
        seen.extend(workers(id));
        seen.len() >= PROCESSES
    });
    kill(Pid::from_raw(i32::try_from(coordinator.id()).unwrap()), signal).unwrap();
    let ran = Ran::of(coordinator.wait_with_output().unwrap()).expect(130);
    assert_eq!(temporary_folders(place), Vec::<PathBuf>::new());
    ran
}

fn batches(document: &Value) -> Vec<u64> {
    let batches = document["kept"]["observations"]["batches"].as_array().unwrap();
    batches
        .iter()
        .map(|batch| batch["pairs"].as_u64().unwrap())
        .collect()
}

/// What the last run of the ledger found, and whether the run has ended.
fn last(place: &Place) -> (Value, bool) {
    let shown = place.run(&["ledger", "show", "latest", "--json"]).expect(0);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    let records = shown["records"].as_array().unwrap();
    let found = records
        .iter()
        .rev()
        .find(|record| record["kind"] == "judgement")
        .unwrap();
    (found["body"].clone(), !shown["run"]["ended"].is_null())
}

#[test]
fn a_comparison_keeps_its_pairs_and_goes_on_with_them() {
    let place = norms();
    let compare = [
        &["compare", "builtin", "builtin", "--task", "suite.toml"][..],
        &MANY,
    ]
    .concat();
    let ran = interrupted(&place, &compare, Signal::SIGTERM);
    names(
        &ran,
        &["interrupted after", "are kept in", "--resume goes on with them"],
    );
    let (found, ended) = last(&place);
    assert!(!ended && found["interrupted"] == true);
    assert_eq!(found["document"]["verdict"], "inconclusive");
    assert_eq!(
        found["document"]["comparison"]["looks"],
        serde_json::json!([]),
        "no look was taken for it"
    );
    let first = batches(&found["document"]);
    assert!(first.len() == 1 && first[0] >= 1, "{first:?}");
    let listed = place.run(&["ledger", "verdicts"]).expect(0);
    assert!(listed.out.contains("interrupted:"), "{}", listed.out);

    let again = [&compare[..], &["--resume"]].concat();
    let ran = interrupted(&place, &again, Signal::SIGINT);
    names(&ran, &[&format!("Going on after {} pairs", first[0])]);
    let (found, _) = last(&place);
    let both = batches(&found["document"]);
    assert!(both.len() == 2 && both[0] == first[0] && both[1] >= 1, "{both:?}");
    let runs = place.run(&["ledger", "list"]).expect(0).out;
    assert_eq!(
        runs.matches("gauntlet").count() + runs.matches("compare builtin").count(),
        1,
        "{runs}"
    );
    place.run(&["ledger", "verify"]).expect(0);
}

#[test]
fn without_a_ledger_the_file_of_json_keeps_the_pairs() {
    let place = norms();
    let judge = [
        "judge",
        "builtin",
        "--task",
        "suite.toml",
        "--no-ledger",
        "--json",
        "part.json",
    ];
    let judge = [&judge[..], &MANY].concat();
    let ran = interrupted(&place, &judge, Signal::SIGHUP);
    names(&ran, &["are kept in part.json"]);
    let written =
        || -> Value { serde_json::from_slice(&std::fs::read(place.path("part.json")).unwrap()).unwrap() };
    let before = written();
    let gates = |document: &Value| {
        let findings = document["findings"].as_array().unwrap();
        findings
            .iter()
            .map(|finding| finding["gate"].clone())
            .collect::<Vec<_>>()
    };
    interrupted(&place, &[&judge[..], &["--resume"]].concat(), Signal::SIGTERM);
    let after = written();
    assert_eq!(batches(&after)[0], batches(&before)[0]);
    assert_eq!(batches(&after).len(), 2);
    assert_eq!(gates(&after), gates(&before), "each gate has been passed once");
    assert!(!place.path("ledger.sqlite").exists());
}

#[test]
fn a_tuning_keeps_its_cases_and_tunes_the_others() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    let tune = [
        "tune",
        "--suite",
        "suite.toml",
        "--keep",
        "2",
        "--quick",
        "--budget",
        "60s",
        "--output",
        "table.toml",
    ];
    let mut coordinator = start(&place, &tune);
    wait_for(&mut coordinator, |_| place.path("table.toml").exists());
    kill(
        Pid::from_raw(i32::try_from(coordinator.id()).unwrap()),
        Signal::SIGTERM,
    )
    .unwrap();
    let ran = Ran::of(coordinator.wait_with_output().unwrap()).expect(130);
    names(
        &ran,
        &["interrupted: 1 of 2 cases are tuned", "--resume tunes the others"],
    );
    let (found, ended) = last(&place);
    assert!(!ended && found["document"]["interrupted"] == true);
    let ran = place.run(&[&tune[..], &["--resume"]].concat()).expect(0);
    names(&ran, &["Going on after 1 cases"]);
    let (whole, ended) = last(&place);
    assert!(ended);
    let cases = |found: &Value| found["document"]["cases"].as_array().unwrap().clone();
    assert_eq!(cases(&whole)[0], cases(&found)[0]);
    assert_eq!(cases(&whole).len(), 2);
    let table = std::fs::read_to_string(place.path("table.toml")).unwrap();
    assert_eq!(
        table.matches("[[entry]]").count() + table.matches("[[entries]]").count(),
        2,
        "{table}"
    );
}
