//! Comparing what the model says of two candidates.

use gauntlet_model::{HostTerm, MissingFigure, simulate};
use gauntlet_problem::Case;
use gauntlet_stats::{PredictedPair, compare_predicted as assess};

use super::{bar, time};
use crate::candidate::Candidate;
use crate::comparison::{CaseTimes, Comparison};
use crate::error::LabError;
use crate::round::Round;

/// Simulates both sides on every benchmark case; the reason in words where the model has none to give. The same round
/// gives the same answer to the bit.
pub fn compare_predicted(
    round: &Round,
    control: &Candidate,
    candidate: &Candidate,
) -> Result<Result<Comparison, String>, LabError> {
    if control.command.is_some() || candidate.command.is_some() {
        return Ok(Err(
            "a program of its own cannot be simulated: only schedules can".to_owned(),
        ));
    }
    let mut pairs = Vec::new();
    let mut cases = Vec::new();
    for case in &round.benchmark_cases {
        let sides = [control, candidate].map(|side| predicted(round, side, case));
        let [
            Ok((baseline, baseline_deviation)),
            Ok((challenger, candidate_deviation)),
        ] = sides
        else {
            let missing = sides.into_iter().find_map(Result::err);
            return Ok(Err(missing.map_or_else(String::new, |error| error.to_string())));
        };
        cases.push(CaseTimes {
            case: case.name.clone(),
            baseline,
            candidate: challenger,
            blocks: Vec::new(),
        });
        let pair = PredictedPair {
            baseline,
            candidate: challenger,
            baseline_deviation,
            candidate_deviation,
        };
        pairs.push((case.name.clone(), pair));
    }
    Ok(Ok(Comparison {
        assessment: assess(&pairs, &round.file().criteria)?,
        cases,
        looks: Vec::new(),
        seed: 0,
        conduct: None,
        declared: None,
        predicted: Some(basis(round)),
        ended_early: None,
    }))
}

/// The likeliest time of a call and the standard deviation of its logarithm.
fn predicted(round: &Round, candidate: &Candidate, case: &Case) -> Result<(f64, f64), MissingFigure> {
    let call = time(round, candidate, case)?.seconds;
    let schedule = candidate.schedule_for(&case.problem, &round.device);
    let kernel = simulate(&case.problem, schedule, &round.device, HostTerm::default())?.seconds;
    let deviation = bar::of_kernel(round, &case.problem, schedule)?;
    Ok((call, bar::of_call(deviation, kernel, call)))
}

/// What the figures rest on, as the end of a sentence.
fn basis(round: &Round) -> String {
    let device = &round.device.name;
    let host = match &round.file().host {
        None => "; no time of the host is counted".to_owned(),
        Some(host) => format!(
            "; a call set up anew costs {:#} and {:#} a group on the host, taken as given: {}",
            host.constant, host.per_group, host.source
        ),
    };
    format!("times simulated on {device}, each side off by the model's own error{host}")
}
