//! Runs that failed, and what a file holds beside times.

use gauntlet_foreign_measurements::{compare, read};
use gauntlet_stats::Criteria;

use crate::{file, judged, measured, says};

fn hyperfine(codes: &str) -> String {
    format!(
        r#"{{"results": [{{"command": "./solver", "times": [0.021, 0.019, 0.020], "exit_codes": {codes}}}]}}"#
    )
}

#[test]
fn runs_that_failed_are_refused_with_their_number() {
    says(
        "a.json",
        &hyperfine("[1, 1, 1]"),
        &["`./solver` failed in 3 of 3 runs (exit code 1)", "exit code 0"],
    );
    says(
        "a.json",
        &hyperfine("[0, 139, 0]"),
        &["failed in 1 of 3 runs (exit code 139)"],
    );
    says(
        "a.json",
        &hyperfine("[null, 2, null]"),
        &["failed in 3 of 3 runs (killed by a signal, exit code 2)"],
    );
    says("a.json", &hyperfine("[0, 0]"), &["2 exit codes for 3 times"]);
    let second = r#"{"schema_version": 2, "results": [{"command": "./a", "measurements": [
        {"time_wall_clock": {"value": 0.001, "unit": "second"}, "exit_code": 0},
        {"time_wall_clock": {"value": 0.002, "unit": "second"}, "exit_code": null}]}]}"#;
    says(
        "a.json",
        second,
        &["`./a` failed in 1 of 2 runs (killed by a signal)"],
    );

    let silent = measured(
        "a.json",
        r#"{"results": [{"command": "./a", "times": [0.021, 0.019]}]}"#,
    );
    assert!(silent.notes[0].contains("no exit codes"), "{:?}", silent.notes);
    assert!(measured("a.json", &hyperfine("[0, 0, 0]")).notes.is_empty());
}

#[test]
fn commands_of_a_scan_are_told_apart() {
    let of = |threads: u8, time: f64| {
        format!(
            r#"{{"command": "./a", "times": [{time}], "exit_codes": [0], "parameters": {{"threads": "{threads}"}}}}"#
        )
    };
    let scan = |shift: f64| {
        let text = format!(
            r#"{{"results": [{}, {}]}}"#,
            of(1, 0.2 + shift),
            of(8, 0.1 + shift)
        );
        measured("a.json", &text)
    };
    let found = judged(&scan(0.0), &scan(0.01), None).comparison;
    let names: Vec<&str> = found.cases.iter().map(|case| case.case.as_str()).collect();
    assert_eq!(names, ["./a (threads=1)", "./a (threads=8)"]);

    let alike = |time: f64| {
        let one = format!(r#"{{"command": "./a", "times": [{time}], "exit_codes": [0]}}"#);
        measured("a.json", &format!(r#"{{"results": [{one}, {one}]}}"#))
    };
    let error = compare(&alike(0.1), &alike(0.2), &Criteria::default(), None).unwrap_err();
    assert!(
        error.to_string().contains("two benchmarks are named `./a`"),
        "{error}"
    );
}

/// A google-benchmark file of these entries, beside one that measured BM_a.
fn google(entries: &str) -> String {
    format!(
        r#"{{"context": {{"num_cpus": 2}}, "benchmarks": [
        {{"name": "BM_a", "run_name": "BM_a", "run_type": "iteration", "real_time": 4.1, "time_unit": "us"}}{entries}]}}"#
    )
}

#[test]
fn a_fitted_complexity_is_left_out_with_a_note() {
    let fits = r#",
        {"name": "BM_a_BigO", "run_name": "BM_a", "run_type": "aggregate", "aggregate_name": "BigO", "cpu_coefficient": 1.1,
         "real_coefficient": 1.2, "big_o": "NlgN", "time_unit": "ns"},
        {"name": "BM_a_RMS", "run_name": "BM_a", "run_type": "aggregate", "aggregate_name": "RMS", "rms": 0.02},
        {"name": "BM_old_BigO", "cpu_coefficient": 1.1, "real_coefficient": 1.2, "big_o": "N", "time_unit": "ns"},
        {"name": "BM_old_RMS", "rms": 3%}"#;
    let measurements = measured("a.json", &google(fits));
    assert_eq!(measurements.benchmarks.len(), 1);
    for name in ["BM_a_BigO", "BM_a_RMS", "BM_old_BigO", "BM_old_RMS"] {
        assert!(
            measurements.notes.iter().any(|note| note.contains(name)),
            "{name}"
        );
    }
}

#[test]
fn numbers_that_json_has_not_are_read_where_they_are_no_times() {
    let counter = r#", {"name": "BM_a_cv", "run_name": "BM_a", "run_type": "aggregate", "aggregate_name": "cv", "real_time": NaN,
        "items": Infinity, "more": -inf, "time_unit": "ns"}"#;
    assert_eq!(measured("a.json", &google(counter)).benchmarks.len(), 1);
    let time = ",\n{\"name\": \"BM_b\", \"real_time\": NaN, \"time_unit\": \"ns\"}";
    says(
        "a.json",
        &google(time),
        &["benchmarks[1].real_time", "NaN (line 3), and no call takes that"],
    );
    let rounds = r#"{"machine_info": {}, "benchmarks": [{"fullname": "t.py::a", "stats": {"ops": Infinity, "data": [0.1,
        NaN]}}]}"#;
    says("a.json", rounds, &["benchmarks[0].stats.data[1]", "NaN (line 2)"]);
    says(
        "a.json",
        &rounds.replace("NaN", "null"),
        &["stats.data[1]", "list of numbers"],
    );
    // Other programs' files, which are not read, point to the form that is.
    let foreign = r#"{"Title": "T", "Benchmarks": [{"Statistics": {"Skewness": NaN}}]}"#;
    says(
        "a.json",
        foreign,
        &["format is not known", "Benchmarks, Title", "CSV"],
    );
    says(
        "a.json",
        r#"[{"jmhVersion": "1.37"}]"#,
        &["fields are: jmhVersion", "CSV"],
    );
}

#[test]
fn what_failed_or_was_skipped_is_named_with_its_reason() {
    let failed = r#", {"name": "BM_b", "run_name": "BM_b", "run_type": "iteration", "real_time": 4.0, "time_unit": "us"},
        {"name": "BM_b", "run_name": "BM_b", "run_type": "iteration", "error_occurred": true, "error_message": "mismatch",
         "real_time": 0.0, "time_unit": "us"}"#;
    let candidate = measured("b.json", &google(failed));
    assert_eq!(
        candidate.benchmarks.len(),
        1,
        "a benchmark that failed once has no times"
    );
    assert!(
        candidate.notes[0].contains("1 of 2 repetitions: mismatch"),
        "{:?}",
        candidate.notes
    );
    let whole = r#", {"name": "BM_b", "run_name": "BM_b", "run_type": "iteration", "real_time": 4.0, "time_unit": "us"}"#;
    let baseline = measured("a.json", &google(whole));
    let error = compare(&baseline, &candidate, &Criteria::default(), None).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("`BM_b`, which the baseline measured, failed in 1 of 2"),
        "{error}"
    );
    // The baseline's failure only leaves the benchmark out.
    let found = judged(&candidate, &baseline, None);
    assert!(
        found.notes.iter().any(|note| note.contains("mismatch")),
        "{:?}",
        found.notes
    );

    let alone = |entry: &str| format!(r#"{{"context": {{}}, "benchmarks": [{entry}]}}"#);
    let error =
        r#"{"name": "BM_a", "run_type": "iteration", "error_occurred": true, "error_message": "no input"}"#;
    says(
        "a.json",
        &alone(error),
        &["measured nothing in it", "`BM_a` failed", "no input"],
    );
    let skipped = r#"{"name": "BM_a", "run_type": "iteration", "skipped": true, "skip_message": "no device", "real_time": 0.0,
        "time_unit": "ns"}"#;
    says(
        "a.json",
        &alone(skipped),
        &["measured nothing in it", "`BM_a` was skipped", "no device"],
    );
    let states = r#"{"devices": [], "benchmarks": [{"name": "copy", "states": [{"name": "Size=2^9", "is_skipped": true,
        "skip_reason": "too small", "summaries": null}]}]}"#;
    says(
        "a.json",
        states,
        &[
            "measured nothing in it",
            "`copy Size=2^9` was skipped",
            "too small",
        ],
    );
}

#[test]
fn sizes_of_nvbench_that_cannot_be_are_refused() {
    let of_size = |size: &str, file: &str| {
        format!(
            r#"{{"devices": [], "benchmarks": [{{"name": "copy", "states": [{{"name": "A", "summaries": [{{"tag":
            "nv/json/bin:nv/cold/sample_times", "data": [{{"name": "filename", "value": "{file}"}},
            {{"name": "size", "value": {size}}}]}}]}}]}}]}}"#
        )
    };
    let says_of = |size: &str, named: &str, phrase: &str| {
        let (folder, path) = file("a.json", of_size(size, named));
        std::fs::write(folder.path().join("0.bin"), [0; 8]).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(phrase), "{error}");
    };
    // Four times this is beyond 64 bits.
    says_of(
        "\"4611686018427387916\"",
        "0.bin",
        "8 bytes and not 4611686018427387916 32-bit floats",
    );
    says_of("\"-1\"", "0.bin", "the size \"-1\" is no number of times");
    says_of("1.5", "0.bin", "the size 1.5 is no number of times");
    // It would never end.
    says_of("\"2\"", "/dev/zero", "/dev/zero is no file of times");
}
