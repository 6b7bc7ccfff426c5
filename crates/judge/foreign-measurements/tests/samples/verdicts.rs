//! The verdict on what was read.

use std::path::Path;

use gauntlet_foreign_measurements::{Measurements, compare, read_both};
use gauntlet_stats::{Criteria, Decision, Ground, Origin};

use crate::{file, hyperfine, judged, measured, times};

#[test]
fn processes_of_each_side_give_a_verdict_with_its_reservation() {
    let side = |command: &str, typical: f64, luck| {
        measured("a.json", &hyperfine(command, &times(typical, 48, luck)))
    };
    let found = judged(&side("slow", 0.11, 1), &side("fast", 0.1, 2), None).comparison;
    assert_eq!(found.assessment.decision, Decision::Adopt);
    assert!(matches!(
        found.assessment.suite.unwrap().origin,
        Origin::Measured { processes: 48, .. }
    ));
    assert!(found.design.unwrap().contains("one side after the other"));
    let same = judged(&side("a", 0.1, 1), &side("b", 0.1, 2), None).comparison;
    assert_eq!(same.assessment.decision, Decision::ValidNegative);
}

#[test]
fn a_machine_that_drifts_while_a_side_is_measured_decides_nothing() {
    let rising: Vec<f64> = times(0.1, 16, 1)
        .iter()
        .enumerate()
        .map(|(run, time)| time * (1.0 + 0.01 * run as f64))
        .collect();
    let baseline = measured("a.json", &hyperfine("slow", &times(0.2, 16, 2)));
    let candidate = measured("b.json", &hyperfine("fast", &rising));
    let found = judged(&baseline, &candidate, None).comparison.assessment;
    assert_eq!(found.decision, Decision::Inconclusive);
    let Ground::Design { reason, otherwise } = found.ground else {
        panic!("{:?}", found.ground);
    };
    assert!(
        reason.contains("candidate's times") && reason.contains("drift"),
        "{reason}"
    );
    assert_eq!(otherwise, Decision::Adopt);
}

#[test]
fn one_process_a_side_decides_nothing_unless_several_files_or_a_bound_are_given() {
    let csv = |typical: f64, luck| {
        let lines: Vec<String> = times(typical, 40, luck).iter().map(f64::to_string).collect();
        measured("a.csv", &lines.join("\n"))
    };
    let (slow, fast) = (csv(0.2, 1), csv(0.1, 2));
    let alone = judged(&slow, &fast, None).comparison;
    assert_eq!(alone.assessment.decision, Decision::Inconclusive);
    assert!(
        alone.reason().contains("only calls of these two processes"),
        "{}",
        alone.reason()
    );
    let bounded = judged(&slow, &fast, Some(0.02)).comparison;
    assert_eq!(bounded.assessment.decision, Decision::Adopt);
    assert!(bounded.declared.unwrap().contains("2.0 %"));

    let several = |typical: f64| {
        let files = [0.0, 0.004, -0.003, 0.001].map(|shift| {
            let luck = (1e6 * typical * (1.0 + shift)) as u64;
            csv(typical * (1.0 + shift), luck)
        });
        Measurements::merged(files.to_vec()).unwrap()
    };
    let merged = judged(&several(0.2), &several(0.1), None).comparison;
    assert_eq!(merged.assessment.decision, Decision::Adopt);
}

#[test]
fn rows_with_both_sides_are_pairs() {
    let (_folder, path) = file(
        "both.csv",
        "baseline,candidate\n1.10,1.0\n2.21,2.0\n3.30,3.0\n4.42,4.0\n5.5,5.0\n",
    );
    let [baseline, candidate] = read_both(&path).unwrap();
    let found = judged(&baseline, &candidate, None).comparison;
    assert_eq!(found.assessment.decision, Decision::Adopt);
    assert!(found.design.unwrap().contains("side by side"));

    let (_folder, path) = file(
        "two.json",
        r#"{"results": [{"command": "a", "times": [1.0, 2.0]}, {"command": "b", "times": [2.0, 1.0]}]}"#,
    );
    let [baseline, candidate] = read_both(&path).unwrap();
    assert_eq!(
        (
            baseline.benchmarks[0].name.as_str(),
            candidate.benchmarks[0].name.as_str()
        ),
        ("a", "b")
    );
    let (_folder, path) = file("one.json", hyperfine("a", &[1.0]));
    assert!(
        read_both(&path)
            .unwrap_err()
            .to_string()
            .contains("holds 1 benchmarks")
    );
}

#[test]
fn benchmarks_are_matched_by_name_and_the_rest_is_said() {
    let side = |names: &[&str]| {
        let rows: Vec<String> = names
            .iter()
            .flat_map(|name| (0..4).map(move |process| format!("{name},{process},0.0{}", process + 1)))
            .collect();
        measured("a.csv", &format!("case,process,seconds\n{}\n", rows.join("\n")))
    };
    let found = judged(&side(&["a", "b"]), &side(&["b", "c"]), None);
    assert_eq!(
        found
            .comparison
            .cases
            .iter()
            .map(|case| case.case.as_str())
            .collect::<Vec<_>>(),
        ["b"]
    );
    assert!(
        found.notes.iter().any(|note| note.contains("`a` is only in")),
        "{:?}",
        found.notes
    );
    assert!(
        found.notes.iter().any(|note| note.contains("`c` is only in")),
        "{:?}",
        found.notes
    );
    let strangers = compare(&side(&["a", "b"]), &side(&["c", "d"]), &Criteria::default(), None).unwrap_err();
    assert!(
        strangers.to_string().contains("shares no benchmark"),
        "{strangers}"
    );
    // A single benchmark on each side is named after its kernel.
    let renamed = judged(
        &measured("a.json", &hyperfine("a", &[1.0, 1.1])),
        &measured("b.json", &hyperfine("b", &[1.0, 1.1])),
        None,
    );
    assert_eq!(renamed.comparison.cases[0].case, "b against a");
    let missing = Measurements::merged(vec![side(&["a", "b"]), side(&["a"])]).unwrap();
    assert_eq!(
        (missing.benchmarks.len(), missing.benchmarks[0].processes.len()),
        (1, 8)
    );
    assert!(Path::new(&missing.path).ends_with("a.csv"));
}
