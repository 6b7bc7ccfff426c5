//! The judge as a Rust program calls it, without the command's own code.

use gauntlet_device::Device;
use gauntlet_judge::gates::Right;
use gauntlet_judge::{Candidate, Executor, Measurement, Session, Setting, Verdict, Workshop};
use gauntlet_stats::{Arm, Criteria};
use gauntlet_worker::{Limits, Timeouts, WorkerCommand};
use jiff::SignedDuration;

use crate::common::Place;
use crate::compiled::{ORDER, library};

/// What the crate page of the judge shows, on one library under two names.
#[test]
fn two_functions_of_shared_libraries_are_judged() {
    let place = Place::new();
    let table = format!("rms_norm.{ORDER}");
    if !library(
        &place,
        "crates/judge/hosts/library/tests/rms_norm.c",
        Some(&table),
    ) {
        return;
    }
    let mut suite = gauntlet_families::suite("rms-norm").unwrap();
    suite.benchmark.truncate(1);
    let program = env!("CARGO_BIN_EXE_gauntlet");
    let kernel = |name: &str, function: &str| {
        let library = format!("{}:{function}", place.path("libkernel.so").display());
        Candidate::hosted(name, [program, "worker", "library", &library].map(Into::into))
    };
    let built_in = WorkerCommand::new(program, ["worker", "cpu"].map(Into::into));
    let workshop = Workshop::new(built_in, Timeouts::default(), Limits::default()).unwrap();
    let measurement = Measurement {
        budget: SignedDuration::from_secs(1),
        ..Measurement::default()
    };
    let setting = Setting::new(Device::host(), &suite, measurement, Criteria::default());
    let executor = Executor::Live(workshop);
    let [baseline, twin] = [kernel("baseline", "rms_norm"), kernel("twin", "rms_norm")];

    let found = Session::new(&setting, &executor, [&baseline, &twin])
        .compare()
        .unwrap();
    // A second is never enough for a verdict.
    assert_eq!(
        (found.side, found.verdict),
        (Arm::Candidate, Verdict::Inconclusive),
        "{}",
        found.reason
    );
    assert!(found.observations.is_some());

    let missing = kernel("missing", "no_such_function");
    let found = Session::new(&setting, &executor, [&baseline, &missing])
        .through(&[&Right])
        .judge()
        .unwrap();
    assert_eq!(found.side, Arm::Candidate);
    assert!(found.reason.contains("no_such_function"), "{}", found.reason);
    assert!(found.comparison.is_none() && found.findings.len() == 1);
}
