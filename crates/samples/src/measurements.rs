//! What a file of measurements says, whatever its format.

use std::path::{Path, PathBuf};

use crate::error::SamplesError;

/// The measurements of one side.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurements {
    /// The file, the first one if there are several.
    pub path: PathBuf,
    /// The program that measured, such as `hyperfine`.
    pub program: &'static str,
    /// The order in which the two sides were measured.
    pub order: Order,
    /// The benchmarks, in the order of the file.
    pub benchmarks: Vec<Benchmark>,
    /// What was left out of the file, in words.
    pub notes: Vec<String>,
}

/// The order in which two sides were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One after the other.
    OneAfterTheOther,
    /// Side by side: the i-th processes of both belong together.
    SideBySide,
}

/// The times of one thing that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Benchmark {
    /// Its name.
    pub name: String,
    /// Seconds a call, in the order measured, for each process; no list is empty.
    pub processes: Vec<Vec<f64>>,
}

impl Measurements {
    /// The measurements of one file, which must hold at least one benchmark and only times that are possible.
    pub(crate) fn new(
        path: &Path,
        program: &'static str,
        benchmarks: Vec<Benchmark>,
        remedy: &str,
    ) -> Result<Self, SamplesError> {
        if benchmarks.is_empty() {
            let message = format!("{program} measured nothing in it");
            return Err(SamplesError::whole(path, message, remedy));
        }
        for benchmark in &benchmarks {
            let times = benchmark.processes.iter().flatten();
            if times.clone().next().is_none() || benchmark.processes.iter().any(Vec::is_empty) {
                let message = format!("there is no time of `{}`", benchmark.name);
                return Err(SamplesError::whole(path, message, remedy));
            }
            if let Some(time) = times.into_iter().find(|time| !(time.is_finite() && **time > 0.0)) {
                return Err(SamplesError::whole(
                    path,
                    format!(
                        "a time of `{}` is {time} s, which no call can take",
                        benchmark.name
                    ),
                    "times must be positive; remove failed calls from the file",
                ));
            }
        }
        Ok(Self {
            path: path.to_owned(),
            program,
            order: Order::OneAfterTheOther,
            benchmarks,
            notes: Vec::new(),
        })
    }

    /// The measurements of several files of the same side: each file adds its processes. Benchmarks that are not in
    /// every file are left out, with a note.
    ///
    /// # Errors
    /// No file, files of different programs, or no benchmark that is in all of them.
    pub fn merged(files: Vec<Self>) -> Result<Self, SamplesError> {
        let mut files = files.into_iter();
        let Some(mut all) = files.next() else {
            return Err(SamplesError::whole(
                Path::new(""),
                "no file is named",
                "name a file of measurements",
            ));
        };
        for file in files {
            if file.program != all.program {
                return Err(SamplesError::whole(
                    &file.path,
                    format!(
                        "it was written by {}, and {} by {}",
                        file.program,
                        all.path.display(),
                        all.program
                    ),
                    "give the files of one program for each side",
                ));
            }
            all.notes.extend(file.notes);
            let mut kept = Vec::new();
            for mut benchmark in all.benchmarks {
                match file.benchmarks.iter().find(|other| other.name == benchmark.name) {
                    Some(other) => {
                        benchmark.processes.extend(other.processes.iter().cloned());
                        kept.push(benchmark);
                    }
                    None => all.notes.push(format!(
                        "`{}` is not in {} and is left out",
                        benchmark.name,
                        file.path.display()
                    )),
                }
            }
            if kept.is_empty() {
                return Err(SamplesError::whole(
                    &file.path,
                    format!("it shares no benchmark with {}", all.path.display()),
                    "files of one side must hold the same benchmarks",
                ));
            }
            all.benchmarks = kept;
        }
        Ok(all)
    }
}
