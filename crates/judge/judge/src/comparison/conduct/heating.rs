//! Whether a side does in the load before its slots what it does in the slots.
//!
//! In the sustained regime a side gains by being cool. A worker that guesses which requests heat could rest between their
//! calls, or make each call longer. Then it makes fewer calls in the same time than in its slots, which the coordinator's
//! clock shows; or its calls take a smaller share of the time, which its reports show. The two sides may differ in both,
//! so each is compared with itself only.
//!
//! Where the load is part of a slot's request, the worker knows that it heats. What it does then shows in how many calls it
//! says to make, and in its processor time: a kernel that computes on the CPU keeps it busy, and so does a host that queues
//! calls for a GPU or waits for one.

use gauntlet_stats::{Arm, median};
use gauntlet_worker::Load;

use super::CaseConduct;
use super::case::of;
use crate::comparison::heating::Heated;
use crate::comparison::slot::Slot;
use crate::evidence::{HeatedCase, HeatedSide, Suspicion};

/// The least that a side has to do in the load, over what it does in its slots. The same requests in the same minute
/// differ by a few percent; a side that rests for less than a quarter of the load stays almost as hot.
const MIN_DILIGENCE: f64 = 0.75;

impl CaseConduct {
    /// Notes the load before each of the slots, both in the order taken.
    pub fn note_heating(&mut self, heated: &[(Arm, Heated)], slots: &[(Arm, Slot)]) {
        let side = |arm| {
            let loads = of(heated, arm);
            let both: Vec<(&Heated, Slot)> = loads.iter().zip(of(slots, arm)).collect();
            HeatedSide {
                start: median_of(&both, |load, _| load.first.typical),
                end: median_of(&both, |load, _| load.last),
                share: median_of(&both, |load, _| load.sum / load.elapsed),
                diligence: median_of(&both, diligence),
            }
        };
        self.heated = (!heated.is_empty()).then(|| [side(Arm::Baseline), side(Arm::Candidate)]);
    }

    /// Notes the loads that were part of the slots, in the order taken. Comes after the lone calls.
    pub fn note_loads(&mut self, slots: &[(Arm, Slot)]) {
        let (on_gpu, isolated) = (self.on_gpu, &self.isolated);
        let side = |arm: Arm| {
            let slots = of(slots, arm);
            let over = |figure: &dyn Fn(&Slot) -> f64| median(&slots.iter().map(figure).collect::<Vec<_>>());
            HeatedSide {
                start: median(&isolated[arm.index()]),
                end: over(&|slot| slot.typical),
                share: over(&|slot| Loads::of(slot).share(on_gpu)),
                diligence: over(&|slot| Loads::of(slot).diligence(on_gpu)),
            }
        };
        let are_heated = slots.iter().any(|(_, slot)| !slot.loads.is_empty());
        self.heated = are_heated.then(|| [side(Arm::Baseline), side(Arm::Candidate)]);
    }
}

/// The loads within a slot, all together.
struct Loads {
    /// By the coordinator's clock.
    seconds: f64,
    /// In which calls ran, by the worker's reports.
    busy: f64,
    /// Seconds that as many calls take in the slot.
    worth: f64,
    /// Processor time in the loads; none if the system does not report it.
    active: Option<f64>,
    /// Processors that the slot's calls keep busy, at most 1: a kernel may sleep in earnest too. What the host does around calls
    /// counts as theirs.
    usual: f64,
}

impl Loads {
    fn of(slot: &Slot) -> Self {
        let sum = |figure: fn(&Load) -> f64| slot.loads.iter().map(figure).sum::<f64>();
        let active: Option<f64> = slot.loads.iter().map(|load| load.active).sum();
        let around = slot.effort.cpu.zip(active).map(|(all, active)| all - active);
        Self {
            seconds: sum(|load| load.seconds),
            busy: sum(|load| load.busy),
            worth: sum(|load| load.calls as f64) * slot.sum / slot.calls() as f64,
            active,
            usual: around.map_or(1.0, |around| (around / slot.sum).clamp(0.0, 1.0)),
        }
    }

    /// The share of the time in which calls ran. A GPU idles where the host cannot queue short calls as fast as they end.
    fn share(&self, on_gpu: bool) -> f64 {
        let busy = if on_gpu {
            self.busy.min(self.worth)
        } else {
            self.busy
        };
        (busy / self.seconds).min(1.0)
    }

    /// How busy the side was, over how busy it is in the slot's calls. On a GPU either suffices, as many calls or a busy host:
    /// what a host queues behind a hold in the slot may take it longer than the call. On a CPU both are needed.
    fn diligence(&self, on_gpu: bool) -> f64 {
        let rate = self.worth / self.seconds;
        let Some(active) = self.active.map(|active| active / self.seconds) else {
            return rate;
        };
        if on_gpu {
            rate.max(active)
        } else {
            rate.min(active / self.usual.max(f64::MIN_POSITIVE))
        }
    }
}

/// How busy a side was in a load, over how busy it was in the slot after it.
fn diligence(load: &Heated, slot: &Slot) -> f64 {
    let calls = (load.calls as f64 / load.exchanges) / (slot.calls() as f64 / slot.effort.exchange);
    let share = (load.sum / load.exchanges) / (slot.sum / slot.effort.exchange);
    calls.min(share)
}

fn median_of(both: &[(&Heated, Slot)], figure: impl Fn(&Heated, &Slot) -> f64) -> f64 {
    median(
        &both
            .iter()
            .map(|(load, slot)| figure(load, slot))
            .collect::<Vec<_>>(),
    )
}

/// The load of a case, each figure the median over pairs; none where calls are isolated.
pub fn summary(case: &str, pairs: &[CaseConduct]) -> Option<HeatedCase> {
    let [baseline, candidate] = over_pairs(pairs)?;
    Some(HeatedCase {
        case: case.to_owned(),
        baseline,
        candidate,
    })
}

fn over_pairs(pairs: &[CaseConduct]) -> Option<[HeatedSide; 2]> {
    let each: Vec<&[HeatedSide; 2]> = pairs.iter().filter_map(|pair| pair.heated.as_ref()).collect();
    let side = |side: usize| {
        let over = |figure: fn(&HeatedSide) -> f64| {
            median(&each.iter().map(|both| figure(&both[side])).collect::<Vec<_>>())
        };
        HeatedSide {
            start: over(|one| one.start),
            end: over(|one| one.end),
            share: over(|one| one.share),
            diligence: over(|one| one.diligence),
        }
    };
    (!each.is_empty()).then(|| [side(0), side(1)])
}

/// Suspicion of a side that rests in the load of a case, the candidate first.
pub fn rests(cases: &[Vec<CaseConduct>]) -> Option<Suspicion> {
    let each: Vec<[HeatedSide; 2]> = cases.iter().filter_map(|pairs| over_pairs(pairs)).collect();
    [Arm::Candidate, Arm::Baseline].into_iter().find_map(|arm| {
        let least = each
            .iter()
            .map(|both| both[arm.index()].diligence)
            .reduce(f64::min)?;
        (least < MIN_DILIGENCE).then_some(Suspicion::Rests {
            candidate: arm == Arm::Candidate,
            share: least,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::side::Effort;

    const CALL: f64 = 1e-3;

    fn slot(call: f64, exchange: f64) -> Slot {
        let effort = Effort {
            exchange,
            cpu: None,
            waited: None,
        };
        Slot::of(vec![call; 20], effort)
    }

    /// A load of 25 requests of 20 calls, each of which takes `call` seconds by the report, and after which the side does
    /// nothing for `rest` seconds.
    fn load(call: f64, rest: f64) -> Heated {
        let first = slot(0.95 * call, 20.0 * (0.95 * call + rest));
        Heated {
            last: call,
            calls: 500,
            sum: 500.0 * call,
            exchanges: 500.0 * (call + rest) + 1e-3,
            elapsed: 500.0 * (call + rest) + 2e-3,
            first,
        }
    }

    /// Four pairs whose baseline is honest, with twelve slots each of calls of `CALL` and `CALL / 2` seconds.
    fn pairs(candidate: impl Fn(usize) -> Heated) -> Vec<CaseConduct> {
        let pair = |process| {
            let mut conduct = CaseConduct::new(process, true);
            let turns = (0..12).map(|turn| match turn % 2 {
                0 => (Arm::Baseline, load(CALL, 0.0), slot(CALL, 20.1 * CALL)),
                _ => (Arm::Candidate, candidate(turn), slot(CALL / 2.0, 10.1 * CALL)),
            });
            let (heated, slots): (Vec<_>, Vec<_>) = turns
                .map(|(arm, heated, slot)| ((arm, heated), (arm, slot)))
                .unzip();
            conduct.note_heating(&heated, &slots);
            conduct
        };
        (0..4).map(pair).collect()
    }

    #[test]
    fn a_side_that_works_in_the_load_as_in_its_slots_is_honest() {
        let honest = pairs(|_| load(CALL / 2.0, 0.0));
        assert_eq!(rests(std::slice::from_ref(&honest)), None);
        let HeatedCase { candidate, .. } = summary("one", &honest).unwrap();
        assert!((candidate.end / candidate.start - 1.0 / 0.95).abs() < 1e-9);
        assert!((0.98..1.0).contains(&candidate.share), "{candidate:?}");
        // Calls that a falling clock makes longer in the course of the load are honest too, and so is a rare stall.
        let stalls = |turn: usize| load(CALL / 2.0, if turn == 5 { CALL } else { 0.0 });
        assert_eq!(rests(&[pairs(stalls)]), None);
        assert_eq!(summary("one", &[CaseConduct::new(0, true)]), None);
    }

    #[test]
    fn a_side_that_rests_between_the_calls_of_a_load_is_suspected() {
        let told = rests(&[
            pairs(|_| load(CALL / 2.0, 0.0)),
            pairs(|_| load(CALL / 2.0, CALL / 2.0)),
        ]);
        assert!(
            matches!(told, Some(Suspicion::Rests { candidate: true, share }) if (0.45..0.55).contains(&share)),
            "{told:?}"
        );
        assert!(told.unwrap().accuses());
    }

    #[test]
    fn calls_that_are_longer_in_a_load_do_not_hide_a_rest() {
        // It rests within what it reports as calls.
        let told = rests(&[pairs(|_| load(CALL, 0.0))]);
        assert!(
            matches!(told, Some(Suspicion::Rests { candidate: true, share }) if share < 0.55),
            "{told:?}"
        );
        // It makes as many calls a second, and they are of less work.
        let idles = |_: usize| Heated {
            sum: 500.0 * CALL / 8.0,
            ..load(CALL / 2.0, 0.0)
        };
        let told = rests(&[pairs(idles)]);
        assert!(
            matches!(told, Some(Suspicion::Rests { candidate: true, share }) if share < 0.3),
            "{told:?}"
        );
    }

    /// A slot of four calls of `call` seconds on one processor, with a load of `calls` calls in half a second before the first.
    fn slot_with(load: Load) -> Slot {
        let effort = Effort {
            exchange: 0.6,
            cpu: load.active.map(|active| active + 4.0 * CALL),
            waited: None,
        };
        Slot {
            loads: vec![load],
            ..Slot::of(vec![CALL; 4], effort)
        }
    }

    fn load_of(calls: usize, active: f64) -> Load {
        Load {
            seconds: 0.5,
            calls,
            busy: 0.49,
            active: Some(active),
        }
    }

    /// Four pairs whose slots hold their load, and whose baseline is honest.
    fn pairs_with(on_gpu: bool, candidate: Load) -> Vec<CaseConduct> {
        let pair = |process| {
            let mut conduct = CaseConduct::new(process, on_gpu);
            let alone = || Slot::of(vec![0.8 * CALL], slot(CALL, 0.1).effort);
            conduct.note_alone(&[alone(), alone()]);
            let turns = (0..12).map(|turn| match turn % 2 {
                0 => (Arm::Baseline, slot_with(load_of(490, 0.5))),
                _ => (Arm::Candidate, slot_with(candidate)),
            });
            conduct.note_loads(&turns.collect::<Vec<_>>());
            conduct
        };
        (0..4).map(pair).collect()
    }

    #[test]
    fn a_load_within_slots_is_summed_up_by_its_calls() {
        let HeatedCase { candidate, .. } = summary("one", &pairs_with(true, load_of(400, 0.5))).unwrap();
        assert!((candidate.end / candidate.start - 1.25).abs() < 1e-9);
        // The device computes for as long as its calls take in the slots, whatever the worker says.
        assert!((candidate.share - 0.8).abs() < 1e-9, "{candidate:?}");
        let HeatedCase { candidate, .. } = summary("one", &pairs_with(false, load_of(400, 0.5))).unwrap();
        assert!((candidate.share - 0.98).abs() < 1e-9, "{candidate:?}");
        let mut isolated = CaseConduct::new(0, true);
        isolated.note_loads(&[(Arm::Baseline, slot(CALL, 1.0))]);
        assert_eq!(summary("one", &[isolated]), None);
    }

    #[test]
    fn a_side_that_rests_in_a_load_within_slots_is_suspected() {
        let suspects = |on_gpu, calls, active| {
            let told = rests(&[pairs_with(on_gpu, load_of(calls, active))]);
            assert!(
                matches!(told, None | Some(Suspicion::Rests { candidate: true, .. })),
                "{told:?}"
            );
            told.is_some()
        };
        // On a CPU: fewer calls, or calls that the worker only says to make.
        assert!(!suspects(false, 490, 0.48));
        assert!(suspects(false, 200, 0.48));
        assert!(suspects(false, 490, 0.1));
        // Two threads, and calls that find their operands in the caches.
        assert!(!suspects(false, 1500, 0.9));
        // On a GPU: few calls are honest if the host cannot queue more, and so is a host that sleeps while the device computes.
        assert!(!suspects(true, 100, 0.48));
        assert!(!suspects(true, 490, 0.01));
        assert!(suspects(true, 100, 0.01));
    }

    #[test]
    fn a_kernel_that_sleeps_in_earnest_may_sleep_in_the_load() {
        let mut slot = slot_with(load_of(490, 0.05));
        slot.effort.cpu = Some(0.05 + 0.1 * 4.0 * CALL);
        assert!(Loads::of(&slot).diligence(false) > 0.97);
        slot.effort.cpu = None;
        slot.loads[0].active = None;
        assert!(
            Loads::of(&slot).diligence(false) > 0.97,
            "nothing is known of its time"
        );
    }
}
