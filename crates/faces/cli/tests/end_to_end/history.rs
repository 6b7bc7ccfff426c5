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

    place.run(&["pages", "--out", "site"]).expect(0);
    let read = |name: &str| std::fs::read_to_string(place.path(&format!("site/{name}"))).unwrap();
    let list = read("histories.html");
    let page = list
        .split('"')
        .find(|text| text.starts_with("histories/"))
        .unwrap();
    let page = read(page);
    assert_eq!(page.matches("<circle").count(), 2, "{page}");
    assert!(
        page.contains("not compared") && !page.contains("</circle></g><g class=\"interval\"><line"),
        "{page}"
    );
    assert!(page.contains(&commit.id[..10]), "{page}");
}

#[test]
fn a_history_needs_a_repository() {
    let place = Place::new();
    let mut command = place.command(&["history"]);
    let ran = crate::common::Ran::of(command.env("GIT_CEILING_DIRECTORIES", "/").output().unwrap());
    names(&ran.expect(2), &["checkout of a git repository"]);
}

const BUILD: &str = "cc -O1 -shared -fPIC -o libnorm.so norm.c -lm";

/// A norm in C over seven commits, of which the sixth adds more work than there was and the fourth, in their middle, does not build.
fn seven_commits() -> Option<Place> {
    let place = norms()?;
    let source = std::fs::read_to_string(place.path("norm.c")).unwrap();
    let twice = source.replacen(
        "double squares = 0;",
        "double squares = 0;\n#include \"again.h\"",
        1,
    );
    let again = "for (int64_t turn = 0; turn < REPEATED; turn++)
        for (int64_t column = 0; column < columns; column++) ((volatile float*)y)[row * columns + column] = from[column] * 2;\n";
    place.write("again.h", again);
    for number in 1..=7 {
        let repeated = if number >= 6 { 8 } else { 0 };
        let fault = if number == 4 { "#error unfinished\n" } else { "" };
        place.write(
            "norm.c",
            &format!("{fault}#define REPEATED {repeated}\n{twice}// {number}\n"),
        );
        commit(&place, &format!("number {number}"));
    }
    Some(place)
}

fn bisect(place: &Place, more: &[&str]) -> crate::common::Ran {
    let words = [
        "bisect",
        "HEAD~6",
        "HEAD",
        "--kernel",
        "libnorm.so:rms_norm",
        "--task",
        "suite.toml",
    ];
    place.run(
        &[
            &words[..],
            &["--build", BUILD, "--quick", "--budget", "60s"],
            more,
        ]
        .concat(),
    )
}

#[test]
fn the_commit_that_adds_work_is_named_and_the_users_tree_stays_as_it_is() {
    let Some(place) = seven_commits() else { return };
    let plan = bisect(&place, &["--dry-run"]).expect(0);
    names(&plan, &["6 commits after", "about 5 comparisons of at most 1m"]);
    place.write("norm.c", "an edit that is not committed");
    let found = bisect(&place, &["--json", "found.json"]).expect(0);
    assert!(found.out.contains("(number 6)"), "{}{}", found.out, found.err);
    let written = std::fs::read_to_string(place.path("found.json")).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["conclusion"]["found"], "culprit");
    let steps = written["steps"].as_array().unwrap();
    let last = steps.last().unwrap();
    assert_eq!(last["commit"], written["conclusion"]["commit"]);
    let passed = |step: &&Value| step["standing"]["unusable"].is_string();
    assert_eq!(
        steps.iter().filter(passed).count(),
        1,
        "the fourth does not build:\n{written:#}"
    );
    assert!(found.out.contains("unfinished"), "{}", found.out);

    assert_eq!(
        std::fs::read_to_string(place.path("norm.c")).unwrap(),
        "an edit that is not committed"
    );
    let folder = place.folder.path();
    let listed = Command::new("git")
        .current_dir(folder)
        .args(["worktree", "list"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(listed.stdout).unwrap().lines().count(), 1);
    // Its comparisons join the points of the history.
    let shown = place.run(&["history", "--json"]).expect(0);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    let points = shown[0]["points"].as_array().unwrap();
    assert!(
        points
            .iter()
            .any(|point| point["joint"]["speedup"]["upper"].as_f64() < Some(-0.3)),
        "{shown:#}"
    );

    let reversed = [
        "bisect",
        "HEAD",
        "HEAD~6",
        "--kernel",
        "libnorm.so:rms_norm",
        "--task",
        "suite.toml",
    ];
    names(&place.run(&reversed).expect(2), &["is not before"]);
}

#[test]
fn a_kernel_that_is_as_fast_as_before_blames_no_commit() {
    let Some(place) = seven_commits() else { return };
    ran(place.folder.path(), &["sh", "-c", BUILD]);
    let library = "libnorm.so:rms_norm";
    let words = [
        "compare",
        library,
        library,
        "--task",
        "suite.toml",
        "--pairs",
        "6",
    ];
    let first = place.run(&[&words[..], &["--quick", "--json", "first.json"]].concat());
    assert!(matches!(first.code, Some(0 | 4)), "{}{}", first.out, first.err);
    let words = [
        "bisect",
        "HEAD~1",
        "HEAD",
        "--kernel",
        "libnorm.so:rms_norm",
        "--task",
        "suite.toml",
    ];
    let more = ["--build", BUILD, "--quick", "--budget", "60s", "--least", "200"];
    let found = place.run(&[&words[..], &more, &["--json", "found.json"]].concat());
    let found = found.expect(1);
    assert!(found.out.contains("the code is not to blame"), "{}", found.out);
    // The bad commit was judged before; its code is the same, so that its times of then and now tell of everything else.
    assert!(
        found
            .out
            .contains("The same code, when it was first compared and now"),
        "{}",
        found.out
    );
    let read = |name: &str| -> Value {
        let text = std::fs::read_to_string(place.path(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let (first, found) = (read("first.json"), read("found.json"));
    assert_eq!(faults("bisection", &found), Vec::<String>::new());
    let again = found["conclusion"]["again"].as_array().unwrap();
    assert!(!again.is_empty());
    for one in again {
        let cases = first["comparison"]["cases"].as_array().unwrap();
        let then = cases.iter().find(|case| case["case"] == one["case"]).unwrap();
        let [then, was] = [&then["baseline"], &one["was"]].map(|time| time.as_f64().unwrap());
        assert!((then / was - 1.0).abs() < 1e-9, "{one}");
    }
}

#[test]
fn commits_since_the_last_time_are_watched_and_what_moved_is_told() {
    let Some(place) = seven_commits() else { return };
    place.write(
        "watched.toml",
        &format!(
            "[[watched]]\nkernel = 'libnorm.so:rms_norm'\ntask = 'suite.toml'\nbuild = '{BUILD}'\nquick = true\nbudget = '60s'\n"
        ),
    );
    let reset = |commit: &str| ran(place.folder.path(), &["git", "reset", "-q", "--hard", commit]);
    let watch = |more: &[&str]| place.run(&[&["watch", "watched.toml"], more].concat());
    // The list is not committed: a reset leaves it.
    reset("HEAD~4");
    let first = watch(&["--json", "found.json"]);
    assert!(matches!(first.code, Some(0 | 4)), "{}{}", first.out, first.err);
    let found = std::fs::read_to_string(place.path("found.json")).unwrap();
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(faults("watching", &found), Vec::<String>::new());
    assert_eq!(found["compared"].as_array().unwrap().len(), 1);
    assert!(
        found["compared"][0]["standing"]["judged"].is_object(),
        "{found:#}"
    );

    // The fourth does not build, so that nothing is compared with it; from the third to the sixth at once.
    reset("HEAD@{1}~3");
    let unbuilt = watch(&[]).expect(4);
    names(&unbuilt, &["number 4", "does not build"]);
    reset("HEAD@{2}~1");
    let tip = watch(&["--tip", "--markdown", "moved.md"]).expect(1);
    assert_eq!(tip.out, "");
    let moved = std::fs::read_to_string(place.path("moved.md")).unwrap();
    assert!(
        moved.contains("1 slower or wrong") && moved.contains("number 6"),
        "{moved}"
    );
    assert!(
        moved.contains("gauntlet bisect") && moved.contains("gauntlet ledger repeat"),
        "{moved}"
    );

    let nothing = watch(&[]).expect(0);
    assert!(nothing.err.contains("no new commit"), "{}", nothing.err);
    place.write("watched.toml", "");
    names(&watch(&[]).expect(2), &["watched.toml"]);
}
