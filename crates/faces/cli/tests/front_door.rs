//! The judge as a Rust program calls it, without the command's own code. A program of its own, since a process that judges adopts
//! the orphans of all processes that it started.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;

use gauntlet_device::Device;
use gauntlet_judge::gates::Right;
use gauntlet_judge::{Candidate, Executor, Measurement, Session, Setting, Verdict, Workshop};
use gauntlet_stats::{Arm, Criteria};
use gauntlet_worker::{Limits, Timeouts, WorkerCommand};
use jiff::SignedDuration;

/// Compiles a C source with its table into a folder; `false` without a C compiler.
fn compiled(folder: &Path) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../judge/hosts/library/tests/rms_norm.c");
    let made = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .args([&folder.join("libkernel.so"), &source])
        .arg("-lm")
        .status();
    let table = "rms_norm.arguments = ['x', 'weight', 'y', 'rows', 'columns']";
    std::fs::write(folder.join("libkernel.toml"), table).unwrap();
    match made {
        Ok(status) => status.success(),
        Err(error) => {
            assert!(std::env::var_os("GAUNTLET_REQUIRE_CC").is_none(), "{error}");
            println!("skipped: there is no C compiler ({error})");
            false
        }
    }
}

/// What the crate page of the judge shows, on one library under two names.
#[test]
fn two_functions_of_shared_libraries_are_judged() {
    let folder = tempfile::tempdir().unwrap();
    if !compiled(folder.path()) {
        return;
    }
    let mut suite = gauntlet_families::suite("rms-norm").unwrap();
    suite.benchmark.truncate(1);
    let program = env!("CARGO_BIN_EXE_gauntlet");
    let kernel = |name: &str, function: &str| {
        let library = format!("{}:{function}", folder.path().join("libkernel.so").display());
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
