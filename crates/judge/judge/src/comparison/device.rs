//! The state of the device after the slots of a case.

use gauntlet_stats::Arm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::evidence::{DeviceUse, SideUse};
use crate::runner::DeviceReading;

/// What was read after the slots of both sides, the baseline first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Readings([SideUse; 2]);

impl Readings {
    /// Notes a reading after a slot of a side. `strangers` is the number of processes on the device that do not belong
    /// to this program, if that is known.
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

/// The number of processes on the device that do not belong to this program; none if the list names no process that does:
/// then its ids are those of another namespace, and tell nothing.
///
/// This program's processes are the program itself, all that descend from it (workers, references, tools), and those that it
/// descends from, which wait for it. A process that the system does not show may have ended, or its id may be that of another
/// namespace, so it is not counted.
pub fn strangers(on_device: &[u32]) -> Option<usize> {
    strangers_to(std::process::id(), on_device, parent)
}

/// The same for the program with this id, by a function from the id of a process to that of its parent: 0 if it has none,
/// and nothing if the system does not show the process.
fn strangers_to(program: u32, on_device: &[u32], parent: impl Fn(u32) -> Option<u32>) -> Option<usize> {
    let line = |id: u32| {
        let above = |id: &u32| parent(*id).filter(|parent| *parent != 0);
        // Processes may start and end meanwhile, so a line that does not end is possible.
        std::iter::successors(Some(id), above).take(MAX_ANCESTORS)
    };
    let before: Vec<u32> = line(program).collect();
    let is_own = |id: &u32| before.contains(id) || line(*id).any(|above| above == program);
    let is_shown = |id: &u32| parent(*id).is_some();
    let (own, others): (Vec<u32>, Vec<u32>) = on_device.iter().copied().filter(is_shown).partition(is_own);
    (!own.is_empty()).then_some(others.len())
}

/// A line of ancestors is followed this far.
const MAX_ANCESTORS: usize = 64;

/// The id of a process's parent, 0 if that is in no namespace of this program; none if the system does not show the process.
fn parent(id: u32) -> Option<u32> {
    let line = std::fs::read(format!("/proc/{id}/stat")).ok()?;
    // The process chooses its name, which is in parentheses; the state and the parent follow (proc_pid_stat(5)).
    let end = line.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(&line[end + 1..]).ok()?;
    fields.split_whitespace().nth(1)?.parse().ok()
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

    /// A system with the program 10, whose parent 5 waits for it. Its workers are 11 and 12, and 21 is in a namespace that 12
    /// has made, below its init. 30 is a process of another user, and the parent of 31 is in another namespace.
    fn parent_of(id: u32) -> Option<u32> {
        let shown = [
            (1, 0),
            (5, 1),
            (10, 5),
            (11, 10),
            (12, 10),
            (20, 12),
            (21, 20),
            (30, 1),
            (31, 0),
        ];
        shown
            .iter()
            .find(|(shown, _)| *shown == id)
            .map(|(_, parent)| *parent)
    }

    #[test]
    fn processes_of_this_program_are_no_strangers() {
        let strangers = |on_device: &[u32]| strangers_to(10, on_device, parent_of);
        // Both workers, a process within a worker's namespace, the program, and the one that waits for it.
        assert_eq!(strangers(&[11, 12, 21, 10, 5]), Some(0));
        assert_eq!(strangers(&[11, 30]), Some(1));
        assert_eq!(strangers(&[11, 30, 31]), Some(2));
        // 99 has ended, or is an id of another namespace.
        assert_eq!(strangers(&[11, 99]), Some(0));
    }

    #[test]
    fn a_list_without_our_own_processes_tells_nothing() {
        for on_device in [&[][..], &[40_001, 40_002], &[30], &[30, 99]] {
            assert_eq!(strangers_to(10, on_device, parent_of), None);
        }
    }

    #[test]
    fn ancestors_that_go_round_in_a_circle_are_left() {
        let circle = |id: u32| Some(if id == 10 { 0 } else { 7 + id % 2 });
        assert_eq!(strangers_to(10, &[10, 7], circle), Some(1));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_shows_parents() {
        let own = std::process::id();
        assert_eq!(parent(own), Some(std::os::unix::process::parent_id()));
        assert_eq!(parent(u32::MAX), None);
        assert_eq!(strangers(&[own]), Some(0));
    }
}
