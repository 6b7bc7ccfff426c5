//! What honest and dishonest sides look like from outside.

use gauntlet_stats::{compare, without_interval};

use super::*;

const CALL: f64 = 1e-3;
const SUITE: [&str; 1] = ["case"];

/// A slot of twenty calls with a bit of noise, `reported` being what the worker says of each.
fn slot(call: f64, reported: f64, jitter: usize) -> Slot {
    let noise = 1.0 + 0.01 * ((jitter * 7 % 5) as f64 - 2.0);
    Slot {
        calls: 20,
        median: reported * noise,
        sum: 20.0 * reported * noise,
        effort: effort(20.0 * call * noise + 150e-6),
        clock: None,
    }
}

fn effort(seconds: f64) -> Effort {
    Effort {
        exchange: seconds,
        cpu: Some(seconds),
    }
}

fn sides<T>(control: T, candidate: T) -> [(Arm, T); 2] {
    [(Arm::Baseline, control), (Arm::Candidate, candidate)]
}

/// An honest pair whose candidate is no faster.
fn honest(process: usize) -> CaseConduct {
    let mut conduct = CaseConduct::new(process);
    let one = Slot {
        calls: 1,
        sum: CALL,
        effort: effort(CALL + 150e-6),
        ..slot(CALL, CALL, 2)
    };
    conduct.note_first_calls(&sides(one, one));
    conduct.note_loading(&sides(effort(1e-3), effort(1e-3)));
    conduct.note_handing_out(effort(1e-3), effort(1e-3));
    take_slots(&mut conduct, |jitter| slot(CALL, CALL, jitter));
    let used = CpuUse {
        asked: 1.0,
        idle: 0.0001,
    };
    conduct.note_cpu(used, used);
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

/// What is suspected of six pairs; what a side did otherwise than honestly is up to `tamper`.
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
        conduct.first = vec![[CALL, CALL / 3.0]];
    };
    assert_eq!(judge(faster), None);
}

#[test]
fn a_clock_that_runs_slow_is_told() {
    for factor in [0.97, 0.9, 0.5] {
        let slow = |conduct: &mut CaseConduct| {
            take_slots(conduct, |jitter| slot(CALL, factor * CALL, jitter));
        };
        let told = judge(slow);
        assert!(
            matches!(told, Some(Suspicion::OwnClock { factor: told }) if (told * factor - 1.0).abs() < 0.02),
            "{told:?}"
        );
    }
}

#[test]
fn a_sum_that_is_right_does_not_hide_a_median_that_is_not() {
    let skewed = |conduct: &mut CaseConduct| {
        take_slots(conduct, |jitter| Slot {
            median: 0.5 * CALL,
            ..slot(CALL, CALL, jitter)
        });
    };
    assert!(matches!(judge(skewed), Some(Suspicion::OwnClock { .. })));
}

#[test]
fn what_is_to_be_adopted_needs_the_coordinators_clock_to_say_so() {
    // The excess varies so much from pair to pair that none is sure.
    let mut seen: Vec<CaseConduct> = (0..6).map(honest).collect();
    for conduct in &mut seen {
        let excess = 0.08 * conduct.process as f64;
        take_slots(conduct, |jitter| {
            slot(0.92 * CALL * (1.0 + excess), 0.92 * CALL, jitter)
        });
        conduct.clock.clear();
        conduct.first.clear();
    }
    let reports: Vec<Block> = (0..6)
        .map(|process| Block::new(process, vec![1.0], vec![0.9]))
        .collect();
    let sample = Sample::from_blocks(&reports).unwrap();
    let criteria = Criteria::default();
    let assessment = compare(&[(SUITE[0].to_owned(), sample)], &criteria, 1, 0).unwrap();
    assert_eq!(assessment.decision, Decision::Adopt);
    let honest: Vec<CaseConduct> = (0..6)
        .map(|process| {
            let mut conduct = honest(process);
            take_slots(&mut conduct, |jitter| slot(0.9 * CALL, 0.9 * CALL, jitter));
            conduct.first = vec![[CALL, 0.9 * CALL]];
            conduct
        })
        .collect();
    let confirmed = Conduct::judge(&[honest], &assessment, &criteria).unwrap();
    assert_eq!(confirmed.suspicion, None);
    let mut conduct = Conduct::judge(&[seen], &assessment, &criteria);
    let suspicion = conduct.as_mut().unwrap().suspicion;
    assert!(
        matches!(suspicion, Some(Suspicion::Unconfirmed { .. })),
        "{suspicion:?}"
    );
}

#[test]
fn results_that_are_remembered_are_told() {
    let remembering = |conduct: &mut CaseConduct| {
        take_slots(conduct, |jitter| slot(CALL / 2.0, CALL / 2.0, jitter));
    };
    assert!(matches!(judge(remembering), Some(Suspicion::Memory { factor }) if factor > 1.5));
}

#[test]
fn work_between_requests_is_told_of_either_side() {
    let working = CpuUse {
        asked: 1.0,
        idle: 0.2,
    };
    let idle = CpuUse {
        asked: 1.0,
        idle: 0.0,
    };
    for (control, candidate) in [(idle, working), (working, idle)] {
        let told = judge(|conduct| conduct.note_cpu(control, candidate));
        let expected = Suspicion::Idle {
            candidate: candidate.idle > 0.0,
            share: 0.2,
        };
        assert_eq!(told, Some(expected));
    }
}

#[test]
fn computing_outside_the_call_is_told_unless_it_is_one_accident() {
    let load = |conduct: &mut CaseConduct| conduct.loading = vec![[1e-3, 3e-3]; 2];
    assert!(matches!(
        judge(load),
        Some(Suspicion::Untimed { after: false, .. })
    ));
    let hand_out = |conduct: &mut CaseConduct| conduct.handing_out = vec![[1e-3, 3e-3]];
    assert!(matches!(
        judge(hand_out),
        Some(Suspicion::Untimed { after: true, .. })
    ));
    let once = |conduct: &mut CaseConduct| {
        if conduct.process == 2 {
            conduct.loading = vec![[1e-3, 9e-3]; 2];
        }
    };
    assert_eq!(judge(once), None);
}

#[test]
fn one_pair_proves_nothing() {
    let mut conduct = honest(0);
    take_slots(&mut conduct, |jitter| slot(CALL, 0.5 * CALL, jitter));
    let undecided = without_interval(&SUITE.map(str::to_owned), &Criteria::default());
    let judged = Conduct::judge(&[vec![conduct]], &undecided, &Criteria::default());
    assert_eq!(judged.unwrap().suspicion, None);
}
