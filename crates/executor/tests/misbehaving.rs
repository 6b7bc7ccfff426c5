//! Workers that misbehave cost a bounded time and are told apart.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use gauntlet_executor::{Patience, WorkerCommand, WorkerError, WorkerProcess};

const DESCRIPTION: &str =
    r#"{"id":1,"answer":"description","protocol":2,"worker":"shell","device":"host","details":{}}"#;

fn start(script: &str) -> Result<WorkerProcess, WorkerError> {
    let command = WorkerCommand {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        environment: BTreeMap::new(),
    };
    let patience = Patience {
        compute: Duration::from_millis(200),
        ..Patience::default()
    };
    WorkerProcess::start(&command, Path::new("/"), patience).map(|(worker, _)| worker)
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_that_left_the_group_and_holds_the_pipes_is_not_awaited() {
    let begun = Instant::now();
    let worker = start(&format!(
        "setsid sleep 6 & read line; echo '{DESCRIPTION}'; read line"
    ))
    .unwrap();
    drop(worker);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[test]
fn half_a_line_before_the_end_is_a_death() {
    let error = start(r#"read line; printf '{"id":1,"ans'; echo 'out of memory' >&2; exit 9"#)
        .err()
        .unwrap();
    let WorkerError::Died { last_words, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(last_words.trim(), "out of memory");
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
        let error = start(&script).unwrap().time(1, 0, false).unwrap_err();
        assert!(error.to_string().contains("no such time can be"), "{error}");
    }
}

#[test]
fn a_hang_in_many_samples_is_not_awaited_for_each() {
    let mut worker = start(&format!("read line; echo '{DESCRIPTION}'; sleep 60")).unwrap();
    let begun = Instant::now();
    let error = worker.time(256, 0, false).unwrap_err();
    assert!(matches!(error, WorkerError::Late { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
