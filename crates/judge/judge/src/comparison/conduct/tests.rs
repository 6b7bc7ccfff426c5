//! How honest and dishonest workers look from outside.

mod clock;
mod held_back;
mod memory;
mod neighbour;
mod stepped;
mod whole;

use gauntlet_stats::{Arm, Assessment, Decision, compare, without_interval};

use super::lone::LoneCall;
use super::*;
use crate::comparison::side::Effort;
use crate::comparison::slot::Slot;

const CALL: f64 = 1e-3;
const SUITE: [&str; 1] = ["case"];

/// A slot of twenty calls with some noise; `reported` is the time that the worker states for each call.
fn slot(call: f64, reported: f64, jitter: usize) -> Slot {
    let noise = 1.0 + 0.01 * ((jitter * 7 % 5) as f64 - 2.0);
    Slot::of(vec![reported * noise; 20], effort(20.0 * call * noise + 150e-6))
}

/// A lone call whose messages take `late` seconds longer than usual.
fn lone(call: f64, late: f64) -> LoneCall {
    LoneCall::of(&Slot::of(vec![call], effort(call + 150e-6 + late)))
}

/// Lone calls of both sides.
fn lone_calls(baseline: f64, candidate: f64) -> Vec<[LoneCall; 2]> {
    vec![[lone(baseline, 0.0), lone(candidate, 0.0)]; 4]
}

fn effort(seconds: f64) -> Effort {
    Effort {
        exchange: seconds,
        cpu: Some(seconds),
        waited: None,
    }
}

/// An honest pair whose candidate is no faster.
fn honest(process: usize) -> CaseConduct {
    let mut conduct = CaseConduct::new(process, false);
    conduct.fresh = lone_calls(CALL, CALL);
    conduct.known = lone_calls(CALL, CALL);
    take_slots(&mut conduct, |jitter| slot(CALL, CALL, jitter));
    conduct.idle = Some([1e-4; 2]);
    conduct
}

fn take_slots(conduct: &mut CaseConduct, candidate: impl Fn(usize) -> Slot) {
    let process = conduct.process;
    let slots: Vec<(Arm, Slot)> = (0..12)
        .map(|turn| match turn % 2 {
            0 => (Arm::Baseline, slot(CALL, CALL, process + turn)),
            _ => (Arm::Candidate, candidate(process + turn)),
        })
        .collect();
    conduct.note_slots(&slots);
}

/// The suspicion after six pairs in which `tamper` changes the honest observations.
fn judge(tamper: impl Fn(&mut CaseConduct)) -> Option<Suspicion> {
    let mut seen: Vec<CaseConduct> = (0..6).map(honest).collect();
    seen.iter_mut().for_each(tamper);
    let undecided = without_interval(&SUITE.map(str::to_owned), &Criteria::default());
    Conduct::judge(&[seen], &undecided, &Criteria::default())
        .unwrap()
        .suspicion
}

#[test]
fn honest_workers_are_not_suspected() {
    assert_eq!(judge(|_| ()), None);
}

#[test]
fn a_true_speedup_is_not_suspected() {
    let faster = |conduct: &mut CaseConduct| {
        take_slots(conduct, |jitter| slot(CALL / 3.0, CALL / 3.0, jitter));
        conduct.fresh = lone_calls(CALL, CALL / 3.0);
        conduct.known = lone_calls(CALL, CALL / 3.0);
    };
    assert_eq!(judge(faster), None);
}

/// A slot of microsecond calls. The first call takes `begin` longer, and message times are irregular.
fn short(call: f64, reported: f64, begin: f64, jitter: usize) -> Slot {
    const CALLS: usize = 32;
    let odd = 5e-6 * ((jitter * 7 % 5) as f64 - 2.0);
    let mut times = vec![reported; CALLS];
    times[0] += begin;
    let sum: f64 = times.iter().sum();
    Slot::of(
        times,
        effort(sum + CALLS as f64 * (call - reported) + 150e-6 + odd),
    )
}

#[test]
fn a_slower_candidate_whose_calls_scatter_as_the_controls_is_not_suspected() {
    let slower = |conduct: &mut CaseConduct| {
        let scattered = |call: f64, jitter: usize| {
            let even = slot(call, call, jitter);
            let times = (0..20).map(|number| if number < 10 { 0.95 } else { 1.05 } * even.typical);
            Slot::of(times.collect(), even.effort)
        };
        let slots: Vec<(Arm, Slot)> = (0..12)
            .map(|turn| match turn % 2 {
                0 => (Arm::Baseline, scattered(CALL, conduct.process + turn)),
                _ => (Arm::Candidate, scattered(5.0 * CALL, conduct.process + turn)),
            })
            .collect();
        conduct.note_slots(&slots);
        conduct.fresh = lone_calls(1.2 * CALL, 6.0 * CALL);
        conduct.known = lone_calls(1.2 * CALL, 6.0 * CALL);
    };
    assert_eq!(judge(slower), None);
}

#[test]
fn a_side_that_computes_while_the_other_is_timed_voids_and_is_not_accused() {
    for (idle, candidate) in [([0.01, 0.8], true), ([0.8, 0.01], false)] {
        let told = judge(|conduct| conduct.idle = Some(idle)).unwrap();
        assert_eq!(
            told,
            Suspicion::Idle {
                candidate,
                share: 0.8
            }
        );
        assert!(
            !told.accuses() && told.to_string().contains("disturbs the other side"),
            "{told}"
        );
    }
    // Threads that spin for a while after each call are charged.
    assert_eq!(judge(|conduct| conduct.idle = Some([0.3, 0.4])), None);
}

#[test]
fn one_pair_proves_nothing() {
    let mut conduct = honest(0);
    take_slots(&mut conduct, |jitter| slot(CALL, 0.5 * CALL, jitter));
    let undecided = without_interval(&SUITE.map(str::to_owned), &Criteria::default());
    let judged = Conduct::judge(&[vec![conduct]], &undecided, &Criteria::default());
    assert_eq!(judged.unwrap().suspicion, None);
}
