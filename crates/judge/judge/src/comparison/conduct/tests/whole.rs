//! How a gain of device time looks in whole calls, where the coordinator's clock sees the hold and not the host.

use gauntlet_stats::Arm;

use super::super::whole::contradicted;
use super::*;

/// Seconds on the device of the baseline, and what a whole call takes beyond them: the host, a message, and waking up.
const ON_DEVICE: f64 = 15e-6;
const AROUND: f64 = 60e-6;

/// Pairs whose candidate takes `on_device` seconds there, and `whole(pair)` seconds in all beyond [`AROUND`].
fn pairs(count: usize, on_device: f64, whole: impl Fn(usize) -> f64) -> Vec<CaseConduct> {
    let call = |seconds: f64| Slot {
        seen: vec![AROUND + seconds; 12],
        ..Slot::of(vec![AROUND + seconds; 12], effort(1.0))
    };
    let pair = |process: usize| {
        let mut conduct = CaseConduct::new(process, true);
        conduct.work.shares.typical = [ON_DEVICE, on_device];
        for _ in 0..3 {
            let candidate = (Arm::Candidate, call(whole(process)));
            conduct.note_whole_calls(&[candidate, (Arm::Baseline, call(ON_DEVICE))]);
        }
        conduct
    };
    (0..count).map(pair).collect()
}

fn doubt(pairs: Vec<CaseConduct>) -> Option<Suspicion> {
    contradicted(&[pairs], Decision::Adopt)
}

/// Up to four microseconds either way: how much hosts differ between processes.
fn of_hosts(process: usize) -> f64 {
    1e-6 * ((process * 5 % 9) as f64 - 4.0)
}

#[test]
fn a_gain_that_whole_calls_show_is_believed() {
    let half = |process| ON_DEVICE / 2.0 + of_hosts(process);
    assert_eq!(doubt(pairs(9, ON_DEVICE / 2.0, half)), None);
    // A leaner host saves more than the device does.
    assert_eq!(
        doubt(pairs(9, ON_DEVICE / 2.0, |process| of_hosts(process) - 10e-6)),
        None
    );
}

/// All of the work is done on the host during the hold, or an eighth of it with honest whole calls.
#[test]
fn work_of_the_host_behind_a_hold_is_told_and_is_no_gain() {
    let all = doubt(pairs(4, 0.1 * ON_DEVICE, |process| 150e-6 + of_hosts(process))).unwrap();
    assert!(
        matches!(all, Suspicion::NotInCalls { own, upper, .. } if own > 0.8 && upper < 0.0),
        "{all:?}"
    );
    assert!(
        !all.accuses() && all.least_gain().is_none(),
        "it is void, and a slow host may be the reason"
    );
    let some = |count| {
        doubt(pairs(count, 0.875 * ON_DEVICE, |process| {
            ON_DEVICE + of_hosts(process)
        }))
    };
    assert_eq!(some(9), None, "hosts scatter by more than the gain");
    let told = some(198);
    assert!(matches!(told, Some(Suspicion::NotInCalls { .. })), "{told:?}");
}

/// Whole calls of an H100 whose processor had other work: twelve calls scatter by tens of microseconds, in the microseconds of
/// the candidate beyond the baseline's.
#[test]
fn an_honest_gain_that_is_lost_in_the_scatter_of_hosts_stays_a_gain() {
    let beyond = [18.3, 14.3, -20.4, -38.1, -28.8, -71.7];
    let honest = pairs(6, ON_DEVICE / 2.0, |process| ON_DEVICE + 1e-6 * beyond[process]);
    assert_eq!(doubt(honest), None);
    let greedy = [640.0, 610.0, 590.0];
    let told = doubt(pairs(3, 0.2 * ON_DEVICE, |process| {
        ON_DEVICE + 1e-6 * greedy[process]
    }));
    assert!(matches!(told, Some(Suspicion::NotInCalls { .. })), "{told:?}");
}

#[test]
fn what_is_no_gain_and_what_has_no_whole_calls_is_not_asked() {
    let hidden = || pairs(9, 0.1 * ON_DEVICE, |_| 150e-6);
    for decision in [
        Decision::ValidNegative,
        Decision::Regression,
        Decision::Inconclusive,
    ] {
        assert_eq!(contradicted(&[hidden()], decision), None);
    }
    let mut without = hidden();
    without[3].whole_calls.clear();
    assert_eq!(doubt(without), None);
    assert_eq!(doubt(pairs(1, 0.1 * ON_DEVICE, |_| 150e-6)), None);
}
