//! The state of the GPU right after the slots of a comparison.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::evidence::Regime;

/// If one side's clock was held back in more than this share of its slots, and the other's in none, the comparison may be
/// one of clocks.
const OFTEN: f64 = 0.25;

/// The state of the GPU right after each side's slots, by its management library. It decides nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct DeviceUse {
    /// After the baseline's slots.
    pub baseline: SideUse,
    /// After the candidate's slots.
    pub candidate: SideUse,
}

/// The state of the GPU right after the slots of one side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SideUse {
    /// How many slots a reading followed.
    pub slots: usize,
    /// The lowest and the highest clock of the multiprocessors, in MHz.
    pub clock: [f64; 2],
    /// The highest power, in watts.
    pub power: f64,
    /// The highest temperature, in degrees Celsius.
    pub temperature: f64,
    /// Slots after which something held the clock back.
    pub held_back: usize,
    /// What held the clock back, and after how many slots each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, usize>,
    /// Slots after which processes that do not belong to this program were on the GPU; none if they could not be told from
    /// its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<usize>,
}

impl DeviceUse {
    /// In a sentence: `clock 1755 to 1980 MHz; held back by its power limit in 12 of 96 slots; another process was on the
    /// GPU`.
    pub fn sentence(&self, regime: Regime) -> String {
        let sides = [&self.baseline, &self.candidate].map(|side| (side.slots > 0).then_some(side));
        let sides: Vec<&SideUse> = sides.into_iter().flatten().collect();
        let slots: usize = sides.iter().map(|side| side.slots).sum();
        let bound = |of: fn(&SideUse) -> f64, pick: fn(f64, f64) -> f64| {
            sides.iter().map(|side| of(side)).reduce(pick).unwrap_or_default()
        };
        let (lowest, highest) = (
            bound(|side| side.clock[0], f64::min),
            bound(|side| side.clock[1], f64::max),
        );
        let mut said = if lowest < highest {
            format!("clock {lowest:.0} to {highest:.0} MHz")
        } else {
            format!("clock {highest:.0} MHz")
        };
        let held_back: usize = sides.iter().map(|side| side.held_back).sum();
        if held_back > 0 {
            let reasons: BTreeSet<&String> = sides.iter().flat_map(|side| side.reasons.keys()).collect();
            let reasons: Vec<&str> = reasons.into_iter().map(String::as_str).collect();
            said += &format!(
                "; held back by its {} in {held_back} of {slots} slots",
                reasons.join(" and its ")
            );
        }
        if sides
            .iter()
            .any(|side| side.others.is_some_and(|slots| slots > 0))
        {
            said += "; another process was on the GPU";
        }
        if regime == Regime::Isolated
            && let Some([(name, side), (other_name, other)]) = self.unequally_held_back()
        {
            said += &format!(
                "; this may compare clocks and not kernels: after {} of {} slots of the {name} something held the clock \
                 back, and after none of the {other_name}'s {} (`--regime sustained` times both under load)",
                side.held_back, side.slots, other.slots
            );
        }
        said
    }

    /// The side that was often held back, if the other never was, and that other side, with their names.
    fn unequally_held_back(&self) -> Option<[(&str, &SideUse); 2]> {
        let often = |side: &SideUse| side.held_back as f64 > OFTEN * side.slots as f64;
        let never = |side: &SideUse| side.slots > 0 && side.held_back == 0;
        let sides = [("baseline", &self.baseline), ("candidate", &self.candidate)];
        let orders = [sides, [sides[1], sides[0]]];
        orders
            .into_iter()
            .find(|[(_, side), (_, other)]| often(side) && never(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(clock: [f64; 2], held_back: usize, others: Option<usize>) -> SideUse {
        SideUse {
            slots: 48,
            clock,
            held_back,
            reasons: [("power limit".to_owned(), held_back)]
                .into_iter()
                .filter(|(_, slots)| *slots > 0)
                .collect(),
            others,
            ..SideUse::default()
        }
    }

    #[test]
    fn clocks_limits_and_other_processes_are_said_in_a_line() {
        let both = DeviceUse {
            baseline: side([1755.0, 1980.0], 4, Some(0)),
            candidate: side([1800.0, 1965.0], 8, Some(3)),
        };
        assert_eq!(
            both.sentence(Regime::Isolated),
            "clock 1755 to 1980 MHz; held back by its power limit in 12 of 96 slots; another process was on the GPU"
        );
        let quiet = DeviceUse {
            baseline: side([1980.0; 2], 0, None),
            candidate: side([1980.0; 2], 0, Some(0)),
        };
        assert_eq!(quiet.sentence(Regime::Isolated), "clock 1980 MHz");
    }

    #[test]
    fn a_limit_that_only_one_side_met_is_a_note_where_calls_are_isolated() {
        let met = |baseline, candidate| DeviceUse {
            baseline: side([1700.0, 1980.0], baseline, None),
            candidate: side([1700.0, 1980.0], candidate, None),
        };
        let note = "; this may compare clocks and not kernels: after 13 of 48 slots of the candidate something held the \
                    clock back, and after none of the baseline's 48";
        assert!(met(0, 13).sentence(Regime::Isolated).contains(note));
        assert!(
            met(13, 0)
                .sentence(Regime::Isolated)
                .contains("13 of 48 slots of the baseline")
        );
        for equal in [met(0, 12), met(1, 13), met(0, 0)] {
            assert!(!equal.sentence(Regime::Isolated).contains("may compare"));
        }
        assert!(!met(0, 13).sentence(Regime::Sustained).contains("may compare"));
    }
}
