//! Rounds on users' kernels, with contestants and panellists that are programs.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write;
use std::process::Stdio;
use std::time::Duration;

use gauntlet_judge::ledger::{Ledger, RecordKind};
use serde_json::{Value, json};

use crate::common::{Place, Ran, has_numpy, names};

const TASK: &str = r#"
import numpy as np
cases = {"correctness": [{"rows": 3, "cols": 5}], "benchmark": [{"rows": 64, "cols": 500}]}
def generate(rows, cols, seed):
    return {"x": np.random.default_rng(seed).standard_normal((rows, cols), dtype=np.float32)}
def reference(x):
    return {"y": x * 2 + 1}
"#;

const KERNEL: &str = "def double(x):\n    y = x + x\n    y = y + 0\n    return y + 1\n";

/// Answers by phase from a file beside it, so that a test says what happens. What is no object is something to do.
const PARTICIPANT: &str = r#"
import json, os, sys, time
answers = json.load(open(sys.argv[1]))
question = json.loads(sys.stdin.readline())
kept = os.path.join(os.path.dirname(sys.argv[1]), "asked.jsonl")
with open(kept, "a") as file:
    file.write(json.dumps({"you": question["you"], "phase": question["phase"], "question": question}) + "\n")
answer = answers.get(question["round"], {}).get(question["phase"], answers.get(question["phase"]))
if answer == "silent":
    time.sleep(60)
elif answer == "crash":
    sys.exit("no idea what to say")
elif answer == "flood":
    while True:
        sys.stdout.write("x" * 100_000)
elif answer == "garbage":
    while True:
        print("{ this is no JSON", flush=True)
        if not sys.stdin.readline():
            break
elif answer == "link":
    os.remove(os.path.join(question["workspace"], "kernel.py"))
    os.symlink("/etc/passwd", os.path.join(question["workspace"], "kernel.py"))
    print(json.dumps({"answer": {"workspace": True}}), flush=True)
else:
    if answer == "kill":
        marker = os.path.join(os.path.dirname(sys.argv[1]), "killed")
        if not os.path.exists(marker):
            open(marker, "w").close()
            time.sleep(60)
        answer = answers["after the kill"]
    while True:
        print(json.dumps({"answer": answer}), flush=True)
        line = sys.stdin.readline()
        if not line:
            break
        if "otherwise" in answers:
            answer = answers["otherwise"]
"#;

fn pitch(name: &str) -> Value {
    json!({ "pitch": {
        "name": name, "problem": "An addition does nothing.", "change": format!("Leave it out ({name})."),
        "claim": { "speedup": { "q10": 1.0, "q50": 1.2, "q90": 1.5 } },
        "odds": { "adopt": 0.5, "valid-negative": 0.5 },
        "cost": { "hours": 0.5 }, "risk": { "level": "low", "why": "a line" },
        "evidence": [{ "kind": "calculation", "text": "fewer passes" }],
        "abort": [], "fallback": { "plan": "keep it" },
    }})
}

/// What every contestant says where a test says nothing else. Its kernel is wrong, so that nothing has to be timed for long.
fn usual(name: &str) -> Value {
    json!({
        "pitch": pitch(name),
        "build": { "files": { "kernel.py": "def double(x):\n    return x + x\n" } },
        "answer": { "text": "by counting" },
        "deal": { "accept": true },
        "mend": { "withdraw": "no idea" },
        "lesson": { "wrong": "the result", "follows": "count again" },
        "research": { "bound-by": "memory", "evidence": [{ "kind": "intuition", "text": "it is long" }] },
        "vote": { "votes": [] },
        "question": {},
    })
}

/// A round with these contestants and panellists, each with its answers.
fn round(place: &Place, contestants: &[(&str, Value)], panellists: &[(&str, Value)], more: &str) {
    place.write("task.py", TASK);
    place.write("source/kernel.py", KERNEL);
    place.write("source/notes/later.txt", "to do\n");
    place.write("participant.py", PARTICIPANT);
    let mut text = format!(
        r#"
name = "doubling"
title = "A kernel with an addition too many"
executor = "cpu"
device = "host"
task = "task.py"
{more}

[source]
folder = "source"
kernel = "kernel.py:double"
protected = ["notes"]

[measurement]
trust = "quick"
looks = [2]
open-ended = false
budget = "1s"
"#
    );
    for (kind, all) in [("contestant", contestants), ("panellist", panellists)] {
        for (name, answers) in all {
            let file = format!("{name}.json");
            let mut given = usual(&format!("pitch of {name}"));
            for (phase, answer) in answers.as_object().unwrap() {
                given[phase] = answer.clone();
            }
            place.write(&file, &given.to_string());
            write!(
                text,
                "\n[[{kind}]]\nname = \"{name}\"\nprogram = [\"python3\", \"participant.py\", \"{}\"]\n\
                 budget = {{ turns = 40, wall = \"2s\", checks = 2 }}\n",
                place.path(&file).display()
            )
            .unwrap();
        }
    }
    place.write("round.toml", &text);
}

fn played(place: &Place, arguments: &[&str]) -> (Ran, Value) {
    let ran = place.run(&[&["run", "round.toml", "--json", "result.json"], arguments].concat());
    let text = std::fs::read_to_string(place.path("result.json"));
    assert!(text.is_ok(), "{}", ran.err);
    (ran, serde_json::from_str(&text.unwrap()).unwrap())
}

/// Each verdict of the round with this number, by pitch.
fn verdicts(result: &Value, round: usize) -> Vec<(String, String)> {
    let judged = result["rounds"][round]["judged"].as_array().unwrap();
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let mut verdicts: Vec<_> = judged
        .iter()
        .map(|one| (text(one, "name"), text(one, "verdict")))
        .collect();
    verdicts.sort();
    verdicts
}

/// Why there was no answer, by participant and phase, with what was refused before.
fn faults(result: &Value) -> Vec<(String, String, String)> {
    let messages = result["rounds"][0]["messages"].as_array().unwrap();
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let without = messages.iter().filter(|one| one["answer"].is_null());
    without
        .map(|one| {
            (
                text(one, "who"),
                text(one, "phase"),
                format!("{} {}", text(one, "fault"), one["refused"]),
            )
        })
        .collect()
}

#[test]
fn a_round_takes_kernels_and_changes_to_a_source() {
    if !has_numpy() {
        return;
    }
    let place = Place::new();
    round(&place, &[], &[], "");
    let pitched = |name: &str, change: &str| {
        format!(
            "\n[[pitch]]\nname = \"{name}\"\nauthor = \"Ada\"\nproblem = \"slow\"\nchange = \"{name}\"\n{change}\n\
             claim.speedup = {{ q10 = 1.0, q50 = 1.2, q90 = 1.5 }}\nodds = {{ adopt = 1.0 }}\ncost.hours = 0.5\n\
             risk = {{ level = \"low\", why = \"a line\" }}\n\
             evidence = [{{ kind = \"intuition\", text = \"it helps\" }}]\nabort = []\nfallback = {{ plan = \"keep it\" }}\n"
        )
    };
    place.write("shorter.diff", "--- a/kernel.py\n+++ b/kernel.py\n@@ -1,4 +1,3 @@\n def double(x):\n     y = x + x\n-    y = y + 0\n     return y + 1\n");
    place.write(
        "stale.diff",
        "--- a/kernel.py\n+++ b/kernel.py\n@@ -1,2 +1,2 @@\n def double(x):\n-    y = 2 * x\n+    y = x\n",
    );
    place.write(
        "outside.diff",
        "--- a/../task.py\n+++ b/../task.py\n@@ -1 +1 @@\n-import numpy as np\n+import numpy\n",
    );
    place.write(
        "kept.diff",
        "--- a/notes/later.txt\n+++ b/notes/later.txt\n@@ -1 +1 @@\n-to do\n+done\n",
    );
    place.write("wrong.py", "def double(x):\n    return x + x\n");
    place.write("other.py", "def wrong(x):\n    return x\n");
    let text = std::fs::read_to_string(place.path("round.toml")).unwrap()
        + &pitched("shorter", "patch = \"shorter.diff\"")
        + &pitched(
            "stacked",
            "files = { \"kernel.py\" = \"wrong.py\" }\nafter = \"shorter\"\nregardless = true",
        )
        + &pitched("stale", "patch = \"stale.diff\"")
        + &pitched("outside", "patch = \"outside.diff\"")
        + &pitched("kept", "patch = \"kept.diff\"")
        + &pitched("another", "kernel = \"other.py:wrong\"")
        + &pitched("broken", "files = { \"kernel.py\" = \"kept.diff\" }");
    place.write("round.toml", &text);
    let (ran, result) = played(&place, &[]);
    let found = verdicts(&result, 0);
    let of = |name: &str| found.iter().find(|(pitch, _)| pitch == name).unwrap().1.as_str();
    for (name, verdict) in [
        ("stale", "does-not-compile"),
        ("outside", "does-not-compile"),
        ("kept", "does-not-compile"),
        ("broken", "does-not-compile"),
        ("another", "incorrect"),
        ("stacked", "incorrect"),
    ] {
        assert_eq!(of(name), verdict, "{name}: {}", ran.err);
    }
    // The time is too short for a decision, but it was built, was right and was compared.
    assert!(
        ["inconclusive", "adopt", "marginal"].contains(&of("shorter")),
        "{}",
        of("shorter")
    );
    names(
        &ran,
        &[
            "hunk 1 of the patch does not apply to kernel.py at line 1",
            "is protected",
            "not a file inside",
        ],
    );

    place.write("round.toml", &text.replace("[source]", "[sources]"));
    names(
        &place.run(&["run", "round.toml"]).expect(2),
        &["unknown field `sources`"],
    );
    place.write(
        "round.toml",
        &(text + &pitched("both", "patch = \"stale.diff\"\ncommand = [\"x\"]")),
    );
    names(
        &place.run(&["run", "round.toml"]).expect(2),
        &["`command` and `patch or files`"],
    );
}

#[test]
fn contestants_pitch_and_build_and_learn_and_a_replay_decides_the_same() {
    if !has_numpy() {
        return;
    }
    let place = Place::new();
    let vote = json!({ "votes": [
        { "pitch": "pitch of A", "scores": { "speedup": 9 }, "reason": "I like it",
          "terms": [{ "when": "resources.workspace-bytes > 1000000", "why": "too much" }], "conditional": true },
        { "pitch": "pitch of B", "scores": { "speedup": 1 }, "reason": "I do not" },
    ]});
    let question = json!({ "question": { "to": "A", "text": "How do you know?" } });
    let first = json!({ "doubling-2": { "pitch": { "pass": "nothing left" }, "mend": { "files": { "kernel.py": "def double(x):\n    return x + x + 1\n" } } } });
    let second =
        json!({ "build": { "withdraw": "I was wrong" }, "doubling-2": { "pitch": pitch("pitch of B") } });
    round(
        &place,
        &[("A", first), ("B", second)],
        &[(
            "P",
            json!({ "vote": vote, "question": question, "doubling-2": { "vote": { "votes": [] } } }),
        )],
        "repeat = 2",
    );
    let (ran, result) = played(&place, &[]);
    let of = |name: &str, verdict: &str| (name.to_owned(), verdict.to_owned());
    assert_eq!(
        verdicts(&result, 0),
        [of("pitch of A", "incorrect"), of("pitch of B", "aborted")],
        "{}",
        ran.err
    );
    names(
        &ran,
        &[
            "A pitches pitch of A",
            "P asks A: How do you know?",
            "A answers P: by counting",
            "A accepts the terms",
            "B withdraws pitch of B: I was wrong",
            "A learns from pitch of A: the result; count again",
            "A mends pitch of A",
        ],
    );
    let standings = result["rounds"][0]["ranking"]["standings"].as_array().unwrap();
    assert_eq!(standings[0]["pitch"], "pitch of A");
    assert!(ran.out.contains("What was said"), "{}", ran.out);
    // What was known in the second round.
    let asked = std::fs::read_to_string(place.path("asked.jsonl")).unwrap();
    let asked: Vec<Value> = asked
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let pitched = asked
        .iter()
        .rfind(|one| one["phase"] == "pitch" && one["you"] == "A")
        .unwrap();
    let situation = &pitched["question"]["situation"];
    let lesson = situation["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["author"] == "A")
        .unwrap();
    assert_eq!(
        (&lesson["verdict"], &lesson["lesson"]),
        (&json!("incorrect"), &json!("the result; count again"))
    );
    assert_eq!(situation["source"]["files"]["kernel.py"], KERNEL);
    assert!(
        situation["baseline"]["times"]
            .as_object()
            .unwrap()
            .values()
            .all(|time| time.as_f64().unwrap() > 0.0)
    );
    let phases: Vec<&Value> = asked
        .iter()
        .filter(|one| one["you"] == "A")
        .map(|one| &one["phase"])
        .collect();
    assert_eq!(
        phases,
        ["pitch", "answer", "deal", "build", "lesson", "mend", "pitch"]
    );

    let asked = asked.len();
    let ran = place
        .run(&["run", "round.toml", "--from-ledger", "latest"])
        .expect(0);
    assert!(
        ran.out.contains("decisions are as they were recorded"),
        "{}",
        ran.out
    );
    let after = std::fs::read_to_string(place.path("asked.jsonl"))
        .unwrap()
        .lines()
        .count();
    assert_eq!(after, asked, "nobody was asked again");
    place.write("source/kernel.py", "def double(x):\n    return 2 * x + 1\n");
    names(
        &place
            .run(&["run", "round.toml", "--from-ledger", "latest"])
            .expect(2),
        &["was played with other files"],
    );
}

#[test]
fn what_contestants_do_wrong_is_recorded_and_the_round_goes_on() {
    if !has_numpy() {
        return;
    }
    let place = Place::new();
    let build = |answer: Value| json!({ "build": answer });
    let file = |path: &str| build(json!({ "files": { path: "x = 1\n" } }));
    let contestants = [
        ("silent", json!({ "pitch": "silent" })),
        ("crashing", json!({ "pitch": "crash" })),
        ("flooding", json!({ "pitch": "flood" })),
        ("garbling", json!({ "pitch": "garbage" })),
        ("formless", json!({ "pitch": { "pitch": { "name": "x" } } })),
        (
            "stealing",
            build(json!({ "workspace": true, "kernel": "/somewhere/else.py:f" })),
        ),
        ("climbing", file("../task.py")),
        ("absolute", file("/etc/passwd")),
        ("protected", file("notes/later.txt")),
        ("testing", file("tests/test_kernel.py")),
        ("linking", build(json!("link"))),
        ("idle", build(json!({ "files": { "kernel.py": KERNEL } }))),
        ("usual", json!({})),
    ];
    let panellists = [
        (
            "scoring wildly",
            json!({ "vote": { "votes": [{ "pitch": "pitch of usual", "scores": { "risk": 11 } }] } }),
        ),
        (
            "asking nobody",
            json!({ "question": { "question": { "to": "nobody", "text": "?" } } }),
        ),
    ];
    round(&place, &contestants, &panellists, "");
    let (ran, result) = played(&place, &[]);
    let faults = faults(&result);
    for (who, phase, words) in [
        ("silent", "pitch", "no answer within"),
        ("crashing", "pitch", "no idea what to say"),
        ("flooding", "pitch", "it wrote"),
        ("garbling", "pitch", "refused"),
        ("formless", "pitch", "missing field"),
        ("stealing", "build", "/somewhere/else.py:f"),
        ("climbing", "build", "not a file inside the source"),
        ("absolute", "build", "not a file inside the source"),
        ("protected", "build", "is protected"),
        ("testing", "build", "changes no tests"),
        ("linking", "build", "is a link"),
        ("idle", "build", "changes nothing"),
        ("scoring wildly", "vote", "outside 0…10"),
        ("asking nobody", "question", "no contestant"),
    ] {
        let fault = faults.iter().find(|(name, of, _)| name == who && of == phase);
        assert!(
            fault.is_some_and(|(.., fault)| fault.contains(words)),
            "{who}: {fault:?}\n{}",
            ran.err
        );
    }
    assert_eq!(faults.len(), 14, "{faults:?}");
    let found = verdicts(&result, 0);
    assert!(
        found.contains(&("pitch of usual".to_owned(), "incorrect".to_owned())),
        "{found:?}"
    );
    let aborted = found.iter().filter(|(_, verdict)| verdict == "aborted").count();
    assert_eq!(aborted, 7, "those who pitched and built nothing: {found:?}");
    assert!(
        std::fs::read_to_string(place.path("task.py")).unwrap() == TASK,
        "nothing of the user's is changed"
    );
}

#[test]
fn a_change_that_was_refuted_needs_new_evidence_and_three_rounds_without_adoption_research() {
    if !has_numpy() {
        return;
    }
    let place = Place::new();
    // It withdraws what it builds, so that nothing is adopted and nobody is stopped.
    let wrong = json!({ "build": { "files": { "kernel.py": "def double(x):\n    return x\n" } } });
    let mut stubborn = wrong.clone();
    stubborn["mend"] = json!({ "files": { "kernel.py": "def double(x):\n    return 2 * x + 1\n" } });
    stubborn["otherwise"] = json!({ "pass": "I was told" });
    let lazy = json!({ "pitch": { "pass": "no idea" }, "research": { "bound-by": "", "evidence": [] } });
    round(
        &place,
        &[("stubborn", stubborn), ("lazy", lazy)],
        &[],
        "repeat = 4",
    );
    let (ran, result) = played(&place, &[]);
    let judged: Vec<usize> = (0..4)
        .map(|round| result["rounds"][round]["judged"].as_array().unwrap().len())
        .collect();
    assert_eq!(judged, [1, 0, 0, 0], "{}", ran.err);
    names(
        &ran,
        &[
            "the same change was judged incorrect in doubling-1",
            "stubborn passes: I was told",
            "stubborn mends pitch of stubborn",
            "stubborn finds the baseline bound by memory",
            "lazy has not named what bounds the baseline",
        ],
    );
}

#[test]
fn a_tournament_that_is_killed_in_any_phase_goes_on_as_if_it_had_not_been() {
    if !has_numpy() {
        return;
    }
    let decisions = |place: &Place| {
        let ledger = Ledger::open_read_only(place.path("ledger.sqlite")).unwrap();
        let run = ledger.runs().unwrap().remove(0).id;
        let records = ledger
            .records(&run)
            .unwrap()
            .into_iter()
            .map(|entry| entry.record);
        let said = records.filter(|record| {
            matches!(
                record.kind,
                RecordKind::Ranking | RecordKind::Verdict | RecordKind::Message | RecordKind::RoundEnded
            )
        });
        said.map(|mut record| {
            // What differs is how long it was waited for, and the inputs on which a wrong kernel is found out.
            if let Some(body) = record.body.as_object_mut() {
                for drawn in ["used", "question", "reason", "forecast"] {
                    body.remove(drawn);
                }
            }
            format!(
                "{:?} {:?} {:?} {}",
                record.round, record.pitch, record.kind, record.body
            )
        })
        .collect::<Vec<_>>()
    };
    let play = |phase: Option<&str>| {
        let place = Place::new();
        let mut answers = json!({});
        let mut votes = json!({ "question": { "question": { "to": "A", "text": "Why?" } } });
        let usual = usual("pitch of A");
        if let Some(phase) = phase {
            let who = if ["vote", "question"].contains(&phase) {
                &mut votes
            } else {
                &mut answers
            };
            who["after the kill"] = if phase == "question" {
                votes_question()
            } else {
                usual[phase].clone()
            };
            who[phase] = json!("kill");
        }
        round(&place, &[("A", answers)], &[("P", votes)], "repeat = 2");
        if phase.is_some() {
            let mut playing = place
                .command(&["run", "round.toml"])
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            while !place.path("killed").exists() {
                assert!(playing.try_wait().unwrap().is_none(), "it ended before {phase:?}");
                std::thread::sleep(Duration::from_millis(10));
            }
            playing.kill().unwrap();
            playing.wait().unwrap();
        }
        let resumes: &[&str] = if phase.is_some() { &["--resume"] } else { &[] };
        place.run(&[&["run", "round.toml"], resumes].concat()).expect(0);
        decisions(&place)
    };
    let unbroken = play(None);
    assert!(unbroken.len() > 10, "{unbroken:?}");
    for phase in ["pitch", "question", "answer", "vote", "build", "lesson", "mend"] {
        assert_eq!(play(Some(phase)), unbroken, "{phase}");
    }
}

fn votes_question() -> Value {
    json!({ "question": { "to": "A", "text": "Why?" } })
}
