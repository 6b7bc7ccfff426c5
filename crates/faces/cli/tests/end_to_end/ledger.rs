//! What commands that judge leave in the ledger.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::process::Stdio;

use gauntlet_judge::ledger::{Index, Judged, Ledger, Wanted};
use serde_json::Value;

use crate::common::{NORM_SUITE, Place, Ran, TINY_SUITE, has_numpy, names};

const TASK: &str = r#"
import numpy as np
cases = {"correctness": [{"n": 7}], "benchmark": [{"name": "wide", "n": 4000}]}
outputs = ["y"]
def generate(n, seed):
    return {"x": np.random.default_rng(seed).standard_normal(n, dtype=np.float32)}
def reference(x):
    return x * 2
"#;

fn verdicts(place: &Place) -> Vec<Judged> {
    let ledger = Ledger::open_read_only(place.path("ledger.sqlite")).unwrap();
    Index::of(&ledger).unwrap().verdicts(&Wanted::default()).unwrap()
}

/// A folder with a suite whose built-in kernel takes microseconds.
fn norms() -> Place {
    let place = Place::new();
    place.write("suite.toml", NORM_SUITE);
    place
}

const COMPARE: [&str; 8] = [
    "compare",
    "builtin",
    "builtin",
    "--task",
    "suite.toml",
    "--pairs",
    "6",
    "--quick",
];

#[test]
fn each_command_that_judges_leaves_a_record_unless_it_is_told_not_to() {
    let place = norms();
    place.run(&[&COMPARE[..], &["--no-ledger"]].concat());
    assert!(!place.path("ledger.sqlite").exists());

    let ran = place
        .command(
            &[
                &COMPARE[..],
                &["--json", "result.json", "--ledger", "ledger.sqlite"],
            ]
            .concat(),
        )
        .env("GAUNTLET_CLIENT", "agent 7")
        .output();
    let ran = Ran::of(ran.unwrap());
    assert!(ran.out.contains("Kept in "), "{}", ran.out);
    place.run(&[
        "judge",
        "builtin",
        "--task",
        "suite.toml",
        "--pairs",
        "6",
        "--quick",
    ]);
    place
        .run(&["check", "suite.toml", "--simd", "portable"])
        .expect(0);
    place.write("products.toml", TINY_SUITE);
    let tune = [
        "tune",
        "--suite",
        "products.toml",
        "--executor",
        "model",
        "--device",
        "h200",
    ];
    place.run(&tune).expect(0);

    let found = verdicts(&place);
    let told: Vec<_> = found
        .iter()
        .map(|one| (one.command.as_str(), one.task.as_deref().unwrap()))
        .collect();
    let on_norms = ["check", "judge", "compare"].map(|command| (command, "suite"));
    assert_eq!(told, [&[("tune", "products")][..], &on_norms].concat());
    assert_eq!(found[1].verdict.as_deref(), Some("right"));
    assert_eq!(found[3].client.as_deref(), Some("agent 7"));

    let compared = &found[3].run.to_string();
    let shown = place.run(&["ledger", "show", compared, "--json"]).expect(0);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    let body = &shown["records"][1]["body"];
    let written: Value = serde_json::from_slice(&std::fs::read(place.path("result.json")).unwrap()).unwrap();
    assert_eq!(body["document"], written);
    assert_eq!(
        body["command"].as_array().unwrap().len(),
        COMPARE.len(),
        "not where results go"
    );
    let again = place.run(&["report", compared, "--json", "-"]).expect(0);
    assert_eq!(serde_json::from_str::<Value>(&again.out).unwrap(), written);
    names(
        &place.run(&["report", "latest"]).expect(2),
        &["gauntlet tune", "ledger show"],
    );

    let listed = place.run(&["ledger", "list", "--newest", "2"]).expect(0);
    assert!(listed.out.contains("tune") && listed.out.contains("check") && !listed.out.contains("compare"));
    let listed = place
        .run(&["ledger", "verdicts", "--client", "agent 7"])
        .expect(0);
    assert!(
        listed.out.contains(compared) && !listed.out.contains(&found[2].run.to_string()),
        "{}",
        listed.out
    );
    place
        .run(&["ledger", "verdicts", "--task", "suite", "--json"])
        .expect(0);
    place.run(&["ledger", "verify"]).expect(0);
}

#[test]
fn a_place_that_cannot_be_written_stops_a_command_only_if_it_was_named() {
    let place = norms();
    place.write("file", "");
    let named = place
        .run(&[&COMPARE[..], &["--ledger", "file/ledger.sqlite"]].concat())
        .expect(2);
    names(&named, &["file/ledger.sqlite", "--ledger"]);

    place.write(".gauntlet", "a file where the folder would be");
    let usual = place.command(&COMPARE).env_remove("GAUNTLET_LEDGER").output();
    let usual = Ran::of(usual.unwrap());
    assert_ne!(usual.code, Some(2), "{}", usual.err);
    names(&usual, &["note: nothing is recorded", ".gauntlet"]);
}

#[test]
fn commands_that_start_together_on_a_new_ledger_are_all_recorded() {
    const TOGETHER: usize = 16;
    let place = norms();
    let check = [
        "check",
        "suite.toml",
        "--simd",
        "portable",
        "--schedule",
        "baseline",
    ];
    let started: Vec<_> = (0..TOGETHER)
        .map(|_| {
            let mut command = place.command(&check);
            command
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in started {
        Ran::of(child.wait_with_output().unwrap()).expect(0);
    }
    assert_eq!(verdicts(&place).len(), TOGETHER);
    place.run(&["ledger", "verify"]).expect(0);
}

#[test]
fn a_verdict_can_be_repeated_from_the_sources_beside_the_ledger() {
    if !has_numpy() {
        return;
    }
    let place = Place::new();
    place.write("task.py", TASK);
    place.write("helper.py", "FACTOR = 2\n");
    place.write(
        "kernels.py",
        "import helper\ndef double(x):\n    return x * helper.FACTOR\n",
    );
    let check = ["check", "kernels.py:double", "--task", "task.py"];
    let checked = place.run(&check).expect(0);
    assert!(checked.out.contains("right"), "{}", checked.out);

    // What is repeated is what was judged, not what lies there now.
    place.write("helper.py", "FACTOR = 3\n");
    let told = place
        .run(&["ledger", "repeat", "latest", "--into", "again"])
        .expect(0);
    assert_eq!(
        told.out.trim(),
        "cd again && gauntlet check kernels.py:double --task task.py"
    );
    assert_eq!(
        std::fs::read_to_string(place.path("again/helper.py")).unwrap(),
        "FACTOR = 2\n"
    );
    names(
        &place
            .run(&["ledger", "repeat", "latest", "--into", "again"])
            .expect(2),
        &["not empty"],
    );
    let mut again = place.command(&check);
    let again = Ran::of(again.current_dir(place.path("again")).output().unwrap()).expect(0);
    assert!(again.out.contains("right"), "{}", again.out);
    place.run(&check).expect(1);
    let digests: Vec<_> = verdicts(&place)
        .into_iter()
        .map(|one| one.kernel_digest.unwrap())
        .collect();
    assert!(
        digests.iter().all(|one| *one == digests[0]),
        "the file of the kernel is the same"
    );
}

#[test]
fn ledgers_of_other_machines_are_merged() {
    let place = norms();
    let check = [
        "check",
        "suite.toml",
        "--simd",
        "portable",
        "--schedule",
        "baseline",
    ];
    let of = |ledger: &'static str| [&check[..], &["--ledger", ledger]].concat();
    place.run(&of("one.sqlite")).expect(0);
    place.run(&of("two.sqlite")).expect(0);
    let import = ["ledger", "import", "two.sqlite", "--ledger", "one.sqlite"];
    let ran = place.run(&import).expect(0);
    assert!(ran.out.contains("3 records of the ledger"), "{}", ran.out);
    let ran = place.run(&import).expect(0);
    assert!(
        ran.out.contains("holds nothing that one.sqlite does not hold"),
        "{}",
        ran.out
    );
    let verified = place
        .run(&["ledger", "verify", "--ledger", "one.sqlite"])
        .expect(0);
    assert!(verified.out.contains("imported from "), "{}", verified.out);
    let listed = place
        .run(&["ledger", "verdicts", "--ledger", "one.sqlite"])
        .expect(0);
    assert_eq!(listed.out.matches("right").count(), 2, "{}", listed.out);
    names(
        &place.run(&["ledger", "import", "absent.sqlite"]).expect(2),
        &["absent.sqlite"],
    );
}
