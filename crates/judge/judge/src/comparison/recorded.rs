//! Compares recorded times.

use gauntlet_stats::{DeclaredPair, compare_declared, median, without_interval};
use gauntlet_worker::Record;

use crate::evidence::{Candidate, CaseTimes, Comparison, JudgeError, Setting};

/// Compares recorded times by the bounds that the record declares, on the cases with a time on both sides; none if
/// there is no such case.
pub fn compare_recorded(
    record: &Record,
    setting: &Setting,
    baseline: &Candidate,
    candidate: &Candidate,
) -> Result<Option<Comparison>, JudgeError> {
    let criteria = &setting.criteria;
    let of = |name: &str| record.candidates.get(name).map(|candidate| &candidate.times);
    let (Some(baseline), Some(challenger)) = (of(&baseline.name), of(&candidate.name)) else {
        return Ok(None);
    };
    let mut cases = Vec::new();
    let mut absent = Vec::new();
    for case in &setting.benchmark_cases {
        if let (Some(baseline), Some(challenger)) = (baseline.get(&case.name), challenger.get(&case.name)) {
            cases.push(CaseTimes {
                case: case.name.clone(),
                baseline: median(baseline.as_slice()) * 1e-6,
                candidate: median(challenger.as_slice()) * 1e-6,
                blocks: Vec::new(),
            });
        } else {
            absent.push(case.name.as_str());
        }
    }
    if cases.is_empty() {
        return Ok(None);
    }
    let assessment = match &record.uncertainty {
        Some(uncertainty) => {
            let pairs: Vec<_> = cases
                .iter()
                .map(|times| {
                    let pair = DeclaredPair {
                        baseline: times.baseline,
                        candidate: times.candidate,
                        relative_uncertainty: uncertainty.relative,
                    };
                    (times.case.clone(), pair)
                })
                .collect();
            compare_declared(&pairs, criteria)?
        }
        None => without_interval(
            &cases.iter().map(|times| times.case.clone()).collect::<Vec<_>>(),
            criteria,
        ),
    };
    let declared = record.uncertainty.as_ref().map(|uncertainty| {
        format!(
            "one number a side has no interval of its own, so each recorded time is taken to be within {:.1} %: {}",
            uncertainty.relative * 100.0,
            uncertainty.why
        )
    });
    Ok(Some(Comparison {
        assessment,
        cases,
        regime: None,
        scope: None,
        looks: Vec::new(),
        seed: 0,
        conduct: None,
        declared,
        design: None,
        trust: crate::evidence::Trust::Watched,
        predicted: None,
        spent: None,
        ended_early: (!absent.is_empty())
            .then(|| format!("no times of both sides for {}", absent.join(", "))),
    }))
}
