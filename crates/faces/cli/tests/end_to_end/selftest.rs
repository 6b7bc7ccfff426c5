//! The self-test is a program of its own, which the command finds and becomes.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Place, Ran, names};

/// The command in a folder of its own, as it is installed.
fn installed(place: &Place) -> PathBuf {
    let file = place.path("installed/gauntlet");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    // A link if it can be, for the file is large.
    let own = Path::new(env!("CARGO_BIN_EXE_gauntlet"));
    if std::fs::hard_link(own, &file).is_err() {
        std::fs::copy(own, &file).unwrap();
    }
    file
}

/// A self-test that says its name and its arguments, and ends with 42.
fn pretended(place: &Place, folder: &str) {
    let script = format!("#!/bin/sh\necho in {folder}\nprintf '<%s>' \"$@\"\nexit 42\n");
    let file = place.write(&format!("{folder}/gauntlet-selftest"), &script);
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn run(place: &Place, gauntlet: &Path, arguments: &[&str]) -> Ran {
    let path = format!("/nowhere:{}:/usr/bin:/bin", place.path("on-path").display());
    let mut command = Command::new(gauntlet);
    Ran::of(command.args(arguments).env("PATH", path).output().unwrap())
}

#[test]
fn it_becomes_the_program_beside_it_or_else_the_one_in_path() {
    let place = Place::new();
    let gauntlet = installed(&place);
    pretended(&place, "on-path");
    for folder in ["on-path", "installed"] {
        pretended(&place, folder);
        let ran = run(&place, &gauntlet, &["selftest", "--power", "--effects", "-1, 3"]).expect(42);
        let own = gauntlet.display();
        let expected = format!("in {folder}\n<--program><{own}><--power><--effects><-1, 3>");
        assert_eq!(ran.out, expected);
    }
    let worker = run(&place, &gauntlet, &["worker", "zoo", "numpy"]).expect(42);
    assert_eq!(worker.out, "in installed\n<worker><zoo><numpy>");
    let slowed = run(&place, &gauntlet, &["worker", "cpu", "--slowed-by", "0.5"]).expect(42);
    assert_eq!(slowed.out, "in installed\n<worker><cpu><--slowed-by><0.5>");
}

#[test]
fn without_it_the_command_says_how_to_get_it_and_helps_all_the_same() {
    let place = Place::new();
    let gauntlet = installed(&place);
    let missing = run(&place, &gauntlet, &["selftest", "--comparisons", "4"]).expect(3);
    names(
        &missing,
        &[
            "gauntlet-selftest is a program of its own",
            "cargo build --release -p gauntlet-selftest",
        ],
    );
    // A file that cannot be executed is no program.
    place.write("installed/gauntlet-selftest", "");
    run(&place, &gauntlet, &["selftest"]).expect(3);
    let help = run(&place, &gauntlet, &["selftest", "--help"]).expect(0);
    assert!(help.out.contains("--contested"), "{}", help.out);
}

#[test]
fn wrong_arguments_are_refused_before_it_is_looked_for() {
    let place = Place::new();
    let gauntlet = installed(&place);
    for wrong in [
        &["--comparisons", "0"][..],
        &["--power", "--effects", "many"],
        &["--power", "--runs", "0"],
        &["--power", "--budget", "0s"],
        &["--cheats", "--honest"],
    ] {
        run(&place, &gauntlet, &[&["selftest"], wrong].concat()).expect(2);
    }
    run(&place, &gauntlet, &["worker", "cpu", "--slowed-by", "-1"]).expect(2);
    let help = run(&place, &gauntlet, &["worker", "--help"]).expect(0).out;
    assert!(
        !help.contains("slowed"),
        "the option is for the self-test alone:\n{help}"
    );
}
