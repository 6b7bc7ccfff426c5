//! How honest and dishonest workers look from outside.

use gauntlet_stats::{Arm, Assessment, Decision, compare, without_interval};

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
fn lone(call: f64, late: f64) -> Slot {
    Slot::of(vec![call], effort(call + 150e-6 + late))
}

/// Lone calls of both sides.
fn lone_calls(baseline: f64, candidate: f64) -> Vec<[Slot; 2]> {
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
    judge_decided(Decision::Inconclusive, tamper)
}

/// The same, where the reported times came to `decision`.
fn judge_decided(decision: Decision, tamper: impl Fn(&mut CaseConduct)) -> Option<Suspicion> {
    let mut seen: Vec<CaseConduct> = (0..6).map(honest).collect();
    seen.iter_mut().for_each(tamper);
    let assessment = Assessment {
        decision,
        ..without_interval(&SUITE.map(str::to_owned), &Criteria::default())
    };
    Conduct::judge(&[seen], &assessment, &Criteria::default())
        .unwrap()
        .suspicion
}

#[test]
fn honest_workers_are_not_suspected() {
    assert_eq!(judge(|_| ()), None);
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
fn a_true_speedup_is_not_suspected() {
    let faster = |conduct: &mut CaseConduct| {
        take_slots(conduct, |jitter| slot(CALL / 3.0, CALL / 3.0, jitter));
        conduct.fresh = lone_calls(CALL, CALL / 3.0);
        conduct.known = lone_calls(CALL, CALL / 3.0);
    };
    assert_eq!(judge(faster), None);
}

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
    // The excess varies so much between pairs that no bound is certain.
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
        conduct.known = lone_calls(CALL, CALL / 2.0);
    };
    assert!(matches!(judge(remembering), Some(Suspicion::Memory { factor }) if factor > 1.5));
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

/// Reproducible pseudo-random numbers, uniform between 0 and 1.
struct Dice(u64);

impl Dice {
    fn throw(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponentially distributed with this mean.
    fn wait(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.throw()).ln()
    }
}

/// A slot of forty half-millisecond calls on a machine where another load occasionally takes the processor for some
/// milliseconds, during calls and during the messages between them.
fn beside_a_neighbour(dice: &mut Dice, report: fn(&[f64]) -> Vec<f64>) -> Slot {
    let taken = |dice: &mut Dice| if dice.throw() < 0.1 { dice.wait(4e-3) } else { 0.0 };
    let calls: Vec<f64> = (0..40)
        .map(|_| 0.5e-3 * (1.0 + 0.05 * dice.throw()) + taken(dice))
        .collect();
    let messages = 150e-6 + taken(dice) + taken(dice);
    let reported = report(&calls);
    Slot::of(reported, effort(calls.iter().sum::<f64>() + messages))
}

/// Four pairs under such a load, and their judgement.
fn judge_beside_a_neighbour(seed: u64, report: fn(&[f64]) -> Vec<f64>) -> Conduct {
    let mut dice = Dice(seed);
    let mut reports = Vec::new();
    let seen: Vec<CaseConduct> = (0..4)
        .map(|process| {
            let mut conduct = CaseConduct::new(process, false);
            let slots: Vec<(Arm, Slot)> = (0..12)
                .map(|turn| match turn % 2 {
                    0 => (Arm::Baseline, beside_a_neighbour(&mut dice, <[f64]>::to_vec)),
                    _ => (Arm::Candidate, beside_a_neighbour(&mut dice, report)),
                })
                .collect();
            let medians = |wanted| {
                let own = slots.iter().filter(|(arm, _)| *arm == wanted);
                own.map(|(_, slot)| slot.typical).collect()
            };
            reports.push(Block::new(
                process,
                medians(Arm::Baseline),
                medians(Arm::Candidate),
            ));
            conduct.note_slots(&slots);
            conduct
        })
        .collect();
    let sample = Sample::from_blocks(&reports).unwrap();
    let assessment = compare(&[(SUITE[0].to_owned(), sample)], &Criteria::default(), 1, 0).unwrap();
    Conduct::judge(&[seen], &assessment, &Criteria::default()).unwrap()
}

fn best_of(calls: &[f64]) -> Vec<f64> {
    let best = calls.iter().copied().fold(f64::INFINITY, f64::min);
    vec![best; calls.len()]
}

#[test]
fn a_noisy_neighbour_hides_no_worker_that_reports_its_best_and_accuses_no_honest_one() {
    for seed in 0..50 {
        let honest = judge_beside_a_neighbour(seed, <[f64]>::to_vec);
        assert!(
            honest.suspicion.is_none_or(|suspicion| !suspicion.accuses()),
            "{seed}: {honest:?}"
        );
        let cheat = judge_beside_a_neighbour(seed, best_of);
        assert!(
            matches!(cheat.suspicion, Some(Suspicion::OwnClock { factor }) if factor > 1.2),
            "{seed}: {cheat:?}"
        );
    }
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
    assert!(suspicion.to_string().contains("too busy"), "{suspicion}");
}

#[test]
fn one_pair_proves_nothing() {
    let mut conduct = honest(0);
    take_slots(&mut conduct, |jitter| slot(CALL, 0.5 * CALL, jitter));
    let undecided = without_interval(&SUITE.map(str::to_owned), &Criteria::default());
    let judged = Conduct::judge(&[vec![conduct]], &undecided, &Criteria::default());
    assert_eq!(judged.unwrap().suspicion, None);
}
