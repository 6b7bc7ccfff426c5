//! The load that comes before timed requests in the sustained regime.

use gauntlet_stats::{median, percent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The load before the slots of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Heating {
    /// The least load before each slot, in seconds by the coordinator's clock.
    pub seconds: f64,
    /// Each case.
    pub cases: Vec<HeatedCase>,
}

/// The load before the slots of one case: medians over pairs of processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HeatedCase {
    /// The case.
    pub case: String,
    /// The baseline's load.
    pub baseline: HeatedSide,
    /// The candidate's load.
    pub candidate: HeatedSide,
}

/// The load of one side: medians over its slots.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HeatedSide {
    /// Seconds of a typical call at the beginning: of the first request of a load that is made of requests, which follows a
    /// pause, or of a lone call where the load is part of the slots.
    pub start: f64,
    /// Seconds of a typical call at the end: of the last request of a load that is made of requests, or of the slot where the
    /// load is part of it.
    pub end: f64,
    /// Seconds of calls in the load, by the worker's reports, over seconds of the load by the coordinator's clock. Where the
    /// load is part of the slots and on a GPU, at most the seconds that as many calls take in the slot count.
    pub share: f64,
    /// What the side did per second of the load, over what it did per second of the slot after it; far below 1 if it rested in
    /// the load. Both are measured in two ways. In a load that is made of requests: calls per second, and the share of the time
    /// in which calls ran; the smaller ratio counts. In a load that is part of a slot: calls per second, and processor time;
    /// the smaller ratio counts on a CPU, and the larger one on a GPU, whose host may queue fewer calls or sleep meanwhile.
    pub diligence: f64,
}

impl Heating {
    /// In a sentence.
    pub fn sentence(&self) -> String {
        let over_cases = |figure: &dyn Fn(&HeatedSide) -> f64| {
            let of = |side: fn(&HeatedCase) -> &HeatedSide| {
                median(
                    &self
                        .cases
                        .iter()
                        .map(|case| figure(side(case)))
                        .collect::<Vec<_>>(),
                )
            };
            [of(|case| &case.baseline), of(|case| &case.candidate)]
        };
        let slowed = over_cases(&|side| side.end / side.start - 1.0).map(percent);
        let share = over_cases(&|side| side.share).map(|share| format!("{:.0} %", 100.0 * share));
        format!(
            "each slot followed on at least {} s of load, in which calls ran for {} of the time (baseline) and {} \
             (candidate); from the start of a load to its end a call's time changed by {} and {}",
            self.seconds, share[0], share[1], slowed[0], slowed[1]
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_said_with_what_it_cost() {
        let side = |slowed: f64, share: f64| HeatedSide {
            start: 1e-3,
            end: 1e-3 * slowed,
            share,
            diligence: 1.0,
        };
        let heating = Heating {
            seconds: 0.5,
            cases: vec![HeatedCase {
                case: "one".to_owned(),
                baseline: side(1.06, 0.93),
                candidate: side(0.998, 0.88),
            }],
        };
        assert_eq!(
            heating.sentence(),
            "each slot followed on at least 0.5 s of load, in which calls ran for 93 % of the time (baseline) and 88 % \
             (candidate); from the start of a load to its end a call's time changed by +6.0 % and −0.2 %"
        );
    }
}
