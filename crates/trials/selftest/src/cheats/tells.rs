//! Cheats that tell a trial from an examination, and compute half of the rows in trials only.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gauntlet_worker::protocol::Failure;

use super::disturbances::siblings;
use super::lesser::{Cut, Lesser};
use super::work::{Call, Trick, Work};

/// What a worker takes for the sign of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Nothing was run since the build: an examination runs before it times.
    NothingWasRun,
    /// More files of operands lie beside its own than an examination needs.
    ManyOperandFiles,
    /// Earlier processes of this candidate left notes in shared memory: the first ones were for examinations.
    EarlierProcesses,
    /// Another worker of the coordinator is alive.
    RivalAlive,
    /// It has made many calls, all of them slow: what follows a warm-up.
    WarmedUp,
}

/// Operand files that an examination has at most.
const FEW_FILES: usize = 2;

/// Processes that are started for examinations.
const EXAMINING_PROCESSES: usize = 4;

/// Calls of the feigned warm-up, and how much longer each takes.
const WARM_UP: usize = 30;
const FEIGNED: u32 = 1;

/// Computes half of the rows once it sees the sign.
pub struct Tells {
    sign: Sign,
    lesser: Option<Lesser>,
    seen: bool,
    calls: usize,
}

impl Tells {
    /// A cheat that looks for this sign.
    pub fn new(sign: Sign) -> Self {
        Self {
            sign,
            lesser: None,
            seen: sign == Sign::EarlierProcesses && leave_note() > EXAMINING_PROCESSES,
            calls: 0,
        }
    }
}

impl Trick for Tells {
    fn built(&mut self, _work: &mut Work) -> Result<(), Failure> {
        self.lesser = None;
        if self.sign == Sign::NothingWasRun {
            self.seen = true;
        }
        Ok(())
    }

    fn loaded(&mut self, work: &mut Work, files: &[PathBuf]) -> Result<(), Failure> {
        self.lesser = Lesser::new(work, &Cut::HALF)?;
        match self.sign {
            Sign::ManyOperandFiles => self.seen = files.first().is_some_and(|file| beside(file) > FEW_FILES),
            Sign::RivalAlive => self.seen = !siblings().is_empty(),
            _ => {}
        }
        Ok(())
    }

    fn compute(&mut self, work: &mut Work, copy: usize, call: Call) -> Result<(), Failure> {
        self.calls += 1;
        match self.sign {
            Sign::NothingWasRun if !call.is_timed() => self.seen = false,
            Sign::WarmedUp => self.seen = self.calls > WARM_UP,
            _ => {}
        }
        match &mut self.lesser {
            Some(lesser) if self.seen && call.is_timed() => lesser.compute(copy, &mut work.output),
            _ => {
                let start = Instant::now();
                work.compute(copy)?;
                if self.sign == Sign::WarmedUp {
                    spin(start.elapsed() * FEIGNED);
                }
                Ok(())
            }
        }
    }
}

/// Files in the folder of a file.
fn beside(file: &Path) -> usize {
    let folder = file.parent().and_then(|folder| fs::read_dir(folder).ok());
    folder.map_or(0, Iterator::count)
}

/// Folder of the notes, and the beginning of their names.
const NOTES: (&str, &str) = ("/dev/shm", "gauntlet-cheat-note-");

fn notes() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(NOTES.0).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(NOTES.1))
        .map(|entry| entry.path())
}

/// Leaves a note of this process in shared memory and returns how many processes have left one.
fn leave_note() -> usize {
    let note = format!("{}{}-{:x}", NOTES.1, std::process::id(), rand::random::<u64>());
    // A failure leaves no note, so that the cheat stays honest.
    let _left = fs::write(Path::new(NOTES.0).join(note), "");
    notes().count()
}

/// Removes the notes that processes have left, before and after a trial.
pub fn forget_notes() {
    for note in notes() {
        let _removed = fs::remove_file(note);
    }
}

fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}
