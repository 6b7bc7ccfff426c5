//! Profiled: device time separate from call time, the share of each phase, and the abort rules that need them.

use std::collections::BTreeMap;

use gauntlet_stats::{Arm, median};
use gauntlet_worker::protocol::{BETWEEN, HOST, Sample};
use gauntlet_worker::{CandidateRecord, most_calls};

use super::{Examination, Found, Gate, NOT_HERE, figures, mean_shares};
use crate::evidence::{AbortRule, Counters, Evidence, Profile, Unreadable, Verdict};
use crate::runner::instruments::{NO_PROFILER, read_counters};
use crate::runner::{ExaminationFailure, Executor, Operands, Workshop};

/// Calls profiled for each case.
const SAMPLES: usize = 5;

/// Determines where the time goes.
pub struct Profiled;

impl Gate for Profiled {
    fn name(&self) -> &'static str {
        "profiled"
    }

    fn measures(&self) -> bool {
        true
    }

    fn examine(&self, examination: &Examination) -> Result<Found, ExaminationFailure> {
        examined(examination)
    }
}

fn examined(examination: &Examination) -> Result<Found, ExaminationFailure> {
    let seen = match (examination.recorded(), examination.executor) {
        (Some(Err(found)), _) => return Ok(found),
        (Some(Ok(record)), _) => recorded(record).into(),
        (None, Executor::Live(workshop)) => Seen {
            cases: live(examination, workshop)?,
            counters: counters(examination, workshop)?,
        },
        (None, Executor::Compiled(_)) => return Ok(Found::skip(NOT_HERE)),
        (None, Executor::Recorded(_)) => Seen::default(),
    };
    Ok(judge(examination, seen))
}

/// The basis of the judgement.
#[derive(Default)]
struct Seen {
    cases: BTreeMap<String, Profile>,
    /// None if no tool can read counters.
    counters: Option<Result<Counters, Unreadable>>,
}

impl From<BTreeMap<String, Profile>> for Seen {
    fn from(cases: BTreeMap<String, Profile>) -> Self {
        Self {
            cases,
            counters: None,
        }
    }
}

fn recorded(record: &CandidateRecord) -> BTreeMap<String, Profile> {
    if record.phase_shares.is_empty() {
        return BTreeMap::new();
    }
    let profile = Profile {
        shares: record.phase_shares.clone(),
        ..Profile::default()
    };
    BTreeMap::from([("recorded".to_owned(), profile)])
}

fn live(
    examination: &Examination,
    workshop: &Workshop,
) -> Result<BTreeMap<String, Profile>, ExaminationFailure> {
    let (mut worker, _) = workshop.start(Arm::Candidate, examination.candidate)?;
    let mut cases = BTreeMap::new();
    for case in &examination.setting.benchmark_cases {
        examination.observer.progress(&case.name);
        worker
            .build(
                &case.sizes,
                examination
                    .candidate
                    .schedule_for(&case.sizes, &examination.setting.device),
            )
            .map_err(ExaminationFailure::Candidate)?;
        let (_, operands) = Operands::write(workshop, case, case.inputs, rand::random())?;
        worker
            .load(&[operands.path()], 1)
            .and_then(|_| worker.prepare())
            .map_err(ExaminationFailure::Candidate)?;
        // One call to warm caches and page tables, not counted.
        worker.time(&[0], false).map_err(ExaminationFailure::Candidate)?;
        let (samples, _) = worker
            .time(&vec![0; SAMPLES.min(most_calls(&case.sizes))], true)
            .map_err(ExaminationFailure::Candidate)?;
        cases.insert(case.name.clone(), profile_of(&samples));
    }
    Ok(cases)
}

/// The counters of the largest case. Reading them takes seconds for each case, and the largest case shows the kernel's
/// steady state best.
fn counters(
    examination: &Examination,
    workshop: &Workshop,
) -> Result<Option<Result<Counters, Unreadable>>, ExaminationFailure> {
    let (setting, candidate) = (examination.setting, examination.candidate);
    let largest = setting
        .benchmark_cases
        .iter()
        .max_by_key(|case| case.sizes.flops().unwrap_or(0));
    let (Some(tools), Some(case)) = (workshop.instruments(), largest) else {
        return Ok(None);
    };
    let Some(profiler) = &tools.profiler else {
        return Ok(Some(Err(NO_PROFILER.to_owned())));
    };
    examination.observer.progress(&format!("{}, counters", case.name));
    let schedule = candidate.schedule_for(&case.sizes, &setting.device);
    Ok(Some(read_counters(
        workshop, profiler, case, candidate, schedule,
    )?))
}

/// Shares of the call. Time outside the kernel is set-up; the kernel's time is divided like its threads' phases. If a
/// program does not report its kernel time, the phases divide the whole call, and set-up is known only if it is one of
/// the phases.
fn profile_of(samples: &[Sample]) -> Profile {
    let calls: Vec<f64> = samples.iter().map(|sample| sample.call).collect();
    let kernels: Vec<f64> = samples.iter().filter_map(|sample| sample.kernel).collect();
    let call = median(&calls);
    let kernel = (!kernels.is_empty()).then(|| median(&kernels).min(call));
    let mut shares = BTreeMap::new();
    let inside = kernel.map_or(1.0, |kernel| kernel / call);
    if kernel.is_some() {
        shares.insert("setup".to_owned(), 1.0 - inside);
    }
    let mut phases: BTreeMap<&str, f64> = BTreeMap::new();
    let inner = |phase: &str| ![BETWEEN, HOST].contains(&phase);
    for (phase, seconds) in samples.iter().flat_map(|sample| &sample.phases) {
        if inner(phase) && (phase != "setup" || kernel.is_none()) {
            *phases.entry(phase).or_default() += seconds;
        }
    }
    let sum: f64 = phases.values().sum();
    if sum > 0.0 {
        shares.extend(
            phases
                .into_iter()
                .map(|(phase, seconds)| (phase.to_owned(), inside * seconds / sum)),
        );
    }
    Profile { call, kernel, shares }
}

fn judge(examination: &Examination, Seen { cases, counters }: Seen) -> Found {
    let whose = examination.side();
    let shares = mean_shares(cases.values(), whose);
    let mut metrics = examination.metrics.clone();
    metrics.extend(shares.clone());
    let unreadable = matches!(counters, Some(Err(_)));
    let (counters, said) = match counters {
        None => (None, String::new()),
        Some(Err(why)) => (None, format!("; {why}")),
        Some(Ok(counters)) => {
            metrics.extend(figures(&counters, whose));
            let said = sentence(&counters);
            (Some(counters), said)
        }
    };
    let evidence = Evidence::Profile {
        cases: cases.clone(),
        counters: counters.map(Box::new),
    };
    let rules: Vec<_> = examination.abort_rules(examination.prediction()).collect();
    if let Some(reason) = AbortRule::first_met(rules.iter().copied(), &metrics) {
        return Found::stop(Verdict::Aborted, reason, evidence);
    }
    let mut notices = String::new();
    for rule in AbortRule::unanswered(rules, &metrics) {
        let Some(why) = inapplicable(rule.when.metric(), examination.executor, unreadable) else {
            let reason = format!(
                "there is no profile that tells whether {}, on which the candidate depends",
                rule.when
            );
            return Found::stop(Verdict::Blocked, reason, evidence);
        };
        let notice = format!("the rule to give up when {} is not applicable: {why}", rule.when);
        let name = &examination.candidate.name;
        examination.observer.notice(&format!("{name}: {notice}"));
        notices.push_str(&format!("; {notice}"));
    }
    if cases.is_empty() {
        return Found::skip("the record holds no profile");
    }
    let mut parts: Vec<(&str, f64)> = shares
        .iter()
        .filter_map(|(name, share)| Some((name.split('.').nth(1)?.strip_suffix("-share")?, *share)))
        .collect();
    parts.sort_by(|one, other| other.1.total_cmp(&one.1));
    let parts: Vec<String> = parts
        .iter()
        .map(|(phase, share)| format!("{phase} {:.0} %", share * 100.0))
        .collect();
    let parts = if parts.is_empty() {
        "its program reports no phases".to_owned()
    } else {
        parts.join(", ")
    };
    Found::pass(parts + &said + &notices, evidence)
}

/// Why no figure of this name can exist for this run, so that a rule about it does not apply. None if the
/// figure could exist and is only missing: a record without a profile, or counters that this user may not read.
fn inapplicable(metric: &str, executor: &Executor, unreadable: bool) -> Option<&'static str> {
    if matches!(executor, Executor::Recorded(_)) {
        return None;
    }
    let (whose, figure) = metric.split_once('.')?;
    let is_share = figure.ends_with("-share");
    match whose {
        "predicted" => Some("the model has no estimate of this change"),
        "resources" => Some("its build reports no such figure"),
        "baseline" if is_share => Some("the baseline's program reports no such phase"),
        _ if is_share => Some("its program reports no such phase"),
        _ if unreadable => None,
        _ => Some("only kernels on a GPU have a GPU's counters"),
    }
}

fn sentence(counters: &Counters) -> String {
    let Counters {
        case,
        kernel,
        figures,
        stalls,
    } = counters;
    let figures = figures.iter().map(|(name, value)| {
        if matches!(name.as_str(), "bank-conflicts" | "registers") {
            format!("{name} {value:.0}")
        } else {
            format!("{name} {:.0} %", value * 100.0)
        }
    });
    let stalls = stalls
        .iter()
        .map(|(reason, cycles)| format!("{reason} {cycles:.1}"));
    format!(
        "; {kernel} on {case}: {}; warps wait, in cycles an instruction: {}",
        figures.collect::<Vec<_>>().join(", "),
        stalls.collect::<Vec<_>>().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use gauntlet_worker::{Limits, Timeouts, WorkerCommand};

    use super::*;

    #[test]
    fn counters_are_told_in_a_sentence() {
        let counters = Counters {
            case: "case-1".to_owned(),
            kernel: "swapped".to_owned(),
            figures: BTreeMap::from([
                ("bank-conflicts".to_owned(), 1024.0),
                ("tensor-pipe".to_owned(), 0.617),
            ]),
            stalls: vec![("gmma".to_owned(), 1.52)],
        };
        assert_eq!(
            sentence(&counters),
            "; swapped on case-1: bank-conflicts 1024, tensor-pipe 62 %; warps wait, in cycles an instruction: gmma 1.5"
        );
    }

    #[test]
    fn a_rule_applies_unless_its_figure_cannot_exist() {
        let applies =
            |metric, executor: &Executor, unreadable| inapplicable(metric, executor, unreadable).is_none();
        let workshop = Workshop::new(
            WorkerCommand::new("true", []),
            Timeouts::default(),
            Limits::default(),
        );
        let live = &Executor::Live(workshop.unwrap());
        for metric in [
            "predicted.speedup",
            "resources.registers",
            "baseline.load-share",
            "candidate.wait-share",
        ] {
            assert!(
                !applies(metric, live, false) && !applies(metric, live, true),
                "{metric}"
            );
        }
        assert!(!applies("candidate.tensor-pipe", live, false));
        assert!(
            applies("candidate.tensor-pipe", live, true),
            "the counters are there, and may not be read"
        );
        assert!(applies("baseline.load-share", &Executor::without_times(), false));
    }

    #[test]
    fn shares_add_up_and_keep_the_call_apart_from_the_kernel() {
        let phases = BTreeMap::from([
            ("load".to_owned(), 1.0),
            ("multiply".to_owned(), 3.0),
            ("setup".to_owned(), 9.0),
        ]);
        let sample = Sample {
            call: 2.0,
            kernel: Some(1.5),
            clock: None,
            phases,
        };
        let profile = profile_of(&[sample.clone(), sample]);
        assert_eq!(profile.shares["setup"], 0.25);
        assert!((profile.shares["multiply"] - 0.75 * 0.75).abs() < 1e-12);
        assert!((profile.shares.values().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    /// A rule on set-up then stays unanswered; it is not met by a zero.
    #[test]
    fn without_a_time_of_the_kernel_set_up_is_known_only_as_a_phase() {
        let sample = |phases: &[(&str, f64)]| Sample {
            call: 2.0,
            kernel: None,
            clock: None,
            phases: phases
                .iter()
                .map(|(phase, seconds)| ((*phase).to_owned(), *seconds))
                .collect(),
        };
        assert!(profile_of(&[sample(&[])]).shares.is_empty());
        let told = profile_of(&[sample(&[("setup", 0.5), ("multiply", 1.5)])]);
        assert_eq!(told.shares["setup"], 0.25);
        assert_eq!(told.shares["multiply"], 0.75);
    }
}
