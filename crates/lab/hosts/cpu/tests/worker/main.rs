//! The worker answers requests with the right results; it answers a request that it cannot serve with a failure and
//! keeps running.
#![expect(clippy::unwrap_used, reason = "tests")]

mod families;
mod python;

use std::path::Path;

use gauntlet_families::operations;
use gauntlet_host_cpu::{CpuFamilies, CpuHost};
use gauntlet_kernels_cpu::EngineOptions;
use gauntlet_parameters::Parameters;
use gauntlet_problems::{
    Cluster, Epilogue, Form, GemmShape, GroupedGemm, Inputs, Lookup, Operation, Order, Output, OutputFormat,
    Roles, Schedule, Setup,
};
use gauntlet_task::{Coverage, Expected, InputKind};
use gauntlet_worker::protocol::{CaseRequest, Failure, FailureKind, POISON};
use gauntlet_worker::{Calls, Service, serve};

/// Two threads, however many processors there are.
fn options() -> EngineOptions {
    EngineOptions {
        threads: Some(2),
        ..EngineOptions::default()
    }
}

fn gemm(m: usize, n: usize, k: usize) -> Operation {
    Operation::GroupedGemm(GroupedGemm {
        groups: vec![GemmShape { m, n, k }],
        form: Form::Plain,
        output: OutputFormat::F32,
        tokens: Default::default(),
    })
}

/// The case as a worker receives it.
fn case(operation: &Operation) -> CaseRequest {
    let record = serde_json::to_value(operation).unwrap();
    CaseRequest::of(&gauntlet_families::open(&record).unwrap())
}

/// A request for timed calls on these copies.
fn calls(copies: &[usize], phases: bool) -> Calls {
    Calls {
        copies: copies.to_vec(),
        phases,
        ..Calls::default()
    }
}

fn service() -> CpuHost {
    CpuHost::new(options(), CpuFamilies::built_in()).unwrap()
}

/// A plain schedule with this `tile`, as parameters.
fn schedule(tile: [usize; 3]) -> Parameters {
    Schedule {
        tile: tile.into(),
        stages: 2,
        epilogue: Epilogue::Direct,
        roles: Roles::Unified,
        order: Order::Dynamic,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        swap_ab: false,
        split_k: 1,
        cluster: Cluster { m: 1, n: 1 },
        ..Schedule::baseline()
    }
    .parameters()
}

/// The whole result in f64.
fn expected(problem: &Operation, inputs: &Inputs) -> Expected {
    operations::expected(problem, inputs, Coverage::Full).unwrap()
}

/// Checks that each element of `output` is the expected value rounded once.
fn assert_bits(output: &Output, expected: &Expected) {
    // The output has one part.
    for (_, index, value) in expected.values() {
        assert_eq!(output.get(index), output.format.round(value), "element {index}");
    }
}

fn save(folder: &Path, problem: &Operation, seed: u64) -> (Inputs, std::path::PathBuf) {
    let inputs = operations::generate(problem, InputKind::Competition, seed);
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
    service.build(&case(&problem), &schedule([8, 32, 32])).unwrap();
    let bytes = service.load(std::slice::from_ref(&path), 3).unwrap();
    assert_eq!(bytes, 3 * inputs.memory_bytes() as u64);
    service.run(usize::MAX, POISON).unwrap();
    assert_eq!(service.output(&result, 0).unwrap(), 9 * 40 * 4);
    assert_bits(
        &Output::load(&result, &problem).unwrap(),
        &expected(&problem, &inputs),
    );

    // The operands stay loaded for the next schedule; the output is poisoned again.
    service.build(&case(&problem), &schedule([16, 16, 16])).unwrap();
    service.output(&result, 0).unwrap();
    assert_eq!(
        Output::load(&result, &problem).unwrap(),
        Output::poisoned(&problem)
    );
    assert_eq!(
        service
            .time(calls(&[usize::MAX, 0, 2, 2, 1], true))
            .unwrap()
            .len(),
        5
    );
    service.output(&result, 4).unwrap();
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
    assert_failure(service.run(0, POISON), FailureKind::BadRequest, unbuilt);
    service.build(&case(&problem), &schedule([8, 16, 16])).unwrap();
    let unloaded = "no operands";
    assert_failure(service.run(0, POISON), FailureKind::BadRequest, unloaded);
    assert_failure(
        service.time(calls(&[0], false)),
        FailureKind::BadRequest,
        unloaded,
    );
    assert_failure(service.output(&path, 0), FailureKind::BadRequest, unloaded);
    let missing = service.load(&[folder.path().join("none")], 1);
    assert_failure(missing, FailureKind::BadRequest, "cannot read");
}

#[test]
fn unknown_parameters_and_values_are_refused_by_name() {
    let with = |name: &str, value: &str| schedule([8, 32, 32]).with(name, value);
    for (parameters, message) in [
        (with("tilde", "x"), "did you mean `tile`?"),
        (with("order", "purple"), "`order`"),
        (with("lookup", "nonsense"), "`lookup`"),
    ] {
        let built = service().build(&case(&gemm(8, 64, 64)), &parameters);
        assert_failure(built, FailureKind::Refused, message);
    }
}

#[test]
fn a_candidate_may_name_parameters_of_several_tasks() {
    let families = CpuFamilies::built_in().with(gauntlet_rms_norm::RmsNormKernels);
    let mut service = CpuHost::new(options(), families).unwrap();
    let parameters = schedule([8, 32, 32]).with("rows-per-task", 2_usize);
    service.build(&case(&gemm(8, 64, 64)), &parameters).unwrap();
    let rms_norm = gauntlet_rms_norm::RMS_NORM.open(&serde_json::json!({ "rows": 2, "columns": 8 }));
    service
        .build(&CaseRequest::of(&rms_norm.unwrap()), &parameters)
        .unwrap();
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
    // The workspace takes megabytes, the result terabytes.
    let huge = gemm(1 << 20, 1 << 20, 16);
    let wide = schedule([1 << 12, 1 << 12, 16]).with("setup", "per-call");
    assert_failure(
        service.build(&case(&huge), &wide),
        FailureKind::Broken,
        "the result would take",
    );

    let problem = gemm(0, 16, 16);
    let (_, path) = save(folder.path(), &problem, 1);
    service.build(&case(&problem), &schedule([8, 16, 16])).unwrap();
    for copies in [usize::MAX, 1 << 40] {
        let failure = service.load(std::slice::from_ref(&path), copies);
        assert_failure(failure, FailureKind::Broken, "copies of the operands");
    }
    service.load(std::slice::from_ref(&path), 2).unwrap();
    service.run(1, POISON).unwrap();
}

/// Each request but the last is malformed or impossible, and is answered with a failure of the expected kind.
#[test]
fn malformed_requests_are_answered() {
    let build = |task: &str, sizes: &str, parameters: &str| {
        format!(
            r#"{{"id":7,"call":"build","case":{{"task":"{task}","sizes":{sizes},"inputs":[],"outputs":[]}},"parameters":{parameters}}}"#
        )
    };
    let gemm = |sizes: &str, parameters: &str| {
        build("grouped-gemm", &format!(r#"{{"groups":[{sizes}]}}"#), parameters)
    };
    let attention = |heads: u64, queries: u64| {
        let sizes = format!(
            r#"{{"sequences":[{{"queries":{queries},"keys":1}}],"heads":{heads},"kv_heads":{heads},"head_size":8,"format":"f16"}}"#
        );
        build("attention", &sizes, r#"{"tile":[8,8,8]}"#)
    };
    let good = |parameters: &str| gemm(r#"{"m":8,"n":16,"k":16}"#, parameters);
    let most = "18446744073709551615";
    let requests = [
        ("{".into(), "bad-request"),
        ("null".into(), "bad-request"),
        (r#"{"id":7,"call":"dance"}"#.into(), "bad-request"),
        (build("rms-norm", r#"{"rows":1,"columns":1}"#, "{}"), "refused"),
        (build("dance", "{}", "{}"), "refused"),
        (gemm("", "{}"), "bad-request"),
        (gemm(r#"{"m":8,"n":16,"k":17}"#, "{}"), "bad-request"),
        (gemm(r#"{"m":8,"n":-16,"k":16}"#, "{}"), "bad-request"),
        (
            gemm(&format!(r#"{{"m":{most},"n":{most},"k":16}}"#), "{}"),
            "bad-request",
        ),
        (attention(1 << 31, 0), "bad-request"),
        (attention(1, 1 << 50), "refused"),
        (good(r#"{"tile":[0,0,0]}"#), "refused"),
        (good(r#"{"stages":0}"#), "refused"),
        (good(r#"{"split-k":0}"#), "refused"),
        (good(r#"{"cluster":[0,0]}"#), "refused"),
        (good(&format!(r#"{{"stages":{most}}}"#)), "refused"),
        (good(&format!(r#"{{"split-k":{most}}}"#)), "refused"),
        (good(r#"{"tile":[8,8,24]}"#), "refused"),
        (good("{}"), ""),
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
