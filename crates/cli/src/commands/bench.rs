//! `gauntlet bench`.

use gauntlet_device::Device;
use gauntlet_lab::gates::{Examination, Executor, GATES, Trouble as GateTrouble, examine};
use gauntlet_lab::{Candidate, Comparison, Measurement, Metrics, Observer, Round, Verdict, measure};
use gauntlet_problem::Suite;
use gauntlet_schedule::{Schedule, check};
use gauntlet_stats::{Criteria, Decision};
use serde_json::json;

use crate::arguments::{Bench, Requirement};
use crate::commands::cuda::{Place, environment_with};
use crate::commands::suites;
use crate::exit::Exit;
use crate::machine::Hold;
use crate::progress::Progress;
use crate::schedule_text;
use crate::sink;
use crate::trouble::{Trouble, terminal_width};

/// Compares two schedules on this machine's CPU or GPU.
pub fn bench(arguments: &Bench) -> Result<Exit, Trouble> {
    arguments.json.iter().try_for_each(|path| sink::check(path))?;
    let baseline = schedule_text::candidate("baseline", &arguments.baseline, &Schedule::baseline())?;
    let candidate = schedule_text::candidate("candidate", &arguments.candidate, &baseline.schedule)?;
    let suite = chosen(&arguments.suite, &arguments.cases)?;
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
    let round = Round::ad_hoc(device, &suite, measurement, Criteria::default());
    let executor = Executor::Live(workshop);
    let result = |what: &str, found: serde_json::Value| {
        json!({
            "suite": suite.name, "baseline": description(&arms[0]), "candidate": description(&arms[1]),
            "criteria": round.file().criteria, "environment": environment_with(gpu.as_ref()), what: found,
        })
    };
    let _hold = Hold::take(arguments.measured.executor);
    let progress = Progress::new();
    for arm in &arms {
        if let Some((verdict, reason)) = fault(&round, arm, &executor, &progress)? {
            drop(progress);
            let found = result(
                "stopped",
                json!({ "arm": arm.name, "verdict": verdict, "reason": reason }),
            );
            sink::deliver(arguments.json.as_deref(), &found, || {
                sink::print(format_args!("{}: {verdict}: {reason}", arm.name))
            })?;
            return Ok(Exit::NotReached);
        }
    }
    let comparison = compare(&round, &arms, &executor, arguments, &progress)?;
    drop(progress);
    let found = result("comparison", json!(comparison));
    sink::deliver(arguments.json.as_deref(), &found, || {
        for (arm, text) in arms.iter().zip([&arguments.baseline, &arguments.candidate]) {
            match arm.dispatch {
                None => sink::print(format_args!("{:<11}{}", arm.name, arm.schedule))?,
                Some(_) => sink::print(dispatched(arm, text, &suite, &round.device))?,
            }
        }
        sink::print("")?;
        let report = gauntlet_report::comparison(&comparison, &round.file().criteria, terminal_width());
        sink::print(report)
    })?;
    Ok(reached(&comparison, arguments.require))
}

/// A suite with only the benchmark cases named; all of them if none is.
pub fn chosen(name: &str, cases: &[String]) -> Result<Suite, Trouble> {
    let mut suite = suites::find(name)?;
    if let Some(stranger) = cases
        .iter()
        .find(|case| suite.benchmark.iter().all(|known| known.name != **case))
    {
        let known: Vec<_> = suite.benchmark.iter().map(|case| case.name.as_str()).collect();
        return Err(Trouble::bad_input(
            format!("the suite {} has no benchmark case `{stranger}`", suite.name),
            format!("one of {}", known.join(", ")),
        ));
    }
    if !cases.is_empty() {
        suite.benchmark.retain(|case| cases.contains(&case.name));
    }
    Ok(suite)
}

/// A table whole, else the schedule alone.
fn description(arm: &Candidate) -> serde_json::Value {
    match &arm.dispatch {
        Some(table) => json!(table),
        None => json!(arm.schedule),
    }
}

/// What a table says of each case, and why.
fn dispatched(arm: &Candidate, text: &str, suite: &Suite, device: &Device) -> String {
    let mut said = format!("{:<11}{text}", arm.name);
    for case in &suite.benchmark {
        let (schedule, why) = arm.choice_for(&case.problem, device);
        said += &format!("\n           {}: {schedule} ({why})", case.name);
    }
    said
}

fn allowed(arm: &Candidate, text: &str, suite: &Suite, device: &Device) -> Result<(), Trouble> {
    for case in &suite.benchmark {
        let schedule = arm.schedule_for(&case.problem, device);
        if let Some(violation) = check(schedule, &case.problem, device).first() {
            let remedy = violation.remedies.first().map(|remedy| remedy.sentence.clone());
            return Err(Trouble::bad_input(
                format!("`{text}` on {}: {violation}", case.name),
                remedy.unwrap_or_else(|| "`gauntlet schedules` explains the words".to_owned()),
            ));
        }
    }
    Ok(())
}

/// What the gate `right` has against a candidate: the speed of a wrong kernel is of no interest.
fn fault(
    round: &Round,
    candidate: &Candidate,
    executor: &Executor,
    observer: &dyn Observer,
) -> Result<Option<(Verdict, String)>, Trouble> {
    let examination = Examination {
        round,
        candidate,
        control: candidate,
        pitch: None,
        executor,
        observer,
        metrics: Metrics::new(),
        findings: Vec::new(),
        comparison: None,
    };
    for gate in GATES.iter().filter(|gate| gate.name() == "right") {
        let finding = examine(*gate, &examination)?;
        if let Some(verdict) = finding.stops() {
            return Ok(Some((verdict, finding.reason)));
        }
    }
    Ok(None)
}

fn compare(
    round: &Round,
    [baseline, candidate]: &[Candidate; 2],
    executor: &Executor,
    arguments: &Bench,
    observer: &dyn Observer,
) -> Result<Comparison, Trouble> {
    let Executor::Live(workshop) = executor else {
        return Err(Trouble::broken("nothing runs the candidates"));
    };
    let allowed = arguments.budget.unsigned_abs();
    measure(workshop, round, baseline, candidate, allowed, observer).map_err(|trouble| match trouble {
        GateTrouble::Lab(error) => error.into(),
        GateTrouble::Candidate(error) => Trouble::broken(format!("the candidate failed: {error}")),
        GateTrouble::Control(error) => Trouble::broken(format!("the baseline failed: {error}")),
        GateTrouble::Void(reason) => Trouble::broken(format!("void: {reason}")),
        GateTrouble::Wrong(reason) => Trouble::broken(format!("the candidate is wrong: {reason}")),
    })
}

fn reached(comparison: &Comparison, requirement: Option<Requirement>) -> Exit {
    let decision = comparison.assessment.decision;
    let reached = match requirement {
        None => true,
        Some(Requirement::Adopt) => decision == Decision::Adopt,
        Some(Requirement::NoRegression) => decision != Decision::Regression,
    };
    if reached { Exit::Done } else { Exit::NotReached }
}
