//! Shared parts of the end-to-end tests: the binary, a folder for each test, and rounds small enough to play in
//! seconds.

#![expect(clippy::unwrap_used, reason = "tests")]

mod interpreter;
pub mod schemas;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gauntlet_judge::ledger::{Ledger, Record};
use tempfile::TempDir;

pub use interpreter::{has_numpy, interpreter};

/// A folder with a ledger, in which the binary runs.
pub struct Place {
    pub folder: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The records of the newest run in the ledger, in order.
    pub fn records(&self) -> Vec<Record> {
        let ledger = Ledger::open_read_only(self.path("ledger.sqlite")).unwrap();
        let run = ledger.runs().unwrap().remove(0).id;
        let entries = ledger.records(&run).unwrap().into_iter();
        entries.map(|entry| entry.record).collect()
    }

    /// The binary with its ledger in this folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gauntlet"));
        command
            .current_dir(self.folder.path())
            .env("NO_COLOR", "1")
            .env("GAUNTLET_LEDGER", self.path("ledger.sqlite"))
            // The lock files are in this folder, so that a test does not wait for other programs that measure.
            .env("TMPDIR", self.folder.path())
            .env("GAUNTLET_LOCKS", self.folder.path())
            // Threads that a package of Python starts wait for work by spinning.
            .env("OPENBLAS_NUM_THREADS", "1")
            .args(arguments);
        if let Some(python) = interpreter() {
            command.env("GAUNTLET_PYTHON", python);
        }
        if arguments.first() != Some(&"check") {
            // Threads of a worker that wait for one another take processors from the tests that run beside it. A check tries
            // schedules that need two.
            command.env("GAUNTLET_THREADS", "1");
        }
        command
    }

    /// Runs the binary. Documents that it writes are valid by their schemas.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Ran {
        let ran = Ran::of(self.command(arguments).output().unwrap());
        schemas::check_written(self.folder.path(), arguments, &ran.out);
        ran
    }
}

/// The result of a run of the binary.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Standard error with the line breaks of the frame removed, so that phrases can be found.
    pub fn folded(&self) -> String {
        self.err
            .split_whitespace()
            .filter(|word| *word != "│")
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "stdout:\n{}\nstderr:\n{}",
            self.out,
            self.err
        );
        self
    }
}

/// Checks that a message contains all of these phrases, and that nothing panicked.
#[track_caller]
pub fn names(ran: &Ran, phrases: &[&str]) {
    let said = ran.folded();
    for phrase in phrases {
        assert!(said.contains(phrase), "no {phrase:?} in:\n{}", ran.err);
    }
    assert!(!said.contains("panicked"), "{}", ran.err);
}

/// A path in the repository.
pub fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(name)
        .canonicalize()
        .unwrap()
}

/// A suite of root mean square norms that take microseconds.
pub const NORM_SUITE: &str = r#"
[[correctness]]
name = "odd"
rms-norm = { rows = 3, columns = 67 }

[[benchmark]]
name = "one"
rms-norm = { rows = 64, columns = 512 }
"#;

/// A suite of matrix products that take microseconds.
pub const TINY_SUITE: &str = r#"
[[correctness]]
name = "odd"
grouped-gemm = { groups = [{ m = 3, n = 40, k = 48 }, { m = 0, n = 16, k = 16 }] }

[[benchmark]]
name = "one"
grouped-gemm = { groups = [{ m = 16, n = 64, k = 128 }, { m = 5, n = 48, k = 64 }] }

[[benchmark]]
name = "two"
grouped-gemm = { groups = [{ m = 8, n = 96, k = 256 }] }
"#;

/// The smaller one of its cases alone.
pub const ONE_CASE: &str = r#"
[[benchmark]]
name = "two"
grouped-gemm = { groups = [{ m = 8, n = 96, k = 256 }] }
"#;

/// A round on [`TINY_SUITE`] with the given pitches' TOML. It looks once, after the fewest pairs that have a spread; the
/// corpus of cheats has rounds of several looks.
pub fn tiny_round(pitches: &str) -> String {
    format!(
        r#"
name = "tiny"
title = "small enough for a test"
executor = "cpu"
device = "host"
suite = "suite.toml"

[baseline.schedule]
tile = [16, 32, 64]

[measurement]
looks = [2]
open-ended = false
blocks = 1
budget = "20s"
warm = true
{pitches}
"#
    )
}

/// A complete pitch; `rest` may add optional fields.
pub fn pitch(name: &str, schedule: &str, rest: &str) -> String {
    format!(
        r#"
[[pitch]]
name = "{name}"
contestant = "a test"
problem = "something is slow"
change = "something else"
schedule = {{ {schedule} }}
claim = {{ speedup = {{ q10 = 1.0, q50 = 1.1, q90 = 1.2 }} }}
odds = {{ adopt = 0.5, inconclusive = 0.5 }}
cost = {{ hours = 1 }}
risk = {{ level = "low", why = "little changes" }}
evidence = [{{ kind = "intuition", text = "it feels right" }}]
abort = []
fallback = {{ plan = "keep the baseline" }}
{rest}
"#
    )
}
