//! `gauntlet run`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::rc::Rc;

use gauntlet_judge::ledger::{Ledger, RecordKind, RunId, RunStart};
use gauntlet_judge::{ExecutorKind, Journal, Workers};
use gauntlet_report::Detail;
use gauntlet_tournament::{Overrides, Settings, Tournament, play};
use gauntlet_worker::{Limits, Program, WorkerCommand};

use crate::arguments::{MeasuredExecutor, Run};
use crate::commands::errand::OnFarm;
use crate::commands::{cuda, report};
use crate::environment::timeouts;
use crate::error::{CliError, say_line};
use crate::exit::Exit;
use crate::interrupt;
use crate::machine::Hold;
use crate::progress::Progress;
use crate::run_lock::{self, RunLock};
use crate::sink;

/// Plays a round or a tournament.
pub fn run(arguments: &Run) -> Result<Exit, CliError> {
    let overrides = Overrides {
        executor: arguments.executor.map(Into::into),
        device: arguments.device.clone(),
        suite: arguments.suite.clone(),
        budget: arguments.budget,
    };
    let files = &arguments.files;
    files.check()?;
    let tournament = Tournament::load(&arguments.path, &overrides)?;
    // A replay needs no device.
    let mut settings = Settings {
        measure: true,
        ..settings(
            &tournament,
            arguments.from_ledger.is_none() && arguments.farm.farm.is_none(),
        )?
    };
    let ledger = Ledger::open(&arguments.ledger.path)?;
    if let Some(name) = &arguments.from_ledger {
        return replay(arguments, &tournament, &settings, &ledger, name);
    }
    let (run, _lock) = start(arguments, &tournament, &settings, &ledger)?;
    let kept = format!(
        "what was found is kept in {} as run {run}",
        ledger.path().display()
    );
    interrupt::keeps(format!("{kept}; the same with --resume goes on with it"));
    let journal = Journal::open(&ledger, run)?;
    let holds = match arguments.farm.farm {
        None => holds(&tournament)?,
        Some(_) => {
            settings.elsewhere = Some(Rc::new(OnFarm::new(arguments, journal.run())?));
            Vec::new()
        }
    };
    let report = {
        let progress = Progress::new();
        play(&tournament, &journal, &settings, &progress)?
    };
    drop(holds);
    interrupt::keeps(kept);
    files.deliver(&report, Detail::Outcome, || {
        sink::line(format_args!(
            "Kept in {} as run {}.",
            ledger.path().display(),
            report.run
        ))
    })?;
    Ok(match arguments.require {
        None => Exit::Done,
        Some(requirement) => requirement.of_report(&report).exit(requirement.name()),
    })
}

/// Plays a run once more from its records, and compares the decisions.
fn replay(
    arguments: &Run,
    tournament: &Tournament,
    settings: &Settings,
    ledger: &Ledger,
    name: &str,
) -> Result<Exit, CliError> {
    let recorded = report::tournament_of(ledger, name)?;
    let start = RunStart {
        version: settings.version.clone(),
        file: arguments.path.display().to_string(),
        // Another than the run's, so that no run goes on with what was replayed.
        digest: gauntlet_tournament::digest_of(&["replay", &digest(tournament, &settings.version)]),
        environment: recorded.start.environment.clone(),
    };
    let own = digest(tournament, &recorded.start.version);
    let of_replay = gauntlet_tournament::digest_of(&["replay", &own]);
    if ![own, of_replay].contains(&recorded.start.digest) {
        return Err(CliError::bad_input(
            format!(
                "run {} was played with other files than {}",
                recorded.id,
                arguments.path.display()
            ),
            "replay it with the files and options that it was played with",
        ));
    }
    let run = ledger.start_run(&start)?;
    let journal = Journal::open(ledger, run.clone())?.replaying(&recorded.id)?;
    let report = play(tournament, &journal, settings, &Progress::new())?;
    let [before, after] = [&recorded.id, &run].map(|run| decisions(ledger, run));
    let (before, after) = (before?, after?);
    let differs = before.iter().zip(&after).find(|(before, after)| before != after);
    arguments
        .files
        .deliver(&report, Detail::Outcome, || match differs {
            None if before.len() == after.len() => sink::line(format_args!(
                "Run {} replayed as run {run}: all {} decisions are as they were recorded.",
                recorded.id,
                before.len()
            )),
            _ => Ok(()),
        })?;
    match differs {
        None if before.len() == after.len() => Ok(Exit::Done),
        _ => {
            let what = differs.map_or("a decision is missing", |(before, _)| before.0.as_str());
            sink::message(format_args!("run {} was decided otherwise: {what}", recorded.id))?;
            Ok(Exit::NotReached)
        }
    }
}

/// The decisions of a run, each with its place: rankings, verdicts, what was adopted.
fn decisions(ledger: &Ledger, run: &RunId) -> Result<Vec<(String, serde_json::Value)>, CliError> {
    let decides = |kind| {
        matches!(
            kind,
            RecordKind::Ranking | RecordKind::Verdict | RecordKind::RoundEnded
        )
    };
    let records = ledger.records(run)?.into_iter().map(|entry| entry.record);
    let decided = records.filter(|record| decides(record.kind)).map(|record| {
        let place = [record.round, record.pitch]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>();
        (format!("{} {}", record.kind.name(), place.join(" ")), record.body)
    });
    let mut decided: Vec<_> = decided.collect();
    // Those that gates stop are announced before those that are measured, which in a replay takes no time.
    decided.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(decided)
}

/// What a run's files and program come to: findings of another version of this program are not reused.
fn digest(tournament: &Tournament, version: &str) -> String {
    gauntlet_tournament::digest_of(&[tournament.digest.as_str(), version])
}

/// Locks everything that the rounds measure with.
pub fn holds(tournament: &Tournament) -> Result<Vec<Hold>, CliError> {
    let measures = |kind| {
        let mut rounds = tournament.rounds.iter();
        rounds.any(|round| round.file().executor == kind)
    };
    // Always in the same order, so that no two programs wait for each other.
    [
        (ExecutorKind::Cpu, MeasuredExecutor::Cpu),
        (ExecutorKind::Cuda, MeasuredExecutor::Cuda),
    ]
    .into_iter()
    .filter(|(kind, _)| measures(*kind))
    .map(|(_, executor)| Hold::take(executor))
    .collect()
}

/// The settings with which this program runs candidates.
pub fn settings(tournament: &Tournament, measure: bool) -> Result<Settings, CliError> {
    let gpus = cuda::workers(tournament, measure)?;
    Ok(Settings {
        workers: Workers {
            cpu: cpu_worker(None)?,
            cuda: gpus.workers,
        },
        timeouts: timeouts()?,
        limits: Limits::default(),
        measure,
        version: version(),
        environment: environment().into_iter().chain(gpus.environment).collect(),
        elsewhere: None,
    })
}

/// This program as a worker, with the arguments of its command.
pub fn worker(arguments: impl IntoIterator<Item = OsString>) -> Result<WorkerCommand, CliError> {
    Ok(this_program()?.worker(arguments))
}

/// This program.
pub fn this_program() -> Result<Program, CliError> {
    Program::this()
        .map_err(|error| CliError::broken(format!("this program's own file cannot be found: {error}")))
}

/// This program as a worker of the CPU executor.
pub fn cpu_worker(simd: Option<&str>) -> Result<WorkerCommand, CliError> {
    let mut arguments: Vec<OsString> = vec!["worker".into(), "cpu".into()];
    if let Some(simd) = simd {
        arguments.extend(["--simd".into(), simd.into()]);
    }
    worker(arguments)
}

/// The version of this program, with its commit.
pub const VERSION: &str = env!("GAUNTLET_VERSION");

/// The same, as documents hold it.
pub fn version() -> String {
    VERSION.to_owned()
}

/// The name in an environment of the machine's own name.
pub const HOST: &str = "host";

/// The name in an environment of the scheduler's job.
pub const JOB: &str = "job";

/// Schedulers, and the variables by which they tell a job its number.
const JOBS: [(&str, &str); 4] = [
    ("Slurm", "SLURM_JOB_ID"),
    ("PBS", "PBS_JOBID"),
    ("LSF", "LSB_JOBID"),
    ("Ray", "RAY_JOB_ID"),
];

/// The properties that the figures of a run depend on, in addition to its files.
pub fn environment() -> BTreeMap<String, String> {
    let host = gauntlet_device::Device::host();
    let mut environment = BTreeMap::from([
        ("processors".to_owned(), host.processors.text()),
        (
            "system".to_owned(),
            format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        ),
        (
            "simd".to_owned(),
            gauntlet_kernels_cpu::SimdPath::best().to_string(),
        ),
    ]);
    // Which machine of a cluster it was, and which of its scheduler's jobs.
    if let Ok(name) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
        environment.insert(HOST.to_owned(), name.trim().to_owned());
    }
    if let Some(job) = JOBS.iter().find_map(|(scheduler, variable)| {
        let id = std::env::var(variable).ok().filter(|id| !id.is_empty())?;
        Some(format!("{scheduler} {id}"))
    }) {
        environment.insert(JOB.to_owned(), job);
    }
    // Workers use these instead of their own choice.
    for variable in ["GAUNTLET_SIMD", "GAUNTLET_THREADS", "GAUNTLET_GPU"] {
        if let Ok(value) = std::env::var(variable) {
            environment.insert(variable.to_owned(), value);
        }
    }
    if let Some(model) = host.cpu.as_ref().and_then(|cpu| cpu.model.as_ref()) {
        environment.insert("processor".to_owned(), model.value.clone());
    }
    environment
}

/// Begins or resumes a run, and locks it until the lock is dropped.
fn start(
    arguments: &Run,
    tournament: &Tournament,
    settings: &Settings,
    ledger: &Ledger,
) -> Result<(RunId, RunLock), CliError> {
    let digest = digest(tournament, &settings.version);
    let _beginning = run_lock::beginning(ledger.path());
    let unfinished = ledger.last_unfinished_run(&digest)?;
    let leased = unfinished
        .map(|run| Ok::<_, CliError>((RunLock::take(ledger.path(), &run)?, run)))
        .transpose()?;
    match (arguments.resume, leased) {
        (true, Some((Some(lock), run))) => {
            anstream::eprintln!("Going on with run {run}.");
            Ok((run, lock))
        }
        (true, Some((None, run))) => Err(CliError::bad_input(
            format!("run {run} is still being played by another program"),
            "wait for it to end, or leave out --resume to begin another",
        )),
        (resumes, leased) => {
            if let Some((Some(_), run)) = leased {
                anstream::eprintln!(
                    "Run {run} of the same files was cut short; --resume would go on with it."
                );
            } else if resumes {
                say_line(format_args!(
                    "note: {} holds no run of these files, overrides and version of this program that was cut short; a new one \
                     begins",
                    ledger.path().display()
                ));
            }
            let run = ledger.start_run(&RunStart {
                version: settings.version.clone(),
                file: arguments.path.display().to_string(),
                digest,
                environment: serde_json::to_value(&settings.environment).unwrap_or_default(),
            })?;
            match RunLock::take(ledger.path(), &run)? {
                Some(lock) => Ok((run, lock)),
                None => Err(CliError::broken(format!(
                    "another program holds the new run {run}"
                ))),
            }
        }
    }
}
