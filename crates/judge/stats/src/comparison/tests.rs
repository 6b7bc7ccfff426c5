use super::*;
use crate::ClockFinding;

fn declared(pairs: &[(f64, f64)], relative_uncertainty: f64) -> Assessment {
    let pair = |(baseline, candidate): &(f64, f64)| {
        let name = format!("{baseline} to {candidate}");
        (
            name,
            DeclaredPair {
                baseline: *baseline,
                candidate: *candidate,
                relative_uncertainty,
            },
        )
    };
    compare_declared(&pairs.iter().map(pair).collect::<Vec<_>>(), &Criteria::default()).unwrap()
}

#[test]
fn a_small_recorded_gain_is_inconclusive() {
    let gain = declared(&[(100.7, 100.0)], 0.01);
    assert_eq!(
        (gain.decision, &gain.ground),
        (Decision::Inconclusive, &Ground::SuiteInterval)
    );
    assert!((gain.smallest_visible_effect.unwrap() - (1.01 / 0.99 - 1.0)).abs() < 1e-12);
    assert_eq!(gain.problems[0].adjusted_p_value, None);

    let bare = without_interval(&["sdpa".to_owned()], &Criteria::default());
    assert_eq!(
        (bare.decision, &bare.ground),
        (Decision::Inconclusive, &Ground::NoInterval)
    );
    assert_eq!(bare.problems[0].floor, FloorFinding::Unknown);
    assert_eq!(
        (bare.claim_refuted(0.5), bare.smallest_visible_effect),
        (None, None)
    );
}

#[test]
fn recorded_floors_are_broken_held_or_in_doubt() {
    let suite = declared(&[(2.0, 1.0), (0.8, 1.0), (0.95, 1.0), (1.0, 1.0)], 0.01);
    let floors: Vec<FloorFinding> = suite.problems.iter().map(|problem| problem.floor).collect();
    use FloorFinding::{Broken, Held, PossiblyBroken};
    assert_eq!(floors, [Held, Broken, PossiblyBroken, Held]);
    assert_eq!(suite.decision, Decision::Regression);
    let problems = vec!["0.8 to 1".to_owned()];
    assert_eq!(
        suite.ground,
        Ground::BrokenFloor {
            problems,
            otherwise: Decision::Adopt
        }
    );
}

#[test]
fn predictions_are_decided_by_the_models_error() {
    let pair = |candidate, deviation| {
        let pair = PredictedPair {
            baseline: 2.0,
            candidate,
            baseline_deviation: deviation,
            candidate_deviation: deviation,
        };
        (format!("2 to {candidate}"), pair)
    };
    let decided = |pairs: &[(String, PredictedPair)]| compare_predicted(pairs, &Criteria::default()).unwrap();
    assert_eq!(decided(&[pair(1.0, 0.01)]).decision, Decision::Adopt);
    assert_eq!(decided(&[pair(1.0, 0.5)]).decision, Decision::Inconclusive);
    assert_eq!(decided(&[pair(2.5, 0.01)]).decision, Decision::Regression);
    let hidden = decided(&[pair(1.0, 0.01), pair(2.5, 0.01)]);
    assert_eq!(
        hidden.decision,
        Decision::Regression,
        "a good mean hides a bad case"
    );
    assert!(hidden.suite.unwrap().origin.is_predicted());
}

#[test]
fn a_broken_floor_leaves_other_decisions_alone() {
    let slower = declared(&[(0.5, 1.0), (1.0, 1.0)], 0.01);
    assert_eq!(
        (slower.decision, slower.ground),
        (Decision::Regression, Ground::SuiteInterval)
    );
    let open = declared(&[(0.8, 1.0), (1.25, 1.0)], 0.02);
    assert_eq!(
        (open.decision, open.ground),
        (Decision::Inconclusive, Ground::SuiteInterval)
    );
    assert_eq!(open.problems[0].floor, FloorFinding::Broken);
}

/// Forty calls a side, the candidate's shorter by this factor, with a ripple of 1 %.
fn calls(factor: f64) -> Vec<(String, Calls)> {
    let times = |scale: f64| {
        (0..40)
            .map(|call| scale * (1.0 + 0.01 * f64::from(call % 3)))
            .collect()
    };
    let calls = Calls {
        baseline: times(factor),
        candidate: times(1.0),
    };
    vec![("one".to_owned(), calls)]
}

#[test]
fn one_process_a_side_decides_nothing_however_great_the_difference() {
    let criteria = Criteria::default();
    let twice = compare_calls(&calls(2.0), &criteria, None, 1).unwrap();
    assert_eq!(twice.decision, Decision::Inconclusive);
    let Ground::Design { otherwise, .. } = twice.ground else {
        panic!("{:?}", twice.ground);
    };
    assert_eq!(otherwise, Decision::Adopt);
    let interval = twice.suite.unwrap();
    assert!((interval.estimate - 2f64.ln()).abs() < 0.01);
    assert_eq!(
        interval.origin,
        Origin::Calls {
            confidence: 0.95,
            batches: 10
        }
    );
    assert_eq!((twice.needed_processes, twice.sign_flip_p_value), (None, None));
}

#[test]
fn a_declared_bound_between_processes_widens_the_interval_and_decides() {
    let criteria = Criteria::default();
    let judged = |factor, bound| compare_calls(&calls(factor), &criteria, Some(bound), 1).unwrap();
    let wide = judged(2.0, 0.1);
    let alone = compare_calls(&calls(2.0), &criteria, None, 1)
        .unwrap()
        .suite
        .unwrap();
    let interval = wide.suite.as_ref().unwrap();
    assert_eq!(
        (wide.decision, &interval.origin),
        (Decision::Adopt, &Origin::Declared)
    );
    assert!((alone.lower - interval.lower - (1.1f64 / 0.9).ln()).abs() < 1e-12);
    assert_eq!(judged(1.05, 0.1).decision, Decision::Inconclusive);
    assert_eq!(judged(0.5, 0.1).decision, Decision::Regression);
    assert!(compare_calls(&calls(2.0), &criteria, Some(1.0), 1).is_err());
}

#[test]
fn single_calls_have_no_interval() {
    let single = Calls {
        baseline: vec![2.0],
        candidate: vec![1.0; 9],
    };
    let found = compare_calls(&[("one".to_owned(), single)], &Criteria::default(), Some(0.1), 1).unwrap();
    assert_eq!(
        (found.decision, found.ground),
        (Decision::Inconclusive, Ground::NoInterval)
    );
}

#[test]
fn unplanned_looks_and_wrong_criteria_are_refused() {
    let criteria = Criteria {
        looks: 2,
        ..Criteria::default()
    };
    assert_eq!(
        compare(&[], &criteria, 3, 0),
        Err(Error::UnplannedLook { look: 3, looks: 2 })
    );
    assert_eq!(compare(&[], &criteria, 1, 0), Err(Error::EmptySuite));
    let criteria = Criteria {
        target: 0.0,
        ..Criteria::default()
    };
    assert!(matches!(
        compare_declared(&[], &criteria),
        Err(Error::Criterion { name: "target", .. })
    ));
}

/// A comparison of process effects, with the candidate's clock as a multiple of the baseline's if logged.
fn measured(effects: &[f64], clock: Option<f64>) -> Assessment {
    let clocks = |factor: f64| clock.map(|_| vec![1000.0 * factor]).unwrap_or_default();
    let block = |(process, effect): (usize, &f64)| Block {
        baseline_clocks: clocks(1.0),
        candidate_clocks: clocks(clock.unwrap_or_default()),
        ..Block::new(process, vec![effect.exp()], vec![1.0])
    };
    let blocks: Vec<Block> = effects.iter().enumerate().map(block).collect();
    let problems = [("one".to_owned(), Sample::from_blocks(&blocks).unwrap())];
    compare(&problems, &Criteria::default(), 1, 1).unwrap()
}

#[test]
fn a_case_below_the_floor_is_no_valid_negative_though_another_makes_up_for_it() {
    let even = declared(&[(1.0, 1.08), (1.08, 1.0)], 0.001);
    assert_eq!(even.decision, Decision::Regression);
    let ground = Ground::BrokenFloor {
        problems: vec!["1 to 1.08".to_owned()],
        otherwise: Decision::ValidNegative,
    };
    assert_eq!(even.ground, ground);
}

#[test]
fn assessments_survive_a_file() {
    let clocked = measured(&[0.051, 0.048, 0.052, 0.05], Some(1.04));
    assert!(clocked.clock.is_some());
    for assessment in [declared(&[(2.0, 1.0), (0.8, 1.0)], 0.01), clocked] {
        let text = toml::to_string(&assessment).unwrap();
        assert_eq!(toml::from_str::<Assessment>(&text).unwrap(), assessment);
    }
    // Records written before clocks and sign flips existed can still be read.
    let bare = toml::to_string(&declared(&[(2.0, 1.0)], 0.01)).unwrap();
    assert!(!bare.contains("clock") && !bare.contains("sign_flip"), "{bare}");
}

#[test]
fn the_second_opinion_is_given_and_decides_nothing() {
    let faster = measured(&[0.051, 0.048, 0.052, 0.05], None);
    assert_eq!(
        (faster.decision, faster.sign_flip_p_value),
        (Decision::Adopt, Some(0.125))
    );
    assert_eq!(faster.sign_flip_agrees(), Some(true));
    assert_eq!((faster.needed_processes, &faster.clock), (None, &None));

    // All of one sign, so the smallest p-value there is, but too spread for the interval.
    let open = measured(&[0.001, 0.12, 0.002, 0.03, 0.001, 0.06], None);
    assert_eq!(
        (open.decision, open.sign_flip_p_value),
        (Decision::Inconclusive, Some(2.0 / 64.0))
    );
    assert_eq!(open.sign_flip_agrees(), None);
    assert!(open.needed_processes.unwrap() > 6);

    let declared = declared(&[(2.0, 1.0)], 0.01);
    assert_eq!(declared.sign_flip_agrees(), None);
}

#[test]
fn a_faster_clock_is_told_and_time_decides() {
    let effects = [0.051, 0.048, 0.052, 0.05];
    let same = measured(&effects, Some(1.0));
    assert_eq!(same.clock.unwrap().finding, ClockFinding::Confirmed);
    let faster_clock = measured(&effects, Some(1.05));
    assert_eq!(faster_clock.decision, Decision::Adopt);
    let check = faster_clock.clock.unwrap();
    assert_eq!(check.finding, ClockFinding::ExplainedByClock);
    assert!((check.clock - 1.05f64.ln()).abs() < 1e-12);
}
