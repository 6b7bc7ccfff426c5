//! Comparing what the model says of two candidates.

use gauntlet_model::{Accuracy, Basis, HostTerm, MissingFigure, on_record, simulate};
use gauntlet_problem::Case;
use gauntlet_stats::{PredictedPair, compare_predicted as assess};

use super::bar;
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
        let (sides, deviation) = match predict(round, control, candidate, case) {
            Ok(predicted) => predicted,
            Err(missing) => return Ok(Err(missing.to_string())),
        };
        let [baseline, challenger] = sides;
        if baseline.call <= 0.0 || challenger.call <= 0.0 {
            return Ok(Err(format!(
                "{} has no work, and so no times to compare",
                case.name
            )));
        }
        cases.push(CaseTimes {
            case: case.name.clone(),
            baseline: baseline.call,
            candidate: challenger.call,
            blocks: Vec::new(),
        });
        let pair = PredictedPair {
            baseline: baseline.call,
            candidate: challenger.call,
            baseline_deviation: bar::of_call(deviation, baseline.kernel, baseline.call),
            candidate_deviation: bar::of_call(deviation, challenger.kernel, challenger.call),
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
        spent: None,
        ended_early: None,
    }))
}

/// The likeliest times of a case with one candidate, in seconds.
struct Times {
    /// Of a call.
    call: f64,
    /// Of what the model answers for: the call without the host's part.
    kernel: f64,
}

/// Both sides' times, and the standard deviation of the logarithm of a kernel's.
fn predict(
    round: &Round,
    control: &Candidate,
    candidate: &Candidate,
    case: &Case,
) -> Result<([Times; 2], f64), MissingFigure> {
    let times = |side: &Candidate| -> Result<Times, MissingFigure> {
        let schedule = side.schedule_for(&case.problem, &round.device);
        let kernel = simulate(&case.problem, schedule, &round.device, HostTerm::default())?.seconds;
        let host = round.host_term().seconds(&case.problem, schedule);
        Ok(Times {
            call: kernel + host,
            kernel,
        })
    };
    let sides = [times(control)?, times(candidate)?];
    Ok((sides, bar::of_kernel(round, &case.problem, control, candidate)?))
}

/// What the figures rest on, as the end of a sentence.
fn basis(round: &Round) -> String {
    let device = &round.device.name;
    let problems = round.benchmark_cases.iter().map(|case| &case.problem);
    let accuracy = Accuracy::of_suite(&round.device, problems);
    let host = match &round.file().host {
        None => "; no time of the host is counted".to_owned(),
        Some(host) => format!(
            "; a call set up anew costs {:#} and {:#} a group on the host, taken as given: {}",
            host.constant, host.per_group, host.source
        ),
    };
    format!(
        "times simulated on {device}; the bar is the model's own error ({}); {}{host}",
        Basis::of(&round.device).sentence(),
        on_record(accuracy.as_ref())
    )
}
