//! Misbehaving workers cost a bounded time, and errors tell the cases apart.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::{Duration, Instant};

use common::{DESCRIPTION, eventually, start, start_late, start_within};
use gauntlet_parameters::Parameters;
use gauntlet_task::Sizes;
use gauntlet_worker::{Limits, WorkerError};

/// Shorter than the sleeps of 300 s that the coordinator must not wait for, and far longer than ending a worker takes on a
/// busy machine.
const PROMPT: Duration = Duration::from_secs(240);

#[test]
fn half_a_line_before_the_end_is_a_death() {
    let error = start(r#"read line; printf '{"id":1,"ans'; echo 'out of memory' >&2; exit 9"#)
        .err()
        .unwrap();
    let WorkerError::Died { stderr_tail, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(stderr_tail.trim(), "out of memory");
}

#[test]
fn a_death_is_seen_though_a_child_holds_standard_output() {
    let begun = Instant::now();
    let error = start("read line; sleep 300 & exit 3").err().unwrap();
    let WorkerError::Died { status, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(status.and_then(|status| status.code()), Some(3), "{error}");
    assert!(begun.elapsed() < PROMPT, "{:?}", begun.elapsed());
}

/// A reply counts even if the worker exits right after it.
#[test]
fn an_answer_just_before_the_end_is_one() {
    let mut worker = start(&format!(
        "read line; echo '{DESCRIPTION}'; read line; sleep 300 & echo '{{\"id\":2,\"answer\":\"ran\",\"call\":0.001}}'; exit 0"
    ))
    .unwrap();
    worker.run(0).unwrap();
}

#[test]
fn a_flood_before_the_answer_is_garbage_and_ends_the_worker() {
    let error = start("yes flood").err().unwrap();
    assert!(matches!(error, WorkerError::Garbage { .. }), "{error}");
}

#[test]
fn times_that_cannot_be_are_no_answer() {
    for sample in [
        r#"{"call":0.0}"#,
        r#"{"call":-1.0}"#,
        r#"{"call":1.0,"kernel":-1.0}"#,
    ] {
        let answer = format!(r#"{{"id":2,"answer":"timed","samples":[{sample}]}}"#);
        let script = format!("read line; echo '{DESCRIPTION}'; read line; echo '{answer}'; read line");
        let error = start(&script).unwrap().time(&[0], false).unwrap_err();
        assert!(error.to_string().contains("time is not possible"), "{error}");
    }
}

#[test]
fn a_hang_in_many_samples_is_not_awaited_for_each() {
    let mut worker = start_late(&format!("read line; echo '{DESCRIPTION}'; sleep 300"));
    let begun = Instant::now();
    let error = worker.time(&[0; 256], false).unwrap_err();
    assert!(matches!(error, WorkerError::Late { .. }), "{error}");
    assert!(begun.elapsed() < PROMPT, "{:?}", begun.elapsed());
}

#[test]
fn an_end_without_fault_is_a_death_too() {
    let mut worker = start(&format!(
        "read line; echo '{DESCRIPTION}'; echo 'enough' >&2; exit 0"
    ))
    .unwrap();
    let error = worker.run(0).unwrap_err();
    assert!(
        matches!(&error, WorkerError::Died { status: Some(status), .. } if status.success()),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .ends_with("the end of its standard error: enough"),
        "{error}"
    );
}

/// Sizes whose request is longer than a pipe holds, so that writing it waits for the reader.
fn long_sizes() -> Sizes {
    let group = serde_json::json!({ "m": 1, "n": 16, "k": 16 });
    let groups = vec![group; 1200];
    gauntlet_families::open(&serde_json::json!({ "family": "grouped-gemm", "groups": groups })).unwrap()
}

#[test]
fn one_that_never_reads_is_not_written_to_for_ever() {
    let mut worker = start_late(&format!("read line; echo '{DESCRIPTION}'; sleep 300"));
    let begun = Instant::now();
    let error = worker.build(&long_sizes(), &Parameters::new()).unwrap_err();
    assert!(
        matches!(error, WorkerError::Late { call: "build", .. }),
        "{error}"
    );
    assert!(begun.elapsed() < PROMPT, "{:?}", begun.elapsed());
}

#[test]
fn one_that_reads_late_gets_all_of_a_long_request() {
    let refusal = r#"{"id":2,"error":{"kind":"refused","message":"bytes: '"$length"'"}}"#;
    let mut worker = start(&format!(
        "read line; echo '{DESCRIPTION}'; sleep 0.3; length=$(head -n 1 | wc -c); echo '{refusal}'; read line"
    ))
    .unwrap();
    let error = worker.build(&long_sizes(), &Parameters::new()).unwrap_err();
    let told: usize = error
        .to_string()
        .strip_prefix("bytes: ")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(told > 500_000, "{error}");
}

#[test]
fn what_is_answered_before_it_is_asked_is_no_answer() {
    let answer = r#"{"id":2,"answer":"timed","samples":[{"call":0.001}]}"#;
    let mut worker = start(&format!(
        "read line; echo '{DESCRIPTION}'; echo '{answer}'; : > answered; read line; read line"
    ))
    .unwrap();
    let answered = worker.folder().join("answered");
    assert!(eventually(|| answered.exists()));
    let error = worker.time(&[0], false).unwrap_err();
    assert!(
        error.to_string().contains("it came before it was asked for"),
        "{error}"
    );
}

#[test]
fn two_answers_to_one_question_are_one_too_many() {
    let answer = r#"{"id":2,"answer":"ran","call":0.001}"#;
    let mut worker = start(&format!(
        "read line; echo '{DESCRIPTION}'; read line; echo '{answer}'; echo '{answer}'; read line; sleep 300"
    ))
    .unwrap();
    worker.run(0).unwrap();
    let error = worker.run(0).unwrap_err();
    assert!(matches!(error, WorkerError::Garbage { .. }), "{error}");
}

#[test]
fn a_gigabyte_on_the_protocol_fills_no_memory_and_takes_no_time() {
    for flood in ["head -c 1000000000 /dev/zero", "yes '{}' | head -c 1000000000"] {
        let begun = Instant::now();
        let error = start(flood).err().unwrap();
        assert!(matches!(error, WorkerError::Garbage { .. }), "{error}");
        let mut worker = start(&format!("read line; echo '{DESCRIPTION}'; {flood}; read line")).unwrap();
        let error = worker.run(0).unwrap_err();
        assert!(matches!(error, WorkerError::Garbage { .. }), "{error}");
        assert!(begun.elapsed() < PROMPT, "{:?}", begun.elapsed());
    }
    #[cfg(target_os = "linux")]
    {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        let kibibytes: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
        assert!(kibibytes < 400 << 10, "this program grew to {kibibytes} KiB");
    }
}

#[test]
fn a_gigabyte_on_standard_error_is_too_much() {
    let begun = Instant::now();
    for flood in [
        "head -c 1000000000 /dev/zero >&2",
        "trap '' PIPE; yes no >&2; sleep 300",
    ] {
        let error = start(&format!("echo begun >&2; {flood}")).err().unwrap();
        let WorkerError::OverLimit { call, what, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(
            (*call, what.as_str()),
            ("describe", "over 64 MiB on standard error")
        );
    }
    assert!(begun.elapsed() < PROMPT, "{:?}", begun.elapsed());
}

/// The limit that stops a worker which runs `deed` and waits; `None` if it is not stopped.
#[cfg(target_os = "linux")]
fn excess(deed: &str, limits: Limits) -> Option<String> {
    let begun = Instant::now();
    let result = start_within(
        &format!("read line; echo 'I take' >&2; {deed}; sleep 300; echo '{DESCRIPTION}'"),
        limits,
    );
    assert!(begun.elapsed() < PROMPT, "{:?}", begun.elapsed());
    match result.err()? {
        WorkerError::OverLimit {
            what, stderr_tail, ..
        } => {
            assert!(stderr_tail.starts_with("I take"), "{stderr_tail}");
            Some(what)
        }
        WorkerError::OutOfMemory {
            what, stderr_tail, ..
        } => {
            assert!(stderr_tail.starts_with("I take"), "{stderr_tail}");
            Some(format!("out of memory: {what}"))
        }
        error => Some(error.to_string()),
    }
}

#[test]
#[cfg(target_os = "linux")]
fn too_much_memory_of_one_or_of_many_ends_the_worker() {
    let limits = Limits {
        memory: 96 << 20,
        ..Limits::default()
    };
    let hold = |bytes: u32| format!("x=$(head -c {bytes} /dev/zero | tr '\\0' x)");
    let many = format!("for i in 1 2 3 4; do ({}; sleep 300) & done", hold(40_000_000));
    for deed in [hold(120_000_000), many] {
        let what = excess(&deed, limits).unwrap();
        assert!(
            what.starts_with("out of memory: ") && what.contains("of 96 MiB"),
            "{what}"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn memory_that_several_share_is_counted_once() {
    let limits = Limits {
        memory: 96 << 20,
        ..Limits::default()
    };
    // The children share the memory that their parent has filled, and write nothing themselves.
    let deed =
        "x=$(head -c 40000000 /dev/zero | tr '\\0' x); for i in 1 2 3 4 5 6; do (sleep 1; :) & done; sleep 1";
    let script = format!("read line; {deed}; echo '{DESCRIPTION}'; read line");
    start_within(&script, limits).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn too_many_processes_end_the_worker() {
    let limits = Limits {
        processes: 20,
        ..Limits::default()
    };
    let many = |count: u32| format!("i=0; while [ $i -lt {count} ]; do sleep 300 & i=$((i+1)); done");
    let what = excess(&many(40), limits).unwrap();
    assert!(what.ends_with("processes"), "{what}");
}

#[test]
#[cfg(target_os = "linux")]
fn too_much_in_its_folder_ends_the_worker() {
    let limits = Limits {
        folder: 8 << 20,
        ..Limits::default()
    };
    let what = excess("for i in 1 2 3; do head -c 4000000 /dev/zero > $i; done", limits).unwrap();
    assert!(what.ends_with("MiB in its folder"), "{what}");
}

#[test]
fn one_file_grows_no_longer_than_it_may() {
    let limits = Limits {
        file: 1 << 20,
        ..Limits::default()
    };
    let script = format!("read line; head -c 4000000 /dev/zero > file; echo '{DESCRIPTION}'; read line");
    let worker = start_within(&script, limits).unwrap();
    let length = std::fs::metadata(worker.folder().join("file")).unwrap().len();
    assert_eq!(length, 1 << 20);
}
