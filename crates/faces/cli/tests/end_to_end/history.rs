//! `gauntlet history`. The kernels are C; without a compiler or git these tests print a note and pass.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;

use gauntlet_judge::ledger::{Index, Ledger, Wanted};
use serde_json::Value;

use crate::common::schemas::faults;
use crate::common::{NORM_SUITE, Place, names, repository};

/// Runs a program in a folder; `false` if it is not installed.
#[track_caller]
fn ran(folder: &Path, words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    for (name, value) in [("NAME", "A"), ("EMAIL", "a@b.c")] {
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_{name}"), value);
        }
    }
    let done = command
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(&words[1..])
        .output();
    match done {
        Ok(done) => {
            assert!(
                done.status.success(),
                "{words:?}: {}",
                String::from_utf8_lossy(&done.stderr)
            );
            true
        }
        Err(error) => {
            println!("skipped: {} does not start ({error})", words[0]);
            false
        }
    }
}

/// A repository with a norm in C, whose table is beside it, and a suite; none where git or a compiler is missing.
fn norms() -> Option<Place> {
    let place = Place::new();
    let folder = place.folder.path();
    place.write("suite.toml", NORM_SUITE);
    let order = "arguments = ['x', 'weight', 'y', 'rows', 'columns']";
    place.write("libnorm.toml", &format!("rms_norm.{order}"));
    let source = repository("crates/judge/hosts/library/tests/rms_norm.c");
    place.write("norm.c", &std::fs::read_to_string(source).unwrap());
    place.write(".gitignore", "*.so\nledger*\n");
    let made = ran(folder, &["git", "init", "-q"])
        && ran(
            folder,
            &[
                "cc",
                "-O1",
                "-shared",
                "-fPIC",
                "-o",
                "libnorm.so",
                "norm.c",
                "-lm",
            ],
        );
    made.then(|| {
        commit(&place, "first");
        place
    })
}

fn commit(place: &Place, subject: &str) {
    let folder = place.folder.path();
    ran(folder, &["git", "add", "-A"]);
    ran(folder, &["git", "commit", "-q", "--allow-empty", "-m", subject]);
}

fn compare(place: &Place, kernels: [&str; 2]) {
    let [baseline, candidate] = kernels;
    let words = [
        "compare",
        baseline,
        candidate,
        "--task",
        "suite.toml",
        "--pairs",
        "6",
        "--quick",
    ];
    let ran = place.run(&words);
    assert!(matches!(ran.code, Some(0 | 4)), "{}{}", ran.out, ran.err);
}

#[test]
fn kernels_in_a_repository_have_a_history_by_commit() {
    let Some(place) = norms() else { return };
    let none = place.run(&["history"]);
    names(&none.expect(2), &["ledger.sqlite"]);
    let library = "libnorm.so:rms_norm";
    compare(&place, [library, library]);
    commit(&place, "second");
    compare(&place, ["builtin", library]);

    let ledger = Ledger::open_read_only(place.path("ledger.sqlite")).unwrap();
    let found = Index::of(&ledger).unwrap().verdicts(&Wanted::default()).unwrap();
    let [newest, oldest] = &found[..] else {
        panic!("{found:?}")
    };
    let commit = newest.commit.as_ref().unwrap();
    assert!(commit.changed, "a built library is not in the commit");
    assert_eq!(commit.kernel, "libnorm.so:rms_norm");
    assert_eq!(
        newest.baseline_commit, None,
        "a built-in kernel is in no repository"
    );
    assert_eq!(oldest.commit, oldest.baseline_commit);
    assert_ne!(oldest.commit.as_ref().unwrap().id, commit.id);

    let shown = place
        .run(&["history", "--task", "suite", "--case", "one", "--json"])
        .expect(0);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(faults("history", &shown), Vec::<String>::new());
    let series = &shown.as_array().unwrap()[..];
    assert_eq!(series.len(), 1, "{shown}");
    let points = series[0]["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    assert_eq!(points[1]["commit"], commit.id);
    assert_eq!(
        points[1]["joint"],
        Value::Null,
        "the two commits were never compared"
    );

    let mut command = place.command(&["history", "--kernel", library]);
    let told = command.env("COLUMNS", "80").output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(
        told.contains("not compared") && told.contains(&format!("{}*", &commit.id[..10])),
        "{told}"
    );
    let is_narrow =
        |line: &str| line.starts_with("on ") || line.starts_with("* ") || line.chars().count() <= 80;
    assert!(told.lines().all(is_narrow), "{told}");
}

#[test]
fn a_history_needs_a_repository() {
    let place = Place::new();
    let mut command = place.command(&["history"]);
    let ran = crate::common::Ran::of(command.env("GIT_CEILING_DIRECTORIES", "/").output().unwrap());
    names(&ran.expect(2), &["checkout of a git repository"]);
}
