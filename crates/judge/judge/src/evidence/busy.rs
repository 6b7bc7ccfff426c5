//! How busy the machine was during a comparison, and what that cost.

use gauntlet_stats::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The share of the time of a comparison's threads above which the machine counts as busy.
const QUIET: f64 = 0.02;

/// How long the threads of both sides waited for a processor while they were timed, by the system's scheduler. A worker
/// cannot report this itself. It decides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Busy {
    /// The share of the time in which threads were ready to run that they waited, over all slots.
    pub waited: f64,
    /// Pairs of slots that were timed side by side.
    pub slots: usize,
    /// Those in which a side waited for more than a twentieth.
    pub disturbed: usize,
    /// Pairs of processes that were measured once more because a worker died.
    pub measured_again: usize,
    /// Half the width of the suite's interval, as a log speed-up, if only undisturbed slots counted; none if a pair of
    /// processes has none.
    pub undisturbed_half_width: Option<f64>,
}

impl Busy {
    /// In a sentence, with the interval that was found.
    pub fn sentence(&self, found: Option<&Interval>) -> String {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let state = if self.waited > QUIET { "busy" } else { "quiet" };
        let mut said = format!(
            "the machine was {state}: threads of both sides waited for a processor for {} of their time, which disturbed \
             {} of {} slots",
            percent(self.waited),
            self.disturbed,
            self.slots
        );
        let widths = found.map(Interval::half_width).zip(self.undisturbed_half_width);
        if let Some((all, undisturbed)) = widths.filter(|_| self.disturbed > 0) {
            said += &format!(
                "; the interval is ±{}, and without them it would be ±{}",
                percent(all.exp_m1()),
                percent(undisturbed.exp_m1())
            );
        }
        match self.measured_again {
            0 => said,
            1 => said + "; one pair of processes was thrown away and measured again",
            many => said + &format!("; {many} pairs of processes were thrown away and measured again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_stats::Origin;

    use super::*;

    fn interval(half_width: f64) -> Interval {
        Interval {
            estimate: 0.0,
            lower: -half_width,
            upper: half_width,
            origin: Origin::Measured {
                confidence: 0.95,
                processes: 12,
            },
        }
    }

    #[test]
    fn a_busy_machine_is_said_with_what_it_cost() {
        let busy = Busy {
            waited: 0.231,
            slots: 72,
            disturbed: 31,
            measured_again: 1,
            undisturbed_half_width: Some(1.009_f64.ln()),
        };
        assert_eq!(
            busy.sentence(Some(&interval(1.014_f64.ln()))),
            "the machine was busy: threads of both sides waited for a processor for 23.1 % of their time, which disturbed \
             31 of 72 slots; the interval is ±1.4 %, and without them it would be ±0.9 %; one pair of processes was thrown \
             away and measured again"
        );
        let quiet = Busy {
            waited: 0.0004,
            disturbed: 0,
            measured_again: 0,
            ..busy
        };
        assert_eq!(
            quiet.sentence(None),
            "the machine was quiet: threads of both sides waited for a processor for 0.0 % of their time, which disturbed \
             0 of 72 slots"
        );
    }
}
