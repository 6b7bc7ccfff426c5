//! `gauntlet compare`.

use std::path::Path;
use std::time::Instant;

use gauntlet_device::Device;
use gauntlet_judge::gates::{Examination, Faster, Right};
use gauntlet_judge::session::{examine, resume};
use gauntlet_judge::{
    Candidate, Comparison, Executor, Measurement, Metrics, Observer, Setting, Verdict, measure,
};
use gauntlet_parameters::Parameters;
use gauntlet_python_task::Options;
use gauntlet_stats::Criteria;
use gauntlet_task::Suite;
use serde_json::json;

use crate::arguments::{Compare, Requirement};
use crate::commands::cuda::{Place, environment_with};
use crate::commands::suites;
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::machine::Hold;
use crate::progress::Progress;
use crate::requirement::{Conclusion, soundness};
use crate::schedule_text;
use crate::sink;

/// Compares two kernels on this machine's CPU or GPU.
pub fn compare(arguments: &Compare) -> Result<Exit, CliError> {
    arguments.json.iter().try_for_each(|path| sink::check(path))?;
    let suite = chosen_for(
        &arguments.task,
        &arguments.cases,
        python_function(&arguments.baseline),
    )?;
    let table = suite.parameters();
    let baseline = schedule_text::candidate("baseline", &arguments.baseline, &Parameters::new(), &table)?;
    let candidate = schedule_text::candidate("candidate", &arguments.candidate, &baseline.schedule, &table)?;
    let Place {
        device,
        workshop,
        gpu,
    } = Place::of(&arguments.measured)?;
    let arms = [baseline, candidate];
    for (arm, text) in arms.iter().zip([&arguments.baseline, &arguments.candidate]) {
        allowed(arm, text, &suite, &device)?;
    }
    let measurement = Measurement {
        budget: arguments.budget,
        warm: arguments.warm,
        ..Measurement::default()
    };
    let setting = Setting::new(device, &suite, measurement, Criteria::default());
    let executor = Executor::Live(workshop);
    let mut result = json!({
        "suite": suite.name, "notes": suite.notes, "baseline": description(&arms[0]), "candidate": description(&arms[1]),
        "criteria": setting.criteria, "environment": environment_with(gpu.as_ref()),
    });
    let _hold = Hold::take(arguments.measured.executor);
    let progress = Progress::new();
    let found = examined(&setting, &arms, &executor, arguments, &progress)?;
    drop(progress);
    match &found.comparison {
        Some(comparison) => {
            result["comparison"] = json!(comparison);
            result["verdict"] = json!(found.verdict);
            result["reason"] = json!(found.reason);
        }
        None => {
            result["stopped"] = json!({ "arm": found.arm, "verdict": found.verdict, "reason": found.reason });
        }
    }
    sink::deliver(arguments.json.as_deref(), &result, || {
        let Some(comparison) = &found.comparison else {
            return sink::print(format_args!("{}: {}: {}", found.arm, found.verdict, found.reason));
        };
        for (arm, text) in arms.iter().zip([&arguments.baseline, &arguments.candidate]) {
            let described = match (&arm.dispatch, &arm.command) {
                (Some(_), _) => dispatched(arm, text, &suite, &setting.device),
                (None, Some(_)) => format!("{:<11}{text}", arm.name),
                (None, None) => format!("{:<11}{}", arm.name, setting.parameters.describe(&arm.schedule)),
            };
            sink::print(described)?;
        }
        suites::tell_notes(&suite)?;
        sink::print("")?;
        let void = (found.verdict == Verdict::Blocked).then_some(found.reason.as_str());
        let report = gauntlet_report::comparison(comparison, void, &setting.criteria, terminal_width());
        sink::print(report)
    })?;
    Ok(concluded(&found, arguments.require))
}

/// The exit code of a comparison, or of one that could not be made. Without a requirement it depends only on whether
/// both kernels are correct and the times are credible.
fn concluded(found: &Found, requirement: Option<Requirement>) -> Exit {
    let because = format!("the {} {}", found.arm, found.verdict.sentence());
    match requirement {
        None => {
            Conclusion::of_one(soundness(found.verdict), because).exit("a comparison of two right kernels")
        }
        Some(requirement) => {
            Conclusion::of_one(requirement.of_verdict(found.verdict), because).exit(requirement.name())
        }
    }
}

/// A suite with only the given benchmark cases; all of them if none is given.
pub fn chosen(name: &str, cases: &[String]) -> Result<Suite, CliError> {
    chosen_for(name, cases, None)
}

/// The same, for a comparison with a baseline that is a Python function: it stands in for a reference that a task lacks.
fn chosen_for(name: &str, cases: &[String], baseline: Option<&str>) -> Result<Suite, CliError> {
    let mut suite = suites::find_with(
        name,
        &Options {
            baseline: baseline.map(str::to_owned),
            cases: cases.to_vec(),
            ..Options::default()
        },
    )?;
    if let Some(stranger) = cases
        .iter()
        .find(|case| suite.benchmark.iter().all(|known| known.name != **case))
    {
        let known: Vec<_> = suite.benchmark.iter().map(|case| case.name.as_str()).collect();
        return Err(CliError::bad_input(
            format!("the suite {} has no benchmark case `{stranger}`", suite.name),
            format!("one of {}", known.join(", ")),
        ));
    }
    if !cases.is_empty() {
        suite.benchmark.retain(|case| cases.contains(&case.name));
    }
    Ok(suite)
}

/// A kernel's text if it names a function of a Python file, as `softmax.py:fast` does.
fn python_function(text: &str) -> Option<&str> {
    let (file, _) = text.rsplit_once(':')?;
    let is_python = Path::new(file)
        .extension()
        .is_some_and(|extension| extension == "py");
    is_python.then_some(text)
}

/// A table, a command, or parameters.
fn description(arm: &Candidate) -> serde_json::Value {
    match (&arm.dispatch, &arm.command) {
        (Some(table), _) => json!(table),
        (None, Some(command)) => json!({ "command": command }),
        (None, None) => json!(arm.schedule),
    }
}

/// The entry of a dispatch table for each case, and its evidence.
fn dispatched(arm: &Candidate, text: &str, suite: &Suite, device: &Device) -> String {
    let mut said = format!("{:<11}{text}", arm.name);
    for case in &suite.benchmark {
        let (schedule, why) = arm.choice_for(&case.sizes, device);
        let schedule = case.sizes.task().parameters().describe(schedule);
        said += &format!("\n           {}: {schedule} ({why})", case.name);
    }
    said
}

fn allowed(arm: &Candidate, text: &str, suite: &Suite, device: &Device) -> Result<(), CliError> {
    if arm.command.is_some() {
        return Ok(());
    }
    for case in &suite.benchmark {
        let schedule = arm.schedule_for(&case.sizes, device);
        if let Some(violation) = case.sizes.violations(schedule, device).first() {
            let remedy = violation.remedies.first().map(|remedy| remedy.sentence.clone());
            return Err(CliError::bad_input(
                format!("`{text}` on {}: {violation}", case.name),
                remedy.unwrap_or_else(|| "`gauntlet schedules` explains the words".to_owned()),
            ));
        }
    }
    Ok(())
}

/// The outcome of a comparison.
struct Found {
    /// The side that the verdict is about.
    arm: String,
    verdict: Verdict,
    reason: String,
    /// None if a kernel was stopped before there were times.
    comparison: Option<Comparison>,
}

/// Examines whether both kernels are correct, because the speed of an incorrect one is irrelevant, and compares them.
fn examined(
    setting: &Setting,
    arms: &[Candidate; 2],
    executor: &Executor,
    arguments: &Compare,
    observer: &dyn Observer,
) -> Result<Found, CliError> {
    let examination = |candidate| Examination {
        setting,
        candidate,
        baseline: &arms[0],
        proposal: None,
        executor,
        observer,
        metrics: Metrics::new(),
        findings: Vec::new(),
        comparison: None,
    };
    for arm in arms {
        let finding = examine(&Right, &examination(arm))?;
        if let Some((verdict, finding)) = finding.and_then(|finding| Some((finding.stops()?, finding))) {
            return Ok(Found {
                arm: arm.name.clone(),
                verdict,
                reason: finding.reason,
                comparison: None,
            });
        }
    }
    let Executor::Live(workshop) = executor else {
        return Err(CliError::broken("nothing runs the candidates"));
    };
    let start = Instant::now();
    let allowed = arguments.budget.unsigned_abs();
    let mut compared = examination(&arms[1]);
    let measured = measure(workshop, setting, &arms[0], &arms[1], allowed, observer);
    // As in a round, a failing worker or implausible times lead to a verdict.
    let finding = resume(&Faster, &mut compared, measured, start.elapsed())?;
    Ok(Found {
        arm: arms[1].name.clone(),
        verdict: finding.stops().unwrap_or(Verdict::Adopt),
        reason: finding.reason,
        comparison: compared.comparison,
    })
}
