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

impl Launching {
    /// In a sentence; none if there is nothing unusual.
    pub fn sentence(&self) -> Option<String> {
        let is_late = self.late_baseline > 0.0 || self.late_candidate > 0.0;
        if !is_late && self.gate <= GATE {
            return None;
        }
        let mut said = format!(
            "a gate was closed for {:.1} ms before each call, since launching takes the hosts long",
            1e3 * self.gate
        );
        if is_late {
            said += &format!(
                "; {:.0} % of the baseline's calls and {:.0} % of the candidate's took longer to launch, so their times include \
                 some of the host's",
                100.0 * self.late_baseline,
                100.0 * self.late_candidate
            );
        }
        Some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slow_hosts_are_worth_a_sentence() {
        let launching = |gate, late_candidate| Launching {
            gate,
            late_baseline: 0.0,
            late_candidate,
        };
        assert_eq!(launching(GATE, 0.0).sentence(), None);
        assert_eq!(
            launching(1.3e-3, 0.0).sentence().unwrap(),
            "a gate was closed for 1.3 ms before each call, since launching takes the hosts long"
        );
        let late = launching(GATE, 0.25).sentence().unwrap();
        assert!(
            late.contains("0.6 ms") && late.contains("25 % of the candidate's"),
            "{late}"
        );
    }
}
