//! Compares the model's predictions for two candidates.

use gauntlet_device::{Accuracy, on_record};
use gauntlet_judge::{Candidate, CaseTimes, Comparison, JudgeError, Setting};
use gauntlet_simulate::{HostTerm, NoEstimate, Subject};
use gauntlet_stats::{PredictedPair, compare_predicted as assess};
use gauntlet_task::Case;

use super::bar;

/// Simulates both sides on every benchmark case. Returns the reason in words if the model has no prediction. The same
/// setting gives bit-identical results.
pub fn compare_predicted(
    setting: &Setting,
    baseline: &Candidate,
    candidate: &Candidate,
) -> Result<Result<Comparison, String>, JudgeError> {
    if baseline.command.is_some() || candidate.command.is_some() {
        return Ok(Err(
            "a program of its own cannot be simulated: only schedules can".to_owned(),
        ));
    }
    let mut pairs = Vec::new();
    let mut cases = Vec::new();
    for case in &setting.benchmark_cases {
        let (sides, deviation) = match predict(setting, baseline, candidate, case) {
            Ok(predicted) => predicted,
            Err(missing) => return Ok(Err(missing.to_string())),
        };
        let [baseline, challenger] = sides;
        if baseline <= 0.0 || challenger <= 0.0 {
            return Ok(Err(format!(
                "{} has no work, and so no times to compare",
                case.name
            )));
        }
        cases.push(CaseTimes {
            case: case.name.clone(),
            baseline,
            candidate: challenger,
            blocks: Vec::new(),
        });
        let pair = PredictedPair {
            baseline,
            candidate: challenger,
            baseline_deviation: deviation,
            candidate_deviation: deviation,
        };
        pairs.push((case.name.clone(), pair));
    }
    Ok(Ok(Comparison {
        assessment: assess(&pairs, &setting.criteria)?,
        cases,
        regime: None,
        scope: None,
        looks: Vec::new(),
        seed: 0,
        conduct: None,
        declared: None,
        design: None,
        trust: gauntlet_judge::Trust::Watched,
        predicted: Some(basis(setting)),
        spent: None,
        ended_early: None,
    }))
}

/// Both sides' likeliest times in seconds, and the standard deviation of the logarithm of a time.
fn predict(
    setting: &Setting,
    baseline: &Candidate,
    candidate: &Candidate,
    case: &Case,
) -> Result<([f64; 2], f64), NoEstimate> {
    let time = |side: &Candidate| -> Result<f64, NoEstimate> {
        let schedule = side.schedule_for(&case.sizes, &setting.device);
        let subject = Subject::of(&case.sizes, schedule)?;
        Ok(subject.simulate(&setting.device, HostTerm::default())?.seconds)
    };
    let sides = [time(baseline)?, time(candidate)?];
    Ok((sides, bar::deviation(setting, &case.sizes, baseline, candidate)?))
}

/// The basis of the figures, as the end of a sentence.
fn basis(setting: &Setting) -> String {
    let device = &setting.device.name;
    let families = setting
        .benchmark_cases
        .iter()
        .map(|case| case.sizes.task().name());
    let accuracy = Accuracy::of_all(&setting.device, families);
    format!(
        "times simulated on {device}; the bar is the error of published models; {}; no time of the host is counted",
        on_record(accuracy.as_ref())
    )
}
