//! How honest and dishonest workers look if the coordinator clocks each call by itself.

use gauntlet_stats::{Arm, Decision, without_interval};

use super::*;
use crate::comparison::side::Effort;
use crate::comparison::slot::Slot;

const CALL: f64 = 1e-3;
const CALLS: usize = 20;

/// Seconds that the coordinator's clock shows around a call.
const HANDSHAKE: f64 = 30e-6;

/// The call of each slot that meets new values.
const FRESH: usize = 7;

/// A number from −0.02 to 0.02 for each call.
fn noise(slot: usize, call: usize) -> f64 {
    0.01 * (((slot * 31 + call * 17) % 5) as f64 - 2.0)
}

/// A slot whose calls take `took` seconds and are reported as `told`, by the number of the call.
fn slot(number: usize, took: impl Fn(usize) -> f64, told: impl Fn(usize, f64) -> f64) -> Slot {
    let noisy: Vec<f64> = (0..CALLS)
        .map(|call| took(call) * (1.0 + noise(number, call)))
        .collect();
    let reported: Vec<f64> = noisy
        .iter()
        .enumerate()
        .map(|(call, took)| told(call, *took))
        .collect();
    let late = |(call, took): (usize, &f64)| took + HANDSHAKE * (1.0 + 5.0 * noise(number + 1, call));
    let effort = Effort {
        exchange: 1.0,
        cpu: Some(1.0),
        waited: None,
    };
    Slot {
        seen: noisy.iter().enumerate().map(late).collect(),
        ..Slot::of(reported, effort)
    }
}

fn honest_slot(number: usize) -> Slot {
    slot(number, |_| CALL, |_, took| took)
}

/// Six pairs of twelve slots.
fn pairs(candidate: impl Fn(usize) -> Slot) -> Vec<CaseConduct> {
    let pair = |process: usize| {
        let mut conduct = CaseConduct::new(process, false);
        let side = |turn: usize| match turn % 2 {
            0 => (Arm::Baseline, honest_slot(process + turn)),
            _ => (Arm::Candidate, candidate(process + turn)),
        };
        let slots: Vec<(Arm, Slot)> = (0..12).map(side).collect();
        conduct.note_slots(&slots);
        let fresh: Vec<(usize, usize)> = (0..6).map(|slot| (slot, FRESH)).collect();
        conduct.note_fresh_in_slots(&fresh, &slots);
        conduct
    };
    (0..6).map(pair).collect()
}

fn suspicion(decision: Decision, candidate: impl Fn(usize) -> Slot) -> Option<Suspicion> {
    let assessment = Assessment {
        decision,
        ..without_interval(&["case".to_owned()], &Criteria::default())
    };
    let judged = Conduct::judge(&[pairs(candidate)], &assessment, &Criteria::default());
    judged.unwrap().suspicion
}

#[test]
fn honest_workers_are_not_suspected_of_their_handshakes() {
    assert_eq!(suspicion(Decision::Inconclusive, honest_slot), None);
    let faster = |number: usize| slot(number, |_| CALL / 10.0, |_, took| took);
    assert_eq!(suspicion(Decision::Inconclusive, faster), None);
    let seen = pairs(faster)[0].seen()[0].clone();
    assert!((seen.candidate[0] / (CALL / 10.0) - 1.0).abs() < 0.05, "{seen:?}");
}

#[test]
fn reports_that_are_too_low_are_told() {
    let lower = |share: f64| move |number: usize| slot(number, |_| CALL, move |_, took| (1.0 - share) * took);
    for share in [0.5, 0.1, 0.03] {
        let found = suspicion(Decision::Inconclusive, lower(share));
        assert!(
            matches!(found, Some(Suspicion::OwnClock { .. })),
            "{share}: {found:?}"
        );
    }
    assert_eq!(suspicion(Decision::Inconclusive, lower(0.004)), None);
}

/// Enough calls for the typical one, which is the lower quartile.
#[test]
fn reports_that_are_too_low_in_a_third_of_the_calls_are_told() {
    let some = |number: usize| {
        let told = |call: usize, took: f64| if call.is_multiple_of(3) { 0.7 * took } else { took };
        slot(number, |_| CALL, told)
    };
    let found = suspicion(Decision::Inconclusive, some);
    assert!(matches!(found, Some(Suspicion::OwnClock { .. })), "{found:?}");
}

/// Calls that copy a result and wait, and reports that make all calls as short.
#[test]
fn results_that_are_remembered_in_some_calls_are_told() {
    let replays = |number: usize| {
        let took = |call: usize| {
            if call % 5 < 2 && call != FRESH {
                0.7 * CALL
            } else {
                CALL
            }
        };
        slot(number, took, |_, took| took.min(0.72 * CALL))
    };
    let found = suspicion(Decision::Inconclusive, replays);
    assert!(matches!(found, Some(Suspicion::Memory { .. })), "{found:?}");
    // What the typical call hides is charged, by the coordinator's clock.
    let shares = pairs(replays)[0].work.shares;
    let expected = (0.4 * 0.7 + 0.6) / 0.7 - 1.0;
    assert!((shares.uneven[1] - expected).abs() < 0.05, "{shares:?}");
    assert!(shares.uneven[0].abs() < 0.03, "{shares:?}");
}

/// Every fifth call of both sides ends late, by as many seconds.
#[test]
fn late_wake_ups_are_not_charged_to_the_faster_side() {
    let late = |call: f64| {
        move |number: usize| {
            let took = |index: usize| {
                if index.is_multiple_of(5) {
                    call + CALL
                } else {
                    call
                }
            };
            slot(number, took, |_, took| took)
        }
    };
    let of = |candidate: f64| {
        let side = |turn: usize| match turn % 2 {
            0 => (Arm::Baseline, late(CALL)(turn)),
            _ => (Arm::Candidate, late(candidate)(turn)),
        };
        let slots: Vec<(Arm, Slot)> = (0..12).map(side).collect();
        let mut conduct = CaseConduct::new(0, false);
        conduct.note_slots(&slots);
        let shares = conduct.work.shares;
        (shares.uneven[1] - shares.uneven[0]) * shares.typical[1]
    };
    assert!(of(CALL / 4.0).abs() < 0.02 * CALL, "{}", of(CALL / 4.0));
    assert!(of(CALL).abs() < 0.02 * CALL, "{}", of(CALL));
}

/// The first slot of a load holds nothing but calls on new values.
#[test]
fn results_that_are_remembered_from_the_first_slot_on_are_told() {
    let pair = |process: usize| {
        let mut conduct = CaseConduct::new(process, false);
        let side = |turn: usize| match turn % 2 {
            0 => (Arm::Baseline, honest_slot(process + turn)),
            _ => {
                let call = if turn == 1 { CALL } else { 0.1 * CALL };
                (Arm::Candidate, slot(process + turn, |_| call, |_, took| took))
            }
        };
        let slots: Vec<(Arm, Slot)> = (0..12).map(side).collect();
        conduct.note_slots(&slots);
        let fresh: Vec<(usize, usize)> = (0..CALLS).map(|call| (0, call)).collect();
        conduct.note_fresh_in_slots(&fresh, &slots);
        conduct
    };
    let seen: Vec<CaseConduct> = (0..6).map(pair).collect();
    let assessment = without_interval(&["case".to_owned()], &Criteria::default());
    let judged = Conduct::judge(&[seen], &assessment, &Criteria::default()).unwrap();
    assert!(
        matches!(judged.suspicion, Some(Suspicion::Memory { .. })),
        "{judged:?}"
    );
}

#[test]
fn a_side_that_is_not_stepped_does_not_make_the_other_a_liar() {
    let plain = |number: usize| {
        let stepped = honest_slot(number);
        let exchange = stepped.sum + 200e-6;
        let effort = Effort {
            exchange,
            ..stepped.effort
        };
        Slot::of(stepped.times, effort)
    };
    let pair = |process: usize| {
        let mut conduct = CaseConduct::new(process, false);
        let slots: Vec<(Arm, Slot)> = (0..12)
            .map(|turn| match turn % 2 {
                0 => (Arm::Baseline, plain(process + turn)),
                _ => (Arm::Candidate, honest_slot(process + turn)),
            })
            .collect();
        conduct.note_slots(&slots);
        conduct.note_fresh_in_slots(&[(0, FRESH), (3, FRESH)], &slots);
        conduct
    };
    let seen: Vec<CaseConduct> = (0..6).map(pair).collect();
    let assessment = without_interval(&["case".to_owned()], &Criteria::default());
    let judged = Conduct::judge(&[seen], &assessment, &Criteria::default()).unwrap();
    assert_eq!(judged.suspicion, None);
}
