//! The trial: a small round on this machine's CPU for each cheat, played like any other round.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gauntlet_judge::ledger::{Ledger, RunStart};
use gauntlet_judge::{Blind, Evidence, Finding, Journal, Verdict, Workers};
use gauntlet_parameters::Parameters;
use gauntlet_scratch::Scratch;
use gauntlet_task::{Suite, SuiteError};
use gauntlet_tournament::{Overrides, Settings as PlaySettings, Tournament, TournamentError, play};
use gauntlet_worker::{Limits, Program, Timeouts};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use thiserror::Error;

use super::corpus::{self, corpus};
use super::kernels::{self, On};
use super::outcome::{Outcome, fault};
use super::tells::forget_notes;
use super::{Cheat, Kind};

/// The settings of a trial of the corpus.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program that serves the honest worker and the cheats (`gauntlet-selftest`), or that compares kernels in files (`gauntlet`).
    pub program: Program,
    /// Only cheats of these kinds.
    pub kinds: Vec<Kind>,
    /// Only cheats of these names; all of them if none are named.
    pub names: Vec<String>,
    /// Where kernels in files are tried; if nowhere, workers are.
    pub kernels: Option<On>,
}

/// The outcome of a candidate.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CheatReport {
    /// Its name.
    pub name: &'static str,
    /// The kind of cheat.
    pub kind: Kind,
    /// What it does.
    pub story: &'static str,
    /// What it would gain.
    pub gain: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// The gate that stopped it, if any.
    pub gate: Option<String>,
    /// Its verdict.
    pub verdict: Verdict,
    /// The reason given.
    pub reason: String,
    /// Why its end differs from the expected one; `None` if it does not.
    pub fault: Option<String>,
    /// How long its round took, in seconds.
    pub seconds: f64,
}

impl CheatReport {
    /// A report of a candidate about which nothing is known yet.
    pub(super) fn unjudged(cheat: &Cheat) -> Self {
        Self {
            name: cheat.name,
            kind: cheat.kind,
            story: cheat.story,
            gain: cheat.gain,
            outcome: Outcome::Unjudged,
            gate: None,
            verdict: Verdict::Aborted,
            reason: String::new(),
            fault: None,
            seconds: 0.0,
        }
    }
}

/// Why a cheat could not be tried.
#[derive(Debug, Error)]
pub enum TrialError {
    /// The files of the round cannot be written.
    #[error("the files of the trial cannot be written to {place}: {source}; check that there is room")]
    Files {
        /// The folder.
        place: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The round could not be played.
    #[error("the trial of `{name}` could not be played: {source}")]
    Unplayed {
        /// The cheat.
        name: &'static str,
        /// The error.
        source: Box<TournamentError>,
    },
    /// A kernel in a file could not be compared.
    #[error("the trial of `{name}` could not be held: {reason}")]
    Uncompared {
        /// The cheat.
        name: &'static str,
        /// What the program said.
        reason: String,
    },
    /// The baseline did not pass, so that there was no comparison.
    #[error("the trial of `{name}` says nothing of it: {reason}")]
    Baseline {
        /// The cheat.
        name: &'static str,
        /// The error of the baseline.
        reason: String,
    },
}

/// Small enough for a trial to take a second or two: three groups of ragged sizes, and attention with two heads.
const SUITE: &str = include_str!("suite.toml");

/// The suite on which cheats are tried.
pub fn suite() -> Result<Suite, SuiteError> {
    Suite::parse(SUITE, Path::new("cheats"), gauntlet_families::TASKS)
}

/// The parameters under which both families compute the suite: those of the baseline's schedule in the round file.
pub fn parameters() -> Parameters {
    Parameters::new().with("tile", [16_usize, 32, 64])
}

/// The timeouts of workers: honest ones take a hundredth of them on a quiet machine.
const PATIENCE: Timeouts = Timeouts {
    describe: Duration::from_secs(5),
    build: Duration::from_secs(10),
    transfer: Duration::from_secs(10),
    compute: Duration::from_secs(2),
};

/// Threads of the honest worker and of the cheats. With more than one, calls of half a millisecond scatter so far on a
/// small machine that neither speed-ups nor lies can be detected.
const THREADS: &str = "1";

/// The memory limit of workers, in bytes: honest ones take a tenth of it, and exceeding it harms no machine.
pub const MEMORY: u64 = 1 << 30;

/// How often to repeat an inconclusive trial: an undetected cheat that gains nothing, or an honest candidate that could
/// not be judged. Other programs on the machine may hide a lie, but then they hide the gain too.
const TRIES: usize = 3;

/// Tries the corpus, one candidate after another, and reports each to `observer` as it is done.
///
/// # Errors
/// If a trial could not be held; a cheat that gets through is reported, but is not an error.
pub fn run(
    settings: &Settings,
    observer: &mut dyn FnMut(&CheatReport),
) -> Result<Vec<CheatReport>, TrialError> {
    let wanted = |cheat: &Cheat| {
        settings.kinds.contains(&cheat.kind)
            && (settings.names.is_empty() || settings.names.iter().any(|name| name == cheat.name))
    };
    if let Some(on) = settings.kernels {
        let kernels: Vec<Cheat> = corpus::kernels(on).into_iter().filter(wanted).collect();
        return kernels::run(settings, on, &kernels, observer);
    }
    let mut reports = Vec::new();
    for cheat in corpus().into_iter().filter(wanted) {
        let mut report = try_one(settings, &cheat)?;
        for _ in 1..TRIES {
            let again = [Outcome::Stopped, Outcome::GainedNothing, Outcome::Unjudged];
            if !again.contains(&report.outcome) || cheat.kind == Kind::Undefended {
                break;
            }
            report = try_one(settings, &cheat)?;
        }
        observer(&report);
        reports.push(report);
    }
    Ok(reports)
}

/// A folder for the files of a trial.
pub(super) fn folder() -> Result<Scratch, TrialError> {
    Scratch::new().map_err(files)
}

/// The error of a trial whose files cannot be written.
pub(super) fn files(source: io::Error) -> TrialError {
    TrialError::Files {
        place: std::env::temp_dir(),
        source,
    }
}

fn try_one(settings: &Settings, cheat: &Cheat) -> Result<CheatReport, TrialError> {
    let start = Instant::now();
    let folder = folder()?;
    let round = folder.path().join("round.toml");
    std::fs::write(folder.path().join("suite.toml"), SUITE)
        .and_then(|()| std::fs::write(&round, round_file(&settings.program, cheat.name)))
        .map_err(files)?;
    let unplayed = |source| TrialError::Unplayed {
        name: cheat.name,
        source: Box::new(source),
    };
    forget_notes();
    let (verdict, reason, findings) =
        play_round(settings, folder.path(), &round, cheat.name).map_err(unplayed)?;
    forget_notes();
    let stopped = findings.iter().find(|finding| finding.stops().is_some());
    if let (Verdict::Blocked, None) = (verdict, stopped) {
        return Err(TrialError::Baseline {
            name: cheat.name,
            reason,
        });
    }
    let gate = stopped.map(|finding| finding.gate.clone());
    let fault = fault(cheat.end, gate.as_deref(), verdict, &reason);
    // Only the comparison may end without a verdict and without a suspicion.
    let suspicion = stopped.and_then(|finding| match &finding.evidence {
        Evidence::Comparison(comparison) => comparison.conduct.as_ref()?.suspicion,
        _ => None,
    });
    let accused = suspicion.is_none_or(|suspicion| suspicion.accuses());
    let outcome = Outcome::of(cheat, verdict, fault.as_deref(), accused);
    Ok(CheatReport {
        outcome,
        gate,
        verdict,
        reason,
        fault,
        seconds: start.elapsed().as_secs_f64(),
        ..CheatReport::unjudged(cheat)
    })
}

fn play_round(
    settings: &Settings,
    folder: &Path,
    round: &Path,
    name: &str,
) -> Result<(Verdict, String, Vec<Finding>), TournamentError> {
    let tournament = Tournament::load(round, &Overrides::default())?;
    let ledger = Ledger::open(folder.join("ledger.sqlite"))?;
    let run = ledger.start_run(&RunStart {
        version: String::new(),
        file: round.display().to_string(),
        digest: tournament.digest.clone(),
        environment: json!({}),
    })?;
    let journal = Journal::open(&ledger, run)?;
    let settings = PlaySettings {
        workers: Workers {
            cpu: settings.program.worker(["worker", "cpu", "--threads", THREADS]),
            cuda: BTreeMap::new(),
        },
        timeouts: PATIENCE,
        limits: Limits {
            memory: MEMORY,
            ..Limits::default()
        },
        measure: true,
        version: String::new(),
        environment: BTreeMap::new(),
        elsewhere: None,
    };
    let report = play(&tournament, &journal, &settings, &Blind)?;
    let judged = report.rounds.into_iter().flat_map(|round| round.judged);
    let judged = judged.into_iter().find(|judged| judged.name == name);
    Ok(judged.map_or(
        (Verdict::Blocked, "nothing was judged".to_owned(), Vec::new()),
        |judged| (judged.verdict, judged.reason, judged.findings),
    ))
}

fn round_file(program: &Program, name: &str) -> String {
    let own = program.with(["worker", "cheat", name]);
    let command: Vec<_> = std::iter::once(program.file.as_os_str())
        .chain(own.iter().map(OsString::as_os_str))
        .map(|word| word.to_string_lossy())
        .collect();
    format!(
        r#"
name = "trial"
title = "does {name} get through?"
executor = "cpu"
device = "host"
suite = "./suite.toml"

[baseline.schedule]
tile = [16, 32, 64]

[measurement]
looks = [4, 6, 9]
blocks = 3
budget = "10s"
warm = true

[[pitch]]
name = "{name}"
contestant = "the corpus of cheats"
problem = "honest work takes time"
change = "cheats"
command = {command}
claim = {{ speedup = {{ q10 = 1.0, q50 = 1.5, q90 = 2.0 }} }}
odds = {{ adopt = 0.5, inconclusive = 0.5 }}
cost = {{ hours = 0 }}
risk = {{ level = "high", why = "it might be caught" }}
evidence = [{{ kind = "intuition", text = "nobody will look" }}]
abort = []
fallback = {{ plan = "compute honestly" }}
"#,
        command = json!(command),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trial_is_a_round_that_can_be_read() {
        for cheat in corpus() {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("suite.toml"), SUITE).unwrap();
            let round = folder.path().join("round.toml");
            std::fs::write(&round, round_file(&Program::new("/bin/gauntlet"), cheat.name)).unwrap();
            Tournament::load(&round, &Overrides::default()).unwrap();
        }
    }
}
