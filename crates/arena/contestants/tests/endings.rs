//! Programs end with all that they started, whatever becomes of Gauntlet, and get no secrets.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::env;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use gauntlet_contestants::{Asked, Contestant, Engine, Form, Misconduct};
use gauntlet_worker::{Standing, safeguards};
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::json;

/// The variable that makes [`asks_a_program`] ask this script.
const SCRIPT: &str = "GAUNTLET_TEST_SCRIPT";

fn ask(script: &str) -> Result<Asked, Misconduct> {
    let engine = Engine {
        program: Some(["sh", "-c", script].map(Into::into).into()),
        ..Engine::default()
    };
    let form = Form {
        words: String::new(),
        schema: json!({}),
    };
    Contestant::new("Tiles", engine, Path::new("/tmp")).ask(&json!({}), &form, None, &|_| Ok(()))
}

/// Not a test of its own: the other tests start it as a process that they can kill, or that has other variables.
#[test]
fn asks_a_program() {
    if let Ok(script) = env::var(SCRIPT) {
        ask(&script).unwrap();
    }
}

fn another_gauntlet(script: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "asks_a_program", "--nocapture"])
        .env(SCRIPT, script)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// A pipe with a name, and its reading end, which sees the end when no process holds it open for writing any more.
struct Witness {
    folder: tempfile::TempDir,
    reading: File,
}

impl Witness {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("witness");
        mkfifo(&path, Mode::S_IRWXU).unwrap();
        // Opened at once, without waiting for a writer.
        let reading = OpenOptions::new()
            .read(true)
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open(&path)
            .unwrap();
        nix::fcntl::fcntl(&reading, nix::fcntl::FcntlArg::F_SETFL(OFlag::empty())).unwrap();
        Self { folder, reading }
    }

    /// Commands that start a process which lives for long with the pipe open, and wait until it does.
    fn linger(&self, how: &str) -> String {
        let pipe = self.folder.path().join("witness");
        let up = self.folder.path().join("up");
        format!(
            "{how} sh -c 'exec 9>{0}; echo up >&9; touch {1}; sleep 300' & while ! test -e {1}; do sleep 0.01; done",
            pipe.display(),
            up.display()
        )
    }

    /// Waits for the process that lingers.
    fn await_it(&mut self) {
        // Before a writer comes, there is nothing to read, as after the last one has gone.
        while !self.folder.path().join("up").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let mut word = [0; 3];
        self.reading.read_exact(&mut word).unwrap();
        assert_eq!(&word, b"up\n");
    }

    /// Waits until no process holds the pipe open.
    fn await_the_end(&mut self) {
        let mut rest = Vec::new();
        self.reading.read_to_end(&mut rest).unwrap();
    }
}

/// Ways to start a process. One that leaves the group too is found only in a namespace.
fn ways() -> Vec<&'static str> {
    let has_namespaces = safeguards().iter().any(|safeguard| {
        safeguard.what.contains("its own processes") && matches!(safeguard.standing, Standing::Active(_))
    });
    match has_namespaces {
        true => vec!["", "nohup", "setsid"],
        false => vec!["", "nohup"],
    }
}

#[test]
fn what_a_program_started_ends_with_the_question() {
    for how in ways() {
        let mut witness = Witness::new();
        let script = format!("read q; {}; echo '{{\"answer\": {{}}}}'", witness.linger(how));
        ask(&script).unwrap();
        witness.await_it();
        witness.await_the_end();
    }
}

#[test]
fn a_program_ends_with_gauntlet_however_that_ends() {
    for how in ways() {
        let mut witness = Witness::new();
        let script = format!("read q; {}; sleep 300", witness.linger(how));
        let mut gauntlet: Child = another_gauntlet(&script).stderr(Stdio::null()).spawn().unwrap();
        witness.await_it();
        gauntlet.kill().unwrap();
        gauntlet.wait().unwrap();
        witness.await_the_end();
    }
}

#[test]
fn programs_get_variables_but_no_keys() {
    let script = r#"read q; test -z "$ANTHROPIC_API_KEY$OPENAI_API_KEY$GITHUB_TOKEN" || exit 1
test "$MINE" = yes || exit 2; test "$MY_TOKEN" = wanted || exit 3; echo '{"answer": {}}'"#;
    let done = another_gauntlet(script)
        .env("ANTHROPIC_API_KEY", "secret")
        .env("OPENAI_API_KEY", "secret")
        .env("GITHUB_TOKEN", "secret")
        .env("MINE", "yes")
        .env("MY_TOKEN", "wanted")
        .env("GAUNTLET_WORKER_ENVIRONMENT", "MY_TOKEN")
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
