#![expect(clippy::unwrap_used, reason = "tests")]
//! The suites that come with the program, and what is said of suites that are wrong.

use std::path::Path;

use gauntlet_problem::{
    Attention, Form, GemmShape, InputKind, Problem, Scaling, Sequence, Suite, SuiteError,
};

fn parse(text: &str) -> Result<Suite, SuiteError> {
    Suite::parse(text, Path::new("mine.toml"))
}

/// Message, and the text at fault.
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

fn groups(problem: &Problem) -> &[GemmShape] {
    match problem {
        Problem::GroupedGemm(gemm) => &gemm.groups,
        Problem::Attention(_) => &[],
    }
}

#[test]
fn every_suite_that_comes_with_the_program_can_be_read() {
    let counts: Vec<(usize, usize)> = Suite::builtin_names()
        .map(|name| {
            let suite = Suite::builtin(name).unwrap();
            assert_eq!(suite.name, name);
            assert!(!suite.description.is_empty());
            (suite.correctness.len(), suite.benchmark.len())
        })
        .collect();
    assert_eq!(counts, [(10, 4), (8, 4), (9, 3)]);
}

#[test]
fn speeds_of_light_are_the_longer_of_bytes_and_flops() {
    // Ties shapes and published times together by two rates: a wrong figure in either shows.
    for name in ["group-gemm", "dual-gemm"] {
        for case in Suite::builtin(name).unwrap().benchmark {
            let bound = case.speed_of_light.unwrap();
            assert_eq!(bound.device, "B200");
            let microseconds =
                (case.problem.bytes() as f64 / 7.68e6).max(case.problem.flops() as f64 / 6.9e9);
            let ratio = bound.microseconds / microseconds;
            assert!(
                (ratio - 1.0).abs() < 0.01,
                "{name} {}: {microseconds} µs",
                case.name
            );
        }
    }
}

#[test]
fn benchmark_shapes_are_the_records() {
    let gemm = Suite::builtin("group-gemm").unwrap();
    assert_eq!(
        groups(&gemm.benchmark[1].problem)[2],
        GemmShape {
            m: 168,
            n: 7168,
            k: 2048
        }
    );
    assert_eq!(
        groups(&gemm.correctness[9].problem)[1],
        GemmShape {
            m: 384,
            n: 256,
            k: 768
        }
    );
    let dual = Suite::builtin("dual-gemm").unwrap();
    let duals = dual.correctness.iter().chain(&dual.benchmark);
    assert!(
        duals
            .into_iter()
            .all(|case| matches!(&case.problem, Problem::GroupedGemm(gemm) if gemm.form == Form::Swiglu))
    );
    let Problem::Attention(mission) = &Suite::builtin("attention").unwrap().benchmark[1].problem else {
        unreachable!("an attention suite")
    };
    assert_eq!(
        mission.sequences,
        [Sequence {
            queries: 512,
            keys: 512
        }]
    );
    assert_eq!((mission.heads, mission.kv_heads, mission.head_size), (8, 8, 64));
}

#[test]
fn groups_are_written_one_by_one_or_side_by_side() {
    let suite = parse(
        r#"
        [[benchmark]]
        name = "list"
        inputs = "wide"
        grouped-gemm = { groups = [{ m = 1, n = 2, k = 16 }, { m = 0, n = 4, k = 32 }], form = "swiglu" }
        [[benchmark]]
        name = "sizes"
        grouped-gemm = { groups = { m = [1, 0], n = [2, 4], k = 16 } }
        [[benchmark]]
        name = "single"
        grouped-gemm = { groups = { m = 1, n = 2, k = 16 } }
        "#,
    )
    .unwrap();
    assert_eq!(suite.name, "mine");
    let [list, sizes, single] = &suite.benchmark[..] else {
        unreachable!("three cases")
    };
    assert_eq!(
        groups(&list.problem),
        [GemmShape { m: 1, n: 2, k: 16 }, GemmShape { m: 0, n: 4, k: 32 }]
    );
    assert_eq!(
        groups(&sizes.problem),
        [GemmShape { m: 1, n: 2, k: 16 }, GemmShape { m: 0, n: 4, k: 16 }]
    );
    assert_eq!(groups(&single.problem).len(), 1);
    assert_eq!(
        (list.inputs, sizes.inputs),
        (InputKind::Wide, InputKind::Competition)
    );
}

#[test]
fn scales_are_per_head_unless_a_case_says_otherwise() {
    let read = |words: &str| {
        let attention = format!("heads = 2, length = 4, head-size = 8, format = \"int8\"{words}");
        let text = format!("[[benchmark]]\nname = \"one\"\nattention = {{ {attention} }}\n");
        match Suite::parse(&text, Path::new("mine.toml")).unwrap().benchmark[0]
            .problem
            .clone()
        {
            Problem::Attention(attention) => attention,
            other => panic!("{other}"),
        }
    };
    assert_eq!(read("").scaling, Scaling::PerHead);
    let blocks = read(", scaling = \"per-block\"");
    assert_eq!(blocks.scaling, Scaling::PerBlock);
    // What was written before there was a choice reads the same, and is written the same.
    let written = |attention: &Attention| serde_json::to_value(attention).unwrap();
    assert_eq!(written(&read("")).get("scaling"), None);
    assert_eq!(written(&blocks)["scaling"], "per-block");
    let json = written(&read(""));
    assert_eq!(serde_json::from_value::<Attention>(json).unwrap(), read(""));
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
        (case(""), "takes one problem", "\"one\""),
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
    let missing = Suite::load(Path::new("nowhere/mine.toml")).unwrap_err();
    assert!(matches!(missing, SuiteError::Missing { .. }));
    assert!(
        missing
            .to_string()
            .contains("there is no suite file nowhere/mine.toml"),
        "{missing}"
    );
    let unknown = Suite::builtin("gemm").unwrap_err();
    assert!(
        unknown.to_string().contains("group-gemm, dual-gemm, attention"),
        "{unknown}"
    );
}

#[test]
fn a_suite_is_read_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.toml");
    std::fs::write(
        &path,
        "[[benchmark]]\nname = \"a\"\ngrouped-gemm.groups = { m = 1, n = 1, k = 16 }\n",
    )
    .unwrap();
    assert_eq!(Suite::load(&path).unwrap().name, "small");
    assert!(matches!(
        Suite::load(directory.path()).unwrap_err(),
        SuiteError::Read { .. }
    ));
}
