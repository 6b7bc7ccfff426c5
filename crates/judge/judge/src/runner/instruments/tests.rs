//! Tests with scripts as tools and workers, sandboxed like the real ones.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gauntlet_parameters::Parameters;
use gauntlet_task::Case;
use gauntlet_worker::{Limits, Timeouts, WorkerCommand};

use super::{check, read_counters};
use crate::evidence::{Candidate, Told};
use crate::runner::Workshop;

/// A worker that answers each request in turn; `run` is executed before it answers a run request.
fn worker(run: &str) -> WorkerCommand {
    let script = format!(
        r#"read line; echo '{{"id":1,"answer":"description","protocol":{},"worker":"script","device":"none"}}'
           read line; echo '{{"id":2,"answer":"built","resources":{{}}}}'
           read line; echo '{{"id":3,"answer":"loaded","bytes":1}}'
           read line; echo '{{"id":4,"answer":"prepared","bytes":0}}'
           read line; {run}; echo '{{"id":5,"answer":"ran","call":0.5}}'
           read line; echo '{{"id":6,"answer":"stopped"}}'"#,
        gauntlet_worker::protocol::VERSION
    );
    WorkerCommand::new("/bin/sh", ["-c".into(), script.into()])
}

/// A tool that runs the command after its options and then writes `log` to the path given by `--log-file`.
fn tool(folder: &Path, log: &str) -> PathBuf {
    let path = folder.join("tool");
    let script = format!(
        "#!/bin/sh\nwhile [ \"$1\" != --log-file ]; do shift; done\nfile=$2; shift 2\n\"$@\"\nsleep 0.1\ncat > \"$file\" <<'END'\n{log}\nEND\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn case() -> Case {
    let mut case = gauntlet_families::suite("group-gemm")
        .unwrap()
        .benchmark
        .remove(3);
    case.sizes = gauntlet_families::open(&serde_json::json!({
        "family": "grouped-gemm", "groups": [{ "m": 2, "n": 16, "k": 16 }]
    }))
    .unwrap();
    case
}

fn built_in() -> Candidate {
    Candidate::new("candidate", Parameters::new())
}

fn told(log: &str, run: &str) -> Told {
    let place = tempfile::tempdir().unwrap();
    let tool = tool(place.path(), log);
    let workshop = Workshop::new(worker(run), Timeouts::default(), Limits::default()).unwrap();
    check(
        &workshop,
        &tool,
        "memcheck",
        &case(),
        &built_in(),
        &Parameters::new(),
    )
    .unwrap()
    .told
}

const CLEAN: &str = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors";

#[test]
fn what_a_tool_writes_after_the_worker_has_ended_is_read() {
    assert_eq!(told(CLEAN, ":"), Told::Clean);
    let faulty = "========= Invalid __global__ read of size 4 bytes\n=========     at rows+0x10\n========= ERROR SUMMARY: 3 errors";
    let Told::Faults { count, first } = told(faulty, ":") else {
        panic!("no fault is told")
    };
    assert_eq!(
        (count, first.as_str()),
        (3, "Invalid __global__ read of size 4 bytes at rows+0x10")
    );
}

#[test]
fn a_fault_that_ends_the_worker_is_still_told_by_the_tool() {
    let faulty = "========= Invalid __shared__ write of size 4 bytes\n========= ERROR SUMMARY: 1 error";
    assert!(matches!(told(faulty, "exit 70"), Told::Faults { count: 1, .. }));
}

#[test]
fn a_worker_that_fails_where_the_tool_finds_nothing_is_not_clean() {
    assert!(matches!(told(CLEAN, "exit 70"), Told::Nothing(why) if why.contains("failed under it")));
}

#[test]
fn a_tool_that_is_none_is_told() {
    let workshop = Workshop::new(worker(":"), Timeouts::default(), Limits::default()).unwrap();
    let told = check(
        &workshop,
        Path::new("/no/tool"),
        "memcheck",
        &case(),
        &built_in(),
        &Parameters::new(),
    )
    .unwrap();
    assert!(matches!(told.told, Told::Nothing(why) if why.contains("/no/tool")));
}

#[test]
fn counters_are_read_from_the_profilers_file() {
    let log = "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"launch__registers_per_thread\"\n\"\",\"\",\"ns\",\"\"\n\"0\",\"rows\",\"10\",\"168\"";
    let place = tempfile::tempdir().unwrap();
    let tool = tool(place.path(), log);
    let workshop = Workshop::new(worker(":"), Timeouts::default(), Limits::default()).unwrap();
    let counters = read_counters(&workshop, &tool, &case(), &built_in(), &Parameters::new())
        .unwrap()
        .unwrap();
    assert_eq!(
        (counters.kernel.as_str(), counters.figures["registers"]),
        ("rows", 168.0)
    );
}

#[test]
fn a_candidate_that_is_a_program_of_its_own_runs_under_the_tools_too() {
    let place = tempfile::tempdir().unwrap();
    let WorkerCommand {
        program, arguments, ..
    } = worker("exit 70");
    let own = Candidate {
        command: Some(
            std::iter::once(program)
                .chain(arguments.into_iter().map(PathBuf::from))
                .collect(),
        ),
        ..built_in()
    };
    let faulty = "========= Invalid __global__ read of size 4 bytes\n========= ERROR SUMMARY: 1 error";
    let tool = tool(place.path(), faulty);
    // The executor's own program cannot start, so only the candidate's program can answer.
    let nobody = WorkerCommand::new("/no/worker", []);
    let workshop = Workshop::new(nobody, Timeouts::default(), Limits::default()).unwrap();
    let checked = check(&workshop, &tool, "memcheck", &case(), &own, &Parameters::new()).unwrap();
    assert!(
        matches!(checked.told, Told::Faults { count: 1, .. }),
        "{:?}",
        checked.told
    );
}
