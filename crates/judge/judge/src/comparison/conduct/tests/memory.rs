//! Workers that remember results, and honest ones that are slower on new values.

use super::*;

#[test]
fn results_that_are_remembered_are_told() {
    let remembering = |conduct: &mut CaseConduct| {
        take_slots(conduct, |jitter| slot(CALL / 2.0, CALL / 2.0, jitter));
        conduct.known = lone_calls(CALL, CALL / 2.0);
    };
    assert!(matches!(judge(remembering), Some(Suspicion::Memory { factor }) if factor > 1.5));
}

#[test]
fn results_that_are_remembered_only_in_slots_are_told() {
    let remembering = |conduct: &mut CaseConduct| {
        take_slots(conduct, |jitter| slot(CALL / 2.0, CALL / 2.0, jitter));
        conduct.in_slots = vec![[1.0, 2.0]; 3];
    };
    assert!(matches!(judge(remembering), Some(Suspicion::Memory { factor }) if factor > 1.5));
    let honest = |conduct: &mut CaseConduct| conduct.in_slots = vec![[1.2, 1.22]; 3];
    assert_eq!(judge(honest), None);
}

#[test]
fn a_call_on_new_values_that_is_reported_too_short_is_told_by_the_coordinators_clock() {
    let lying = |conduct: &mut CaseConduct| {
        take_slots(conduct, |jitter| slot(CALL / 2.0, CALL / 2.0, jitter));
        conduct.fresh = vec![[lone(CALL, 0.0), lone(CALL / 2.0, CALL / 2.0)]; 4];
        conduct.known = lone_calls(CALL, CALL / 2.0);
    };
    assert!(matches!(judge(lying), Some(Suspicion::Memory { factor }) if factor > 1.5));
}

#[test]
fn a_pair_without_a_lone_call_on_new_values_shows_memory_in_no_case() {
    // A load of one new set deals it to a lone call or to a slot, as chance has it.
    let remembers = |process| {
        let mut conduct = honest(process);
        conduct.known = lone_calls(CALL, 0.2 * CALL);
        conduct
    };
    let mut cases: Vec<Vec<CaseConduct>> = (0..2).map(|_| (0..6).map(remembers).collect()).collect();
    cases[1][5].fresh.clear();
    let names = ["one", "other"].map(str::to_owned);
    let assessment = without_interval(&names, &Criteria::default());
    let conduct = Conduct::judge(&cases, &assessment, &Criteria::default()).unwrap();
    assert!(
        matches!(conduct.suspicion, Some(Suspicion::Memory { .. })),
        "{:?}",
        conduct.suspicion
    );
}

#[test]
fn slow_first_calls_of_each_request_are_no_memory() {
    let mut conduct = honest(0);
    let ramp = |call: usize| CALL * if call < 6 { 1.5 } else { 1.0 };
    let slot = || Slot::of((0..20).map(ramp).collect(), effort(23.0 * CALL));
    let slots: Vec<(Arm, Slot)> = [Arm::Baseline, Arm::Candidate, Arm::Candidate, Arm::Baseline]
        .map(|arm| (arm, slot()))
        .to_vec();
    conduct.note_fresh_in_slots(&[(0, 2), (1, 9)], &slots);
    assert_eq!(conduct.in_slots, [[1.0; 2]; 2]);
}

#[test]
fn a_trend_is_no_memory() {
    // Calls become faster from one to the next, on new and on known values alike.
    let warming = |conduct: &mut CaseConduct| {
        let process = conduct.process;
        let call = |turn: usize| CALL * (1.0 + 2.0 * (-((turn + process) as f64) / 3.0).exp());
        conduct.fresh = [0, 2, 5, 6]
            .map(|turn| [lone(CALL, 0.0), lone(call(turn), 0.0)])
            .to_vec();
        conduct.known = [1, 3, 4, 7]
            .map(|turn| [lone(CALL, 0.0), lone(call(turn), 0.0)])
            .to_vec();
    };
    let told = judge(warming);
    assert!(told.is_none(), "{told:?}");
}

/// Calls of 18 and 13 µs, which take 20 µs more when they are alone. On new values they take `fresh` more than on known
/// ones; `late` is the extra message time of the candidate's lone calls over the baseline's.
fn microseconds(conduct: &mut CaseConduct, [baseline, candidate]: [f64; 2], late: impl Fn(usize) -> f64) {
    let process = conduct.process;
    let slots: Vec<(Arm, Slot)> = (0..12)
        .map(|turn| match turn % 2 {
            0 => (Arm::Baseline, short(18e-6, 18e-6, 20e-6, process + turn)),
            _ => (Arm::Candidate, short(13e-6, 13e-6, 20e-6, process + turn)),
        })
        .collect();
    conduct.note_slots(&slots);
    let calls = |baseline: f64, candidate: f64, odd: usize| {
        let call = |set: usize| {
            [
                lone(38e-6 + baseline, 0.0),
                lone(33e-6 + candidate, late(process + odd + set)),
            ]
        };
        (0..8).map(call).collect()
    };
    conduct.fresh = calls(baseline, candidate, 0);
    conduct.known = calls(0.0, 0.0, 3);
}

#[test]
fn what_new_values_cost_the_control_is_no_memory_of_the_candidates() {
    let honest = |conduct: &mut CaseConduct| microseconds(conduct, [0.0; 2], |_| 0.0);
    assert_eq!(judge(honest), None);
    let cold = |conduct: &mut CaseConduct| microseconds(conduct, [10e-6; 2], |_| 0.0);
    assert_eq!(judge(cold), None);
    let messages_stray = |conduct: &mut CaseConduct| {
        microseconds(conduct, [0.0; 2], |odd| 40e-6 * ((odd * 7 % 5) as f64 - 2.0));
    };
    assert_eq!(judge(messages_stray), None);
    let remembering = |conduct: &mut CaseConduct| microseconds(conduct, [0.0, 10e-6], |_| 0.0);
    assert!(matches!(judge(remembering), Some(Suspicion::Memory { factor }) if factor > 1.25));
}

#[test]
fn kernels_that_find_new_values_a_little_colder_than_the_control_remember_nothing() {
    let colder = |conduct: &mut CaseConduct| microseconds(conduct, [100e-6, 104e-6], |_| 0.0);
    assert_eq!(judge(colder), None);
    let remembering = |conduct: &mut CaseConduct| microseconds(conduct, [100e-6, 140e-6], |_| 0.0);
    assert!(matches!(judge(remembering), Some(Suspicion::Memory { factor }) if factor > 1.3));
}

/// The suspicion of a candidate that is twice as fast in slots, in two pairs: at the first look of a short comparison.
fn first_look(change: impl Fn(usize, &mut CaseConduct)) -> Option<Suspicion> {
    let pair = |process| {
        let mut conduct = honest(process);
        take_slots(&mut conduct, |jitter| slot(CALL / 2.0, CALL / 2.0, jitter));
        change(process, &mut conduct);
        conduct
    };
    let conducts: Vec<CaseConduct> = (0..2).map(pair).collect();
    let blocks = (0..2).map(|process| Block::new(process, vec![CALL; 4], vec![CALL / 2.0; 4]));
    let sample = Sample::from_blocks(&blocks.collect::<Vec<_>>()).unwrap();
    let mut assessment = compare(&[("case".to_owned(), sample)], &Criteria::default(), 1, 0).unwrap();
    assessment.decision = Decision::Adopt;
    Conduct::judge(&[conducts], &assessment, &Criteria::default())
        .unwrap()
        .suspicion
}

#[test]
fn a_gain_waits_for_calls_on_new_values() {
    let alike = |_: usize, conduct: &mut CaseConduct| {
        conduct.fresh = lone_calls(CALL, CALL / 2.0);
        conduct.known = lone_calls(CALL, CALL / 2.0);
    };
    assert_eq!(first_look(alike), None);
    // One pair shows it and the other does not, which is too little for an accusation.
    let remembers = |process: usize, conduct: &mut CaseConduct| {
        alike(process, conduct);
        if process == 0 {
            conduct.fresh = lone_calls(CALL, 1.5 * CALL);
        }
    };
    let told = first_look(remembers);
    assert!(
        matches!(told, Some(Suspicion::Unfamiliar { memory: Some(memory), .. }) if memory > 1.5),
        "{told:?}"
    );
    assert!(!told.unwrap().accuses());
    let unseen = |_: usize, conduct: &mut CaseConduct| {
        conduct.fresh.clear();
        conduct.in_slots.clear();
    };
    assert!(matches!(
        first_look(unseen),
        Some(Suspicion::Unfamiliar { memory: None, .. })
    ));
}
