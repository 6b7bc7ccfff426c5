//! Sources made into candidates: written into a folder of their own, and built there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gauntlet_entrants::{EntrantError, candidate, read, tensors_of};
use gauntlet_judge::{Candidate, ExecutorKind, Verdict};
use gauntlet_parameters::Parameters;
use gauntlet_scratch::Scratch;
use gauntlet_worker::{Confined, Limits, Silence, WorkerCommand};

use super::Tree;
use crate::round::Round;

/// Runs a build and says at last how it ended.
const SCRIPT: &str = "\"$@\" >&2\necho \"gauntlet-built $?\"";
const SAID_AT_LAST: &str = "gauntlet-built ";

/// Characters of a compiler's messages that a verdict quotes.
const QUOTED: usize = 600;

/// Why there is no candidate: what is to be said of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// *Does not compile*, or *blocked* if it is not the change's fault.
    pub verdict: Verdict,
    /// The reason.
    pub reason: String,
}

impl Fault {
    pub(crate) fn of_change(reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::DoesNotCompile,
            reason: reason.into(),
        }
    }

    fn of_machine(reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Blocked,
            reason: reason.into(),
        }
    }
}

impl From<EntrantError> for Fault {
    fn from(error: EntrantError) -> Self {
        match error {
            EntrantError::Machine(reason) => Self::of_machine(reason),
            wrong => Self::of_change(wrong.to_string()),
        }
    }
}

/// A source as it was built.
#[derive(Debug, Clone)]
struct Built {
    tree: Tree,
    kernel: String,
    folder: PathBuf,
}

/// The sources of a run, each built once.
#[derive(Debug)]
pub struct Builds {
    scratch: Scratch,
    /// Where sources lie as they were built.
    folder: PathBuf,
    known: RefCell<BTreeMap<String, Result<Built, Fault>>>,
    timeout: Duration,
}

impl Builds {
    /// None yet. A build may take the given time. What is built lies in the folder, if one is given, and stays there.
    ///
    /// # Errors
    /// If there is no place for them.
    pub fn new(timeout: Duration, folder: Option<PathBuf>) -> io::Result<Self> {
        let scratch = Scratch::new()?;
        let folder = folder.unwrap_or_else(|| scratch.path().join("built"));
        for folder in [&folder, &scratch.path().join("building")] {
            fs::create_dir_all(folder)?;
        }
        Ok(Self {
            scratch,
            folder,
            known: RefCell::default(),
            timeout,
        })
    }

    /// The source of a candidate and its kernel's name; none of a candidate that is not of a source.
    pub fn source_of(&self, candidate: &Candidate) -> Option<(Tree, String)> {
        let known = self.known.borrow();
        let built = known.get(candidate.source.as_ref()?)?.as_ref().ok()?;
        Some((built.tree.clone(), built.kernel.clone()))
    }

    /// The kernel of a source as a candidate, with other parameters where its kernel has any.
    ///
    /// # Errors
    /// If it cannot be built, or has no such kernel.
    pub fn candidate(
        &self,
        name: &str,
        round: &Round,
        tree: &Tree,
        kernel: &str,
        change: &Parameters,
    ) -> Result<Candidate, Fault> {
        let text = read(kernel)?;
        let build = round
            .file()
            .source
            .as_ref()
            .map_or(&[][..], |source| &source.build);
        let digest = crate::round::digest_of(&[&tree.digest(), kernel, &build.join("\0")]);
        let known = self.known.borrow().get(&digest).cloned();
        let built = match known {
            Some(built) => built,
            None => {
                let built = self.built(tree, kernel, build, &digest);
                // A fault of the machine may be gone the next time.
                if !built
                    .as_ref()
                    .is_err_and(|fault| fault.verdict == Verdict::Blocked)
                {
                    self.known.borrow_mut().insert(digest.clone(), built.clone());
                }
                built
            }
        }?;
        let text = text.in_folder(&built.folder);
        let on_gpu = round.file().executor == ExecutorKind::Cuda;
        let tensors = tensors_of(&round.suite, on_gpu);
        let made = candidate(
            name,
            &text,
            &Parameters::new(),
            &round.setting.parameters,
            tensors,
        )?;
        Ok(Candidate {
            schedule: made.schedule.changed(change),
            source: Some(digest),
            ..made
        })
    }

    fn built(&self, tree: &Tree, kernel: &str, build: &[String], digest: &str) -> Result<Built, Fault> {
        let folder = self.folder.join(&digest[..16]);
        if !folder.exists() {
            let built = if build.is_empty() {
                tree
            } else {
                &self.run(tree, build)?
            };
            // Whole or not at all: another run may build the same.
            let beside = self
                .folder
                .join(format!(".{}.{}", &digest[..16], std::process::id()));
            fs::create_dir_all(&beside)
                .and_then(|()| built.write_to(&beside))
                .and_then(|()| match fs::rename(&beside, &folder) {
                    Err(_) if folder.exists() => fs::remove_dir_all(&beside),
                    renamed => renamed,
                })
                .map_err(|error| Fault::of_machine(format!("the source cannot be written: {error}")))?;
        }
        Ok(Built {
            tree: tree.clone(),
            kernel: kernel.to_owned(),
            folder,
        })
    }

    /// Builds a source in a confined process; returns what then lies in its folder.
    fn run(&self, tree: &Tree, build: &[String]) -> Result<Tree, Fault> {
        let words = ["-c", SCRIPT, "build"]
            .into_iter()
            .chain(build.iter().map(String::as_str));
        let command = WorkerCommand::new("/bin/sh", words.map(OsString::from));
        let start = || {
            let nothing = File::open("/dev/null")?;
            let folders = self.scratch.path().join("building");
            let fill = |folder: &std::path::Path| tree.write_to(folder);
            Confined::start(&command, &folders, fill, nothing.into(), Limits::default())
        };
        let mut process = start()
            .map_err(|error: io::Error| Fault::of_machine(format!("the build cannot be started: {error}")))?;
        let begun = Instant::now();
        let shown = build.join(" ");
        let status = loop {
            match process.line(self.timeout.saturating_sub(begun.elapsed())) {
                Ok(line) => match line.trim().strip_prefix(SAID_AT_LAST) {
                    Some(status) => break status.to_owned(),
                    None => continue,
                },
                Err(Silence::Late) => {
                    let seconds = self.timeout.as_secs();
                    return Err(Fault::of_change(format!(
                        "`{shown}` has not ended after {seconds} s"
                    )));
                }
                Err(Silence::OverLimit(what)) => {
                    return Err(Fault::of_change(format!("`{shown}` took {what}")));
                }
                Err(Silence::Gone | Silence::Garbage(_)) => {
                    let said = quoted(&process.end());
                    return Err(Fault::of_change(format!("`{shown}` was ended{said}")));
                }
            }
        };
        if status != "0" {
            let said = quoted(&process.end());
            return Err(Fault::of_change(format!(
                "`{shown}` ends with exit code {status}{said}"
            )));
        }
        // What still runs of it must not change what is read.
        process.stop();
        Tree::read(process.folder())
            .map_err(|error| Fault::of_change(format!("what `{shown}` made cannot be read: {error}")))
    }
}

/// The beginning of a compiler's messages, where the first error is.
fn quoted(said: &str) -> String {
    let said = said.trim();
    if said.is_empty() {
        return String::new();
    }
    let first: String = said.chars().take(QUOTED).collect();
    let more = if first.len() < said.len() { " …" } else { "" };
    format!(": {first}{more}")
}
