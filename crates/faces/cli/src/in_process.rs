//! The judge in the process of its caller, as the Python package calls it: no command line, no second program.
//!
//! Candidates run in confined processes of their own, as with the command.

use std::path::Path;

use clap::ValueEnum;
use gauntlet_judge::{ComparisonReport, Observer};

use crate::arguments::{LedgerFile, Measured, MeasuredExecutor, Setup, more_pairs, pairs, positive_time};
use crate::commands::contest::Contest;
use crate::commands::{judge, more};
use crate::documents::Versioned;
use crate::error::CliError;
use crate::interrupt;
use crate::recording::Recorder;

/// What is asked of the judge; kernels as the command takes them.
#[derive(Debug, Clone)]
pub struct Question {
    /// What the candidate is compared with; the task's own baseline if there is none.
    pub baseline: Option<String>,
    /// The kernel that the verdict is about.
    pub candidate: String,
    /// Whether it goes through all gates; otherwise both kernels have to be right.
    pub all_gates: bool,
}

/// How two kernels are measured, in the words of the command.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// The task, by name or path.
    pub task: Option<String>,
    /// Only these of its timed cases.
    pub cases: Vec<String>,
    /// A GPU; this machine's processor if there is none.
    pub device: Option<String>,
    /// The time for the comparison, with its unit.
    pub budget: String,
    /// At most this many pairs of processes.
    pub pairs: Option<usize>,
    /// Whether operands may stay in the caches between calls.
    pub warm: bool,
    /// `isolated` or `sustained`.
    pub regime: String,
    /// `device` or `call`.
    pub scope: String,
    /// Whether what a GPU does is traced.
    pub activity: bool,
    /// Whether the kernels are trusted, and not watched for cheats.
    pub quick: bool,
}

impl Terms {
    /// The same as words of the command.
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut say = |option: &str, value: Option<&str>| {
            words.push(format!("--{option}"));
            words.extend(value.map(str::to_owned));
        };
        say("budget", Some(&self.budget));
        say("regime", Some(&self.regime));
        say("scope", Some(&self.scope));
        self.task.iter().for_each(|task| say("task", Some(task)));
        self.cases.iter().for_each(|case| say("case", Some(case)));
        if let Some(device) = &self.device {
            say("executor", Some("cuda"));
            say("device", Some(device));
        }
        self.pairs
            .iter()
            .for_each(|pairs| say("pairs", Some(&pairs.to_string())));
        for (option, is_on) in [
            ("warm", self.warm),
            ("activity", self.activity),
            ("quick", self.quick),
        ] {
            if is_on {
                say(option, None);
            }
        }
        words
    }

    fn setup(&self) -> Result<Setup, CliError> {
        if self.quick && self.activity {
            return Err(CliError::of_input(
                "activity: nothing is traced with `quick`; leave one of them out",
            ));
        }
        Ok(Setup {
            task: self.task.clone(),
            cases: self.cases.clone(),
            measured: Measured {
                executor: self.device.as_ref().map(|_| MeasuredExecutor::Cuda),
                device: self.device.clone(),
            },
            budget: positive_time(&self.budget).map_err(|why| wrong("budget", &self.budget, &why))?,
            pairs: self
                .pairs
                .map(|count| {
                    pairs(&count.to_string()).map_err(|why| wrong("pairs", &count.to_string(), &why))
                })
                .transpose()?,
            warm: self.warm,
            regime: word("regime", &self.regime)?,
            scope: word("scope", &self.scope)?,
            activity: self.activity,
            quick: self.quick,
        })
    }
}

/// A word of the command's options.
fn word<Word: ValueEnum>(name: &str, text: &str) -> Result<Word, CliError> {
    Word::from_str(text, false).map_err(|_| {
        let words = Word::value_variants().iter().filter_map(Word::to_possible_value);
        let words: Vec<_> = words.map(|word| word.get_name().to_owned()).collect();
        wrong(name, text, &format!("give {}", words.join(" or ")))
    })
}

fn wrong(name: &str, text: &str, why: &str) -> CliError {
    CliError::of_input(format!("{name}: it is `{text}`; {why}"))
}

/// Answers a question with a document of the kind `comparison`.
///
/// # Errors
/// Why there is no answer.
pub fn ask(question: &Question, terms: &Terms, observer: &dyn Observer) -> Result<String, CliError> {
    let requests = interrupt::requests();
    let answered = answer(question, terms, observer);
    // First, since an interrupt also ends the processes that compute what is expected, for which the task would be blamed.
    undisturbed(requests)?;
    document(&answered?)
}

fn answer(question: &Question, terms: &Terms, observer: &dyn Observer) -> Result<ComparisonReport, CliError> {
    let setup = terms.setup()?;
    let texts = judge::kernels(&question.candidate, question.baseline.as_deref(), &setup)?;
    let contest = Contest::of(&setup, texts)?;
    let recorder = recorder(question, terms, &contest)?;
    let _hold = contest.hold()?;
    let report = if question.all_gates {
        contest.judged(observer)
    } else {
        contest.compared(observer)
    }?;
    recorder
        .iter()
        .try_for_each(|recorder| recorder.record_comparison(&report).map(drop))?;
    Ok(report)
}

/// What records the result in the ledger that GAUNTLET_LEDGER names. None without that variable: a Python program that imports
/// Gauntlet finds no file that it did not ask for.
fn recorder(question: &Question, terms: &Terms, contest: &Contest) -> Result<Option<Recorder>, CliError> {
    let Some(path) = std::env::var_os("GAUNTLET_LEDGER").filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let kernels = contest.texts.each_ref().map(ToString::to_string);
    let command = match question.all_gates {
        true => ["judge", &kernels[1], "--baseline", &kernels[0]]
            .map(str::to_owned)
            .to_vec(),
        false => ["compare", &kernels[0], &kernels[1]].map(str::to_owned).to_vec(),
    };
    let file = LedgerFile { path: path.into() };
    let recorder = Recorder::open(&file, false, contest.conditions.files.clone())?;
    Ok(Some(recorder.of_command([command, terms.words()].concat())))
}

/// Fails if there were more requests to end than these, because an interrupt then killed workers, and a comparison takes a
/// killed worker for a kernel that failed.
pub(crate) fn undisturbed(requests: usize) -> Result<(), CliError> {
    if interrupt::requests() == requests {
        Ok(())
    } else {
        Err(CliError::broken("an interrupt of this program ended its workers"))
    }
}

/// Adds at least this many pairs to the comparison in a file, brings the file up to date, and returns what it then holds.
///
/// # Errors
/// Why none can be added.
pub fn add_pairs(file: &Path, pairs: usize, observer: &dyn Observer) -> Result<String, CliError> {
    let text = pairs.to_string();
    more_pairs(&text).map_err(|why| wrong("pairs", &text, &why))?;
    document(&more::added(file, pairs, observer)?)
}

fn document(report: &ComparisonReport) -> Result<String, CliError> {
    serde_json::to_string(&Versioned::of(report)).map_err(|error| CliError::broken(error.to_string()))
}

/// Ends all workers and whatever waits for the machine, so that questions under way end soon, with an error. To be called
/// again until they have.
pub fn stop() {
    interrupt::request();
    gauntlet_worker::end_all_workers();
}

/// Lets questions be asked again after [`stop`].
pub fn go_on() {
    interrupt::withdraw();
}
