//! Profiled: device time apart from call time, the share of each phase, and the abort rules that need them.

use std::collections::BTreeMap;

use gauntlet_executor::CandidateRecord;
use gauntlet_executor::protocol::Sample;
use gauntlet_stats::median;

use super::{Examination, Executor, Found, Gate, Trouble, mean_shares};
use crate::abort::AbortRule;
use crate::finding::{Evidence, Profile};
use crate::operands::Operands;
use crate::predicted::{NOT_RUN, profiles};
use crate::verdict::Verdict;
use crate::workshop::Workshop;

/// Calls profiled for each case.
const SAMPLES: usize = 5;

/// Says where the time goes.
pub struct Profiled;

impl Gate for Profiled {
    fn name(&self) -> &'static str {
        "profiled"
    }

    fn measures(&self) -> bool {
        true
    }

    fn examine(&self, examination: &Examination) -> Result<Found, Trouble> {
        let cases = match (examination.recorded(), examination.executor) {
            (Some(Err(found)), _) => return Ok(found),
            (Some(Ok(record)), _) => recorded(record),
            (None, Executor::Live(workshop)) => live(examination, workshop)?,
            (None, Executor::Recorded(_)) => BTreeMap::new(),
            (None, Executor::Predicted) => return Ok(foreseen(examination)),
        };
        Ok(judge(examination, cases))
    }
}

/// The predicted shares, so that rules which ask for a profile have an answer, if only a predicted one.
fn foreseen(examination: &Examination) -> Found {
    let candidate = examination.candidate;
    if candidate.command.is_some() {
        return Found::skip(NOT_RUN);
    }
    match profiles(examination.round, candidate) {
        Ok(cases) => {
            let found = judge(examination, cases);
            Found {
                reason: format!("{NOT_RUN}; {}", found.reason),
                ..found
            }
        }
        Err(missing) => Found::skip(format!("{NOT_RUN}; {missing}")),
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

fn live(examination: &Examination, workshop: &Workshop) -> Result<BTreeMap<String, Profile>, Trouble> {
    let (mut worker, _) = workshop
        .start(examination.candidate)
        .map_err(Trouble::Candidate)?;
    let mut cases = BTreeMap::new();
    for case in &examination.round.benchmark_cases {
        examination.observer.progress(&case.name);
        worker
            .build(
                &case.problem,
                examination
                    .candidate
                    .schedule_for(&case.problem, &examination.round.device),
            )
            .map_err(Trouble::Candidate)?;
        let (_, operands) = Operands::write(workshop, case, case.inputs, rand::random())?;
        worker.load(&[operands.path()], 1).map_err(Trouble::Candidate)?;
        // One call to warm caches and page tables, not counted.
        worker.time(1, 0, false).map_err(Trouble::Candidate)?;
        let (samples, _) = worker.time(SAMPLES, 0, true).map_err(Trouble::Candidate)?;
        cases.insert(case.name.clone(), profile_of(&samples));
    }
    Ok(cases)
}

/// Shares of the call: what is outside the kernel is set-up, the kernel divides as its threads' phases do.
fn profile_of(samples: &[Sample]) -> Profile {
    let calls: Vec<f64> = samples.iter().map(|sample| sample.call).collect();
    let kernels: Vec<f64> = samples.iter().filter_map(|sample| sample.kernel).collect();
    let call = median(&calls);
    let kernel = (!kernels.is_empty()).then(|| median(&kernels).min(call));
    let mut shares = BTreeMap::new();
    let inside = kernel.map_or(1.0, |kernel| kernel / call);
    shares.insert("setup".to_owned(), 1.0 - inside);
    let mut phases: BTreeMap<&str, f64> = BTreeMap::new();
    for (phase, seconds) in samples.iter().flat_map(|sample| &sample.phases) {
        if phase != "setup" {
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

fn judge(examination: &Examination, cases: BTreeMap<String, Profile>) -> Found {
    let whose = if examination.pitch.is_some() {
        "candidate"
    } else {
        "baseline"
    };
    let shares = mean_shares(cases.values(), whose);
    let mut metrics = examination.metrics.clone();
    metrics.extend(shares.clone());
    let rules = examination.pitch.map_or(&[][..], |pitch| &pitch.abort);
    if let Some(reason) = AbortRule::first_met(rules, &metrics) {
        return Found::stop(Verdict::Aborted, reason, Evidence::Profile { cases });
    }
    let unanswered = AbortRule::unanswered(rules, &metrics);
    if let Some(rule) = unanswered.first() {
        let reason = format!(
            "nobody can tell whether {}, on which the pitch depends: no profile",
            rule.when
        );
        return Found::stop(Verdict::Blocked, reason, Evidence::Profile { cases });
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
    Found::pass(parts.join(", "), Evidence::Profile { cases })
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
