#![expect(clippy::unwrap_used, reason = "tests")]
//! The messages about faulty suites, each with its place.

use std::path::Path;

use gauntlet_families::{load_suite, suite};
use gauntlet_task::SuiteError;

use crate::suites::parse;

/// The message, and the faulty text.
fn fault(text: &str) -> (String, String) {
    let error = parse(text).unwrap_err();
    let message = error.to_string();
    match error {
        SuiteError::Invalid {
            span: Some(span),
            text,
            ..
        } => (message, text[span].to_owned()),
        other => (other.to_string(), String::new()),
    }
}

#[test]
fn a_depth_of_broken_blocks_is_refused_at_its_line() {
    let (message, text) =
        fault("[[benchmark]]\nname = \"odd\"\ngrouped-gemm = { groups = { m = 8, n = 8, k = 100 } }\n");
    assert_eq!(
        message,
        "mine.toml:3: group 0: K = 100 is not a multiple of 16, the values that share a scale; try 96 or 112"
    );
    assert_eq!(text, "{ groups = { m = 8, n = 8, k = 100 } }");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let case = |body: &str| format!("[[benchmark]]\nname = \"one\"\n{body}\n");
    let expectations = [
        (
            case("grouped-gemm = { groups = [] }"),
            "mine.toml:3: there are no groups",
            "{ groups = [] }",
        ),
        (
            case("grouped-gemm = { groups = { m = [1, 2], n = [3], k = 16 } }"),
            "`m` lists 2 groups and `n` 1",
            "",
        ),
        (
            case("grouped-gemm = { groups = { m = -1, n = 3, k = 16 } }"),
            "never negative",
            "-1",
        ),
        (
            case("grouped-gemm = { groups = { m = \"8\", n = 3, k = 16 } }"),
            "a size, or a list of one size",
            "\"8\"",
        ),
        (
            case("grouped-gemm = { groups = [{ m = 1, n = 3 }] }"),
            "missing field `k`",
            "{ m = 1, n = 3 }",
        ),
        (
            case("grouped-gemm = { groups = [], from = 1 }"),
            "unknown field `from`",
            "from",
        ),
        (
            case("grouped-gemm = { groups = [], form = \"dual\" }"),
            "unknown variant `dual`",
            "\"dual\"",
        ),
        (case(""), "takes one task", "\"one\""),
        (
            case("attention = { heads = 8, head-size = 64, format = \"f16\" }"),
            "either `batch` and `length`",
            "",
        ),
        (
            case("attention = { length = 8, heads = 8, kv-heads = 3, head-size = 64, format = \"f16\" }"),
            "8 query heads over 3",
            "",
        ),
        (
            case(
                "speed-of-light = { device = \"x\", microseconds = 0.0 }\ngrouped-gemm = { groups = { m = 1, n = 3, k = 16 } }",
            ),
            "positive number",
            "{ device = \"x\", microseconds = 0.0 }",
        ),
        (
            case("grouped-gemm = { groups = { m = 1, n = 3, k = 16 } }").repeat(2),
            "mine.toml:5: a second case `one`",
            "\"one\"",
        ),
        (
            "name = \"empty\"".to_owned(),
            "at least one [[benchmark]] case",
            "",
        ),
        ("[[benchmark]\n".to_owned(), "mine.toml:1: ", ""),
    ];
    for (text, message, place) in expectations {
        let (found, span) = fault(&text);
        assert!(
            found.contains(message),
            "{found:?} should say {message:?} of {text}"
        );
        assert!(
            place.is_empty() || span == place,
            "{span:?} should be {place:?}: {found}"
        );
    }
}

#[test]
fn a_suite_that_does_not_exist_is_named() {
    let missing = load_suite(Path::new("nowhere/mine.toml")).unwrap_err();
    assert!(matches!(missing, SuiteError::Missing { .. }));
    assert!(
        missing
            .to_string()
            .contains("there is no suite file nowhere/mine.toml"),
        "{missing}"
    );
    let unknown = suite("gemm").unwrap_err();
    assert!(
        unknown
            .to_string()
            .contains("group-gemm, dual-gemm, attention, rms-norm"),
        "{unknown}"
    );
}

#[test]
fn an_unknown_task_is_answered_with_the_likely_one() {
    let case = |key: &str| {
        format!("[[benchmark]]\nname = \"one\"\n{key} = {{ groups = {{ m = 1, n = 1, k = 16 }} }}\n")
    };
    let known = "a case has `name`, `inputs`, `data`, `speed-of-light`, and one of the tasks `grouped-gemm`, `attention`, `rms-norm`";
    for (key, meant) in [
        ("groupd-gemm", "; did you mean `grouped-gemm`?"),
        ("grouped_gemm", "; did you mean `grouped-gemm`?"),
        ("atention", "; did you mean `attention`?"),
        ("convolution", ""),
    ] {
        let (message, place) = fault(&case(key));
        assert_eq!(
            message,
            format!("mine.toml:3: unknown field `{key}`{meant}; {known}")
        );
        assert_eq!(place, key);
    }
    let sizes = "grouped-gemm = { groups = { m = 1, n = 1, k = 16 } }";
    let (message, place) = fault(&format!(
        "[[benchmark]]\nname = \"one\"\n{sizes}\ninput = \"wide\"\n"
    ));
    assert!(
        message.contains("unknown field `input`; did you mean `inputs`?"),
        "{message}"
    );
    assert_eq!(place, "input");
}

#[test]
fn one_case_has_one_task() {
    let (message, place) = fault(
        "[[benchmark]]\nname = \"both\"\ngrouped-gemm = { groups = { m = 1, n = 1, k = 16 } }\n\
         attention = { length = 8, heads = 8, head-size = 64, format = \"f16\" }\n",
    );
    assert_eq!(
        message,
        "mine.toml:2: the case `both` takes one task: `grouped-gemm = { … }` or `attention = { … }` or `rms-norm = { … }`"
    );
    assert_eq!(place, "\"both\"");
}

#[test]
fn faults_are_found_in_every_way_of_writing_sizes() {
    // A separate table has no single line of text that an error could point into: the whole table is named.
    for (sizes, line) in [
        (
            "grouped-gemm = { groups = [\n{ m = 1, n = 1, k = 16 },\n{ m = 1, n = true, k = 16 },\n] }",
            5,
        ),
        ("grouped-gemm.groups = { m = 1, n = true, k = 16 }", 3),
        (
            "[benchmark.grouped-gemm]\ngroups = { m = 1, n = true, k = 16 }",
            3,
        ),
    ] {
        let (message, _) = fault(&format!("[[benchmark]]\nname = \"one\"\n{sizes}\n"));
        assert!(
            message.starts_with(&format!("mine.toml:{line}: invalid type: boolean")),
            "{sizes}: {message}"
        );
    }
}
