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
    /// The benchmarks that failed, each with the reason; their times, if there are any, are left out.
    pub failed: Vec<(String, String)>,
    /// The files of this side alone; none if one file holds both sides.
    pub(crate) files: Vec<Origin>,
}

/// A file, by its place and by its contents.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Origin {
    path: PathBuf,
    contents: blake3::Hash,
    /// Whether the times differ, so that another measurement has not the same contents by chance.
    is_telling: bool,
}

impl Origin {
    pub(crate) fn of(path: &Path, text: &str, benchmarks: &[Benchmark]) -> Self {
        let mut times = benchmarks.iter().flat_map(|one| one.processes.iter().flatten());
        let first = times.next();
        Self {
            path: path.to_owned(),
            contents: blake3::hash(text.as_bytes()),
            is_telling: times.any(|time| Some(time) != first),
        }
    }

    /// Refuses a file that was named before, or is a copy of one: it would count as another measurement.
    pub(crate) fn refuse_copy(&self, others: &[Self]) -> Result<(), SamplesError> {
        let message = if others.iter().any(|other| same_place(&self.path, &other.path)) {
            "it is named twice".to_owned()
        } else {
            let mut copies = others.iter().filter(|other| other.contents == self.contents);
            match copies.find(|_| self.is_telling) {
                Some(other) => format!("it is a copy of {}", other.path.display()),
                None => return Ok(()),
            }
        };
        Err(SamplesError::whole(
            &self.path,
            message,
            "a measurement counts once: name files of different measurements",
        ))
    }
}

fn same_place(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    place(one) == place(other)
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
    /// The measurements of one file, which must hold at least one benchmark and only times that are possible. `notes` say
    /// what was left out.
    pub(crate) fn new(
        path: &Path,
        program: &'static str,
        benchmarks: Vec<Benchmark>,
        notes: Vec<String>,
        remedy: &str,
    ) -> Result<Self, SamplesError> {
        if benchmarks.is_empty() {
            let why = match notes.is_empty() {
                true => String::new(),
                false => format!(": {}", notes.join("; ")),
            };
            let message = format!("{program} measured nothing in it{why}");
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
            notes,
            failed: Vec::new(),
            files: Vec::new(),
        })
    }

    /// The measurements of several files of the same side: each file adds its processes. Benchmarks that are not in
    /// every file are left out, with a note.
    ///
    /// # Errors
    /// No file, a file that is named twice or is a copy, files of different programs, or no benchmark that is in all of
    /// them.
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
            for origin in &file.files {
                origin.refuse_copy(&all.files)?;
            }
            all.files.extend(file.files);
            all.notes.extend(file.notes);
            all.failed.extend(file.failed);
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
