//! Compiles: the candidate is built for every case, and the resources it uses are checked against its budgets.

use std::collections::BTreeMap;

use gauntlet_stats::Arm;
use gauntlet_worker::protocol::{FailureKind, Resources};
use gauntlet_worker::{CandidateRecord, WorkerError};

use super::{Examination, Found, Gate};
use crate::evidence::{AbortRule, Evidence, Verdict};
use crate::runner::{ExaminationFailure, Executor};

/// Builds without running anything.
pub struct Compiles;

impl Gate for Compiles {
    fn name(&self) -> &'static str {
        "compiles"
    }

    fn on_worker_failure(&self) -> Verdict {
        Verdict::DoesNotCompile
    }

    fn examine(&self, examination: &Examination) -> Result<Found, ExaminationFailure> {
        examined(examination)
    }
}

fn examined(examination: &Examination) -> Result<Found, ExaminationFailure> {
    let cases = match (examination.recorded(), examination.executor) {
        (Some(Err(found)), _) => return Ok(found),
        (Some(Ok(record)), _) => match recorded(record) {
            Ok(resources) => BTreeMap::from([("recorded".to_owned(), resources)]),
            Err(found) => return Ok(found),
        },
        (None, Executor::Live(workshop) | Executor::Compiled(workshop)) => {
            let (mut worker, _) = workshop.start(Arm::Candidate, examination.candidate)?;
            let mut cases = BTreeMap::new();
            for case in &examination.setting.benchmark_cases {
                let schedule = examination
                    .candidate
                    .schedule_for(&case.sizes, &examination.setting.device);
                match worker.build(&case.sizes, schedule) {
                    Ok(resources) => cases.insert(case.name.clone(), resources),
                    Err(WorkerError::Failed(failure)) if failure.kind == FailureKind::Refused => {
                        let reason = format!("{}: {}", case.name, failure.message);
                        return Ok(Found::stop(Verdict::DoesNotCompile, reason, Evidence::Reason));
                    }
                    Err(error) => return Err(ExaminationFailure::Candidate(error)),
                };
            }
            cases
        }
        (None, Executor::Recorded(_)) => return Ok(Found::skip("not recorded")),
    };
    Ok(judge(examination, cases))
}

fn recorded(record: &CandidateRecord) -> Result<Resources, Found> {
    let Some(compilation) = &record.compilation else {
        return Err(Found::skip("the record says nothing of how it compiled"));
    };
    match &compilation.error {
        Some(error) => {
            let reason = format!("recorded: {error}");
            Err(Found::stop(Verdict::DoesNotCompile, reason, Evidence::Reason))
        }
        None => Ok(compilation.resources.clone()),
    }
}

fn judge(examination: &Examination, cases: BTreeMap<String, Resources>) -> Found {
    let mut largest: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, value) in cases.values().flat_map(|resources| &resources.0) {
        let most = largest.entry(name).or_insert(*value);
        *most = most.max(*value);
    }
    let exceeded: Vec<String> = examination
        .setting
        .budgets
        .iter()
        .filter_map(|(name, budget)| {
            let value = largest.get(name.as_str())?;
            (value > budget).then(|| format!("{name} is {value} where at most {budget} is allowed"))
        })
        .collect();
    let mut metrics = examination.metrics.clone();
    metrics.extend(
        largest
            .iter()
            .map(|(name, value)| (format!("resources.{name}"), *value)),
    );
    let rules = examination.abort_rules(examination.prediction());
    let abort = AbortRule::first_met(rules, &metrics);
    let summary: Vec<_> = largest
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let summary = if summary.is_empty() {
        "it builds".to_owned()
    } else {
        summary.join(", ")
    };
    let silent: Vec<_> = examination
        .setting
        .budgets
        .keys()
        .filter(|name| !largest.contains_key(name.as_str()))
        .map(String::as_str)
        .collect();
    let summary = if silent.is_empty() {
        summary
    } else {
        format!(
            "{summary}; nobody tells its {}, so that budget is not checked",
            silent.join(", ")
        )
    };
    let over = exceeded.first().cloned();
    let evidence = Evidence::Resources { cases, exceeded };
    match (over, abort) {
        (Some(reason), _) => Found::stop(Verdict::OverBudget, reason, evidence),
        (None, Some(reason)) => Found::stop(Verdict::Aborted, reason, evidence),
        (None, None) => Found::pass(summary, evidence),
    }
}
