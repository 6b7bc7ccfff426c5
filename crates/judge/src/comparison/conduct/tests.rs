//! How honest and dishonest workers look from outside.

use gauntlet_stats::{Arm, Assessment, Decision, compare, without_interval};

use super::*;
use crate::comparison::pair::Slot;
use crate::comparison::side::{CpuUse, Effort};

const CALL: f64 = 1e-3;
const SUITE: [&str; 1] = ["case"];

/// A slot of twenty calls with some noise; `reported` is the time that the worker states for each call.
fn slot(call: f64, reported: f64, jitter: usize) -> Slot {
    let noise = 1.0 + 0.01 * ((jitter * 7 % 5) as f64 - 2.0);
    Slot {
        calls: 20,
        median: reported * noise,
        sum: 20.0 * reported * noise,
        first: reported * noise,
        effort: effort(20.0 * call * noise + 150e-6),
        clock: None,
        between: 0.0,
    }
}

/// A lone call whose messages take `late` seconds longer than usual.
fn lone(call: f64, late: f64) -> Slot {
    Slot {
        calls: 1,
        median: call,
        sum: call,
        first: call,
        effort: effort(call + 150e-6 + late),
        clock: None,
        between: 0.0,
    }
}

fn effort(seconds: f64) -> Effort {
    Effort {
        exchange: seconds,
        cpu: Some(seconds),
    }
}

fn sides<T>(baseline: T, candidate: T) -> [(Arm, T); 2] {
    [(Arm::Baseline, baseline), (Arm::Candidate, candidate)]
}

/// An honest pair whose candidate is no faster.
fn honest(process: usize) -> CaseConduct {
    let mut conduct = CaseConduct::new(process);
    conduct.note_first_calls(&sides(lone(CALL, 0.0), lone(CALL, 0.0)));
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
fn a_true_speedup_is_not_suspected() {
    let faster = |conduct: &mut CaseConduct| {
        take_slots(conduct, |jitter| slot(CALL / 3.0, CALL / 3.0, jitter));
        conduct.first = vec![[lone(CALL, 0.0), lone(CALL / 3.0, 0.0)]];
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
    conduct.first = vec![[lone(CALL, 0.0), lone(CALL / 2.0, 0.0)]];
}

#[test]
fn work_on_operands_that_both_sides_report_is_not_held_against_a_faster_one() {
    let both = |conduct: &mut CaseConduct| take_slots_with_work_between(conduct, [10e-3; 2], [10e-3; 2]);
    assert_eq!(judge(both), None);
    let unreported = |conduct: &mut CaseConduct| take_slots_with_work_between(conduct, [10e-3; 2], [0.0; 2]);
    assert!(matches!(judge(unreported), Some(Suspicion::OwnClock { .. })));
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
    // The excess varies so much between pairs that no bound is certain.
    let mut seen: Vec<CaseConduct> = (0..6).map(honest).collect();
    for conduct in &mut seen {
        let excess = 0.08 * conduct.process as f64;
        take_slots(conduct, |jitter| {
            slot(0.92 * CALL * (1.0 + excess), 0.92 * CALL, jitter)
        });
        conduct.clock.clear();
        conduct.unaccounted.clear();
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
            conduct.first = vec![[lone(CALL, 0.0), lone(0.9 * CALL, 0.0)]];
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

/// A slot of microsecond calls. The first call takes `begin` longer, and message times are irregular.
fn short(call: f64, reported: f64, begin: f64, jitter: usize) -> Slot {
    const CALLS: usize = 32;
    let odd = 5e-6 * ((jitter * 7 % 5) as f64 - 2.0);
    let sum = CALLS as f64 * reported + begin;
    Slot {
        calls: CALLS,
        median: reported,
        sum,
        first: reported + begin,
        effort: effort(sum + CALLS as f64 * (call - reported) + 150e-6 + odd),
        clock: None,
        between: 0.0,
    }
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
    conduct.first = vec![[lone(2e-3 + begin, 0.0), lone(candidate, (1.0 - factor) * 1e-4)]];
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
fn a_control_that_scatters_more_than_its_median_shows_does_not_hide_a_lie() {
    let lying = |conduct: &mut CaseConduct| {
        let slots: Vec<(Arm, Slot)> = (0..12)
            .map(|turn| match turn % 2 {
                0 => {
                    let mut baseline = slot(1.1 * CALL, 1.1 * CALL, conduct.process + turn);
                    (baseline.median, baseline.first) = (baseline.median / 1.1, baseline.first / 1.1);
                    (Arm::Baseline, baseline)
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

/// Calls of 18 and 13 µs, which take 20 µs more when they are alone; `late` is the extra message time of the
/// candidate's lone calls over the baseline's.
fn microseconds(conduct: &mut CaseConduct, alone: f64, late: impl Fn(usize) -> f64) {
    let process = conduct.process;
    let slots: Vec<(Arm, Slot)> = (0..12)
        .map(|turn| match turn % 2 {
            0 => (Arm::Baseline, short(18e-6, 18e-6, 20e-6, process + turn)),
            _ => (Arm::Candidate, short(13e-6, 13e-6, 20e-6, process + turn)),
        })
        .collect();
    conduct.note_slots(&slots);
    conduct.first = (0..8)
        .map(|set| [lone(18e-6 + 20e-6, 0.0), lone(13e-6 + alone, late(process + set))])
        .collect();
}

#[test]
fn what_a_lone_call_costs_the_control_is_no_memory_of_the_candidates() {
    let honest = |conduct: &mut CaseConduct| microseconds(conduct, 20e-6, |_| 0.0);
    assert_eq!(judge(honest), None);
    let messages_stray = |conduct: &mut CaseConduct| {
        microseconds(conduct, 20e-6, |odd| 40e-6 * ((odd * 7 % 5) as f64 - 2.0));
    };
    assert_eq!(judge(messages_stray), None);
    let remembering = |conduct: &mut CaseConduct| microseconds(conduct, 20e-6 + 10e-6, |_| 0.0);
    assert!(matches!(judge(remembering), Some(Suspicion::Memory { factor }) if factor > 1.5));
}

#[test]
fn kernels_whose_lone_calls_cost_a_little_more_than_the_controls_remember_nothing() {
    let lone_calls_of = |beyond: f64| {
        move |conduct: &mut CaseConduct| {
            microseconds(conduct, 20e-6, |_| 0.0);
            let candidate = 13e-6 + 180e-6 + beyond;
            conduct.first = vec![[lone(18e-6 + 180e-6, 0.0), lone(candidate, 0.0)]; 8];
        }
    };
    assert_eq!(judge(lone_calls_of(4e-6)), None);
    assert!(matches!(
        judge(lone_calls_of(40e-6)),
        Some(Suspicion::Memory { factor }) if factor > 1.5
    ));
}

#[test]
fn a_first_call_that_is_reported_too_short_is_told_by_the_coordinators_clock() {
    let lying = |conduct: &mut CaseConduct| {
        take_slots(conduct, |jitter| slot(CALL / 2.0, CALL / 2.0, jitter));
        conduct.first = vec![[lone(CALL, 0.0), lone(CALL / 2.0, CALL / 2.0)]];
    };
    assert!(matches!(judge(lying), Some(Suspicion::Memory { factor }) if factor > 1.5));
}

#[test]
fn a_slower_candidate_whose_calls_scatter_as_the_controls_is_not_suspected() {
    let slower = |conduct: &mut CaseConduct| {
        let scattered = |call: f64, jitter: usize| Slot {
            median: 0.95 * call,
            ..slot(call, call, jitter)
        };
        let slots: Vec<(Arm, Slot)> = (0..12)
            .map(|turn| match turn % 2 {
                0 => (Arm::Baseline, scattered(CALL, conduct.process + turn)),
                _ => (Arm::Candidate, scattered(5.0 * CALL, conduct.process + turn)),
            })
            .collect();
        conduct.note_slots(&slots);
        conduct.first = vec![[lone(1.2 * CALL, 0.0), lone(6.0 * CALL, 0.0)]];
    };
    assert_eq!(judge(slower), None);
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
    for (baseline, candidate) in [(idle, working), (working, idle)] {
        let told = judge(|conduct| conduct.note_cpu(baseline, candidate));
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
    // A candidate that is slower in spite of it gains nothing by it.
    assert_eq!(judge_decided(Decision::Regression, load), None);
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
    Slot {
        calls: reported.len(),
        median: median(&reported),
        sum: reported.iter().sum(),
        first: reported[0],
        effort: effort(calls.iter().sum::<f64>() + messages),
        clock: None,
        between: 0.0,
    }
}

/// Four pairs under such a load, and their judgement.
fn judge_beside_a_neighbour(seed: u64, report: fn(&[f64]) -> Vec<f64>) -> Conduct {
    let mut dice = Dice(seed);
    let mut reports = Vec::new();
    let seen: Vec<CaseConduct> = (0..4)
        .map(|process| {
            let mut conduct = CaseConduct::new(process);
            let slots: Vec<(Arm, Slot)> = (0..12)
                .map(|turn| match turn % 2 {
                    0 => (Arm::Baseline, beside_a_neighbour(&mut dice, <[f64]>::to_vec)),
                    _ => (Arm::Candidate, beside_a_neighbour(&mut dice, report)),
                })
                .collect();
            let medians = |wanted| {
                let own = slots.iter().filter(|(arm, _)| *arm == wanted);
                own.map(|(_, slot)| slot.median).collect()
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
