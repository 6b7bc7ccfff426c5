//! How far a predicted time may be off: the model's error bar, on the part of the time that the model answers for.

use gauntlet_model::{MissingFigure, estimate};
use gauntlet_problem::Problem;
use gauntlet_schedule::Schedule;

use crate::round::Round;

/// Standard deviations from the middle to either end of the 90 % bar of an estimate.
const NINETY_PERCENT: f64 = 1.645;

/// The standard deviation of the logarithm of the kernel's true time over the predicted one. The upper end tells: the
/// lower one stops at the roofline.
pub fn of_kernel(round: &Round, problem: &Problem, schedule: &Schedule) -> Result<f64, MissingFigure> {
    let estimate = estimate(problem, schedule, &round.device)?;
    Ok(if estimate.seconds > 0.0 {
        (estimate.high / estimate.seconds).ln() / NINETY_PERCENT
    } else {
        0.0
    })
}

/// The same of a call, of which the host's part is given and not the model's to err in: to first order, the kernel's
/// deviation times its share of the call.
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
