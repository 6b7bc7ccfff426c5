//! Small files in the form of each program, and what is read from them.

use gauntlet_foreign_measurements::{Measurements, read};

use crate::{file, measured, says};

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
    says(
        "a.csv",
        "seconds\n1\n-1\n",
        &["a.csv:3", "-1, which no call can take"],
    );
    says(
        "a.csv",
        "seconds\nNaN\n",
        &["a.csv:2", "NaN, which no call can take"],
    );
    says(
        "a.csv",
        "exit_code,seconds\n0,1\n,1\n139,1\n",
        &["failed in 2 of 3 runs", "killed by a signal, exit code 139"],
    );
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
