//! Killed at any moment: the ledger opens, no record is lost, and `--resume` finishes.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::common::{ONE_CASE, Place, Ran, names, pitch, repository, tiny_round};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The number of moments at which a process is killed, spread over the run: in ordinary tests, and in long ones.
const MOMENTS: [usize; 2] = [3, 10];

/// The timeout for events that are certain to happen, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(240);

fn place() -> Place {
    let place = Place::new();
    place.write("suite.toml", ONE_CASE);
    let pitches: String = ["stages = 2", "order = \"dynamic\""]
        .iter()
        .enumerate()
        .map(|(index, schedule)| pitch(&format!("pitch-{index}"), schedule, ""))
        .collect();
    place.write("round.toml", &tiny_round(&pitches));
    place
}

pub fn start(place: &Place, arguments: &[&str]) -> Child {
    place
        .command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// How long a whole run takes here, to spread the kills over it.
fn whole_run() -> Duration {
    static TOOK: OnceLock<Duration> = OnceLock::new();
    *TOOK.get_or_init(|| {
        let place = place();
        let start = Instant::now();
        place.run(&["run", "round.toml"]).expect(0);
        start.elapsed()
    })
}

fn records(place: &Place) -> Vec<String> {
    if !place.path("ledger.sqlite").exists() {
        return Vec::new();
    }
    let exported = place.run(&["ledger", "export"]).expect(0);
    exported.out.lines().map(str::to_owned).collect()
}

#[test]
fn a_killed_coordinator_loses_nothing_and_resumes() {
    kill_coordinators(MOMENTS[0]);
}

#[test]
#[ignore = "minutes: a run for each of ten moments"]
fn a_killed_coordinator_loses_nothing_at_any_moment() {
    kill_coordinators(MOMENTS[1]);
}

fn kill_coordinators(moments: usize) {
    let whole = whole_run();
    for moment in 1..=moments {
        let place = place();
        let mut coordinator = start(&place, &["run", "round.toml"]);
        std::thread::sleep(whole.mul_f64(moment as f64 / (moments + 1) as f64));
        coordinator.kill().unwrap();
        coordinator.wait().unwrap();

        let before = records(&place);
        if !before.is_empty() {
            place.run(&["ledger", "verify"]).expect(0);
        }
        let begun = before.iter().any(|line| line.contains("run-started"));
        let ended = before.iter().any(|line| line.contains("run-ended"));
        let ran = place.run(if begun && !ended {
            &["run", "round.toml", "--resume"]
        } else {
            &["run", "round.toml"]
        });
        let ran = ran.expect(0);
        for pitch in ["pitch-0", "pitch-1"] {
            assert!(ran.out.contains(pitch), "{}", ran.out);
        }

        let after = records(&place);
        assert_eq!(
            after[..before.len()],
            before[..],
            "records of before the kill were lost or changed"
        );
        assert!(after.last().unwrap().contains("run-ended"));
        place.run(&["ledger", "verify"]).expect(0);
    }
}

/// The worker processes of a coordinator; each is a child of the thread that started it.
pub fn workers(coordinator: u32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{coordinator}/task"));
    threads
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|thread| {
            let listed = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            listed
                .split_whitespace()
                .filter_map(|id| id.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Whether a process runs; a zombie does not.
#[cfg(target_os = "linux")]
fn runs(process: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

/// A coordinator whose only pitch is a program that sleeps, and its children: the process of that program, and process 1
/// of each namespace.
#[cfg(target_os = "linux")]
fn start_sleeper(place: &Place) -> (Child, Vec<i32>) {
    use std::os::unix::fs::PermissionsExt;
    let path = place.write("worker.sh", "#!/bin/sh\nexec sleep 300\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let theirs = pitch("theirs", "", "command = [\"./worker.sh\"]").replace("schedule = {  }\n", "");
    place.write("round.toml", &tiny_round(&theirs));
    let coordinator = start(place, &["run", "round.toml"]);
    let children = children_with_sleeper(coordinator.id());
    (coordinator, children)
}

#[cfg(target_os = "linux")]
fn children_with_sleeper(coordinator: u32) -> Vec<i32> {
    let sleeps = |worker: &i32| {
        let command = std::fs::read(format!("/proc/{worker}/cmdline")).unwrap_or_default();
        command == b"sleep\x00300\x00"
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let children = workers(coordinator);
        if children.iter().any(sleeps) {
            return children;
        }
        assert!(Instant::now() < deadline, "the worker was never started");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(target_os = "linux")]
fn expect_gone(children: &[i32], what: &str) {
    let deadline = Instant::now() + PATIENCE;
    while children.iter().any(|child| runs(*child)) {
        assert!(Instant::now() < deadline, "a child outlives {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_worker_is_replaced_or_reported() {
    kill_workers(MOMENTS[0]);
}

#[test]
#[ignore = "minutes: a run for each of ten moments"]
fn a_killed_worker_is_replaced_or_reported_at_any_moment() {
    kill_workers(MOMENTS[1]);
}

fn kill_workers(moments: usize) {
    let whole = whole_run();
    for moment in 1..=moments {
        let place = place();
        let mut coordinator = start(&place, &["run", "round.toml"]);
        std::thread::sleep(whole.mul_f64(moment as f64 / (moments + 1) as f64));
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut killed = false;
        while !killed && Instant::now() < deadline && coordinator.try_wait().unwrap().is_none() {
            if let Some(worker) = workers(coordinator.id()).first() {
                killed = kill(Pid::from_raw(*worker), Signal::SIGKILL).is_ok();
            }
        }
        let ran = Ran::of(coordinator.wait_with_output().unwrap()).expect(0);
        for pitch in ["pitch-0", "pitch-1"] {
            assert!(ran.out.contains(pitch), "{}", ran.out);
        }
        assert!(
            !ran.out.contains("killed by"),
            "one death is an accident, and is tried once more:\n{}",
            ran.out
        );
        place.run(&["ledger", "verify"]).expect(0);
    }
}

#[test]
fn where_nothing_was_cut_short_a_run_begins() {
    let place = place();
    for _ in 0..2 {
        let ran = place.run(&["run", "round.toml", "--resume"]).expect(0);
        names(&ran, &["that was cut short; a new one begins"]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_run_that_is_being_played_is_not_resumed() {
    let place = place();
    // It cannot end before the second one has seen it, since its only worker sleeps.
    let (mut first, children) = start_sleeper(&place);
    let second = place.run(&["run", "round.toml", "--resume"]);
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(second.folded().contains("still being played"), "{}", second.err);
    second.expect(2);
    expect_gone(&children, "the coordinator");
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupt_takes_the_workers_along() {
    let place = place();
    let (coordinator, children) = start_sleeper(&place);
    kill(
        Pid::from_raw(i32::try_from(coordinator.id()).unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    let ran = Ran::of(coordinator.wait_with_output().unwrap()).expect(130);
    let said = ran.folded();
    assert!(
        said.contains("interrupted: what was found is kept in") && said.contains("--resume goes on with it"),
        "{said}"
    );
    expect_gone(&children, "the interrupt");
}

/// The temporary folders in a place: all programs of a test have it for their temporary files.
pub fn temporary_folders(place: &Place) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.folder.path()).unwrap().flatten();
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let named = folders.filter(|entry| entry.file_name().to_string_lossy().starts_with("gauntlet-"));
    named.map(|entry| entry.path()).collect()
}

/// A command that waits for the operands of a Python task, once it has a temporary folder for the process that makes them.
fn start_reference(place: &Place) -> Child {
    place.write(
        "slow.py",
        "import time\ncases = [{'n': 4}]\ntime.sleep(300)\ndef generate(n, seed):\n    pass\ndef reference():\n    pass\n",
    );
    place.write("kernel.py", "def f(x):\n    return x\n");
    let coordinator = start(place, &["check", "kernel.py:f", "--task", "slow.py"]);
    let deadline = Instant::now() + PATIENCE;
    while !temporary_folders(place)
        .iter()
        .any(|folder| folder.join("lock").exists())
    {
        assert!(Instant::now() < deadline, "the reference was never started");
        std::thread::sleep(Duration::from_millis(5));
    }
    coordinator
}

/// Commands with temporary folders that do not end by themselves.
#[cfg(target_os = "linux")]
const STARTS: [fn(&Place) -> Child; 2] = [|place| start_sleeper(place).0, start_reference];

#[test]
#[cfg(target_os = "linux")]
fn a_signal_leaves_no_temporary_folder() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        for starts in STARTS {
            let place = place();
            let coordinator = starts(&place);
            assert!(!temporary_folders(&place).is_empty());
            kill(Pid::from_raw(i32::try_from(coordinator.id()).unwrap()), signal).unwrap();
            Ran::of(coordinator.wait_with_output().unwrap()).expect(130);
            assert_eq!(temporary_folders(&place), Vec::<PathBuf>::new(), "{signal}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_killed_program_left_is_removed_by_the_next() {
    let place = place();
    for starts in STARTS {
        let mut coordinator = starts(&place);
        coordinator.kill().unwrap();
        coordinator.wait().unwrap();
        assert!(!temporary_folders(&place).is_empty(), "nothing was left");
        // It has a temporary folder itself, whatever it says of a task that is not there.
        place.run(&["check", "suite.toml", "--schedule", "baseline"]);
        assert_eq!(temporary_folders(&place), Vec::<PathBuf>::new());
    }
}

/// The signal that a file at the limit of sizes raises would end the program without a word.
#[test]
#[cfg(target_os = "linux")]
fn a_limit_of_file_sizes_is_told_like_a_full_disk() {
    let place = place();
    let limited = |arguments: &[&str]| {
        let mut command = place.command(&[]);
        let program = command.get_program().to_owned();
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", "ulimit -f 4; exec \"$0\" \"$@\""])
            .arg(program)
            .args(arguments);
        shell.current_dir(place.folder.path());
        shell.envs(
            command
                .env("LC_ALL", "C")
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        Ran::of(shell.output().unwrap())
    };
    let replay = repository("examples/shark-tank/replay.toml");
    let ran = limited(&["run", replay.to_str().unwrap()]).expect(3);
    names(&ran, &["no room for the ledger", "`ulimit -f`"]);
}

#[test]
#[cfg(target_os = "linux")]
fn runs_that_start_together_on_a_new_ledger_all_succeed() {
    let place = place();
    let replay = repository("examples/shark-tank/replay.toml");
    let run = ["run", replay.to_str().unwrap()];
    let together: Vec<Child> = (0..12).map(|_| start(&place, &run)).collect();
    for child in together {
        let ran = Ran::of(child.wait_with_output().unwrap()).expect(0);
        assert!(!ran.err.contains("cut short"), "{}", ran.err);
    }
    place.run(&["ledger", "verify"]).expect(0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_coordinator_takes_the_workers_along() {
    let place = place();
    let (mut coordinator, children) = start_sleeper(&place);
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    expect_gone(&children, "the coordinator");
}
