//! The corpus of cheats: each is caught by the gate that is to catch it, for what it does, and the honest are not.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use gauntlet_selftest::cheats::{Kind, Outcome, Settings, run};

/// One kind at a time: cheats that burn cores would disturb the others' measurements.
static MACHINE: Mutex<()> = Mutex::new(());

#[track_caller]
fn all_end_as_they_should(kind: Kind) {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let settings = Settings {
        program: PathBuf::from(env!("CARGO_BIN_EXE_gauntlet")),
        kinds: vec![kind],
        names: Vec::new(),
    };
    let reports = run(&settings, &mut |report| {
        println!(
            "{} {:?}, {}: {}",
            report.name, report.outcome, report.verdict, report.reason
        );
    });
    let reports = reports.unwrap();
    assert!(!reports.is_empty());
    let faults: Vec<String> = reports
        .into_iter()
        // What a system has nothing to hold against is told by `doctor`, and is no fault of the gates.
        .filter(|report| !report.outcome.is_right() && report.outcome != Outcome::Unheld)
        .map(|report| {
            format!(
                "{}: {} — {}",
                report.name,
                report.fault.unwrap_or_default(),
                report.reason
            )
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn cheats_by_results_are_caught() {
    all_end_as_they_should(Kind::Results);
}

#[test]
fn cheats_by_times_are_caught() {
    all_end_as_they_should(Kind::Times);
}

#[test]
fn cheats_on_the_protocol_are_caught() {
    all_end_as_they_should(Kind::Protocol);
}

#[test]
fn cheats_by_processes_are_caught() {
    all_end_as_they_should(Kind::Processes);
}

#[test]
fn the_honest_are_measured() {
    all_end_as_they_should(Kind::Honest);
}
