//! Decide in time, confirm in cycles: whether a speed-up comes from the kernel or from its clock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Effects, Error, Interval, Sample};

/// What the logged clocks say about a suite's speed-up in time.
///
/// Time = cycles / clock, so a log speed-up in time is the sum of the log speed-up in cycles and the log ratio of the
/// candidate's clock to the baseline's. The verdict uses time, because time is what users wait for: a candidate that
/// draws less power and therefore gets a higher clock is faster. But a clock that differed for another reason (a
/// neighbour, heat, a governor that had not settled) may not differ tomorrow, so cycles are checked as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockCheck {
    /// The suite's speed-up in cycles, at the confidence of the one in time.
    pub cycles: Interval,
    /// The clock's part of the estimated speed-up in time, as a log ratio: positive when the candidate ran at
    /// the faster clock.
    pub clock: f64,
    /// The conclusion.
    pub finding: ClockFinding,
}

/// Whether an effect in time is also an effect in cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClockFinding {
    /// The interval in cycles lies on the same side of zero as the one in time.
    Confirmed,
    /// It does not, and the clock's part is more than half of the estimated effect: the effect in time was mostly the
    /// clock.
    ExplainedByClock,
    /// It does not, but the clock's part is the smaller one: cycles vary too much to say.
    Unconfirmed,
    /// The interval in time holds zero: there is nothing to confirm.
    NoEffect,
}

impl ClockCheck {
    /// Compares a suite's interval in time with that of the same blocks in cycles; none unless every block of every
    /// problem has clocks.
    pub(crate) fn of(time: &Interval, problems: &[Sample], confidence: f64) -> Result<Option<Self>, Error> {
        let Some(in_cycles) = problems.iter().map(Sample::in_cycles).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let cycles = Effects::of(&in_cycles)?.suite.interval(confidence)?;
        Ok(Some(Self::from_intervals(time, cycles)))
    }

    fn from_intervals(time: &Interval, cycles: Interval) -> Self {
        let clock = time.estimate - cycles.estimate;
        let confirmed = if time.lower > 0.0 {
            cycles.lower > 0.0
        } else {
            cycles.upper < 0.0
        };
        let finding = if time.lower <= 0.0 && time.upper >= 0.0 {
            ClockFinding::NoEffect
        } else if confirmed {
            ClockFinding::Confirmed
        } else if clock / time.estimate > 0.5 {
            ClockFinding::ExplainedByClock
        } else {
            ClockFinding::Unconfirmed
        };
        Self {
            cycles,
            clock,
            finding,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;

    fn interval(estimate: f64, reach: f64) -> Interval {
        Interval {
            estimate,
            lower: estimate - reach,
            upper: estimate + reach,
            origin: Origin::Declared,
        }
    }

    #[test]
    fn one_finding_of_each_kind() {
        use ClockFinding::{Confirmed, ExplainedByClock, NoEffect, Unconfirmed};
        for (time, cycles, expected) in [
            ((0.05, 0.01), (0.04, 0.02), Confirmed),
            ((-0.05, 0.01), (-0.04, 0.02), Confirmed),
            // Vanished, and turned round.
            ((0.05, 0.01), (0.001, 0.01), ExplainedByClock),
            ((0.05, 0.01), (-0.03, 0.01), ExplainedByClock),
            ((-0.05, 0.01), (0.0, 0.01), ExplainedByClock),
            ((0.05, 0.01), (0.045, 0.06), Unconfirmed),
            ((-0.05, 0.01), (-0.06, 0.07), Unconfirmed),
            ((0.005, 0.01), (0.05, 0.01), NoEffect),
        ] {
            let check = ClockCheck::from_intervals(&interval(time.0, time.1), interval(cycles.0, cycles.1));
            assert_eq!(check.finding, expected, "{time:?} {cycles:?}");
            assert!((check.clock - (time.0 - cycles.0)).abs() < 1e-15);
        }
    }
}
