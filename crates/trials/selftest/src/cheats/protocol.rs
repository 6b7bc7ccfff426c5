//! Cheats on the protocol: programs that answer with something else, or not at all.

use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use gauntlet_worker::protocol::{Failure, Sample};
use nix::sys::stat::Mode;

use super::work::{Call, Trick, Work, broken};

/// The longest time that a program hangs: longer than any timeout in a trial, but finite.
const HANG: Duration = Duration::from_secs(60);

/// Answers with plain text.
pub fn prints_garbage() -> io::Result<()> {
    await_request()?;
    println!("fastest kernel there ever was");
    thread::sleep(HANG);
    Ok(())
}

/// Reads its requests and answers none.
pub fn prints_nothing() -> io::Result<()> {
    await_request()?;
    thread::sleep(HANG);
    Ok(())
}

/// Prints a line long enough to fill the memory of a reader that waits for its end.
pub fn prints_a_gigabyte() -> io::Result<()> {
    await_request()?;
    let mut output = io::stdout().lock();
    let piece = [b'['; 1 << 16];
    for _ in 0..1 << 14 {
        output.write_all(&piece)?;
    }
    output.flush()?;
    thread::sleep(HANG);
    Ok(())
}

/// Exits with success.
pub fn exits_early() -> io::Result<()> {
    await_request()
}

fn await_request() -> io::Result<()> {
    io::stdin().read_line(&mut String::new()).map(drop)
}

/// Forwards lines with one text replaced by another.
pub struct Replaces<W> {
    /// The destination of the lines.
    pub to: W,
    /// The text to replace.
    pub old: &'static str,
    /// The replacement.
    pub new: &'static str,
    /// The incomplete line written so far.
    pub line: Vec<u8>,
}

impl<W: Write> Write for Replaces<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).replacen(self.old, self.new, 1);
        self.to.write_all(line.as_bytes())?;
        self.to.flush()
    }
}

/// Hangs in timed calls.
pub struct HangsInTime;

impl Trick for HangsInTime {
    fn time(&mut self, _: &mut Work, _: &[usize], _: Call) -> Result<Vec<Sample>, Failure> {
        thread::sleep(HANG);
        Ok(Vec::new())
    }
}

/// Exits with success in the middle of timed calls.
pub struct ExitsInTime;

impl Trick for ExitsInTime {
    fn time(&mut self, _: &mut Work, _: &[usize], _: Call) -> Result<Vec<Sample>, Failure> {
        std::process::exit(0)
    }
}

/// Reports that it has written its result, but writes none.
pub struct WritesNoFile;

impl Trick for WritesNoFile {
    fn output(&mut self, work: &mut Work, _file: &Path, _index: usize) -> Result<u64, Failure> {
        Ok(work.output.bytes.len() as u64)
    }
}

/// Answers with more open brackets than a parser's stack may hold.
pub fn nests_its_answer() -> io::Result<()> {
    await_request()?;
    println!("{}", "[".repeat(200_000));
    thread::sleep(HANG);
    Ok(())
}

/// What a worker puts in the place of its result.
pub struct PutsInPlace(pub fn(&Path) -> io::Result<()>);

impl Trick for PutsInPlace {
    fn output(&mut self, work: &mut Work, file: &Path, _index: usize) -> Result<u64, Failure> {
        (self.0)(file).map_err(broken)?;
        Ok(work.output.bytes.len() as u64)
    }
}

/// A link to another file, such as the result of another worker.
pub fn link(file: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink("/etc/hostname", file)
}

/// A pipe that never ends, for a reader to wait at.
pub fn pipe(file: &Path) -> io::Result<()> {
    Ok(nix::unistd::mkfifo(file, Mode::S_IRWXU)?)
}

/// Writes its result after it has said that it is written.
pub struct WritesLate;

impl Trick for WritesLate {
    fn output(&mut self, work: &mut Work, file: &Path, index: usize) -> Result<u64, Failure> {
        let result = work.result(index)?.clone();
        let (bytes, file) = (result.bytes.len(), file.to_owned());
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            // The folder may be gone.
            let _written = result.save(&file);
        });
        Ok(bytes as u64)
    }
}
