//! Cheats that steal the result, or overwrite the operands.

use std::fs::File;
use std::io::BufRead;
use std::os::unix::fs::FileExt;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};

use gauntlet_worker::protocol::Failure;

use super::lesser::{Cut, Lesser};
use super::work::{Call, Honest, Trick, Work, broken};

/// Looks for a result of the right size among the files around it, such as the baseline's, and returns it as its own.
pub struct StealsFiles;

impl Trick for StealsFiles {
    fn compute(&mut self, _work: &mut Work, _copy: usize, _call: Call) -> Result<(), Failure> {
        Ok(())
    }

    fn output(&mut self, work: &mut Work, file: &Path, index: usize) -> Result<u64, Failure> {
        let stolen = places(file).into_iter().find(|candidate| {
            let is_result = candidate != file && candidate.extension().is_some_and(|end| end == "output");
            is_result && gauntlet_problems::Output::load(candidate, &work.problem).is_ok()
        });
        match stolen {
            Some(stolen) => std::fs::copy(stolen, file).map_err(broken),
            None => Honest.output(work, file, index),
        }
    }
}

/// Every file that can be listed in the folders of results and of workers.
fn places(file: &Path) -> Vec<PathBuf> {
    let own = file.parent().map(Path::to_path_buf);
    let above = own.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let workshops = above.iter().flat_map(|above| list(above)).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("gauntlet-") && path.is_dir()
    });
    own.into_iter()
        .chain(workshops)
        .flat_map(|folder| list(&folder))
        .collect()
}

/// Computes the first row of each part, searches the coordinator's memory for it among f64 numbers, and copies the
/// numbers that follow it: the oracle's result.
#[derive(Default)]
pub struct StealsMemory {
    sample: Option<Lesser>,
}

/// Elements used to recognise a part of the oracle's result.
const RECOGNISED: usize = 8;

impl Trick for StealsMemory {
    fn built(&mut self, _work: &mut Work) -> Result<(), Failure> {
        self.sample = None;
        Ok(())
    }

    fn loaded(&mut self, work: &mut Work, _files: &[PathBuf]) -> Result<(), Failure> {
        let cut = Cut {
            rows: |rows| rows.min(1),
            ..Cut::NONE
        };
        self.sample = Lesser::new(work, &cut)?;
        Ok(())
    }

    fn compute(&mut self, work: &mut Work, copy: usize, _call: Call) -> Result<(), Failure> {
        let Some(sample) = &mut self.sample else {
            return work.compute(copy);
        };
        let rows = sample.compute_alone(copy)?;
        let memory = Memory::of(parent_id())
            .unwrap_or_else(|error| thwarted(&format!("the coordinator's memory cannot be read: {error}")));
        let (mut row, mut first) = (0, 0);
        let mut all = true;
        for part in work.output.parts.clone() {
            let count = part.rows * part.columns;
            let known: Vec<f64> = (row..row + part.columns.min(count).min(RECOGNISED))
                .map(|index| f64::from(rows.get(index)))
                .collect();
            let found = memory.find(&known, count);
            all &= found.len() == count;
            for (index, value) in found.into_iter().enumerate() {
                work.output.set(first + index, value);
            }
            row += part.columns.min(count);
            first += count;
        }
        // If nothing is found, it computes.
        if all { Ok(()) } else { work.compute(copy) }
    }
}

/// The size of the largest mapping that is searched, in bytes.
const MAX_MAPPING: u64 = 64 << 20;

/// The numbers in a process's writable memory.
struct Memory(Vec<Vec<f64>>);

impl Memory {
    fn of(process: u32) -> std::io::Result<Self> {
        let memory = File::open(format!("/proc/{process}/mem"))?;
        let maps = std::io::BufReader::new(File::open(format!("/proc/{process}/maps"))?);
        let mappings = maps.lines().map_while(Result::ok).filter_map(|line| {
            let (start, end) = writable(&line).filter(|(start, end)| end - start <= MAX_MAPPING)?;
            let mut bytes = vec![0; (end - start) as usize];
            // Unreadable memory, such as a guard page, is skipped.
            memory.read_exact_at(&mut bytes, start).ok()?;
            Some(
                bytes
                    .as_chunks()
                    .0
                    .iter()
                    .map(|number| f64::from_le_bytes(*number))
                    .collect(),
            )
        });
        Ok(Self(mappings.collect()))
    }

    /// `count` numbers from the first place that approximately matches `known`; empty if there is none.
    fn find(&self, known: &[f64], count: usize) -> Vec<f64> {
        let about = |(number, known): (&f64, &f64)| (number - known).abs() <= 1e-3 * known.abs();
        let places = self.0.iter().flat_map(|numbers| numbers.windows(count.max(1)));
        let found = places
            .filter(|_| known.iter().any(|known| *known != 0.0))
            .find(|place| place.iter().zip(known).all(about));
        found.map_or(Vec::new(), <[f64]>::to_vec)
    }
}

/// The addresses of a writable mapping, from its line in `/proc/<process>/maps`.
fn writable(line: &str) -> Option<(u64, u64)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    rest.starts_with("rw").then_some((address(start)?, address(end)?))
}

/// Overwrites the file of operands with zeros after reading it: the next reader, such as the baseline, computes
/// something else.
pub struct OverwritesOperands;

impl Trick for OverwritesOperands {
    fn loaded(&mut self, _work: &mut Work, files: &[PathBuf]) -> Result<(), Failure> {
        let overwrite = |file: &PathBuf| {
            let mut bytes = std::fs::read(file)?;
            let data = bytes.len() / 2;
            bytes[data..].fill(0);
            std::fs::write(file, bytes)
        };
        files
            .iter()
            .try_for_each(overwrite)
            .unwrap_or_else(|error: std::io::Error| {
                thwarted(&format!("the file of operands cannot be overwritten: {error}"))
            });
        Ok(())
    }
}

/// Exits with the reason: a cheat that is kept from cheating must be recognisable as such.
pub fn thwarted(why: &str) -> ! {
    eprintln!("kept from cheating: {why}");
    std::process::exit(3)
}
