//! One measuring command at a time, and results whose target has disappeared.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Stdio};

use crate::common::{ONE_CASE, Place, Ran, names, pitch, repository, tiny_round};
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// One pair of processes, which is measured whatever the time.
const BENCH: [&str; 8] = [
    "bench",
    "baseline",
    "stages = 2",
    "--suite",
    "suite.toml",
    "--budget",
    "1ms",
    "--warm",
];

fn place() -> Place {
    let place = Place::new();
    place.write("suite.toml", ONE_CASE);
    place.write("round.toml", &tiny_round(&pitch("two-stages", "stages = 2", "")));
    place
}

/// Locks the CPU in a place until it is dropped, like another measuring program of this user.
fn hold(place: &Place) -> File {
    hold_file(
        place,
        &format!("gauntlet-measuring-cpu-{}.lock", nix::unistd::Uid::effective()),
    )
}

fn hold_file(place: &Place, name: &str) -> File {
    let file = File::create(place.path(name)).unwrap();
    let lock = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(&file, FcntlArg::F_SETLK(&lock)).unwrap();
    file
}

/// Starts a command that has to wait for this process, and waits until it does.
fn waiting(place: &Place, arguments: &[&str]) -> (Child, BufReader<ChildStderr>) {
    let mut command = place.command(arguments);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let holder = format!("process {} of ", std::process::id());
    let said = "is measuring on this machine's CPU; waiting for";
    let mut line = String::new();
    while !(line.starts_with(&holder) && line.contains(", running since ") && line.contains(said)) {
        line.clear();
        assert_ne!(
            stderr.read_line(&mut line).unwrap(),
            0,
            "{arguments:?} did not wait"
        );
    }
    (child, stderr)
}

/// Lets a waiting command continue, and returns its exit code and both outputs.
fn ended((mut child, mut stderr): (Child, BufReader<ChildStderr>)) -> (Option<i32>, String, String) {
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    stderr.read_to_string(&mut err).unwrap();
    let folded: Vec<_> = err.split_whitespace().filter(|word| *word != "│").collect();
    (child.wait().unwrap().code(), out, folded.join(" "))
}

#[test]
fn every_command_that_measures_waits_for_another() {
    let place = place();
    let held = hold(&place);
    let commands: [&[&str]; 3] = [&["run", "round.toml"], &BENCH, &["tune", "--suite", "suite.toml"]];
    for arguments in commands {
        let (mut child, _stderr) = waiting(&place, arguments);
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{arguments:?}");
    }
    // Commands that measure nothing do not wait.
    let replay = repository("examples/shark-tank/replay.toml");
    for arguments in [["check", "round.toml"], ["run", replay.to_str().unwrap()]] {
        let ran = place.run(&arguments);
        assert!(!ran.err.contains("waiting"), "{}", ran.err);
    }
    let bench = waiting(&place, &BENCH);
    drop(held);
    let (code, out, err) = ended(bench);
    // On a busy machine its times may be void: then the code is 4.
    assert!(matches!(code, Some(0 | 4)), "{err}\n{out}");
    assert!(
        out.contains("baseline") && out.contains("pairs of processes"),
        "{out}"
    );
}

#[test]
fn the_wait_for_another_program_has_a_limit() {
    let place = place();
    let limited = |limit: &str| {
        let mut command = place.command(&BENCH);
        Ran::of(command.env("GAUNTLET_WAIT", limit).output().unwrap())
    };
    let held = hold(&place);
    let ran = limited("0s").expect(4);
    let process = format!("process {} of ", std::process::id());
    names(
        &ran,
        &[
            &process,
            "is still measuring on this machine's CPU",
            "give a longer GAUNTLET_WAIT",
        ],
    );
    names(&limited("soon").expect(2), &["GAUNTLET_WAIT is `soon`", "10m"]);
    drop(held);
    // What all users share may be held by anyone, so that one goes on in the end.
    let _held = hold_file(&place, "gauntlet-measuring-cpu.lock");
    let ran = limited("0s");
    names(
        &ran,
        &[
            "gauntlet-measuring-cpu.lock is still held by process",
            "neither result is worth anything",
        ],
    );
    assert!(
        matches!(ran.code, Some(0 | 4)) && ran.out.contains("pairs of processes"),
        "{}",
        ran.out
    );
}

/// The path of the kept contents, from the error message.
fn kept(err: &str, folder: &Path) -> PathBuf {
    let (_, behind) = err.split_once("what it was to hold is in ").unwrap();
    let place = PathBuf::from(behind.split_whitespace().next().unwrap());
    assert!(place.starts_with(folder), "{err}");
    place
}

#[test]
fn what_cannot_be_written_in_the_end_is_kept_elsewhere() {
    let place = place();
    let result = "out/result.json";
    is_kept_elsewhere(&place, &[&BENCH[..], &["--json", result]].concat(), result);
    let tune = ["tune", "--suite", "suite.toml", "--case", "two", "--keep", "1"];
    let table = "out/table.toml";
    is_kept_elsewhere(&place, &[&tune[..], &["--output", table]].concat(), table);
    let page = "out/page.html";
    is_kept_elsewhere(&place, &["run", "round.toml", "--html", page], page);
}

/// Runs a command that writes a file to a folder which disappears before it does.
fn is_kept_elsewhere(place: &Place, arguments: &[&str], file: &str) {
    let folder = place.path("out");
    std::fs::create_dir(&folder).unwrap();
    let held = hold(place);
    let command = waiting(place, arguments);
    std::fs::remove_dir(&folder).unwrap();
    drop(held);
    let (code, out, err) = ended(command);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains(&format!("{file} cannot be written")), "{err}");
    assert!(!out.is_empty(), "the report is told all the same");
    let kept = kept(&err, place.folder.path());
    let text = std::fs::read_to_string(&kept).unwrap();
    match kept.extension().unwrap().to_str().unwrap() {
        "json" => drop(serde_json::from_str::<Value>(&text).unwrap()),
        "toml" => drop(text.parse::<toml::Table>().unwrap()),
        _ => assert!(text.contains("<html"), "{text}"),
    }
}
