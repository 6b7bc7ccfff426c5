//! What is far too large is refused in words, and soon: nothing that is given ends the process.

use crate::common::{NORM_SUITE, Place, names};

#[test]
fn cases_that_no_machine_holds() {
    for (sizes, phrase) in [
        (
            "grouped-gemm = { groups = [{ m = 16, n = 4294967296, k = 256 }] }",
            "make the case smaller",
        ),
        (
            "rms-norm = { rows = 4294967296, columns = 4096 }",
            "use smaller sizes",
        ),
    ] {
        let place = Place::new();
        place.write("big.toml", &format!("[[benchmark]]\nname = \"one\"\n{sizes}\n"));
        let ran = place.run(&["check", "big.toml"]).expect(2);
        names(&ran, &[phrase]);
    }
}

#[test]
fn a_model_does_not_follow_sizes_for_minutes() {
    let place = Place::new();
    place.write(
        "big.toml",
        "[[benchmark]]\nname = \"one\"\ngrouped-gemm = { groups = [{ m = 16, n = 4294967296, k = 256 }] }\n",
    );
    let ran = place.run(&[
        "tune",
        "--executor",
        "model",
        "--device",
        "b200",
        "--suite",
        "big.toml",
    ]);
    names(&ran.expect(2), &["a simulation would follow", "at most 100000"]);
}

#[test]
fn names_that_no_table_holds() {
    let place = Place::new();
    let long = "x".repeat(65_540);
    place.write(
        "case.toml",
        &NORM_SUITE.replace("\"one\"", &format!("\"{long}\"")),
    );
    names(
        &place.run(&["suites", "case.toml"]).expect(2),
        &["has 65540 letters; a name has at most 200"],
    );
    let exports = ["1", "2"].map(|end| {
        let times = "[1.0, 1.2, 1.1, 1.3]";
        format!("{{\"command\": \"{long}{end}\", \"times\": {times}, \"exit_codes\": [0, 0, 0, 0]}}")
    });
    place.write("h.json", &format!("{{\"results\": [{}]}}", exports.join(",")));
    let ran = place
        .run(&[
            "compare",
            "--samples",
            "h.json",
            "--html",
            "h.html",
            "--markdown",
            "h.md",
        ])
        .expect(0);
    assert!(ran.out.contains("(65541 letters in all)") && ran.out.len() < 40_000);
}

#[test]
fn numbers_of_comparisons_that_never_end() {
    let place = Place::new();
    for (option, value) in [
        ("--comparisons", "99999999999"),
        ("--comparisons", "0"),
        ("--live", "99999999999"),
        ("--runs", "99999999999"),
    ] {
        names(
            &place.run(&["selftest", option, value]).expect(2),
            &["give a whole number from"],
        );
    }
}
