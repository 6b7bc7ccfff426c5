//! The speed-up that the model predicts for a change, with its error bar.

use gauntlet_device::Accuracy;
use gauntlet_judge::{Candidate, Prediction, Setting};
use gauntlet_simulate::{Subject, predicted_speedup_of_sizes};

/// The model's prediction of a change. None on a CPU, if the device lacks the figures, or if a side is not a single
/// schedule.
pub fn predict(setting: &Setting, baseline: &Candidate, candidate: &Candidate) -> Option<Prediction> {
    let is_scheduled = |side: &Candidate| side.command.is_none() && side.dispatch.is_none();
    if !is_scheduled(baseline) || !is_scheduled(candidate) {
        return None;
    }
    let problems: Vec<_> = setting
        .benchmark_cases
        .iter()
        .map(|case| case.sizes.clone())
        .collect();
    let speedup = predicted_speedup_of_sizes(
        &problems,
        &baseline.schedule,
        &candidate.schedule,
        &setting.device,
    )
    .ok()?;
    let mut headrooms = Vec::new();
    for problem in &problems {
        let subject = Subject::of(problem, &baseline.schedule).ok()?;
        let baseline = subject.estimate(&setting.device).ok()?;
        // A problem without work has no roofline.
        if baseline.roofline_seconds > 0.0 {
            headrooms.push((baseline.seconds / baseline.roofline_seconds).ln());
        }
    }
    let log_headroom = headrooms.iter().sum::<f64>() / headrooms.len().max(1) as f64;
    Some(Prediction {
        low: speedup.low,
        middle: speedup.middle,
        high: speedup.high,
        headroom: log_headroom.exp(),
        accuracy: Accuracy::of_all(
            &setting.device,
            problems.iter().map(|problem| problem.task().name()),
        ),
    })
}
