//! Whether hosts launched the work of a call before the gate in front of it opened.

use gauntlet_worker::protocol::GATE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The gates that were closed on a GPU before calls that are clocked there. What takes a host longer is part of the time of its
/// call, which then is not that of the device alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Launching {
    /// For how many seconds they were closed, in the case where that was longest.
    pub gate: f64,
    /// The share of the baseline's calls that took its host longer, over all cases.
    pub late_baseline: f64,
    /// The share of the candidate's calls.
    pub late_candidate: f64,
}

/// Fewer late calls are not worth a word: the typical call is the lower quartile.
const FEW: f64 = 0.05;

impl Launching {
    /// In a sentence; none if there is nothing unusual.
    pub fn sentence(&self) -> Option<String> {
        let ms = |seconds: f64| format!("{:.1} ms", 1e3 * seconds);
        let gate = if self.gate > GATE {
            format!(
                "the gate before each call was closed for {} in place of {}, since a host takes that long to launch",
                ms(self.gate),
                ms(GATE)
            )
        } else {
            format!("the gate before each call was closed for {}", ms(self.gate))
        };
        let late = format!(
            "launching took longer in {:.0} % of the baseline's calls and {:.0} % of the candidate's, whose times include some of \
             the host's",
            100.0 * self.late_baseline,
            100.0 * self.late_candidate
        );
        match (
            self.gate > GATE,
            self.late_baseline.max(self.late_candidate) > FEW,
        ) {
            (_, true) => Some(format!("{gate}; {late}")),
            (true, false) => Some(gate),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slow_hosts_are_worth_a_sentence() {
        let said = |gate, late_candidate| {
            let late_baseline = 0.0;
            let launching = Launching {
                gate,
                late_baseline,
                late_candidate,
            };
            launching.sentence()
        };
        assert_eq!((said(GATE, 0.0), said(GATE, 0.02)), (None, None));
        assert_eq!(
            said(1.3e-3, 0.02).unwrap(),
            "the gate before each call was closed for 1.3 ms in place of 0.6 ms, since a host takes that long to launch"
        );
        assert_eq!(
            said(GATE, 0.25).unwrap(),
            "the gate before each call was closed for 0.6 ms; launching took longer in 0 % of the baseline's calls and 25 % of the \
             candidate's, whose times include some of the host's"
        );
    }
}
