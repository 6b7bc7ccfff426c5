//! Short commands of this program, each in a process of its own: they read tasks and kernels so that the server need not.

use std::ffi::OsString;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use gauntlet_worker::Program;

/// How long a command may take: the client waits for it.
const LIMIT: Duration = Duration::from_secs(40);

/// How often to look whether it has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// The most that is read of its output.
const MAX_OUTPUT: u64 = 1 << 20;

/// What a command said.
pub struct Ran {
    /// Its exit code; none if it took too long, or was killed.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs a command of this program.
///
/// # Errors
/// If it cannot be started.
pub fn run(program: &Program, words: Vec<OsString>) -> io::Result<Ran> {
    let mut command = Command::new(&program.file);
    command
        .args(program.with(words))
        .env("NO_COLOR", "1")
        .env("COLUMNS", "200");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (out, err) = (listen(child.stdout.take()), listen(child.stderr.take()));
    let began = Instant::now();
    let code = loop {
        match child.try_wait()? {
            Some(status) => break status.code(),
            None if began.elapsed() > LIMIT => {
                child.kill()?;
                child.wait()?;
                break None;
            }
            None => sleep(PAUSE),
        }
    };
    let heard = |listener: std::thread::JoinHandle<String>| listener.join().unwrap_or_default();
    Ok(Ran {
        code,
        out: heard(out),
        err: heard(err),
    })
}

fn listen<R: Read + Send + 'static>(pipe: Option<R>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _heard = pipe.map(|mut pipe| {
            let _first = pipe.by_ref().take(MAX_OUTPUT).read_to_end(&mut text);
            // A full pipe would hold the command up.
            io::copy(&mut pipe, &mut io::sink())
        });
        String::from_utf8_lossy(&text).into_owned()
    })
}
