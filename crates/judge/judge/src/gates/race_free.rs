//! Race-free: the same inputs give the same bits, run after run; plus the race checker's report, if there is a checker.

use std::collections::HashSet;

use gauntlet_device::Device;
use gauntlet_stats::Arm;
use gauntlet_task::{Case, DEEP, InputKind, SMALLEST};
use gauntlet_worker::WorkerProcess;

use super::{Examination, Found, Gate, NOT_HERE, edge_cases};
use crate::evidence::{Checked, Evidence, Part, Told, Verdict};
use crate::runner::instruments::{NO_SANITIZER, TOOLS, check as check_under};
use crate::runner::{ExaminationFailure, Executor, Operands, Workshop, run_once};

/// Runs compared for each case; a race that shows in one run of two is missed in one of 2⁷ cases.
const RUNS: usize = 8;

/// Compares bits over repeated runs, on values whose sum depends on the order of summation.
pub struct RaceFree;

impl Gate for RaceFree {
    fn name(&self) -> &'static str {
        "race-free"
    }

    fn examine(&self, examination: &Examination) -> Result<Found, ExaminationFailure> {
        examined(examination)
    }
}

fn examined(examination: &Examination) -> Result<Found, ExaminationFailure> {
    match (examination.recorded(), examination.executor) {
        (Some(Err(found)), _) => Ok(found),
        (Some(Ok(record)), _) => Ok(match &record.races {
            None => Found::skip("the record holds no run of a race checker"),
            Some(said) if said == "none" => {
                Found::pass("recorded: the race checker found none", Evidence::Reason)
            }
            Some(said) => Found::stop(Verdict::Racy, format!("recorded: {said}"), Evidence::Reason),
        }),
        (None, Executor::Live(workshop)) => live(examination, workshop),
        (None, Executor::Compiled(_)) => Ok(Found::skip(NOT_HERE)),
        (None, Executor::Recorded(_)) => Ok(Found::skip("not recorded")),
    }
}

fn live(examination: &Examination, workshop: &Workshop) -> Result<Found, ExaminationFailure> {
    let seed: u64 = rand::random();
    let mut differing = Vec::new();
    let (mut repeated, mut free) = (0, 0);
    let mut checked = Vec::new();
    for part in examination.candidate.parts(examination.setting) {
        let mut cases = cases(&part, &examination.setting.device);
        let all = cases.len();
        cases.retain(|case| case.sizes.is_deterministic());
        free += all - cases.len();
        repeated += cases.len();
        let (mut worker, _) = workshop.start(Arm::Candidate, &part.candidate)?;
        for case in &cases {
            examination.observer.progress(&case.name);
            worker
                .build(&case.sizes, &part.candidate.schedule)
                .map_err(ExaminationFailure::Candidate)?;
            if differs(workshop, &mut worker, case, seed)? {
                differing.push(case.name.clone());
            }
        }
        drop(worker);
        checked.extend(looked_at(examination, workshop, &part, &cases)?);
    }
    if repeated == 0 && free > 0 {
        return Ok(Found::skip(
            "the task lets results differ from call to call (`deterministic` is false)",
        ));
    }
    let runs = repeated * RUNS;
    let evidence = Evidence::Repeats {
        runs,
        differing: differing.clone(),
        seed,
        checked: checked.clone(),
    };
    if !differing.is_empty() {
        let reason = format!("two runs on the same inputs differ in {}", differing.join(", "));
        return Ok(Found::stop(Verdict::Racy, reason, evidence));
    }
    let repeats = format!("{runs} runs over {repeated} cases, every repeat bit for bit the same");
    Ok(match said(workshop, &checked) {
        Said::Faults(faults) => Found::stop(Verdict::Racy, faults, evidence),
        Said::Otherwise(rest) => Found::pass(repeats + &rest, evidence),
    })
}

/// The reports of the race checker's tools on the deep cases, if there is a checker.
fn looked_at(
    examination: &Examination,
    workshop: &Workshop,
    part: &Part,
    cases: &[Case],
) -> Result<Vec<Checked>, ExaminationFailure> {
    let sanitizer = workshop
        .instruments()
        .and_then(|tools| tools.sanitizer.as_deref());
    let Some(sanitizer) = sanitizer else {
        return Ok(Vec::new());
    };
    let mut checked = Vec::new();
    for case in cases.iter().filter(|case| case.name == DEEP) {
        for tool in TOOLS {
            examination.observer.progress(&format!("{}, {tool}", case.name));
            checked.push(check_under(
                workshop,
                sanitizer,
                tool,
                case,
                &part.candidate,
                &part.candidate.schedule,
            )?);
        }
    }
    Ok(checked)
}

/// The tools' combined result.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    /// Faults: the reason for a verdict of racy.
    Faults(String),
    /// No fault, with any further remarks.
    Otherwise(String),
}

fn said(workshop: &Workshop, checked: &[Checked]) -> Said {
    match workshop.instruments() {
        None => Said::Otherwise(String::new()),
        Some(tools) if tools.sanitizer.is_none() => Said::Otherwise(format!("; {NO_SANITIZER}")),
        Some(_) => sum_up(checked),
    }
}

fn sum_up(checked: &[Checked]) -> Said {
    if checked.is_empty() {
        return Said::Otherwise("; no race checker looked at it".to_owned());
    }
    let mut clean: Vec<&str> = Vec::new();
    let mut rest = String::new();
    for Checked { tool, case, told } in checked {
        match told {
            Told::Faults { count, first } => {
                return Said::Faults(format!(
                    "{tool} finds {count} faults on {case}; the first: {first}"
                ));
            }
            Told::Warnings { count, first } => {
                rest += &format!("; {tool} warns {count} times on {case}, first: {first}");
            }
            Told::Nothing(why) => rest += &format!("; {tool} could not look: {why}"),
            Told::Clean => clean.push(tool),
        }
    }
    clean.sort_unstable();
    clean.dedup();
    if clean.is_empty() {
        return Said::Otherwise(rest);
    }
    Said::Otherwise(format!("; nothing found by {}{rest}", clean.join(", ")))
}

/// Whether two runs of a case on the same operands differ.
fn differs(
    workshop: &Workshop,
    worker: &mut WorkerProcess,
    case: &Case,
    seed: u64,
) -> Result<bool, ExaminationFailure> {
    let (_, operands) = Operands::write(workshop, case, InputKind::Wide, seed)?;
    worker
        .load(&[operands.path()], 1)
        .and_then(|_| worker.prepare())
        .map_err(ExaminationFailure::Candidate)?;
    let first = run_once(workshop, worker, &case.sizes)?;
    for _ in 1..RUNS {
        if run_once(workshop, worker, &case.sizes)? != first {
            return Ok(true);
        }
    }
    Ok(false)
}

/// For each family, the deep case, which exercises the pipeline most, and the smallest timed case.
fn cases(part: &Part, device: &Device) -> Vec<Case> {
    let (candidate, timed) = (&part.candidate, &part.timed);
    let mut cases = edge_cases(&candidate.schedule, timed, device);
    cases.retain(|case| {
        let allowed = || case.sizes.accepts(&candidate.schedule, device);
        case.name != SMALLEST && (candidate.command.is_some() || allowed())
    });
    let mut smallest: Vec<&Case> = timed.iter().collect();
    smallest.sort_by_key(|case| case.sizes.flops().unwrap_or(0));
    let mut families = HashSet::new();
    smallest.retain(|case| families.insert(case.sizes.task().name()));
    cases.extend(smallest.into_iter().cloned());
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(tool: &str, told: Told) -> Checked {
        Checked {
            tool: tool.to_owned(),
            case: DEEP.to_owned(),
            told,
        }
    }

    #[test]
    fn a_fault_of_any_tool_ends_it_and_the_rest_is_told() {
        let nothing = checked("racecheck", Told::Nothing("no device".to_owned()));
        let clean = [
            checked("memcheck", Told::Clean),
            checked("synccheck", Told::Clean),
            nothing,
        ];
        assert_eq!(
            sum_up(&clean),
            Said::Otherwise(
                "; nothing found by memcheck, synccheck; racecheck could not look: no device".to_owned()
            )
        );
        assert_eq!(
            sum_up(&[]),
            Said::Otherwise("; no race checker looked at it".to_owned())
        );
        let fault = checked(
            "racecheck",
            Told::Faults {
                count: 2,
                first: "at rows+0x10".to_owned(),
            },
        );
        let Said::Faults(why) = sum_up(&[clean[0].clone(), fault]) else {
            panic!("a fault passes")
        };
        assert!(
            why.contains("racecheck finds 2 faults") && why.contains("rows+0x10"),
            "{why}"
        );
    }
}
