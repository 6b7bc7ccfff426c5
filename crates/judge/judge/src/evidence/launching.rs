//! Whether hosts launched the work of a call before the hold in front of it ended.

use gauntlet_worker::protocol::HOLD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The holds on a GPU before calls that are clocked there: kernels that keep the device busy while the host
/// launches a call. A call is late if its host took longer to launch it than the hold lasted; its time then includes some
/// of that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Launching {
    /// How many seconds they lasted; in the case with the longest, if cases differ.
    #[serde(rename = "gate")]
    pub hold: f64,
    /// The share of the baseline's calls that were late, over all cases.
    pub late_baseline: f64,
    /// The share of the candidate's calls that were late.
    pub late_candidate: f64,
}

/// The report does not mention a smaller share of late calls. A side's time is the lower quartile of its calls, and so few calls
/// hardly change a quartile.
const FEW: f64 = 0.05;

impl Launching {
    /// In a sentence; none if there is nothing unusual.
    pub fn sentence(&self) -> Option<String> {
        let ms = |seconds: f64| format!("{:.1} ms", 1e3 * seconds);
        let hold = if self.hold > HOLD {
            format!(
                "before each call the device was kept busy for up to {}, in place of {}, since a host takes long to launch it",
                ms(self.hold),
                ms(HOLD)
            )
        } else {
            format!("before each call the device was kept busy for {}", ms(self.hold))
        };
        let late = format!(
            "launching took longer than that in {:.0} % of the baseline's calls and {:.0} % of the candidate's, so their times \
             include some of the host's",
            100.0 * self.late_baseline,
            100.0 * self.late_candidate
        );
        match (
            self.hold > HOLD,
            self.late_baseline.max(self.late_candidate) > FEW,
        ) {
            (_, true) => Some(format!("{hold}; {late}")),
            (true, false) => Some(hold),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slow_hosts_are_worth_a_sentence() {
        let said = |hold, late_candidate| {
            let late_baseline = 0.0;
            let launching = Launching {
                hold,
                late_baseline,
                late_candidate,
            };
            launching.sentence()
        };
        assert_eq!((said(HOLD, 0.0), said(HOLD, 0.02)), (None, None));
        assert_eq!(
            said(1.3e-3, 0.02).unwrap(),
            "before each call the device was kept busy for up to 1.3 ms, in place of 0.6 ms, since a host takes long to launch it"
        );
        assert_eq!(
            said(HOLD, 0.25).unwrap(),
            "before each call the device was kept busy for 0.6 ms; launching took longer than that in 0 % of the baseline's calls and \
             25 % of the candidate's, so their times include some of the host's"
        );
    }
}
