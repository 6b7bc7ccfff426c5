//! How short calls on a GPU look behind the hold before each of them.

use gauntlet_stats::Arm;

use super::*;

const CALL: f64 = 45e-6;
const CALLS: usize = 20;

/// Seconds that the coordinator's clock shows around a call: the hold, launching, and waking up.
const AROUND: f64 = 650e-6;

/// Pairs whose candidate takes `took` seconds a call and reports `told`. What lies around its calls takes `late(pair)` seconds
/// longer than around the baseline's.
fn pairs(took: f64, told: f64, late: impl Fn(usize) -> f64) -> Vec<CaseConduct> {
    let pair = |process: usize| {
        let mut conduct = CaseConduct::new(process, true);
        let side = |turn: usize| {
            let noise = 1.0 + 0.001 * (((process + turn) * 7 % 5) as f64 - 2.0);
            let of = |took: f64, told: f64, around: f64| Slot {
                seen: vec![took * noise + around; CALLS],
                ..Slot::of(vec![told * noise; CALLS], effort(1.0))
            };
            match turn % 2 {
                0 => (Arm::Baseline, of(CALL, CALL, AROUND)),
                _ => (Arm::Candidate, of(took, told, AROUND + late(process))),
            }
        };
        let slots: Vec<(Arm, Slot)> = (0..12).map(side).collect();
        conduct.note_slots(&slots);
        conduct.fresh = lone_calls(CALL, told);
        conduct.known = lone_calls(CALL, told);
        conduct
    };
    (0..12).map(pair).collect()
}

/// The suspicion, if the reports alone would be adopted.
fn suspicion(mut pairs: Vec<CaseConduct>, told: f64, device_only: bool) -> Option<Suspicion> {
    for conduct in &mut pairs {
        conduct.note_device_only(device_only);
    }
    let reports = (0..12).map(|process| {
        let noise = 1.0 + 1e-3 * ((process * 5 % 7) as f64 - 3.0);
        Block::new(process, vec![CALL], vec![told * noise])
    });
    let sample = Sample::from_blocks(&reports.collect::<Vec<_>>()).unwrap();
    let criteria = Criteria::default();
    let assessment = compare(&[(SUITE[0].to_owned(), sample)], &criteria, 1, 0).unwrap();
    assert_eq!(assessment.decision, Decision::Adopt);
    Conduct::judge(&[pairs], &assessment, &criteria)
        .unwrap()
        .suspicion
}

/// Up to eight microseconds either way, as on an H200.
fn scattered(process: usize) -> f64 {
    2e-6 * ((process * 5 % 9) as f64 - 4.0)
}

#[test]
fn the_gate_does_not_dilute_a_small_gain() {
    let told = 0.97 * CALL;
    assert_eq!(suspicion(pairs(told, told, |_| 0.0), told, false), None);
}

#[test]
fn a_gain_that_is_lost_in_scatter_is_no_lie() {
    let told = 0.97 * CALL;
    let found = suspicion(pairs(told, told, scattered), told, false).unwrap();
    assert!(
        matches!(found, Suspicion::Unresolved { lower, upper, pairs, .. } if lower < 1.0 && upper > 1.03 && (12..150).contains(&pairs)),
        "{found:?}"
    );
    assert!(!found.accuses() && found.may_pass());
    assert!(found.to_string().contains("is no accusation"), "{found}");
}

#[test]
fn the_clock_of_a_process_without_code_of_the_kernel_needs_no_confirmation() {
    let told = 0.97 * CALL;
    assert_eq!(suspicion(pairs(told, told, scattered), told, true), None);
}

#[test]
fn calls_are_as_even_as_a_process_without_code_of_the_kernel_reports() {
    let uneven = |device_only: bool| {
        let mut conduct = CaseConduct::new(0, true);
        conduct.note_device_only(device_only);
        let side = |turn: usize| {
            // Every fourth exchange of the candidate is late by as much as a call takes.
            let late = |call: usize| {
                if turn % 2 == 1 && call.is_multiple_of(4) {
                    CALL
                } else {
                    0.0
                }
            };
            let slot = Slot {
                seen: (0..CALLS).map(|call| CALL + AROUND + late(call)).collect(),
                moving: [1e-4, 2e-4][turn % 2],
                ..Slot::of(vec![CALL; CALLS], effort(1.0))
            };
            ([Arm::Baseline, Arm::Candidate][turn % 2], slot)
        };
        conduct.note_slots(&(0..12).map(side).collect::<Vec<_>>());
        conduct.work.shares
    };
    let (by_clock, by_reports) = (uneven(false), uneven(true));
    assert!(by_clock.uneven[1] > 0.05, "{by_clock:?}");
    assert_eq!((by_reports.uneven, by_reports.moving), ([0.0; 2], [0.0; 2]));
    assert_eq!(by_clock.moving, [1e-4, 2e-4]);
}

#[test]
fn a_gain_that_the_coordinator_contradicts_is_told_for_every_kernel() {
    for device_only in [false, true] {
        let told = 0.85 * CALL;
        let found = suspicion(pairs(CALL, told, scattered), told, device_only);
        assert!(
            matches!(
                found,
                Some(Suspicion::Unconfirmed { .. } | Suspicion::OwnClock { .. })
            ),
            "{found:?}"
        );
    }
}
