//! What a worker answers: results as asked for, and a failure, never its own end, to what it cannot do.

use std::path::Path;

use crate::support::{assert_bits, expected, schedule};
use gauntlet_cpu::{CpuService, EngineOptions};
use gauntlet_executor::protocol::{Failure, FailureKind};
use gauntlet_executor::{Service, serve};
use gauntlet_problem::{Form, GemmShape, GroupedGemm, InputKind, Inputs, Output, OutputFormat, Problem};
use gauntlet_schedule::{Schedule, Setup};

fn gemm(m: usize, n: usize, k: usize) -> Problem {
    Problem::GroupedGemm(GroupedGemm {
        groups: vec![GemmShape { m, n, k }],
        form: Form::Plain,
        output: OutputFormat::F32,
    })
}

fn service() -> CpuService {
    CpuService::new(EngineOptions {
        simd: None,
        threads: Some(2),
        ..EngineOptions::default()
    })
    .unwrap()
}

fn save(folder: &Path, problem: &Problem, seed: u64) -> (Inputs, std::path::PathBuf) {
    let inputs = Inputs::generate(problem, InputKind::Competition, seed);
    let path = folder.join(format!("{seed}.inputs"));
    inputs.save(&path).unwrap();
    (inputs, path)
}

fn assert_failure<T>(result: Result<T, Failure>, kind: FailureKind, message: &str) {
    let failure = result.err().unwrap();
    assert_eq!(failure.kind, kind, "{}", failure.message);
    assert!(failure.message.contains(message), "{}", failure.message);
}

#[test]
fn results_are_those_of_the_operands_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let problem = gemm(9, 40, 64);
    let (inputs, path) = save(folder.path(), &problem, 1);
    let result = folder.path().join("result");
    let mut service = service();
    service.build(&problem, &schedule([8, 32, 32])).unwrap();
    let bytes = service.load(std::slice::from_ref(&path), 3).unwrap();
    assert_eq!(bytes, 3 * inputs.memory_bytes() as u64);
    service.run(usize::MAX).unwrap();
    assert_eq!(service.output(&result).unwrap(), 9 * 40 * 4);
    assert_bits(
        &Output::load(&result, &problem).unwrap(),
        &expected(&problem, &inputs),
    );

    // The operands stay for the next schedule; the result does not.
    service.build(&problem, &schedule([16, 16, 16])).unwrap();
    service.output(&result).unwrap();
    assert_eq!(
        Output::load(&result, &problem).unwrap(),
        Output::poisoned(&problem)
    );
    assert_eq!(service.time(5, usize::MAX, true).unwrap().len(), 5);
    service.output(&result).unwrap();
    assert_bits(
        &Output::load(&result, &problem).unwrap(),
        &expected(&problem, &inputs),
    );
}

#[test]
fn calls_out_of_order_are_bad_requests() {
    let folder = tempfile::tempdir().unwrap();
    let problem = gemm(4, 16, 16);
    let (_, path) = save(folder.path(), &problem, 1);
    let mut service = service();
    let unbuilt = "nothing has been built";
    assert_failure(
        service.load(std::slice::from_ref(&path), 1),
        FailureKind::BadRequest,
        unbuilt,
    );
    assert_failure(service.run(0), FailureKind::BadRequest, unbuilt);
    service.build(&problem, &schedule([8, 16, 16])).unwrap();
    let unloaded = "no operands";
    assert_failure(service.run(0), FailureKind::BadRequest, unloaded);
    assert_failure(service.time(1, 0, false), FailureKind::BadRequest, unloaded);
    assert_failure(service.output(&path), FailureKind::BadRequest, unloaded);
    let missing = service.load(&[folder.path().join("none")], 1);
    assert_failure(missing, FailureKind::BadRequest, "cannot read");
}

#[test]
fn it_refuses_to_write_timelines() {
    let traced = service().trace(Path::new("timeline.json"));
    assert_failure(traced, FailureKind::Refused, "only the cuda executor does");
}

#[test]
fn what_does_not_fit_into_memory_is_a_failure_and_the_worker_lives_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = service();
    // A workspace of megabytes, a result of terabytes.
    let huge = gemm(1 << 20, 1 << 20, 16);
    let wide = Schedule {
        setup: Setup::PerCall,
        ..schedule([1 << 12, 1 << 12, 16])
    };
    assert_failure(
        service.build(&huge, &wide),
        FailureKind::Broken,
        "the result would take",
    );

    let problem = gemm(0, 16, 16);
    let (_, path) = save(folder.path(), &problem, 1);
    service.build(&problem, &schedule([8, 16, 16])).unwrap();
    for copies in [usize::MAX, 1 << 40] {
        let failure = service.load(std::slice::from_ref(&path), copies);
        assert_failure(failure, FailureKind::Broken, "copies of the operands");
    }
    service.load(std::slice::from_ref(&path), 2).unwrap();
    service.run(1).unwrap();
}

/// Each line gets a reply, and all but the last a failure of the kind expected.
#[test]
fn malformed_requests_are_answered() {
    let build = |problem: &str, schedule: &str| {
        format!(r#"{{"id":7,"call":"build","problem":{problem},"schedule":{schedule}}}"#)
    };
    let gemm = |sizes: &str| format!(r#"{{"family":"grouped-gemm","groups":[{sizes}]}}"#);
    let attention = |heads: u64, queries: u64| {
        format!(
            r#"{{"family":"attention","sequences":[{{"queries":{queries},"keys":1}}],"heads":{heads},
            "kv_heads":{heads},"head_size":8,"format":"f16"}}"#
        )
        .replace('\n', "")
    };
    let good = gemm(r#"{"m":8,"n":16,"k":16}"#);
    let requests = [
        ("{".into(), "bad-request"),
        ("null".into(), "bad-request"),
        (r#"{"id":7,"call":"dance"}"#.into(), "bad-request"),
        (build(&gemm(""), "{}"), "bad-request"),
        (build(&gemm(r#"{"m":8,"n":16,"k":17}"#), "{}"), "bad-request"),
        (build(&gemm(r#"{"m":8,"n":-16,"k":16}"#), "{}"), "bad-request"),
        (
            build(
                &gemm(r#"{"m":18446744073709551615,"n":18446744073709551615,"k":16}"#),
                "{}",
            ),
            "bad-request",
        ),
        (
            build(&attention(1 << 31, 0), r#"{"tile":[8,8,8]}"#),
            "bad-request",
        ),
        (build(&attention(1, 1 << 50), r#"{"tile":[8,8,8]}"#), "refused"),
        (build(&good, r#"{"tile":[0,0,0]}"#), "bad-request"),
        (build(&good, r#"{"stages":0}"#), "bad-request"),
        (build(&good, r#"{"split-k":0}"#), "bad-request"),
        (build(&good, r#"{"cluster":[0,0]}"#), "bad-request"),
        (build(&good, r#"{"stages":18446744073709551615}"#), "bad-request"),
        (build(&good, r#"{"split-k":18446744073709551615}"#), "bad-request"),
        (build(&good, r#"{"tile":[8,8,24]}"#), "refused"),
        (build(&good, "{}"), ""),
    ];
    let lines: Vec<&str> = requests.iter().map(|(line, _)| line.as_str()).collect();
    let mut replies = Vec::new();
    serve(&mut service(), lines.join("\n").as_bytes(), &mut replies).unwrap();
    let replies = String::from_utf8(replies).unwrap();
    assert_eq!(replies.lines().count(), requests.len());
    for ((request, kind), reply) in requests.iter().zip(replies.lines()) {
        let expected = if kind.is_empty() {
            r#""answer":"built""#.to_owned()
        } else {
            format!(r#""kind":"{kind}""#)
        };
        assert!(reply.contains(&expected), "{request}\n{reply}");
    }
}
