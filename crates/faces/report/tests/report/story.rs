//! What was said, and what was adopted one upon another.

#![expect(clippy::unwrap_used, reason = "tests")]

use gauntlet_report::{message, sentence};
use gauntlet_tournament::Message;
use serde_json::{Value, json};

fn said(phase: &str, pitch: Option<&str>, answer: Value) -> Message {
    serde_json::from_value(json!({
        "who": "Tiles", "phase": phase, "pitch": pitch, "question": "d", "digest": "d", "answer": answer,
        "used": { "turns": 1, "tokens-in": 0, "tokens-out": 0, "wall": 0.1, "checks": 0 },
    }))
    .unwrap()
}

#[test]
fn each_phase_is_told_in_a_sentence() {
    let patch = "--- a/k.py\n+++ b/k.py\n@@ -1,2 +1,1 @@\n-a\n-b\n+c\n";
    for (phase, pitch, answer, sentence_of_it) in [
        (
            "research",
            None,
            json!({ "bound-by": "memory", "evidence": [] }),
            "finds the baseline bound by memory",
        ),
        (
            "pitch",
            None,
            json!({ "pitch": { "name": "once", "change": "Do it once.", "claim": { "speedup": { "q50": 1.5 } } } }),
            "pitches once, claiming 1.50×: Do it once.",
        ),
        ("pitch", None, json!({ "pass": "nothing" }), "passes: nothing"),
        (
            "question",
            None,
            json!({ "question": { "to": "A", "text": "Why?" } }),
            "asks A: Why?",
        ),
        ("question", None, json!({ "question": null }), ""),
        (
            "answer",
            Some("Oracle"),
            json!({ "text": "So." }),
            "answers Oracle: So.",
        ),
        (
            "vote",
            None,
            json!({ "votes": [{ "pitch": "once", "scores": { "speedup": 7.0 }, "reason": "r",
                "terms": [{ "when": "predicted.speedup < 1", "why": "w" }], "conditional": true }] }),
            "votes: once 7/–/–/– (r), only if not predicted.speedup < 1",
        ),
        (
            "deal",
            Some("once"),
            json!({ "accept": false }),
            "declines the terms for once",
        ),
        (
            "build",
            Some("once"),
            json!({ "source": { "patch": patch } }),
            "builds once: +1 −2 lines",
        ),
        (
            "mend",
            Some("once"),
            json!({ "withdrawn": "no" }),
            "withdraws once: no",
        ),
        (
            "lesson",
            Some("once"),
            json!({ "wrong": "much", "follows": "less" }),
            "learns from once: much; less",
        ),
    ] {
        assert_eq!(sentence(&said(phase, pitch, answer)), sentence_of_it, "{phase}");
    }
}

#[test]
fn texts_of_participants_are_shown_and_not_obeyed() {
    let hidden = said("pitch", None, json!({ "pass": "a\u{1b}[2Jb" }));
    assert_eq!(sentence(&hidden), r"passes: a\u{1b}[2Jb");
    let mut silent = said("build", Some("once"), Value::Null);
    silent.fault = Some("it ended".to_owned());
    silent.refused = vec!["no such file".to_owned()];
    let text = message(&silent, 80);
    assert!(text.contains("gives no answer (build once): it ended"), "{text}");
    assert!(text.contains("was told: no such file"), "{text}");
}
