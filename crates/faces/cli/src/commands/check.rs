//! `gauntlet check`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gauntlet_audit::AuditReport;
use gauntlet_device::Device;
use gauntlet_judge::ledger::{Ledger, RunStart};
use gauntlet_judge::{Fault, Journal, KernelText, Sweep, SweepReport, sweep};
use gauntlet_kernels_cpu::SimdPath;
use gauntlet_parameters::{Parameters, did_you_mean, pairwise};
use gauntlet_report::{Detail, Rendered};
use gauntlet_scratch::Scratch;
use gauntlet_task::{Case, Rules, Suite};
use gauntlet_tournament::{Overrides, Tournament, TournamentReport, play};
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::Check;
use crate::commands::run::{cpu_worker, environment, settings};
use crate::commands::{audit, native};
use crate::documents::{Document, Versioned};
use crate::environment::timeouts;
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::listing;
use crate::progress::Progress;
use crate::recording::{Found, Recorder, tell_record};
use crate::requirement::{Conclusion, Standing, soundness, unsound_baseline};
use crate::sink;

/// The result of `gauntlet check`.
#[derive(Serialize, JsonSchema)]
pub struct Checked {
    /// What the result depends on: processor, system, SIMD path.
    environment: BTreeMap<String, String>,
    /// The rounds, each examined by the gates that measure nothing.
    tournaments: Vec<TournamentReport>,
    /// The suites and kernels, each compared with its reference.
    suites: Vec<SweepReport>,
    /// The task itself, where no kernel is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<AuditReport>,
    /// For each of these the kernel as it was named; none for a suite of built-in kernels.
    #[serde(skip)]
    kernels: Vec<Option<String>>,
}

impl Document for Checked {
    const NAME: &'static str = "check";
    const VERSION: u32 = 1;
}

/// Examines rounds or suites without measuring.
pub fn check(arguments: &Check) -> Result<Exit, CliError> {
    arguments.json.iter().try_for_each(|path| sink::check(path))?;
    let recorder = Recorder::open(&arguments.ledger, arguments.no_ledger, sources(arguments))?;
    let mut checked = Checked {
        environment: environment(),
        tournaments: Vec::new(),
        suites: Vec::new(),
        audit: None,
        kernels: Vec::new(),
    };
    if let (Some(task), true) = (&arguments.task, arguments.targets.is_empty()) {
        checked.audit = Some(audit::of_task(task)?);
    }
    for target in &arguments.targets {
        match target.parse::<KernelText>() {
            Ok(kernel) if kernel.is_users() => {
                checked.suites.push(native::check(&kernel, arguments)?);
                checked.kernels.push(Some(target.clone()));
                continue;
            }
            Err(error) if error.is_of_a_kernel() => {
                return Err(gauntlet_entrants::EntrantError::from(error).into());
            }
            _ => {}
        }
        let path = Path::new(target);
        let is_suite = gauntlet_families::suite_names().contains(&target.as_str()) || is_suite_file(path);
        if is_suite {
            checked
                .suites
                .push(check_suite(&gauntlet_entrants::find_task(target)?, arguments)?);
            checked.kernels.push(None);
        } else {
            if arguments.simd.is_some() || arguments.schedule.is_some() {
                return Err(CliError::bad_input(
                    format!("--simd and --schedule are for suites, and {target} is none"),
                    "leave them out; a round says itself which schedules it compares",
                ));
            }
            if !path.exists() {
                let suites = gauntlet_families::suite_names();
                let meant = did_you_mean(target, suites.into_iter());
                return Err(CliError::bad_input(
                    format!("`{target}` is neither a file nor a suite"),
                    format!(
                        "check the path; `gauntlet suites` lists the suites{meant}, and a kernel is written as \
                         FILE:FUNCTION or 'command: PROGRAM ARGUMENTS'"
                    ),
                ));
            }
            checked.tournaments.push(check_rounds(path)?);
        }
    }
    let standings = standings(&checked);
    let recorded = recorder.record(found(&checked, &standings, &recorder), &checked);
    let delivered = sink::deliver(arguments.json.as_deref(), &Versioned::of(&checked), || {
        tell(&checked)?;
        tell_record(&recorded)
    });
    sink::both(delivered, recorded.map(drop))?;
    Ok(Conclusion::worst(standings).exit("the check"))
}

/// The files that are named, and what they mention.
fn sources(arguments: &Check) -> BTreeMap<String, String> {
    let mut named: Vec<PathBuf> = Vec::new();
    for target in &arguments.targets {
        match target.parse::<KernelText>() {
            Ok(kernel) if kernel.is_users() => named.extend(kernel.files()),
            _ => named.push(target.into()),
        }
    }
    let task = arguments.task.as_ref().map(Path::new);
    named.extend(task.into_iter().flat_map(gauntlet_entrants::task_files));
    named.extend(arguments.device.iter().map(PathBuf::from));
    gauntlet_entrants::digests_of(named)
}

/// What the record says of a check: the worst of all that was examined.
fn found(checked: &Checked, standings: &[(Standing, String)], recorder: &Recorder) -> Found {
    let suites = checked.suites.iter().map(|report| report.suite.clone());
    let rounds = checked.tournaments.iter().flat_map(|report| &report.rounds);
    let audits = checked.audit.iter().map(|report| report.task.clone());
    let tasks: Vec<String> = suites
        .chain(rounds.map(|round| round.name.clone()))
        .chain(audits)
        .collect();
    let worst = standings.iter().map(|(standing, _)| *standing).max();
    let because = standings.iter().filter(|(standing, _)| Some(*standing) == worst);
    Found {
        task: tasks.join(", "),
        kernels: checked
            .kernels
            .iter()
            .flatten()
            .map(|text| recorder.kernel(text))
            .collect(),
        verdict: worst.map(|worst| {
            match worst {
                Standing::Met => "right",
                Standing::Undecided => "blocked",
                Standing::Failed => "not-right",
            }
            .to_owned()
        }),
        reason: because
            .map(|(_, why)| why.as_str())
            .collect::<Vec<_>>()
            .join("; "),
        speedup: None,
        interrupted: false,
    }
}

/// A TOML file with cases is a suite; any other is a round or a tournament. A round's `correctness` is a single table.
fn is_suite_file(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lists = |table: &toml::Table, name: &str| table.get(name).is_some_and(toml::Value::is_array);
    text.parse::<toml::Table>()
        .is_ok_and(|table| lists(&table, "benchmark") || lists(&table, "correctness"))
}

/// Plays a tournament through the gates that do not measure; its findings are not kept.
fn check_rounds(path: &Path) -> Result<TournamentReport, CliError> {
    let tournament = Tournament::load(path, &Overrides::default())?;
    let settings = settings(&tournament, false)?;
    let folder = Scratch::new().map_err(|error| CliError::broken(format!("no temporary folder: {error}")))?;
    let ledger = Ledger::open(folder.path().join("check.sqlite"))?;
    let run = ledger.start_run(&RunStart {
        version: settings.version.clone(),
        file: path.display().to_string(),
        digest: tournament.digest.clone(),
        environment: serde_json::Value::Null,
    })?;
    let journal = Journal::open(&ledger, run)?;
    let progress = Progress::new();
    Ok(play(&tournament, &journal, &settings, &progress)?)
}

fn check_suite(suite: &Suite, arguments: &Check) -> Result<SweepReport, CliError> {
    let device = Device::host();
    let given = arguments.schedule.as_deref();
    let given = given
        .map(|text| gauntlet_entrants::read_parameters(text, &Parameters::new(), &suite.parameters()))
        .transpose()?;
    if let Some(schedule) = &given {
        keeps_a_rule(schedule, suite, &device)?;
    }
    let paths = match &arguments.simd {
        Some(name) => vec![name.parse::<SimdPath>().map_err(|error| {
            CliError::bad_input(
                format!("--simd: {error}"),
                "`gauntlet doctor` lists the SIMD paths of this machine",
            )
        })?],
        None => SimdPath::available(),
    };
    let mut workers = Vec::new();
    for path in paths {
        let name = path.to_string();
        workers.push((name.clone(), cpu_worker(Some(&name))?));
    }
    let schedules = |case: &Case| match &given {
        Some(schedule) if case.sizes.accepts(schedule, &device) => vec![schedule.clone()],
        Some(_) => Vec::new(),
        None => pairwise(&case.sizes.covering_space(), |point| {
            case.sizes.accepts(point, &device)
        }),
    };
    let plan = Sweep {
        suite,
        workers,
        schedules: &schedules,
        rules: Rules::default(),
        timeouts: timeouts()?,
    };
    let progress = Progress::new();
    Ok(sweep(&plan, &|message| progress.show(message))?)
}

/// Refuses a schedule that no case of the suite allows: nothing would be examined, so no error could be found.
fn keeps_a_rule(schedule: &Parameters, suite: &Suite, device: &Device) -> Result<(), CliError> {
    let mut cases = suite.correctness.iter().chain(&suite.benchmark);
    let broken = |case: &Case| case.sizes.violations(schedule, device).into_iter().next();
    match suite.benchmark.first().and_then(broken) {
        Some(violation) if cases.all(|case| broken(case).is_some()) => Err(CliError::bad_input(
            format!("no case of {} allows this schedule: {violation}", suite.name),
            "`gauntlet schedules` explains the words",
        )),
        _ => Ok(()),
    }
}

fn tell(checked: &Checked) -> Result<(), CliError> {
    checked.audit.iter().try_for_each(audit::tell)?;
    for report in &checked.tournaments {
        sink::print(report.text(Detail::Outcome, terminal_width()))?;
    }
    for (report, kernel) in checked.suites.iter().zip(&checked.kernels) {
        for note in &report.notes {
            sink::print(format_args!("note: {note}"))?;
        }
        // Each fault is told once, below the table: many cases fail for the same reason, and a compiler's errors are long.
        let mut told: Vec<&Fault> = Vec::new();
        let mut rows = Vec::new();
        for point in &report.points {
            let result = match point.faults.first() {
                None => "right".to_owned(),
                Some(fault) => {
                    let known = told.iter().position(|earlier| earlier.what == fault.what);
                    let index = known.unwrap_or_else(|| {
                        told.push(fault);
                        told.len() - 1
                    });
                    let result = if fault.blocked { "blocked" } else { "not right" };
                    format!("{result}: [{}]", index + 1)
                }
            };
            let of_compared = |text: String| match point.compared {
                0 => "–".to_owned(),
                _ => text,
            };
            rows.push([
                point.case.clone(),
                point.inputs.to_string(),
                point.worker.clone(),
                point.compared.to_string(),
                of_compared(point.elements.to_string()),
                of_compared(format!("{:.1e}", point.worst_nrmse)),
                result,
            ]);
        }
        // A kernel of the user's runs on one worker, mostly on one kind of inputs and in one form.
        let is_suite = kernel.is_none();
        let kinds = is_suite || report.points.windows(2).any(|two| two[0].inputs != two[1].inputs);
        let schedules = is_suite || report.points.iter().any(|point| point.compared > 1);
        let columns = [
            ("case", true),
            ("inputs", kinds),
            ("SIMD", is_suite),
            ("schedules", schedules),
            ("elements", true),
            ("worst NRMSE", true),
            ("result", true),
        ];
        let shown: Vec<_> = columns.iter().map(|(_, shown)| *shown).collect();
        let head: Vec<_> = columns
            .iter()
            .filter(|(_, shown)| *shown)
            .map(|(name, _)| *name)
            .collect();
        let rows = rows.into_iter().map(|row| {
            let cells = row.into_iter().zip(&shown).filter(|(_, shown)| **shown);
            cells.map(|(cell, _)| cell).collect()
        });
        listing::print(&head, rows)?;
        for (index, Fault { schedule, what, .. }) in told.into_iter().enumerate() {
            let of = if schedule.is_empty() {
                String::new()
            } else {
                format!("{schedule}: ")
            };
            sink::message(format_args!("[{}] {of}{what}", index + 1))?;
        }
        sink::line(format_args!("{}: {}", report.suite, counts(report)))?;
    }
    Ok(())
}

/// How many comparisons there were, and how many failed before.
fn counts(report: &SweepReport) -> String {
    let SweepReport { right, compared, .. } = report;
    let mut said = match compared {
        0 => "nothing could be compared".to_owned(),
        _ => format!("{right} of {compared} comparisons right"),
    };
    for (count, one, several) in [
        (report.refused, "build refused", "builds refused"),
        (report.failed, "without a result", "without a result"),
        (report.blocked, "blocked", "blocked"),
    ] {
        if count > 0 {
            said += &format!(", {count} {}", if count == 1 { one } else { several });
        }
    }
    said
}

/// The standing of every baseline, pitch, fallback and suite.
fn standings(checked: &Checked) -> Vec<(Standing, String)> {
    let suites = checked
        .suites
        .iter()
        .zip(&checked.kernels)
        .map(|(report, kernel)| {
            let (standing, what) = match report {
                sound if sound.is_sound() => (Standing::Met, "is computed rightly"),
                blocked if blocked.is_blocked() => {
                    (Standing::Undecided, "is blocked: it could not be computed here")
                }
                _ => (Standing::Failed, "is not computed rightly"),
            };
            let by = kernel
                .as_ref()
                .map_or_else(String::new, |kernel| format!(" by {kernel}"));
            (standing, format!("{} {what}{by}", report.suite))
        });
    let rounds = checked.tournaments.iter().flat_map(|report| &report.rounds);
    let rounds = rounds.flat_map(|round| {
        let baseline = match unsound_baseline(round) {
            None => (Standing::Met, String::new()),
            Some(verdict) => (
                soundness(verdict),
                format!("the baseline of {} {}", round.name, verdict.sentence()),
            ),
        };
        let judged = round
            .judged
            .iter()
            .map(|one| (soundness(one.verdict), format!("{}: {}", one.name, one.verdict)));
        std::iter::once(baseline).chain(judged)
    });
    let audits = checked.audit.iter().map(audit::standing);
    suites.chain(rounds).chain(audits).collect()
}
