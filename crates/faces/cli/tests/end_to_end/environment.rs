//! What the machine lacks is never a fault of the kernel: *blocked*, or an error of its own.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use crate::common::{NORM_SUITE, ONE_CASE, Place, Ran, has_numpy, names};

const KERNELS: &str = r#"
import os, time
import numpy as np

def norm(x, weight):
    squares = np.einsum("ij,ij->i", x, x, dtype=np.float64)
    scale = (1 / np.sqrt(squares / x.shape[1] + 1e-5)).astype(np.float32)
    return x * scale[:, None] * weight

def sleeps(x, weight):
    time.sleep(600)

def is_short_of_memory(x, weight):
    raise MemoryError("unable to allocate 30 GiB")

def is_killed(x, weight):
    os.kill(os.getpid(), 9)
"#;

fn place() -> Option<Place> {
    let place = Place::new();
    place.write("suite.toml", NORM_SUITE);
    place.write("kernels.py", KERNELS);
    has_numpy().then_some(place)
}

fn check(place: &Place, kernel: &str, change: impl Fn(&mut Command)) -> Ran {
    let mut command = place.command(&["check", &format!("kernels.py:{kernel}"), "--task", "suite.toml"]);
    change(&mut command);
    Ran::of(command.output().unwrap())
}

#[test]
fn a_first_call_that_takes_too_long_is_blocked_and_the_setting_is_named() {
    let Some(place) = place() else { return };
    let short = |command: &mut Command| {
        command.env("GAUNTLET_FIRST_CALL_TIMEOUT", "1");
    };
    let checked = check(&place, "sleeps", short).expect(4);
    assert!(
        checked.out.contains("GAUNTLET_FIRST_CALL_TIMEOUT"),
        "{}",
        checked.out
    );
    let rest = ["--task", "suite.toml", "--budget", "1ms"];
    let mut compare =
        place.command(&[&["compare", "kernels.py:norm", "kernels.py:sleeps"], &rest[..]].concat());
    short(&mut compare);
    let compared = Ran::of(compare.output().unwrap()).expect(4);
    assert!(
        compared.out.contains("blocked")
            && compared
                .out
                .replace('\n', " ")
                .contains("GAUNTLET_FIRST_CALL_TIMEOUT"),
        "{}",
        compared.out
    );
    let wrong = check(&place, "norm", |command| {
        command.env("GAUNTLET_FIRST_CALL_TIMEOUT", "soon");
    });
    names(
        &wrong.expect(2),
        &[
            "GAUNTLET_FIRST_CALL_TIMEOUT is `soon`",
            "positive number of seconds",
        ],
    );
}

#[test]
fn a_kernel_without_memory_is_blocked_in_a_check_too() {
    let Some(place) = place() else { return };
    let short = check(&place, "is_short_of_memory", |_| ()).expect(4);
    assert!(short.out.contains("out of memory"), "{}", short.out);
    assert!(
        short.out.contains("blocked: [1]") && !short.out.contains("not right"),
        "{}",
        short.out
    );
    let killed = check(&place, "is_killed", |_| ()).expect(4);
    assert!(
        killed
            .out
            .contains("killed by SIGKILL, as the system does when memory is short"),
        "{}",
        killed.out
    );
}

#[test]
fn a_worker_needs_no_more_than_64_files() {
    let Some(place) = place() else { return };
    let program = env!("CARGO_BIN_EXE_gauntlet");
    let script = format!("ulimit -n 64; exec '{program}' check kernels.py:norm --task suite.toml");
    let mut command = Command::new("sh");
    let known = place.command(&[]);
    for (name, value) in known.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["-c", &script]).current_dir(place.folder.path());
    Ran::of(command.output().unwrap()).expect(0);
}

#[test]
fn folders_whose_paths_are_not_utf_8_are_bad_input() {
    let Some(place) = place() else { return };
    let odd = place.folder.path().join(OsStr::from_bytes(b"bad\xff\xfe"));
    std::fs::create_dir(&odd).unwrap();
    for file in ["kernels.py", "suite.toml"] {
        std::fs::copy(place.path(file), odd.join(file)).unwrap();
    }
    let there = check(&place, "norm", |command| {
        command.current_dir(&odd);
    });
    names(&there.expect(2), &["not UTF-8", "go to another folder"]);
    let temporary = |kernel| {
        check(&place, kernel, |command| {
            command.env("TMPDIR", &odd);
        })
    };
    names(&temporary("norm").expect(2), &["not UTF-8", "TMPDIR"]);
}

#[test]
fn a_missing_folder_for_temporary_files_is_bad_input_for_every_task() {
    let Some(place) = place() else { return };
    place.write("built-in.toml", ONE_CASE);
    place.write(
        "task.py",
        "import numpy as np\ncases = [{\"n\": 8}]\ndef generate(n, seed):\n    return {\"x\": np.random.default_rng(seed).random(n)}\n\
         def reference(x):\n    return 2 * x\n",
    );
    let missing = place.path("missing");
    let run = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        Ran::of(command.env("TMPDIR", &missing).output().unwrap())
    };
    names(&run(&["check", "built-in.toml"]).expect(2), &["missing"]);
    names(
        &run(&["check", "kernels.py:norm", "--task", "task.py"]).expect(2),
        &["TMPDIR"],
    );
}
