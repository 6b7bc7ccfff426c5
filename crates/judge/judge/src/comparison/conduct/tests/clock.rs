//! Workers whose clock runs slow, and honest ones that look so at first sight.

use super::*;

/// Notes slots whose worker does something for `spent` seconds in addition to its calls, and reports it as work on
/// operands and results or not. The candidate's calls take half as long as the baseline's.
fn take_slots_with_work_between(conduct: &mut CaseConduct, spent: [f64; 2], reported: [f64; 2]) {
    let side = |side: usize, turn: usize| {
        let call = [CALL, CALL / 2.0][side];
        let plain = slot(call, call, turn);
        Slot {
            effort: effort(plain.effort.exchange + spent[side]),
            between: reported[side],
            ..plain
        }
    };
    let slots: Vec<(Arm, Slot)> = (0..12)
        .map(|turn| match turn % 2 {
            0 => (Arm::Baseline, side(0, turn)),
            _ => (Arm::Candidate, side(1, turn)),
        })
        .collect();
    conduct.note_slots(&slots);
    conduct.fresh = lone_calls(CALL, CALL / 2.0);
    conduct.known = lone_calls(CALL, CALL / 2.0);
}

#[test]
fn work_on_operands_that_both_sides_report_is_not_held_against_a_faster_one() {
    let both = |conduct: &mut CaseConduct| take_slots_with_work_between(conduct, [10e-3; 2], [10e-3; 2]);
    assert_eq!(judge(both), None);
    // What neither reports is no accusation either, but it hides a part of the gain from the coordinator's clock.
    let gain = |reported: [f64; 2]| {
        let mut seen: Vec<CaseConduct> = (0..6).map(honest).collect();
        seen.iter_mut()
            .for_each(|conduct| take_slots_with_work_between(conduct, [10e-3; 2], reported));
        let assessment = without_interval(&SUITE.map(str::to_owned), &Criteria::default());
        let conduct = Conduct::judge(&[seen], &assessment, &Criteria::default()).unwrap();
        conduct.by_coordinator.unwrap().estimate
    };
    let [told, untold] = [[10e-3; 2], [0.0; 2]].map(gain);
    assert!((told - 2.0_f64.ln()).abs() < 0.02, "{told}");
    assert!(untold < told - 0.1, "{untold}");
}

#[test]
fn work_on_operands_that_only_one_side_reports_excuses_nothing() {
    let alone = |conduct: &mut CaseConduct| take_slots_with_work_between(conduct, [0.0, 10e-3], [0.0, 10e-3]);
    assert!(judge(alone).is_some());
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
fn a_sum_that_is_right_does_not_hide_calls_that_are_made_short_by_others() {
    // Every third call does the work of three.
    let mut seen: Vec<CaseConduct> = (0..6).map(honest).collect();
    for conduct in &mut seen {
        take_slots(conduct, |jitter| {
            let even = slot(CALL, CALL, jitter);
            let times = (0..21).map(|call| if call % 3 == 0 { 2.8 } else { 0.1 } * even.typical);
            Slot::of(times.collect(), effort(21.0 * even.typical + 150e-6))
        });
    }
    let reports = |process| Block::new(process, vec![CALL], vec![0.1 * CALL]);
    for block in charged(&(0..6).map(reports).collect::<Vec<_>>(), &seen) {
        assert!((block.candidate[0] / CALL - 1.0).abs() < 0.03, "{block:?}");
    }
}

#[test]
fn what_is_to_be_adopted_needs_the_coordinators_clock_to_say_so() {
    // The coordinator's clock sees a slowdown.
    let mut seen: Vec<CaseConduct> = (0..6).map(honest).collect();
    for conduct in &mut seen {
        let excess = 0.08 * conduct.process as f64;
        take_slots(conduct, |jitter| {
            slot(0.92 * CALL * (1.0 + excess), 0.92 * CALL, jitter)
        });
        conduct.clock.clear();
        conduct.unaccounted.clear();
        conduct.fresh.clear();
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
            conduct.fresh = lone_calls(CALL, 0.9 * CALL);
            conduct.known = lone_calls(CALL, 0.9 * CALL);
            conduct
        })
        .collect();
    let confirmed = Conduct::judge(&[honest], &assessment, &criteria).unwrap();
    assert_eq!(confirmed.suspicion, None);
    let suspicion = Conduct::judge(&[seen], &assessment, &criteria).unwrap().suspicion;
    assert!(
        matches!(suspicion, Some(Suspicion::Unconfirmed { .. })),
        "{suspicion:?}"
    );
}

/// What an honest C function looked like on a busy machine: +13.7 % by its reports, and −1 to +78 % by the coordinator's clock.
#[test]
fn a_clock_that_scatters_around_the_reports_accuses_nobody() {
    let mut seen: Vec<CaseConduct> = (0..6).map(honest).collect();
    let calls = |call: f64| lone_calls(CALL, call);
    for conduct in &mut seen {
        // Another load takes half a call from one side or the other.
        let side = conduct.process % 2;
        let late = |of: usize| if of == side { 0.5 * CALL } else { 0.0 };
        let slots: Vec<(Arm, Slot)> = (0..12)
            .map(|turn| match turn % 2 {
                0 => (Arm::Baseline, slot(CALL + late(0), CALL, conduct.process + turn)),
                _ => (
                    Arm::Candidate,
                    slot(0.88 * CALL + late(1), 0.88 * CALL, conduct.process + turn),
                ),
            })
            .collect();
        conduct.note_slots(&slots);
        (conduct.fresh, conduct.known) = (calls(0.88 * CALL), calls(0.88 * CALL));
        conduct.unaccounted.clear();
    }
    let reports: Vec<Block> = (0..6)
        .map(|process| Block::new(process, vec![1.0], vec![0.88]))
        .collect();
    let sample = Sample::from_blocks(&reports).unwrap();
    let assessment = compare(&[(SUITE[0].to_owned(), sample)], &Criteria::default(), 1, 0).unwrap();
    let conduct = Conduct::judge(&[seen], &assessment, &Criteria::default()).unwrap();
    let told = conduct.suspicion.unwrap();
    assert!(
        matches!(told, Suspicion::Unresolved { lower, upper, .. } if lower < 1.0 && upper > 1.13),
        "{told:?}"
    );
    assert!(
        !told.accuses() && told.to_string().contains("busy machine"),
        "{told}"
    );
    assert_eq!(told.advice(true), None);
    // The interval reaches down to that of the coordinator's clock, and decides nothing.
    let (own, widened) = (assessment.suite.clone().unwrap(), conduct.widened(assessment));
    assert_eq!(widened.decision, Decision::Inconclusive);
    let suite = widened.suite.unwrap();
    assert!(
        suite.lower < 0.0 && suite.lower < own.lower && suite.upper == own.upper,
        "{suite:?}"
    );
}

/// Work outside of calls that scatters more than the gain could feign more than the gain, and not just all of it.
#[test]
fn what_could_be_feigned_is_what_is_not_sure_to_remain() {
    let gain = 0.09;
    let remaining = [0.3, -0.1, 0.25, -0.05, 0.1, 0.04];
    let reports: Vec<Block> = (0..6)
        .map(|process| Block::new(process, vec![1.0], vec![(-gain - 1e-3 * process as f64).exp()]))
        .collect();
    let sample = Sample::from_blocks(&reports).unwrap();
    let assessment = compare(&[(SUITE[0].to_owned(), sample)], &Criteria::default(), 1, 0).unwrap();
    assert_eq!(assessment.decision, Decision::Adopt);
    let told = outweighed(&remaining, &assessment).unwrap();
    let least = told.least_gain().unwrap();
    assert!((-0.2..0.0).contains(&least), "{told:?}: {least}");
    assert!(
        matches!(told, Suspicion::Unchecked { own, hidden } if hidden > 1.01 * own),
        "{told:?}"
    );
    assert_eq!(
        outweighed(&[0.08, 0.09, 0.1, 0.09, 0.085, 0.095], &assessment),
        None
    );
}

#[test]
fn time_of_the_host_around_calls_is_accounted_for_within_a_bound() {
    let around = |between: f64| {
        let slot = slot(CALL, CALL, 0);
        let longer = effort(slot.effort.exchange + between);
        Slot {
            between,
            effort: longer,
            ..slot
        }
    };
    let unaccounted = |candidate: f64| {
        let mut conduct = CaseConduct::new(0, false);
        conduct.note_slots(&[(Arm::Baseline, around(2e-3)), (Arm::Candidate, around(candidate))]);
        conduct.unaccounted[0]
    };
    assert!(unaccounted(3e-3).abs() < 1e-9, "half more than the baseline's");
    // Ten times the baseline's: eight times of it are not believed, in twenty calls of a millisecond.
    let beyond = unaccounted(20e-3);
    assert!((beyond - 0.8).abs() < 0.05, "{beyond}");
}

#[test]
fn calls_of_which_the_first_of_each_request_are_slow_are_no_lie() {
    let ramping = |conduct: &mut CaseConduct| {
        take_slots(conduct, |jitter| {
            let even = slot(CALL, CALL, jitter);
            let times = (0..20).map(|call| if call < 6 { 1.5 } else { 1.0 } * even.typical);
            Slot::of(times.collect(), effort(23.0 * even.typical + 150e-6))
        });
    };
    assert_eq!(judge(ramping), None);
}

/// A pair whose candidate takes a twentieth of the baseline's 2 ms and scales its reports by a factor.
fn much_faster(conduct: &mut CaseConduct, factor: f64) {
    let begin = 160e-6;
    let slots: Vec<(Arm, Slot)> = (0..12)
        .map(|turn| match turn % 2 {
            0 => (Arm::Baseline, short(2e-3, 2e-3, begin, conduct.process + turn)),
            _ => (
                Arm::Candidate,
                short(1e-4, factor * 1e-4, begin, conduct.process + turn),
            ),
        })
        .collect();
    conduct.note_slots(&slots);
    let candidate = factor * 1e-4 + begin;
    conduct.fresh = vec![[lone(2e-3 + begin, 0.0), lone(candidate, (1.0 - factor) * 1e-4)]];
    conduct.known = conduct.fresh.clone();
}

#[test]
fn what_is_constant_in_a_slot_does_not_make_a_much_faster_side_a_liar() {
    assert_eq!(judge(|conduct| much_faster(conduct, 1.0)), None);
    let told = judge(|conduct| much_faster(conduct, 0.8));
    assert!(
        matches!(told, Some(Suspicion::OwnClock { factor }) if (1.15..1.3).contains(&factor)),
        "{told:?}"
    );
}

#[test]
fn what_a_candidate_leaves_out_and_is_still_slower_is_no_accusation() {
    let mut seen: Vec<CaseConduct> = (0..6).map(honest).collect();
    for conduct in &mut seen {
        take_slots(conduct, |jitter| slot(2.0 * CALL, 1.5 * CALL, jitter));
    }
    let suspicion = |slowdown: f64| {
        let blocks: Vec<Block> = (0..6)
            .map(|process| Block::new(process, vec![1.0], vec![slowdown + 1e-3 * process as f64]))
            .collect();
        let sample = Sample::from_blocks(&blocks).unwrap();
        let assessment = compare(&[(SUITE[0].to_owned(), sample)], &Criteria::default(), 1, 0).unwrap();
        let judged = Conduct::judge(std::slice::from_ref(&seen), &assessment, &Criteria::default());
        judged.unwrap().suspicion
    };
    assert_eq!(suspicion(1.5), None);
    assert!(matches!(suspicion(1.0), Some(Suspicion::OwnClock { .. })));
}

#[test]
fn a_control_that_scatters_more_than_its_typical_call_shows_does_not_hide_a_lie() {
    let lying = |conduct: &mut CaseConduct| {
        let slots: Vec<(Arm, Slot)> = (0..12)
            .map(|turn| match turn % 2 {
                0 => {
                    let even = slot(CALL, CALL, conduct.process + turn);
                    let times = (0..20).map(|call| if call < 10 { 1.2 } else { 1.0 } * even.typical);
                    let scattered = effort(22.0 * even.typical + 150e-6);
                    (Arm::Baseline, Slot::of(times.collect(), scattered))
                }
                _ => (
                    Arm::Candidate,
                    slot(1.1 * CALL, 0.9 * CALL, conduct.process + turn),
                ),
            })
            .collect();
        conduct.note_slots(&slots);
    };
    assert!(matches!(judge(lying), Some(Suspicion::OwnClock { factor }) if factor > 1.05));
}

/// The suspicion after six pairs whose reports show an undecided speed-up of about 6 %. Messages around the candidate's
/// slots take this much longer than around the baseline's, pair by pair.
fn judge_undecided_gain(late: impl Fn(usize) -> f64) -> Option<Suspicion> {
    let effects = [0.9, 1.02, 0.88, 0.99, 0.9, 0.95];
    let reports = effects.iter().enumerate();
    let reports: Vec<Block> = reports
        .map(|(process, effect)| Block::new(process, vec![1.0], vec![*effect]))
        .collect();
    let sample = Sample::from_blocks(&reports).unwrap();
    let assessment = compare(&[(SUITE[0].to_owned(), sample)], &Criteria::default(), 1, 0).unwrap();
    assert_eq!(assessment.decision, Decision::Inconclusive);
    let mut seen: Vec<CaseConduct> = (0..6).map(honest).collect();
    for conduct in &mut seen {
        let process = conduct.process;
        take_slots(conduct, |jitter| {
            let mut slot = slot(CALL, CALL, jitter);
            slot.effort.exchange += late(process);
            slot
        });
    }
    Conduct::judge(&[seen], &assessment, &Criteria::default())
        .unwrap()
        .suspicion
}

#[test]
fn a_gain_that_nobody_can_check_is_neither_believed_nor_called_a_lie() {
    assert_eq!(judge_undecided_gain(|_| 0.0), None);
    // Slots of 20 ms that all end 4 ms late in only one pair are still checked.
    assert_eq!(
        judge_undecided_gain(|process| 4e-3 * f64::from(process == 3)),
        None
    );
    let suspicion = judge_undecided_gain(|process| 4e-3 * f64::from(process % 2 == 0)).unwrap();
    assert!(
        matches!(suspicion, Suspicion::Unchecked { .. }) && !suspicion.accuses(),
        "{suspicion:?}"
    );
    assert!(
        suspicion.to_string().contains("cannot be checked closely enough"),
        "{suspicion}"
    );
}
