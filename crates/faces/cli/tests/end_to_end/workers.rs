//! Programs that speak the worker protocol badly: each ends only itself and becomes a finding with the end of its
//! standard error.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::os::unix::fs::PermissionsExt;

use crate::common::{Place, Ran, TINY_SUITE, pitch, tiny_round};
use serde_json::Value;

const DESCRIPTION: &str =
    r#"{"id":1,"answer":"description","protocol":4,"worker":"shell","device":"host","details":{}}"#;

/// Plays a round whose only pitch is a shell script; returns its verdict and reason.
fn play(script: &str) -> (String, String) {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    let path = place.write("worker.sh", &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let round = tiny_round(&pitch("theirs", "", "command = [\"./worker.sh\"]"));
    place.write("round.toml", &round.replace("schedule = {  }\n", ""));
    place.run(&["run", "round.toml", "--json", "out.json"]).expect(0);
    let report: Value = serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap();
    let judged = &report["rounds"][0]["judged"][0];
    (
        judged["verdict"].as_str().unwrap().to_owned(),
        judged["reason"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn one_that_exits_at_once() {
    let (verdict, reason) = play("echo 'no device here' >&2; exit 7");
    assert_eq!(verdict, "does-not-compile");
    assert!(
        reason.contains("died in `describe`") && reason.contains("exit code 7"),
        "{reason}"
    );
    assert!(
        reason.contains("the end of its standard error: no device here"),
        "{reason}"
    );
}

#[test]
fn one_that_prints_garbage() {
    let (verdict, reason) = play("echo 'hello, world'; sleep 60");
    assert_eq!(verdict, "does-not-compile");
    assert!(
        reason.contains("what is not a reply") && reason.contains("hello, world"),
        "{reason}"
    );
}

#[test]
fn one_that_answers_another_question() {
    let (_, reason) = play(&format!(
        "echo '{}'; sleep 60",
        DESCRIPTION.replace("\"id\":1", "\"id\":9")
    ));
    assert!(reason.contains("answers request 9, not 1"), "{reason}");
}

#[test]
fn one_of_another_protocol() {
    let (_, reason) = play(&format!(
        "echo '{}'; sleep 60",
        DESCRIPTION.replace("\"protocol\":4", "\"protocol\":9")
    ));
    assert!(reason.contains("version 9 of the protocol"), "{reason}");
}

#[test]
fn one_that_refuses_to_build() {
    let refusal = r#"{"id":2,"error":{"kind":"refused","message":"no fp4 unit"}}"#;
    let (verdict, reason) = play(&format!(
        "read a; echo '{DESCRIPTION}'; read b; echo '{refusal}'; read c"
    ));
    assert_eq!(
        (verdict.as_str(), reason.contains("no fp4 unit")),
        ("does-not-compile", true),
        "{reason}"
    );
}

#[test]
fn one_that_lacks_memory() {
    let broken = r#"{"id":2,"error":{"kind":"broken","message":"no memory left"}}"#;
    let (verdict, reason) = play(&format!(
        "read a; echo '{DESCRIPTION}'; read b; echo '{broken}'; read c"
    ));
    assert_eq!((verdict.as_str(), reason.as_str()), ("blocked", "no memory left"));
}

#[test]
fn one_whose_result_is_no_result() {
    // Each gate starts its own worker, whose requests count from 1.
    let script = format!(
        r#"
while read -r line; do
  id=$(echo "$line" | sed 's/^{{"id":\([0-9]*\).*/\1/')
  case "$line" in
    *'"call":"describe"'*) echo '{DESCRIPTION}' ;;
    *'"call":"build"'*) echo "{{\"id\":$id,\"answer\":\"built\",\"resources\":{{}}}}" ;;
    *'"call":"load"'*) echo "{{\"id\":$id,\"answer\":\"loaded\",\"bytes\":1}}" ;;
    *'"call":"prepare"'*) echo "{{\"id\":$id,\"answer\":\"prepared\",\"bytes\":0}}" ;;
    *'"call":"run"'*) echo "{{\"id\":$id,\"answer\":\"ran\",\"call\":0.001}}" ;;
    *'"call":"output"'*)
      path=$(echo "$line" | sed 's/.*"path":"\([^"]*\)".*/\1/')
      echo nonsense > "$path"
      echo "{{\"id\":$id,\"answer\":\"written\",\"bytes\":9}}" ;;
  esac
done"#
    );
    let (verdict, reason) = play(&script);
    assert_eq!(verdict, "incorrect", "{reason}");
    assert!(reason.contains("its result cannot be used"), "{reason}");
}

#[test]
fn one_that_does_not_exist() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    let round =
        tiny_round(&pitch("theirs", "", "command = [\"./nowhere\"]")).replace("schedule = {  }\n", "");
    place.write("round.toml", &round);
    let ran = place.run(&["run", "round.toml"]).expect(0);
    assert!(
        ran.out.contains("blocked") && ran.folded().contains("could not be started"),
        "{}",
        ran.err
    );
}

/// This program itself, given as an external worker would be.
#[test]
fn one_that_is_honest() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    let program = env!("CARGO_BIN_EXE_gauntlet");
    let command = format!("command = [\"{program}\", \"worker\", \"cpu\", \"--simd\", \"portable\"]");
    place.write(
        "round.toml",
        &tiny_round(&pitch("theirs", "", &command)).replace("schedule = {  }\n", ""),
    );
    place.run(&["run", "round.toml", "--json", "out.json"]).expect(0);
    let report: Value = serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap();
    let findings = report["rounds"][0]["judged"][0]["findings"].as_array().unwrap();
    let right = findings
        .iter()
        .find(|finding| finding["gate"] == "right")
        .unwrap();
    assert_eq!(right["outcome"], "pass", "{right}");
    assert!(
        findings.iter().any(|finding| finding["gate"] == "faster"),
        "it was not compared"
    );
}

/// The program reports times without phases, so there is no share of a phase.
#[test]
fn a_rule_on_phases_does_not_stop_one_that_reports_none() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    let program = env!("CARGO_BIN_EXE_gauntlet");
    let command = format!("command = [\"{program}\", \"worker\", \"cheat\", \"honest\"]");
    let rule = r#"[{ when = "candidate.wait-share > 0.5", why = "it only waits" }]"#;
    let round = tiny_round(&pitch("theirs", "", &command))
        .replace("schedule = {  }\n", "")
        .replace("abort = []", &format!("abort = {rule}"));
    place.write("round.toml", &round);
    place.run(&["run", "round.toml", "--json", "out.json"]).expect(0);
    let report: Value = serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap();
    let findings = report["rounds"][0]["judged"][0]["findings"].as_array().unwrap();
    let found = |gate: &str| findings.iter().find(|finding| finding["gate"] == gate).unwrap();
    let profiled = found("profiled");
    assert_eq!(profiled["outcome"], "pass", "{profiled}");
    let reason = profiled["reason"].as_str().unwrap();
    assert!(
        reason.contains("candidate.wait-share > 0.5 is not applicable"),
        "{reason}"
    );
    found("faster");
}

#[test]
fn more_threads_than_an_engine_takes() {
    for (threads, phrase) in [("200000", "at most 4096"), ("0", "at least 1 thread")] {
        let ran = Place::new()
            .run(&["worker", "cpu", "--threads", threads])
            .expect(2);
        assert!(ran.folded().contains(phrase), "{}", ran.err);
    }
}

/// One build, and the worker's answer to it.
fn built(worker: &[&str], parameters: &str) -> Option<Value> {
    let place = Place::new();
    let case =
        r#"{"task":"grouped-gemm","sizes":{"groups":[{"m":8,"n":64,"k":256}]},"inputs":[],"outputs":[]}"#;
    let requests = format!(
        "{{\"id\":1,\"call\":\"describe\"}}\n{{\"id\":2,\"call\":\"build\",\"case\":{case},\"parameters\":{parameters}}}\n"
    );
    std::fs::write(place.path("requests"), requests).unwrap();
    let mut command = place.command(&[&["worker"], worker].concat());
    command.stdin(std::fs::File::open(place.path("requests")).unwrap());
    let ran = Ran::of(command.output().unwrap());
    if ran.err.contains("no CUDA compiler") {
        assert!(
            std::env::var_os("GAUNTLET_REQUIRE_COMPILER").is_none(),
            "{}",
            ran.err
        );
        println!("skipped: there is no CUDA compiler");
        return None;
    }
    let answer = ran.out.lines().nth(1);
    assert!(answer.is_some(), "no answer: {}", ran.err);
    Some(serde_json::from_str(answer?).unwrap())
}

#[test]
fn built_in_workers_refuse_parameters_that_they_do_not_know_by_name() {
    let workers: [&[&str]; 2] = [
        &["cpu", "--threads", "1"],
        &["cuda", "--compile-for", "sm_90a", "--processors", "132"],
    ];
    for worker in workers {
        for (parameters, name) in [
            (r#"{"tilde":[64,64,256]}"#, "`tilde`"),
            (r#"{"order":"purple"}"#, "`order`"),
            (r#"{"stages":3,"lookup":"nonsense"}"#, "`lookup`"),
        ] {
            let Some(answer) = built(worker, parameters) else {
                continue;
            };
            assert_eq!(answer["error"]["kind"], "refused", "{answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains(name), "{answer}");
        }
    }
}
