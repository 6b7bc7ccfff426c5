//! Rounds on users' kernels, with contestants and panellists that are programs.

#![expect(clippy::unwrap_used, reason = "tests")]

mod fixture;

use std::process::Stdio;
use std::time::Duration;

use gauntlet_judge::ledger::RecordKind;
use serde_json::{Value, json};

use self::fixture::{KERNEL, TASK, faults, pitch, played, round, usual, verdicts};
use crate::common::{Place, has_numpy, names};

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
        let said = place.records().into_iter().filter(|record| {
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
