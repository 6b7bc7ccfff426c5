//! Uncertainty of a predicted speed-up: the model's error bar.

use gauntlet_judge::{Candidate, Setting};
use gauntlet_simulate::{NoEstimate, predicted_speedup_of_sizes};
use gauntlet_task::Sizes;

/// Standard deviations from the middle to either end of the 90 % bar of a predicted speed-up.
const NINETY_PERCENT: f64 = 1.645;

/// The standard deviation of the logarithm of a kernel's true time over the predicted time, as seen in comparisons: if
/// both sides err independently by this much, the predicted speed-up has the model's error bar.
pub fn deviation(
    setting: &Setting,
    problem: &Sizes,
    baseline: &Candidate,
    candidate: &Candidate,
) -> Result<f64, NoEstimate> {
    let [baseline, candidate] = [baseline, candidate].map(|side| side.schedule_for(problem, &setting.device));
    let problems = std::slice::from_ref(problem);
    let speedup = predicted_speedup_of_sizes(problems, baseline, candidate, &setting.device)?;
    let of_both = (speedup.high / speedup.middle).ln() / NINETY_PERCENT;
    Ok(of_both / std::f64::consts::SQRT_2)
}
