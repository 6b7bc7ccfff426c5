//! Places that are not a ledger, not writable, or missing: each is reported before anything is measured, and nothing in
//! them is changed.

use crate::common::{Place, Ran, TINY_SUITE, names, pitch, tiny_round};

#[test]
fn a_ledger_of_a_newer_schema() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place.write("round.toml", &tiny_round(&pitch("two-stages", "stages = 2", "")));
    place.run(&["run", "round.toml"]).expect(0);
    let path = place.path("ledger.sqlite");
    let mut bytes = std::fs::read(&path).unwrap();
    // `user_version` of an SQLite file: four bytes at offset 60, big-endian.
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let ran = place.run(&["run", "round.toml"]).expect(2);
    names(&ran, &["ledger.sqlite", "schema 99", "newer gauntlet"]);
    assert_eq!(
        std::fs::read(&path).unwrap(),
        bytes,
        "the newer ledger was touched"
    );
}

#[test]
fn a_ledger_in_a_place_that_cannot_be_written() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place.write("round.toml", &tiny_round(&pitch("two-stages", "stages = 2", "")));
    // No user, not even root, can create a folder below a file.
    place.write("file", "");
    let ran = place
        .run(&["run", "round.toml", "--ledger", "file/ledger.sqlite"])
        .expect(2);
    names(&ran, &["file/ledger.sqlite", "--ledger"]);
}

#[test]
fn a_read_only_folder() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place.write("round.toml", &tiny_round(&pitch("two-stages", "stages = 2", "")));
    let locked = place.path("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::write(locked.join("probe"), "").is_ok() {
        // Root writes anywhere; the test above covers what root cannot do.
        return;
    }
    let ran = place
        .run(&["run", "round.toml", "--ledger", "locked/ledger.sqlite"])
        .expect(2);
    names(&ran, &["locked/ledger.sqlite", "--ledger"]);
}

#[test]
fn a_full_disk() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place.write("round.toml", &tiny_round(&pitch("two-stages", "stages = 2", "")));
    let disk = place.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&disk)
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        // Only root may mount; the ledger's own tests limit its size instead.
        return;
    }
    let ran = place.run(&["run", "round.toml", "--ledger", "disk/ledger.sqlite"]);
    let unmounted = std::process::Command::new("umount").arg(&disk).status().unwrap();
    assert!(unmounted.success());
    names(&ran.expect(3), &["disk/ledger.sqlite", "full", "--ledger"]);
}

#[test]
fn a_place_for_results_that_is_not_there() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place.write("round.toml", &tiny_round(""));
    std::fs::create_dir(place.path("folder")).unwrap();
    place.write("old.json", "old");
    let bench = ["bench", "baseline", "stages = 2", "--suite", "suite.toml"];
    let tune = ["tune", "--suite", "suite.toml"];
    // No user, not even root, can create files in these system folders.
    for (arguments, phrase) in [
        (
            [&["run", "round.toml"][..], &["--json", "nowhere/out.json"]],
            "there is no folder nowhere",
        ),
        (
            [&["run", "round.toml"], &["--html", "/proc/out.html"]],
            "nothing can be made in /proc",
        ),
        ([&bench, &["--json", "folder"]], "it is a folder"),
        (
            [&bench, &["--json", "/proc/out.json"]],
            "nothing can be made in /proc",
        ),
        (
            [&tune, &["--output", "/proc/out.toml"]],
            "nothing can be made in /proc",
        ),
        (
            [&tune, &["--json", "suite.toml/out.json"]],
            "there is no folder suite.toml",
        ),
        (
            [&["check", "suite.toml"], &["--json", "/proc/out.json"]],
            "nothing can be made in /proc",
        ),
    ] {
        let ran = place.run(&arguments.concat()).expect(2);
        names(&ran, &["cannot be written", phrase, "help: "]);
        // A command that measures locks the processors first.
        let lock = place.path("gauntlet-measuring-cpu.lock");
        assert!(!lock.exists(), "{arguments:?} began all the same");
    }
    // A writable target is left unchanged until there is output.
    let ran = place.run(&[
        "run",
        "no-such-round.toml",
        "--json",
        "old.json",
        "--html",
        "new.html",
    ]);
    names(&ran.expect(2), &["no-such-round.toml"]);
    assert_eq!(std::fs::read_to_string(place.path("old.json")).unwrap(), "old");
    assert!(!place.path("new.html").exists());
    assert!(
        !place.path("ledger.sqlite").exists(),
        "it is refused before anything is played"
    );
}

#[test]
fn a_folder_for_operands_that_is_not_there() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    let mut command = place.command(&["bench", "baseline", "stages = 2", "--suite", "suite.toml"]);
    let ran = Ran::of(command.env("TMPDIR", place.path("nowhere")).output().unwrap());
    names(&ran.expect(2), &["folder for operands cannot be made", "nowhere"]);
}
