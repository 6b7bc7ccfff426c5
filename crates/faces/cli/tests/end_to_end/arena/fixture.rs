//! A round on a small kernel, with participants that answer as a test says.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::common::{Place, Ran};

pub const TASK: &str = r#"
import numpy as np
cases = {"correctness": [{"rows": 3, "cols": 5}], "benchmark": [{"rows": 64, "cols": 500}]}
def generate(rows, cols, seed):
    return {"x": np.random.default_rng(seed).standard_normal((rows, cols), dtype=np.float32)}
def reference(x):
    return {"y": x * 2 + 1}
"#;

pub const KERNEL: &str = "def double(x):\n    y = x + x\n    y = y + 0\n    return y + 1\n";

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

pub fn pitch(name: &str) -> Value {
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
pub fn usual(name: &str) -> Value {
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
pub fn round(place: &Place, contestants: &[(&str, Value)], panellists: &[(&str, Value)], more: &str) {
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

pub fn played(place: &Place, arguments: &[&str]) -> (Ran, Value) {
    let ran = place.run(&[&["run", "round.toml", "--json", "result.json"], arguments].concat());
    let text = std::fs::read_to_string(place.path("result.json"));
    assert!(text.is_ok(), "{}", ran.err);
    (ran, serde_json::from_str(&text.unwrap()).unwrap())
}

/// Each verdict of the round with this number, by pitch.
pub fn verdicts(result: &Value, round: usize) -> Vec<(String, String)> {
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
pub fn faults(result: &Value) -> Vec<(String, String, String)> {
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
