//! Programs as contestants: well-behaved ones, and every kind of bad behaviour.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;

use gauntlet_contestants::{
    Asked, Budget, Contestant, Engine, Form, Misconduct, Resource, Tool, Tools, Used, Whose,
};
use jiff::SignedDuration;
use serde_json::{Value, json};

/// A tool that adds one to a number and refuses anything else, and one that is a check.
struct Adder {
    calls: Vec<(String, Value)>,
}

impl Tools for Adder {
    fn list(&self) -> Vec<Tool> {
        ["add", "check"]
            .map(|name| Tool {
                name: name.to_owned(),
                description: "adds one".to_owned(),
                arguments: json!({"type": "object"}),
            })
            .into()
    }

    fn call(&mut self, name: &str, arguments: &Value) -> Result<Value, String> {
        self.calls.push((name.to_owned(), arguments.clone()));
        match (name, arguments["number"].as_i64()) {
            ("add", Some(number)) => Ok(json!(number + 1)),
            ("check", _) => Ok(json!({"right": true})),
            _ => Err(format!("`{name}` takes a number")),
        }
    }
}

fn engine(program: &[&str], budget: Budget) -> Engine {
    Engine {
        program: Some(program.iter().map(Into::into).collect()),
        budget,
        ..Engine::default()
    }
}

fn shell(script: &str) -> Contestant {
    shell_with(script, Budget::default())
}

fn shell_with(script: &str, budget: Budget) -> Contestant {
    Contestant::new("Tiles", engine(&["sh", "-c", script], budget), Path::new("/tmp"))
}

fn python(script: &str) -> Contestant {
    Contestant::new(
        "Tiles",
        engine(&["python3", "-c", script], Budget::default()),
        Path::new("/tmp"),
    )
}

fn ask(contestant: &mut Contestant, tools: Option<&mut dyn Tools>) -> Result<Asked, Misconduct> {
    ask_this(contestant, &json!({"phase": "pitch"}), tools)
}

/// Only `{"ok": true}` is accepted.
fn ask_this(
    contestant: &mut Contestant,
    question: &Value,
    tools: Option<&mut dyn Tools>,
) -> Result<Asked, Misconduct> {
    let form = Form {
        words: String::new(),
        schema: json!({}),
    };
    contestant.ask(
        question,
        &form,
        tools,
        &|answer| match answer["ok"] == json!(true) {
            true => Ok(()),
            false => Err("`ok` is not true".to_owned()),
        },
    )
}

fn spent(resource: Resource) -> Misconduct {
    Misconduct::Spent { resource }
}

fn without_answer(script: &str) -> Misconduct {
    ask(&mut shell(script), None).unwrap_err()
}

#[test]
fn a_program_reads_its_question_and_answers() {
    let script = r#"
import json, sys
question = json.loads(sys.stdin.readline())
assert question["phase"] == "pitch" and question["left"] == {"turns": 40, "tokens": 200000, "wall": question["left"]["wall"], "checks": 10}
assert [tool["name"] for tool in question["tools"]] == ["add", "check"], question
assert 0 < question["left"]["wall"] <= 1200
def call(name, **arguments):
    print(json.dumps({"call": name, "arguments": arguments}), flush=True)
    return json.loads(sys.stdin.readline())
assert call("add", number=4) == {"result": 5}
assert call("add", number="four") == {"error": "`add` takes a number"}
assert call("check") == {"result": {"right": True}}
print(json.dumps({"answer": {"ok": 1}}), flush=True)
assert json.loads(sys.stdin.readline()) == {"refused": "`ok` is not true"}
print(json.dumps({"answer": {"ok": True, "é": "☃"}}, ensure_ascii=False), flush=True)
"#;
    let mut adder = Adder { calls: Vec::new() };
    let mut contestant = python(script);
    let asked = ask(&mut contestant, Some(&mut adder)).unwrap();
    assert_eq!(asked.answer, json!({"ok": true, "é": "☃"}));
    assert_eq!(asked.refused, ["`ok` is not true"]);
    assert_eq!(
        asked.used,
        Used {
            turns: 5,
            checks: 1,
            wall: asked.used.wall,
            ..Used::default()
        }
    );
    assert_eq!(adder.calls[2], ("check".to_owned(), json!({})));
    assert_eq!(contestant.used(), &asked.used);
    assert_eq!((contestant.left().turns, contestant.left().checks), (35, 9));
}

#[test]
fn a_program_without_tools_is_told_so() {
    let script = r#"read q; echo '{"call": "check"}'; read r; echo "$r" >&2; test "$r" = '{"error":"there are no tools for this question"}' && echo '{"answer": {"ok": true}}'"#;
    let asked = ask(&mut shell(script), None).unwrap();
    assert_eq!(asked.used.checks, 0);
}

/// What it read, and a line break at its end, are a program's own affair.
#[test]
fn a_program_may_answer_unasked_and_without_a_line_break() {
    ask(&mut shell(r#"exec <&-; printf '{"answer": {"ok": true}}'"#), None).unwrap();
}

/// Both pipes are full: the question is larger than one holds, and so is what the program writes before it reads.
#[test]
fn a_long_question_and_an_early_answer_do_not_wait_for_each_other() {
    let script = r#"
import sys
print('{"answer": {"ok": false, "long": "%s"}}' % ("x" * 900_000), flush=True)
assert len(sys.stdin.readline()) > 1_000_000
assert "refused" in sys.stdin.readline()
print('{"answer": {"ok": true}}')
"#;
    let question = json!({"source": "y".repeat(1 << 20)});
    ask_this(&mut python(script), &question, None).unwrap();
}

#[test]
fn a_program_runs_in_the_folder_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("agents")).unwrap();
    let script = "#!/bin/sh\nread q\ntouch remembered\necho '{\"answer\": {\"ok\": true}}'\n";
    fs::write(folder.path().join("agents/tiles.sh"), script).unwrap();
    let engine = engine(&["sh", "agents/tiles.sh"], Budget::default());
    engine.validate(folder.path()).unwrap();
    ask(&mut Contestant::new("Tiles", engine, folder.path()), None).unwrap();
    assert!(folder.path().join("remembered").exists());
}

/// It gets a moment to keep what it wants to remember.
#[test]
fn a_program_may_end_by_itself_after_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"read q; echo '{"answer": {"ok": true}}'; cat >/dev/null; touch kept"#;
    let mut contestant = Contestant::new(
        "Tiles",
        engine(&["sh", "-c", script], Budget::default()),
        folder.path(),
    );
    ask(&mut contestant, None).unwrap();
    assert!(folder.path().join("kept").exists());
}

#[test]
fn a_program_that_cannot_be_started_is_not_to_blame() {
    let mut contestant = Contestant::new(
        "Tiles",
        engine(&["no-such-program"], Budget::default()),
        Path::new("/tmp"),
    );
    let error = ask(&mut contestant, None).unwrap_err();
    assert!(
        matches!(&error, Misconduct::NotStarted { program, .. } if program == "no-such-program"),
        "{error}"
    );
    assert_eq!(error.whose(), Whose::Environment);
}

#[test]
fn a_silent_program_loses_its_turn_and_its_time() {
    let budget = Budget {
        wall: SignedDuration::from_millis(300),
        ..Budget::default()
    };
    for script in [
        "sleep 300",
        "read q; sleep 300 & sleep 300",
        "trap '' TERM HUP; while :; do read q; sleep 1; done",
    ] {
        let mut contestant = shell_with(script, budget);
        let error = ask(&mut contestant, None).unwrap_err();
        assert!(matches!(error, Misconduct::Silent { .. }), "{script}: {error}");
        assert_eq!(error.whose(), Whose::Participant);
        let error = ask(&mut contestant, None).unwrap_err();
        assert_eq!(error, spent(Resource::Wall));
    }
}

#[test]
fn a_program_that_dribbles_bytes_without_a_line_is_silent() {
    let budget = Budget {
        wall: SignedDuration::from_millis(300),
        ..Budget::default()
    };
    let error = ask(
        &mut shell_with("while :; do printf x; sleep 0.02; done", budget),
        None,
    )
    .unwrap_err();
    assert!(matches!(error, Misconduct::Silent { .. }), "{error}");
}

#[test]
fn a_crash_is_told_with_its_status_and_the_end_of_what_was_said() {
    let error = without_answer("read q; seq 100000 >&2; echo 'index out of range' >&2; exit 3");
    let Misconduct::Ended { status, stderr } = &error else {
        panic!("{error}");
    };
    assert_eq!(status, "exit status: 3");
    assert!(
        stderr.ends_with("index out of range\n") && stderr.len() <= 4096,
        "{stderr}"
    );
    let killed = without_answer("read q; kill -9 $$");
    assert!(
        matches!(&killed, Misconduct::Ended { status, .. } if status.contains("signal: 9")),
        "{killed}"
    );
    let closed = without_answer("exec >&-; sleep 300");
    assert!(
        matches!(&closed, Misconduct::Ended { status, .. } if status.contains("had to be ended")),
        "{closed}"
    );
    let half = without_answer(r#"read q; printf '{"answ'"#);
    assert!(
        matches!(&half, Misconduct::Ended { status, .. } if status == "exit status: 0"),
        "{half}"
    );
}

#[test]
fn a_death_is_seen_though_something_holds_standard_output() {
    let error = without_answer("read q; sleep 300 & exit 4");
    assert!(
        matches!(&error, Misconduct::Ended { status, .. } if status == "exit status: 4"),
        "{error}"
    );
}

#[test]
fn floods_are_cut_off() {
    let line = without_answer("read q; head -c 100000000 /dev/zero");
    assert_eq!(line.to_string(), "it wrote a line longer than 1 MiB");
    let budget = Budget {
        turns: u32::MAX,
        ..Budget::default()
    };
    let script = r#"import sys
line = '{"call": "nothing", "arguments": "%s"}\n' % ("x" * 1_000_000)
while True: sys.stdout.write(line)"#;
    let mut contestant = Contestant::new(
        "Tiles",
        engine(&["python3", "-c", script], budget),
        Path::new("/tmp"),
    );
    let total = ask(&mut contestant, None).unwrap_err();
    assert_eq!(total.to_string(), "it wrote over 16 MiB in all");
    // Standard error is heard, so that the program goes on, and its end is kept.
    ask(
        &mut shell(r#"read q; head -c 10000000 /dev/zero >&2; echo '{"answer": {"ok": true}}'"#),
        None,
    )
    .unwrap();
}

#[test]
fn a_line_just_within_the_limit_is_read() {
    let script = r#"line = '{"answer": {"ok": true, "x": "%s"}}'
print(line % ("x" * ((1 << 20) - len(line) + 2)))"#;
    ask(&mut python(script), None).unwrap();
}

#[test]
fn lines_that_nobody_can_read_are_refused_and_may_be_repeated_twice() {
    let bad = [
        ("echo 'I think that'", "the line is no JSON"),
        (r"printf '\377\376\n'", "the line is no UTF-8"),
        ("echo '{\"answer\": {\"ok\": false}}'", "`ok` is not true"),
        ("echo '[1, 2]'", "with no other key"),
        (
            "echo '{\"answer\": {\"ok\": true}, \"call\": \"check\"}'",
            "with no other key",
        ),
        ("echo", "the line is no JSON"),
    ];
    for (says, why) in bad {
        let good = r#"echo '{"answer": {"ok": true}}'"#;
        let asked = ask(
            &mut shell(&format!("read q; {says}; read r; {says}; read r; {good}")),
            None,
        )
        .unwrap();
        assert!(
            asked.refused.len() == 2 && asked.refused[1].contains(why),
            "{says}: {asked:?}"
        );
        let error = without_answer(&format!(
            "read q; {says}; read r; {says}; read r; {says}; read r; {good}"
        ));
        assert!(
            matches!(&error, Misconduct::Malformed { why: told, .. } if told.contains(why)),
            "{says}: {error}"
        );
    }
}

#[test]
fn what_was_said_beside_answers_that_are_refused_is_told() {
    let error = without_answer("echo lost >&2; echo bad; echo bad; echo bad");
    assert!(
        matches!(error, Misconduct::Malformed { .. }) && error.to_string().ends_with("and said:\nlost"),
        "{error}"
    );
}

#[test]
fn checks_and_turns_run_out() {
    let budget = Budget {
        turns: 4,
        checks: 1,
        ..Budget::default()
    };
    let script = r#"read q
case "$q" in *'"checks":1'*) ;; *) echo '{"call": "add"}'; read r; echo '{"answer": {"ok": true}}'; exit ;; esac
echo '{"call": "check"}'; read r; test "$r" = '{"result":{"right":true}}' || exit 1
echo '{"call": "check"}'; read r; test "$r" = '{"error":"no check is left of 1"}' || exit 2
echo '{"answer": {"ok": true}}'"#;
    let mut contestant = shell_with(script, budget);
    let mut adder = Adder { calls: Vec::new() };
    ask(&mut contestant, Some(&mut adder)).unwrap();
    assert_eq!(
        (
            adder.calls.len(),
            contestant.left().turns,
            contestant.left().checks
        ),
        (1, 1, 0)
    );
    let error = ask(&mut contestant, Some(&mut adder)).unwrap_err();
    assert_eq!(error, spent(Resource::Turns));
    // Before anything is started.
    let error = ask(&mut contestant, None).unwrap_err();
    assert_eq!(error, spent(Resource::Turns));
    let mut resumed = shell_with(script, budget);
    resumed.spend(contestant.used());
    assert_eq!(resumed.left(), contestant.left());
}

/// Slow tools are not the participant's fault.
#[test]
fn the_time_that_tools_take_does_not_count() {
    struct Slow;
    impl Tools for Slow {
        fn list(&self) -> Vec<Tool> {
            Vec::new()
        }
        fn call(&mut self, _: &str, _: &Value) -> Result<Value, String> {
            std::thread::sleep(std::time::Duration::from_millis(700));
            Ok(Value::Null)
        }
    }
    let script = r#"read q; echo '{"call": "slow"}'; read r; echo '{"answer": {"ok": true}}'"#;
    let mut contestant = shell(script);
    let begun = std::time::Instant::now();
    let asked = ask(&mut contestant, Some(&mut Slow)).unwrap();
    assert!(
        asked.used.wall + 0.7 <= begun.elapsed().as_secs_f64(),
        "{asked:?}"
    );
}

#[test]
fn misconduct_survives_a_record() {
    for misconduct in [
        without_answer("exit 1"),
        spent(Resource::Context),
        Misconduct::Silent {
            seconds: 1.5,
            stderr: "hm".to_owned(),
        },
    ] {
        let text = serde_json::to_string(&misconduct).unwrap();
        assert_eq!(
            serde_json::from_str::<Misconduct>(&text).unwrap(),
            misconduct,
            "{text}"
        );
    }
}
