//! The program from the command line, with few comparisons.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_gauntlet-selftest");

/// A folder in which the program runs.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .current_dir(self.0.path())
            .env("NO_COLOR", "1")
            // The lock files are in this folder, so that a test does not wait for other programs that measure.
            .env("TMPDIR", self.0.path())
            .env("GAUNTLET_LOCKS", self.0.path())
            .env("GAUNTLET_THREADS", "1")
            .args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }
}

/// The result of a run.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        self
    }

    /// Standard error without the line breaks of the frame.
    fn folded(&self) -> String {
        let words = self.err.split_whitespace().filter(|word| *word != "│");
        words.collect::<Vec<_>>().join(" ")
    }
}

fn read(place: &Place, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(place.path(name)).unwrap()).unwrap()
}

#[test]
fn few_synthetic_comparisons_are_counted_and_reproduced() {
    let place = Place::new();
    let run = |file: &str, seed: &str| {
        let ran = place.run(&["--comparisons", "4", "--seed", seed, "--json", file]);
        // Four comparisons may miss a goal by chance.
        assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
        (ran, read(&place, file))
    };
    let (ran, first) = run("first.json", "3");
    for word in [
        "noisy neighbour",
        "5 % slower",
        "false adoption",
        "mean of runs",
        "goals held",
    ] {
        assert!(ran.out.contains(word), "{word}:\n{}", ran.out);
    }
    assert_eq!(first["synthetic"].as_array().unwrap().len(), 8 * 7);
    assert!(first["live"].as_array().unwrap().is_empty());
    for key in [
        "version",
        "date",
        "environment",
        "criteria",
        "measurement",
        "parameters",
    ] {
        assert!(!first[key].is_null(), "{key}");
    }
    let missed = first["goals"]
        .as_array()
        .unwrap()
        .iter()
        .any(|goal| goal["standing"] == "missed");
    assert_eq!(ran.code, Some(i32::from(missed)));
    assert_eq!(first["synthetic"], run("again.json", "3").1["synthetic"]);
    assert_ne!(first["synthetic"], run("other.json", "4").1["synthetic"]);
}

#[test]
#[ignore = "half a minute: a whole comparison"]
fn real_workers_are_compared_with_themselves() {
    let place = Place::new();
    let ran = place.run(&["--comparisons", "1", "--live", "1", "--json", "out.json"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
    assert!(ran.out.contains("this machine"), "{}", ran.out);
    let found = read(&place, "out.json");
    let [live] = &found["live-comparisons"].as_array().unwrap()[..] else {
        panic!("{found}");
    };
    let pairs = live["pairs"].as_u64().unwrap();
    assert!(pairs >= 4, "{live}");
    assert_eq!(
        live["process-effects"].as_array().unwrap().len() as u64,
        pairs,
        "{live}"
    );
    assert!(found["live-spread"].as_f64().unwrap() > 0.0);
    // A quarter of one is zero: effects that were not tried are not reported.
    assert!(
        found["synthetic"]
            .as_array()
            .unwrap()
            .iter()
            .all(|cell| cell["effect"] == 0.0)
    );
}

#[test]
fn the_neighbour_ends_with_its_input() {
    Place::new().run(&["worker", "cheat", "neighbour"]).expect(0);
}

/// The program serves no other worker, so a slowed one must be right and answer as any.
#[test]
fn a_slowed_worker_of_the_cpu_describes_itself() {
    let place = Place::new();
    let mut command = place.command(&["worker", "cpu", "--slowed-by", "1"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let request = b"{\"id\":1,\"call\":\"describe\"}\n";
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), request).unwrap();
    let answered = Ran::of(child.wait_with_output().unwrap()).expect(0);
    let answer: Value = serde_json::from_str(answered.out.lines().next().unwrap()).unwrap();
    assert_eq!(answer["id"], 1, "{answer}");
}

#[test]
fn what_it_cannot_do_is_refused() {
    let place = Place::new();
    let stranger = place.run(&["--honest", "--only", "no-such-worker"]).expect(2);
    for word in ["no-such-worker", "numpy"] {
        assert!(stranger.folded().contains(word), "{}", stranger.err);
    }
    let alone = place.run(&["--contested"]).expect(2);
    assert!(alone.folded().contains("--honest"), "{}", alone.err);
    place.run(&["worker", "zoo", "no-such-worker"]).expect(2);
    for arguments in [&[][..], &["--cheats"]] {
        let arguments = [arguments, &["--json", "/proc/out.json"]].concat();
        let ran = place.run(&arguments).expect(2);
        assert!(
            ran.folded().contains("nothing can be made in /proc"),
            "{}",
            ran.err
        );
        assert!(
            !place.path("gauntlet-measuring-cpu.lock").exists(),
            "{arguments:?} began all the same"
        );
    }
}

#[test]
fn a_gauntlet_of_other_sources_is_refused() {
    let place = Place::new();
    let other = place
        .run(&["--comparisons", "1", "--program", "/bin/echo"])
        .expect(2);
    assert!(
        other.folded().contains("build both from the same checkout"),
        "{}",
        other.err
    );
    let missing = place
        .run(&["--comparisons", "1", "--program", "/nowhere/gauntlet"])
        .expect(2);
    assert!(missing.folded().contains("does not start"), "{}", missing.err);
}

/// Locks the CPU, like another measuring program of this user, until it is dropped.
fn hold(place: &Place) -> File {
    let name = format!("gauntlet-measuring-cpu-{}.lock", Uid::effective());
    let file = File::create(place.path(&name)).unwrap();
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

#[test]
fn what_measures_waits_for_other_programs_and_ends_with_an_interrupt() {
    let place = Place::new();
    let _held = hold(&place);
    for arguments in [&["--comparisons", "1", "--live", "1"][..], &["--cheats"]] {
        let mut child = place.command(arguments).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = lines.map(Result::unwrap);
        assert!(
            said.any(|line| line.contains("waiting for")),
            "{arguments:?} did not wait"
        );
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{arguments:?}");
    }
    let ran = place.run(&["--comparisons", "1", "--live", "0"]);
    assert!(!ran.err.contains("waiting"), "{}", ran.err);
}
