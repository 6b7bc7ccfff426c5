//! Uncertainty of a predicted speed-up: the model's error bar, on the part of the time that the model predicts.

use gauntlet_judge::{Candidate, Setting};
use gauntlet_simulate::{NoEstimate, predicted_speedup_of_sizes};
use gauntlet_task::Sizes;

/// Standard deviations from the middle to either end of the 90 % bar of a predicted speed-up.
const NINETY_PERCENT: f64 = 1.645;

/// The standard deviation of the logarithm of a kernel's true time over the predicted time, as seen in comparisons: if
/// both sides err independently by this much, the predicted speed-up has the model's error bar.
pub fn of_kernel(
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

/// The same for a whole call. The host's part of a call is given, not predicted; to first order the deviation is the
/// kernel's deviation times the kernel's share of the call.
pub fn of_call(deviation: f64, kernel_seconds: f64, call_seconds: f64) -> f64 {
    deviation * kernel_seconds / call_seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_takes_is_not_in_doubt() {
        assert_eq!(of_call(0.4, 2.0, 2.0), 0.4);
        assert!((of_call(0.4, 0.5, 2.0) - 0.1).abs() < 1e-12);
    }
}
