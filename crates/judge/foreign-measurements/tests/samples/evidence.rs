//! Times that look like evidence and are none.

use std::fmt::Write;

use gauntlet_foreign_measurements::{Compared, Measurements, compare, read, read_both};
use gauntlet_stats::{Criteria, Decision, Ground};

use crate::{file, judged, measured, times};

/// A CSV file of processes, each with its calls.
fn csv(unit: &str, processes: &[Vec<f64>]) -> Measurements {
    let mut text = format!("process,{unit}\n");
    for (process, calls) in processes.iter().enumerate() {
        for time in calls {
            writeln!(text, "{process},{time}").unwrap();
        }
    }
    measured("a.csv", &text)
}

/// A CSV file of pairs.
fn pairs(baseline: &[f64], candidate: &[f64]) -> [Measurements; 2] {
    let mut text = "baseline,candidate\n".to_owned();
    for (one, other) in baseline.iter().zip(candidate) {
        writeln!(text, "{one},{other}").unwrap();
    }
    let (_folder, path) = file("both.csv", text);
    read_both(&path).unwrap()
}

#[track_caller]
fn undecided(found: &Compared, otherwise: Decision, phrase: &str) {
    let assessment = &found.comparison.assessment;
    assert_eq!(assessment.decision, Decision::Inconclusive);
    let (reason, was) = match &assessment.ground {
        Ground::Design { reason, otherwise } => (reason.clone(), *otherwise),
        other => (format!("{other:?}"), assessment.decision),
    };
    assert!(reason.contains(phrase), "{reason}");
    assert_eq!(was, otherwise);
}

/// A first-order autoregression of log times.
fn autoregression(typical: f64, count: usize, correlation: f64, luck: u64) -> Vec<f64> {
    let mut state = 0.0;
    let steps = times(1.0, count, luck);
    let next = |step: &f64| {
        state = correlation * state + step.ln();
        typical * f64::exp(state)
    };
    steps.iter().map(next).collect()
}

#[test]
fn one_measurement_counts_once() {
    let numbers: Vec<String> = times(0.1, 40, 1).iter().map(f64::to_string).collect();
    let (folder, path) = file("a.csv", numbers.join("\n"));
    let copy = folder.path().join("copy.csv");
    std::fs::copy(&path, &copy).unwrap();
    let turned = folder.path().join("turned.csv");
    let backwards: Vec<String> = numbers.iter().rev().cloned().collect();
    std::fs::write(&turned, backwards.join("\n")).unwrap();
    let of = |path: &std::path::Path| read(path).unwrap();

    let again = folder
        .path()
        .join("../")
        .join(folder.path().file_name().unwrap())
        .join("a.csv");
    for (other, said) in [
        (&path, "named twice"),
        (&again, "named twice"),
        (&copy, "copy of"),
    ] {
        let error = Measurements::merged(vec![of(&path), of(other)])
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
        let error = compare(&of(&path), &of(other), &Criteria::default(), None)
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
    }
    let both = Measurements::merged(vec![of(&path), of(&turned)]).unwrap();
    let other = csv("seconds", &[times(0.2, 40, 2), times(0.2, 40, 3)]);
    let error = compare(&both, &other, &Criteria::default(), None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("process 2 of the baseline has the very times of process 1"),
        "{error}"
    );
}

#[test]
fn times_that_do_not_vary_are_no_evidence() {
    // A true 2.3 and 2.9 ms by a clock of 1 ms.
    let coarse = || csv("ms", &vec![vec![2.0; 30]; 6]);
    let found = judged(&coarse(), &coarse(), None);
    undecided(&found, Decision::ValidNegative, "do not vary");
    let [baseline, candidate] = pairs(&[1.05; 4], &[1.0; 4]);
    undecided(
        &judged(&baseline, &candidate, None),
        Decision::Adopt,
        "do not vary",
    );
    let typed = times(1.0, 6, 3);
    let scaled: Vec<f64> = typed.iter().map(|time| time / 1.1).collect();
    let [baseline, candidate] = pairs(&typed, &scaled);
    undecided(
        &judged(&baseline, &candidate, None),
        Decision::Adopt,
        "the same in all processes",
    );
}

#[test]
fn a_clock_in_steps_cannot_show_less_than_a_step() {
    let stepped = |typical: f64, luck: u64| {
        let process = |number| -> Vec<f64> {
            let calls = times(typical, 31, 100 * luck + number);
            calls.iter().map(|time| time.floor()).collect()
        };
        csv("ms", &(0..8).map(process).collect::<Vec<_>>())
    };
    // 320 and 300 ms by a clock of 1 ms: the step does not matter. 48 and 46 ms: it does.
    assert_eq!(
        judged(&stepped(320.0, 1), &stepped(300.0, 2), None)
            .comparison
            .assessment
            .decision,
        Decision::Adopt
    );
    let found = judged(&stepped(48.0, 1), &stepped(46.0, 2), None);
    undecided(&found, Decision::Adopt, "in steps of 1 ms");
    // A clock of 24 MHz, whose step is no round number.
    let ticks = |typical: f64, luck: u64| {
        let process = |number| -> Vec<f64> {
            let calls = times(typical, 31, 100 * luck + number);
            calls.iter().map(|time| (time * 24.0).floor() / 24.0).collect()
        };
        csv("us", &(0..8).map(process).collect::<Vec<_>>())
    };
    let found = judged(&ticks(64.0 / 24.0, 1), &ticks(62.0 / 24.0, 2), None);
    undecided(&found, Decision::Adopt, "in steps of 41.667 ns");
}

#[test]
fn few_processes_that_drift_decide_nothing() {
    for count in [4, 5] {
        let side = |first: usize, luck: u64| {
            let process = |place: usize| {
                let typical = 1e-3 * 0.99f64.powi((first + place) as i32);
                times(typical, 30, luck + place as u64)
            };
            csv("seconds", &(0..count).map(process).collect::<Vec<_>>())
        };
        let found = judged(&side(0, 10), &side(count, 20), None);
        undecided(&found, Decision::Adopt, "the times of both sides drift");
    }
}

#[test]
fn fewer_pairs_than_a_comparison_needs_decide_nothing() {
    let [baseline, candidate] = pairs(&[1.05, 1.0501], &[1.0, 1.0001]);
    undecided(
        &judged(&baseline, &candidate, None),
        Decision::Adopt,
        "2 pairs are too few",
    );
    let [baseline, candidate] = pairs(&times(1.1, 3, 1), &times(0.2, 3, 2));
    undecided(
        &judged(&baseline, &candidate, None),
        Decision::Adopt,
        "at least 4",
    );
}

#[test]
fn calls_that_resemble_their_neighbours_are_not_so_many() {
    let [baseline, candidate] = pairs(
        &autoregression(1.2, 400, 0.99, 1),
        &autoregression(1.0, 400, 0.99, 2),
    );
    let found = judged(&baseline, &candidate, None);
    let assessment = &found.comparison.assessment;
    assert_eq!(assessment.decision, Decision::Inconclusive);
    assert!(
        matches!(assessment.ground, Ground::Design { .. }),
        "{:?}",
        assessment.ground
    );

    let side = |typical: f64, luck: u64| {
        let runs = autoregression(typical, 60, 0.9, luck);
        csv(
            "seconds",
            &runs.into_iter().map(|run| vec![run]).collect::<Vec<_>>(),
        )
    };
    let found = judged(&side(1.2, 3), &side(1.0, 4), None);
    undecided(&found, Decision::Adopt, "resemble each other");
    // Independent ones are.
    let [baseline, candidate] = pairs(&times(1.04, 400, 1), &times(1.0, 400, 2));
    assert_eq!(
        judged(&baseline, &candidate, None).comparison.assessment.decision,
        Decision::Adopt
    );
}

#[test]
fn independent_measurements_are_seldom_doubted() {
    let mut doubted = 0;
    for luck in 0..200 {
        let [baseline, candidate] = pairs(&times(1.3, 12, 2 * luck), &times(1.0, 12, 2 * luck + 1));
        doubted += usize::from(
            judged(&baseline, &candidate, None).comparison.assessment.decision != Decision::Adopt,
        );
    }
    // Two tests at 1 %: 4 expected, standard deviation 2.
    assert!(doubted <= 10, "{doubted} of 200");
}

#[test]
fn units_that_were_mistaken_are_hinted_at() {
    let processes: Vec<Vec<f64>> = (0..5).map(|luck| times(1.0, 20, luck)).collect();
    let others: Vec<Vec<f64>> = (5..10).map(|luck| times(1.0, 20, luck)).collect();
    let found = judged(&csv("ms", &processes), &csv("seconds", &others), None);
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("a factor of about 10") && note.contains("unit of time")),
        "{:?}",
        found.notes
    );
    let found = judged(&csv("ms", &processes), &csv("ms", &others), None);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
}

#[test]
fn more_processes_than_anyone_starts_are_refused() {
    let calls = vec![1.0; 20_000];
    let [baseline, candidate] = pairs(&calls, &calls);
    let error = compare(&baseline, &candidate, &Criteria::default(), None).unwrap_err();
    assert!(error.to_string().contains("20000 processes a side"), "{error}");
    assert!(error.remedy.contains("column `process`"), "{}", error.remedy);
}
