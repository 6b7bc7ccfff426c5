//! The state of the device after the slots of a case.

use gauntlet_stats::Arm;

use super::side::Side;
use crate::evidence::{DeviceUse, SideUse};
use crate::runner::DeviceReading;

/// What was read after the slots of both sides, the baseline first.
#[derive(Debug, Clone, Default)]
pub struct Readings([SideUse; 2]);

impl Readings {
    /// Notes a reading after a slot of a side. `strangers` is the number of processes on the device that are not of either
    /// side, if that is known.
    pub fn note(&mut self, arm: Arm, reading: &DeviceReading, strangers: Option<usize>) {
        let side = &mut self.0[arm.index()];
        let reasons = reading.throttling.iter().map(|reason| (reason.clone(), 1));
        let one = SideUse {
            slots: 1,
            clock: [reading.clock; 2],
            power: reading.power,
            temperature: reading.temperature,
            held_back: usize::from(!reading.throttling.is_empty()),
            reasons: reasons.collect(),
            others: strangers.map(|strangers| usize::from(strangers > 0)),
        };
        merge(side, &one);
    }

    /// What was read in several cases and pairs; none if nothing was.
    pub fn over<'r>(all: impl Iterator<Item = &'r Self>) -> Option<DeviceUse> {
        let mut sum = Self::default();
        for one in all {
            for (side, more) in sum.0.iter_mut().zip(&one.0) {
                merge(side, more);
            }
        }
        let [baseline, candidate] = sum.0;
        (baseline.slots + candidate.slots > 0).then_some(DeviceUse { baseline, candidate })
    }
}

/// Adds readings to those of a side.
fn merge(side: &mut SideUse, more: &SideUse) {
    if more.slots == 0 {
        return;
    }
    side.clock = if side.slots == 0 {
        more.clock
    } else {
        [side.clock[0].min(more.clock[0]), side.clock[1].max(more.clock[1])]
    };
    side.slots += more.slots;
    side.power = side.power.max(more.power);
    side.temperature = side.temperature.max(more.temperature);
    side.held_back += more.held_back;
    for (reason, slots) in &more.reasons {
        *side.reasons.entry(reason.clone()).or_default() += slots;
    }
    side.others = match (side.others, more.others) {
        (None, others) | (others, None) => others,
        (Some(one), Some(other)) => Some(one + other),
    };
}

/// The number of processes on the device that are not of either side; none if the list names no process of theirs: then
/// its ids are those of another namespace, and tell nothing.
pub fn strangers(on_device: Option<&[u32]>, sides: [&mut Side; 2]) -> Option<usize> {
    let on_device = on_device?;
    let [one, other] = sides;
    let mut own = |counted_anew| [one.processes(counted_anew), other.processes(counted_anew)].concat();
    match unknown(on_device, &own(false)) {
        Some(0) => Some(0),
        // Workers may have started processes since they were counted last.
        _ => unknown(on_device, &own(true)),
    }
}

/// How many of the processes are not among our own; none if none of them is.
fn unknown(on_device: &[u32], own: &[u32]) -> Option<usize> {
    let unknown = on_device.iter().filter(|id| !own.contains(id)).count();
    (unknown < on_device.len()).then_some(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(clock: f64, throttling: &[&str]) -> DeviceReading {
        DeviceReading {
            clock,
            power: clock / 10.0,
            temperature: 60.0,
            throttling: throttling.iter().map(|reason| (*reason).to_owned()).collect(),
            processes: None,
        }
    }

    #[test]
    fn readings_are_gathered_by_side() {
        let mut one = Readings::default();
        one.note(Arm::Baseline, &reading(1900.0, &[]), Some(0));
        one.note(Arm::Baseline, &reading(1800.0, &["power limit"]), None);
        let mut other = Readings::default();
        other.note(Arm::Baseline, &reading(1980.0, &["power limit"]), Some(2));
        other.note(
            Arm::Candidate,
            &reading(1700.0, &["power limit", "temperature"]),
            None,
        );
        let found = Readings::over([&one, &other, &Readings::default()].into_iter()).unwrap();
        let baseline = SideUse {
            slots: 3,
            clock: [1800.0, 1980.0],
            power: 198.0,
            temperature: 60.0,
            held_back: 2,
            reasons: [("power limit".to_owned(), 2)].into(),
            others: Some(1),
        };
        assert_eq!(found.baseline, baseline);
        assert_eq!((found.candidate.held_back, found.candidate.reasons.len()), (1, 2));
        assert_eq!(found.candidate.others, None);
        assert_eq!(Readings::over([&Readings::default()].into_iter()), None);
    }

    #[test]
    fn a_list_without_our_own_processes_tells_nothing() {
        assert_eq!(unknown(&[7, 8, 9], &[7, 8]), Some(1));
        assert_eq!(unknown(&[7], &[7, 8]), Some(0));
        assert_eq!(unknown(&[40_001, 40_002], &[7, 8]), None);
        assert_eq!(unknown(&[], &[7, 8]), None);
    }
}
