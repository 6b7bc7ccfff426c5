//! The record that every command which judges leaves in the ledger.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gauntlet_history::git::commit_of;
use gauntlet_judge::ledger::{JudgedKernel, JudgementRecord, Ledger, RunId, RunStart, Sources, Speedup};
use gauntlet_judge::{ComparisonReport, KernelForm, KernelText};
use gauntlet_stats::Arm;
use gauntlet_tournament::digest_of;
use serde_json::Value;

use crate::arguments::LedgerFile;
use crate::commands::run::version;
use crate::documents::{Document, Versioned};
use crate::error::{CliError, say_line};
use crate::sink;

/// The words of this program's command, without its name.
static COMMAND: OnceLock<Vec<String>> = OnceLock::new();

/// Options that say where results go, and not what they are. Each takes a value.
const PLACES: [&str; 6] = [
    "--json",
    "--html",
    "--markdown",
    "--junit",
    "--output",
    "--ledger",
];

/// Those that take none.
const SWITCHES: [&str; 2] = ["--no-ledger", "--resume"];

/// Notes the command that this program runs, for what it records.
pub fn runs(words: impl IntoIterator<Item = String>) {
    let _first = COMMAND.set(without_places(words));
}

/// A command without the options that say where its results go.
fn without_places(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if PLACES.contains(&word.as_str()) {
            words.next();
        } else if !SWITCHES.contains(&word.as_str())
            && !word
                .split_once('=')
                .is_some_and(|(option, _)| PLACES.contains(&option))
        {
            kept.push(word);
        }
    }
    kept
}

/// The ledger that a command records its result in, if it does.
pub struct Recorder {
    ledger: Option<Ledger>,
    command: Vec<String>,
    /// The files that the result depends on, with their digests.
    sources: BTreeMap<String, String>,
    /// The run that was interrupted and goes on.
    resumed: Option<RunId>,
}

impl Recorder {
    /// For the command of this program, before it begins: the contents of its files are kept as they are now. The usual place does not
    /// keep a command from judging if it cannot be written; a place that was named does.
    pub fn open(
        file: &LedgerFile,
        no_ledger: bool,
        sources: BTreeMap<String, String>,
    ) -> Result<Self, CliError> {
        let command = COMMAND.get().cloned().unwrap_or_default();
        let mut recorder = Self {
            ledger: None,
            command,
            sources,
            resumed: None,
        };
        if no_ledger {
            return Ok(recorder);
        }
        match recorder.opened(&file.path) {
            Ok(ledger) => recorder.ledger = Some(ledger),
            Err(error) if file.is_usual() => say_line(format_args!("note: nothing is recorded: {error}")),
            Err(error) => return Err(error),
        }
        Ok(recorder)
    }

    /// The same for a command in other words.
    pub fn of_command(self, command: Vec<String>) -> Self {
        Self { command, ..self }
    }

    fn opened(&self, path: &Path) -> Result<Ledger, CliError> {
        let ledger = Ledger::open(path)?;
        Sources::beside(path).keep(&self.sources).map_err(|error| {
            CliError::of_place(
                &error,
                format!("the sources cannot be kept beside {}: {error}", path.display()),
                "make the ledger's folder writable and see that its disk has room, or give another place with --ledger",
            )
        })?;
        Ok(ledger)
    }

    /// What the command comes to: the same words on the same files by the same program.
    fn digest(&self) -> String {
        let program = gauntlet_entrants::digest_of_program();
        let files = self.sources.iter().flat_map(|(file, digest)| [file, digest]);
        let words = self.command.iter().chain(files).chain([&program]);
        digest_of(&words.collect::<Vec<_>>())
    }

    /// The last run of the same command on the same files that was interrupted, with what it found; the record goes on with it.
    pub fn interrupted(&mut self) -> Result<Option<JudgementRecord>, CliError> {
        let Some(ledger) = &self.ledger else {
            return Ok(None);
        };
        let Some(run) = ledger.last_unfinished_run(&self.digest())? else {
            return Ok(None);
        };
        let found = ledger.judgement(&run)?;
        self.resumed = found.is_some().then_some(run);
        Ok(found)
    }

    /// Records a run of its own, whatever was interrupted.
    pub fn begin_anew(&mut self) {
        self.resumed = None;
    }

    /// A kernel in the files that the result depends on.
    pub fn kernel(&self, text: &str) -> JudgedKernel {
        judged(text, &self.sources)
    }

    /// Records what a comparison found.
    pub fn record_comparison(&self, report: &ComparisonReport) -> Result<Option<(PathBuf, RunId)>, CliError> {
        self.record(Found::of_comparison(report, &self.sources), report)
    }

    /// Records what was found; returns the ledger's path and the run, unless nothing is recorded.
    pub fn record(
        &self,
        found: Found,
        document: &impl Document,
    ) -> Result<Option<(PathBuf, RunId)>, CliError> {
        let Some(ledger) = &self.ledger else {
            return Ok(None);
        };
        let record = JudgementRecord {
            command: self.command.clone(),
            client: std::env::var("GAUNTLET_CLIENT")
                .ok()
                .filter(|name| !name.is_empty()),
            task: found.task,
            kernels: found.kernels,
            verdict: found.verdict,
            reason: found.reason,
            speedup: found.speedup,
            interrupted: found.interrupted,
            sources: self.sources.clone(),
            document: serde_json::to_value(Versioned::of(document))
                .map_err(|error| CliError::broken(error.to_string()))?,
        };
        let start = RunStart {
            version: version(),
            file: shlex::try_join(self.command.iter().map(String::as_str)).unwrap_or_default(),
            digest: self.digest(),
            environment: record.document.get("environment").cloned().unwrap_or(Value::Null),
        };
        let run = ledger.record_judgement(&start, &record, self.resumed.as_ref())?;
        Ok(Some((ledger.path().to_owned(), run)))
    }
}

/// Says where a result is recorded.
pub fn tell_record(recorded: &Result<Option<(PathBuf, RunId)>, CliError>) -> Result<(), CliError> {
    match recorded {
        Ok(Some((ledger, run))) => sink::line(format_args!("Kept in {} as run {run}.", ledger.display())),
        _ => Ok(()),
    }
}

/// What a record says of a result besides the result itself.
pub struct Found {
    /// The task or the suite.
    pub task: String,
    /// What was judged; the kernel that the verdict is about is the last.
    pub kernels: Vec<JudgedKernel>,
    /// The verdict.
    pub verdict: Option<String>,
    /// Its reason.
    pub reason: String,
    /// The speed-up.
    pub speedup: Option<Speedup>,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

impl Found {
    /// What a comparison found, of kernels in these files.
    pub fn of_comparison(report: &ComparisonReport, files: &BTreeMap<String, String>) -> Self {
        let mut kernels = vec![
            judged(&report.baseline.text, files),
            judged(&report.candidate.text, files),
        ];
        if report.side == Arm::Baseline {
            kernels.reverse();
        }
        let interval = report
            .comparison
            .as_ref()
            .and_then(|found| found.assessment.suite.as_ref());
        Self {
            task: report.task.clone(),
            kernels,
            verdict: serde_json::to_value(report.verdict)
                .ok()
                .and_then(|verdict| verdict.as_str().map(str::to_owned)),
            reason: report.reason.clone(),
            speedup: interval.map(|interval| Speedup {
                lower: interval.lower.exp_m1(),
                estimate: interval.estimate.exp_m1(),
                upper: interval.upper.exp_m1(),
            }),
            interrupted: report.is_interrupted(),
        }
    }
}

/// A kernel by its text, with its digest: of the function's name and the contents of its file, wherever that lies; of the text and
/// what it names, if it is no function of a file.
pub fn judged(text: &str, files: &BTreeMap<String, String>) -> JudgedKernel {
    let kernel = gauntlet_entrants::read(text).ok();
    let named = kernel.as_ref().map_or_else(Vec::new, KernelText::files);
    let mut parts = vec![match kernel.as_ref().map(KernelText::form) {
        Some(KernelForm::File(kernel)) if files.contains_key(&kernel.file.display().to_string()) => {
            format!("{}: {:?}", kernel.function, kernel.parameters)
        }
        _ => text.to_owned(),
    }];
    parts.extend(
        named
            .iter()
            .filter_map(|file| files.get(&file.display().to_string()).cloned()),
    );
    JudgedKernel {
        text: text.to_owned(),
        digest: digest_of(&parts),
        commit: match kernel.as_ref().map(KernelText::form) {
            Some(KernelForm::File(kernel)) if is_unchanged(&kernel.file, files) => {
                commit_of(&kernel.file, &kernel.function)
            }
            _ => None,
        },
    }
}

/// Whether a file is still what it was when these digests were taken.
fn is_unchanged(file: &Path, files: &BTreeMap<String, String>) -> bool {
    let name = file.display().to_string();
    let now = gauntlet_entrants::digests_of(vec![file.to_owned()]);
    now.get(&name)
        .is_some_and(|digest| files.get(&name) == Some(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_command_is_kept_without_the_places_of_its_results() {
        let given = "compare a.py:f a.py:g --json out.json --warm --html=page.html --resume --ledger l --no-ledger --task t.py";
        assert_eq!(
            without_places(words(given)),
            words("compare a.py:f a.py:g --warm --task t.py")
        );
    }

    #[test]
    fn a_kernel_is_known_by_its_function_and_the_contents_of_its_file() {
        let files = |path: &str, digest: &str| BTreeMap::from([(path.to_owned(), digest.to_owned())]);
        let digest = |text, files| judged(text, &files).digest;
        let one = digest("here/k.py:f", files("here/k.py", "d1"));
        assert_eq!(one, digest("there/moved.py:f", files("there/moved.py", "d1")));
        assert_ne!(one, digest("here/k.py:g", files("here/k.py", "d1")));
        assert_ne!(one, digest("here/k.py:f", files("here/k.py", "d2")));
        assert_ne!(
            digest("stages=2", BTreeMap::new()),
            digest("stages=3", BTreeMap::new())
        );
    }
}
