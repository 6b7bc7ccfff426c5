//! Cheats that compute everything and report something else, in ways that are hard to see.

use gauntlet_worker::protocol::{Failure, Sample};

use super::times::Reports;
use super::work::{Call, Trick, Work};

/// Changes the samples of a request before they are reported.
pub struct Claims(pub fn(&mut [Sample]));

impl Trick for Claims {
    fn time(&mut self, work: &mut Work, copies: &[usize], call: Call) -> Result<Vec<Sample>, Failure> {
        let mut samples = Reports(|time| time).time(work, copies, call)?;
        (self.0)(&mut samples);
        Ok(samples)
    }
}

/// Reports no call as longer than a fiftieth above the shortest.
pub fn clipped(samples: &mut [Sample]) {
    const ABOVE: f64 = 1.02;
    let shortest = samples
        .iter()
        .map(|sample| sample.call)
        .fold(f64::INFINITY, f64::min);
    for sample in samples {
        sample.call = sample.call.min(ABOVE * shortest);
    }
}

/// Reports calls of long requests as a twenty-fifth shorter, and lone calls as that much longer.
pub fn moved_to_lone_calls(samples: &mut [Sample]) {
    const MOVED: f64 = 0.04;
    let factor = if samples.len() == 1 {
        1.0 + MOVED
    } else {
        1.0 - MOVED
    };
    for sample in samples {
        sample.call *= factor;
    }
}

/// Reports half of each call as its time on the device.
pub fn short_kernel(samples: &mut [Sample]) {
    for sample in samples {
        sample.kernel = Some(0.5 * sample.call);
    }
}

/// Reports a clock that throttled by half.
pub fn low_clock(samples: &mut [Sample]) {
    for sample in samples {
        sample.clock = Some(1000.0);
    }
}

/// Leaves the last sample out.
pub struct TooFewTimes;

impl Trick for TooFewTimes {
    fn time(&mut self, work: &mut Work, copies: &[usize], call: Call) -> Result<Vec<Sample>, Failure> {
        let mut samples = Reports(|time| time).time(work, copies, call)?;
        samples.pop();
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::sample;
    use super::*;

    #[test]
    fn claims_are_as_told() {
        let mut samples = [sample(1.0), sample(1.5)];
        clipped(&mut samples);
        assert_eq!(samples.each_ref().map(|sample| sample.call), [1.0, 1.02]);
        let mut lone = [sample(1.0)];
        moved_to_lone_calls(&mut lone);
        assert_eq!(lone[0].call, 1.04);
        let mut two = [sample(1.0), sample(2.0)];
        moved_to_lone_calls(&mut two);
        assert_eq!(two.each_ref().map(|sample| sample.call), [0.96, 1.92]);
    }
}
