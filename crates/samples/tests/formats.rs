//! Small files in the form of each program, and what is read from them.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use gauntlet_samples::{Compared, Measurements, SamplesError, compare, read, read_both};
use gauntlet_stats::{Criteria, Decision, Ground, Origin};
use tempfile::TempDir;

/// A folder with one file.
fn file(name: &str, contents: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, contents).unwrap();
    (folder, path)
}

fn measured(name: &str, contents: &str) -> Measurements {
    let (_folder, path) = file(name, contents);
    read(&path).unwrap()
}

/// The names, and for each the times of each process, in microseconds.
fn shape(measurements: &Measurements) -> Vec<(String, Vec<Vec<u64>>)> {
    let whole = |seconds: &f64| (seconds * 1e6).round() as u64;
    let times = |process: &Vec<f64>| process.iter().map(whole).collect();
    measurements
        .benchmarks
        .iter()
        .map(|one| (one.name.clone(), one.processes.iter().map(times).collect()))
        .collect()
}

fn one(name: &str, processes: &[&[u64]]) -> (String, Vec<Vec<u64>>) {
    (
        name.to_owned(),
        processes.iter().map(|times| times.to_vec()).collect(),
    )
}

#[test]
fn hyperfine_runs_each_time_in_a_process_of_its_own() {
    let first = r#"{"results": [{"command": "./a --fast", "mean": 0.0015, "stddev": 0.0005, "median": 0.0015, "user": 0.001,
        "system": 0.0, "min": 0.001, "max": 0.002, "times": [0.001, 0.002], "exit_codes": [0, 0]}]}"#;
    let measurements = measured("a.json", first);
    assert_eq!(measurements.program, "hyperfine");
    assert_eq!(shape(&measurements), [one("./a --fast", &[&[1000], &[2000]])]);

    let second = r#"{"schema_version": 2, "metadata": {"hyperfine_version": "2.0.0"}, "primary_metric": "time_wall_clock",
        "results": [{"command": "./a", "name": "fast", "measurements": [
            {"time_wall_clock": {"value": 0.001, "unit": "second"}, "time_user": {"value": 0.0, "unit": "second"}, "exit_code": 0},
            {"time_wall_clock": {"value": 0.002, "unit": "second"}, "exit_code": 0}]}]}"#;
    assert_eq!(
        shape(&measured("a.json", second)),
        [one("fast", &[&[1000], &[2000]])]
    );
}

#[test]
fn pytest_benchmark_needs_the_rounds() {
    let text = |stats: &str| {
        format!(
            r#"{{"machine_info": {{"node": "here"}}, "commit_info": {{}}, "benchmarks": [{{"group": null, "name": "test_a",
            "fullname": "tests/test_a.py::test_a", "params": null, "stats": {stats}}}], "version": "5.1.0"}}"#
        )
    };
    let measurements = measured(
        "a.json",
        &text(r#"{"mean": 0.002, "rounds": 2, "data": [0.001, 0.003]}"#),
    );
    assert_eq!(measurements.program, "pytest-benchmark");
    assert_eq!(
        shape(&measurements),
        [one("tests/test_a.py::test_a", &[&[1000, 3000]])]
    );
    says(
        "a.json",
        &text(r#"{"mean": 0.002}"#),
        &["benchmarks[0].stats.data", "--benchmark-save-data"],
    );
}

#[test]
fn google_benchmark_repeats_and_aggregates_are_skipped() {
    let run = |more: &str| {
        format!(r#"{{"name": "BM_a/8", "run_name": "BM_a/8", "threads": 1, "iterations": 9, {more}}}"#)
    };
    let text = format!(
        r#"{{"context": {{"date": "2026-01-01", "num_cpus": 8}}, "benchmarks": [{}, {}, {}, {}]}}"#,
        run(
            r#""run_type": "iteration", "repetition_index": 0, "real_time": 1000.0, "cpu_time": 9.0, "time_unit": "ns""#
        ),
        run(
            r#""run_type": "iteration", "repetition_index": 1, "real_time": 2.0, "cpu_time": 9.0, "time_unit": "us""#
        ),
        run(
            r#""run_type": "aggregate", "aggregate_name": "mean", "real_time": 99.0, "cpu_time": 9.0, "time_unit": "us""#
        ),
        r#"{"name": "BM_b", "run_name": "BM_b", "run_type": "iteration", "error_occurred": true, "error_message": "no input"}"#,
    );
    let measurements = measured("a.json", &text);
    assert_eq!(shape(&measurements), [one("BM_a/8", &[&[1, 2]])]);
    assert!(measurements.notes[0].contains("BM_b") && measurements.notes[0].contains("no input"));
}

#[test]
fn criterion_divides_by_iterations_in_each_of_its_forms() {
    let sample = r#"{"sampling_mode":"Linear","iters":[1.0,2.0],"times":[1000.0,4000.0]}"#;
    let (folder, path) = file("norm/new/sample.json", sample);
    assert_eq!(shape(&read(&path).unwrap()), [one("norm", &[&[1, 2]])]);
    std::fs::write(
        folder.path().join("norm/new/benchmark.json"),
        r#"{"full_id": "group/norm"}"#,
    )
    .unwrap();
    assert_eq!(shape(&read(&path).unwrap()), [one("group/norm", &[&[1, 2]])]);

    let raw = "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count\n\
               Sum,fast,8,,,1000,ns,1\nSum,fast,8,,,4000,ns,2\n";
    assert_eq!(shape(&measured("raw.csv", raw)), [one("Sum/fast/8", &[&[1, 2]])]);

    let messages = "{\"reason\":\"benchmark-complete\",\"id\":\"norm\",\"iteration_count\":[1,2],\
                    \"measured_values\":[1000.0,4000.0],\"unit\":\"ns\"}\n{\"reason\":\"group-complete\",\"group_name\":\"g\"}\n";
    assert_eq!(shape(&measured("out.json", messages)), [one("norm", &[&[1, 2]])]);
    let uneven = sample.replace("[1.0,2.0]", "[1.0]");
    says(
        "sample.json",
        &uneven,
        &["times", "1 numbers of iterations for 2 times"],
    );
}

#[test]
fn nvbench_keeps_its_times_in_files_beside_it() {
    let state = |summaries: &str| {
        format!(
            r#"{{"meta": {{"argv": ["bench"]}}, "devices": [], "benchmarks": [{{"name": "copy", "states": [
            {{"name": "Device=0 Size=2^8", "is_skipped": false, "summaries": [{summaries}]}},
            {{"name": "Device=0 Size=2^9", "is_skipped": true, "skip_reason": "too small", "summaries": null}}]}}]}}"#
        )
    };
    let times = r#"{"tag": "nv/json/bin:nv/cold/sample_times", "data": [
        {"name": "filename", "type": "string", "value": "a.json-bin/0.bin"}, {"name": "size", "type": "int64", "value": "2"}]}"#;
    let (folder, path) = file("a.json", state(times));
    let bytes: Vec<u8> = [1e-6f32, 2e-6]
        .iter()
        .flat_map(|time| time.to_le_bytes())
        .collect();
    std::fs::create_dir(folder.path().join("a.json-bin")).unwrap();
    std::fs::write(folder.path().join("a.json-bin/0.bin"), &bytes).unwrap();
    let measurements = read(&path).unwrap();
    assert_eq!(shape(&measurements), [one("copy Device=0 Size=2^8", &[&[1, 2]])]);
    assert!(
        measurements.notes[0].contains("too small"),
        "{:?}",
        measurements.notes
    );

    std::fs::write(folder.path().join("a.json-bin/0.bin"), &bytes[..5]).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(
        error.contains("benchmarks[0].states[0]") && error.contains("5 bytes"),
        "{error}"
    );
    says(
        "a.json",
        &state(""),
        &["benchmarks[0].states[0].summaries", "--jsonbin"],
    );
}

#[test]
fn csv_has_a_column_of_times_and_perhaps_cases_and_processes() {
    assert_eq!(
        shape(&measured("a.csv", "0.001\n0.002\n")),
        [one("times", &[&[1000, 2000]])]
    );
    let text = "case,process,us\na,1,10\na,2,20\nb,1,30\na,1,40\nb,2,50\n";
    assert_eq!(
        shape(&measured("a.csv", text)),
        [one("a", &[&[10, 40], &[20]]), one("b", &[&[30], &[50]])]
    );
    says(
        "a.csv",
        "seconds\n0.1\nfast\n",
        &["a.csv:3", "`fast` is not a time"],
    );
    says(
        "a.csv",
        "name,size\na,1\n",
        &["a.csv:1", "no column of times among: name, size", "seconds"],
    );
    says("a.csv", "1,2\n3,4\n", &["a.csv:1", "without names"]);
    says("a.csv", "seconds\n", &["holds no times"]);
    says("a.csv", "seconds\n-1\n", &["-1 s, which no call can take"]);
    says("a.csv", "baseline,candidate\n1,2\n", &["both sides"]);
}

#[test]
fn unknown_files_are_named_with_what_is_known() {
    says(
        "a.json",
        r#"{"frames": [], "fps": 60}"#,
        &["format is not known", "fps, frames", "hyperfine"],
    );
    says("a.json", "{\n\"results\": [\n", &["a.json:3", "not JSON"]);
    says(
        "a.json",
        r#"{"schema": "gauntlet/comparison/2"}"#,
        &["gauntlet report"],
    );
    says(
        "a.json",
        r#"{"results": [{"command": "a"}]}"#,
        &["results[0].times", "--export-json"],
    );
    says(
        "a.json",
        r#"{"results": [{"command": "a", "times": [1, "x"]}]}"#,
        &["results[0].times[1]"],
    );
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("absent.json")] {
        assert!(!read(&path).unwrap_err().remedy.is_empty());
    }
}

#[track_caller]
fn says(name: &str, contents: &str, phrases: &[&str]) {
    let (_folder, path) = file(name, contents);
    let SamplesError { remedy, .. } = &read(&path).unwrap_err();
    let said = format!("{}; {remedy}", read(&path).unwrap_err());
    for phrase in phrases {
        assert!(said.contains(phrase), "no {phrase:?} in: {said}");
    }
}

/// Times around a typical one, with a spread of about 1 % and no trend.
fn times(typical: f64, count: usize) -> Vec<f64> {
    let ripple = [0.0, 0.011, -0.007, 0.004, -0.012, 0.008, 0.001, -0.004];
    (0..count)
        .map(|index| typical * (1.0 + ripple[index * 5 % 8]))
        .collect()
}

fn hyperfine(command: &str, times: &[f64]) -> String {
    format!(r#"{{"results": [{{"command": "{command}", "times": {times:?}}}]}}"#)
}

fn judged(baseline: &Measurements, candidate: &Measurements, between: Option<f64>) -> Compared {
    compare(baseline, candidate, &Criteria::default(), between).unwrap()
}

#[test]
fn processes_of_each_side_give_a_verdict_with_its_reservation() {
    let side = |command: &str, typical: f64| measured("a.json", &hyperfine(command, &times(typical, 16)));
    let found = judged(&side("slow", 0.11), &side("fast", 0.1), None).comparison;
    assert_eq!(found.assessment.decision, Decision::Adopt);
    assert!(matches!(
        found.assessment.suite.unwrap().origin,
        Origin::Measured { processes: 16, .. }
    ));
    assert!(found.design.unwrap().contains("one side after the other"));
    let same = judged(&side("a", 0.1), &side("b", 0.1), None).comparison;
    assert_eq!(same.assessment.decision, Decision::ValidNegative);
}

#[test]
fn a_machine_that_drifts_while_a_side_is_measured_decides_nothing() {
    let rising: Vec<f64> = times(0.1, 16)
        .iter()
        .enumerate()
        .map(|(run, time)| time * (1.0 + 0.01 * run as f64))
        .collect();
    let baseline = measured("a.json", &hyperfine("slow", &times(0.2, 16)));
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
    let csv = |typical: f64| {
        let lines: Vec<String> = times(typical, 40).iter().map(f64::to_string).collect();
        measured("a.csv", &lines.join("\n"))
    };
    let (slow, fast) = (csv(0.2), csv(0.1));
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
        let files = [0.0, 0.004, -0.003, 0.001].map(|luck| csv(typical * (1.0 + luck)));
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
