//! Conversations as Anthropic's interface has them.

use std::fs;

use serde_json::{Value, json};

use super::server::{Act, Server, head, stream};
use super::{Adder, KEY, accepts, ask, contestant, contestant_with, engine, form, surroundings};
use crate::contestant::Contestant;
use crate::engine::{Budget, Engine, ProviderName};
use crate::misconduct::{Misconduct, Resource};

/// The events of a message with these blocks, each with its deltas.
pub(super) fn message(blocks: &[(Value, &[Value])], stop: &str) -> Vec<String> {
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": {
            "input_tokens": 100, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 30, "output_tokens": 1}}}),
        json!({"type": "ping"}),
    ];
    for (index, (block, deltas)) in blocks.iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        for delta in *deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 40}}));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(Value::to_string).collect()
}

fn tool(name: &str) -> Value {
    json!({"type": "tool_use", "id": format!("toolu_{name}"), "name": name, "input": {}})
}

fn piece(text: &str) -> Value {
    json!({"type": "input_json_delta", "partial_json": text})
}

/// A message that calls one tool.
pub(super) fn calls(name: &str, arguments: &str) -> Act {
    stream(&message(
        &[(tool(name), &[piece(""), piece(arguments)])],
        "tool_use",
    ))
}

pub(super) fn good() -> Act {
    calls("answer", r#"{"answer": {"ok": true}}"#)
}

fn says(text: &str, stop: &str) -> Act {
    let delta = json!({"type": "text_delta", "text": text});
    stream(&message(&[(json!({"type": "text", "text": ""}), &[delta])], stop))
}

#[test]
fn tools_are_used_and_an_answer_comes_in_pieces() {
    let thinks = [
        json!({"type": "thinking_delta", "thinking": "Hm"}),
        json!({"type": "thinking_delta", "thinking": "m."}),
        json!({"type": "signature_delta", "signature": "abc="}),
    ];
    let text = [
        json!({"type": "text_delta", "text": "Let me "}),
        json!({"type": "text_delta", "text": "add ☃."}),
        json!({"type": "of_tomorrow_delta", "text": "?"}),
    ];
    let events = message(
        &[
            (json!({"type": "thinking", "thinking": ""}), &thinks),
            (json!({"type": "text", "text": ""}), &text),
            (tool("add"), &[piece(""), piece(r#"{"num"#), piece(r#"ber": 4}"#)]),
        ],
        "tool_use",
    );
    let body: String = events
        .iter()
        .map(|event| format!("event: any\r\ndata: {event}\r\n\r\n"))
        .collect();
    // A byte at a time where the snowman is, so that it is cut.
    let snowman = body.find('☃').unwrap();
    let (before, rest) = body.as_bytes().split_at(snowman);
    let (cut, after) = rest.split_at(3);
    let mut pieces = vec![head(), before.to_vec()];
    pieces.extend(cut.iter().map(|byte| vec![*byte]));
    pieces.push(after.to_vec());
    let server = Server::playing(vec![Act::Send(pieces), good()]);

    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tiles.md"), "You tune tiles.\n").unwrap();
    let engine = Engine {
        persona: Some("tiles.md".into()),
        ..engine(ProviderName::Anthropic, &server.address, Budget::default())
    };
    let mut contestant = Contestant::new("Tiles", engine, folder.path());
    contestant.surroundings = surroundings(Some(&server.address));
    let asked = ask(&mut contestant).unwrap();

    assert_eq!(asked.answer, json!({"ok": true}));
    assert_eq!(
        (asked.used.turns, asked.used.tokens_in, asked.used.tokens_out),
        (2, 300, 80)
    );
    assert!((asked.used.money.unwrap() - (300.0 * 3.0 + 80.0 * 15.0) / 1e6).abs() < 1e-12);
    assert_eq!(contestant.left().tokens, 200_000 - 380);

    let got = server.got();
    assert!(
        got[0].head.starts_with("post /v1/messages http/1.1"),
        "{}",
        got[0].head
    );
    assert!(
        got[0].head.contains(&format!("x-api-key: {KEY}"))
            && got[0].head.contains("anthropic-version: 2023-06-01")
    );
    let first = &got[0].body;
    assert_eq!(
        (&first["model"], &first["stream"], &first["max_tokens"]),
        (&json!("small"), &json!(true), &json!(16384))
    );
    assert!(
        first["system"]
            .as_str()
            .unwrap()
            .starts_with("You tune tiles.\n\nWhat stands between")
    );
    assert_eq!(first["tools"][0]["name"], "add");
    assert_eq!(
        first["tools"][1]["input_schema"]["properties"]["answer"],
        form().schema
    );
    let second = got[1].body["messages"].as_array().unwrap();
    assert_eq!(second[..1], first["messages"].as_array().unwrap()[..]);
    assert_eq!(
        second[1],
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hmm.", "signature": "abc="},
            {"type": "text", "text": "Let me add ☃."},
            {"type": "tool_use", "id": "toolu_add", "name": "add", "input": {"number": 4}},
        ]})
    );
    let result = &second[2]["content"][0];
    assert_eq!(
        (&result["type"], &result["tool_use_id"], &result["is_error"]),
        (&json!("tool_result"), &json!("toolu_add"), &json!(false))
    );
    assert!(result["content"].as_str().unwrap().contains("\n5\n"), "{result}");
}

#[test]
fn refused_answers_are_repeated_twice_at_most() {
    let bad = || calls("answer", r#"{"answer": {"ok": false}}"#);
    let bare = || calls("answer", r#"{"ok": true}"#);
    let server = Server::playing(vec![bad(), bare(), good()]);
    let asked = ask(&mut contestant(ProviderName::Anthropic, &server)).unwrap();
    assert_eq!(
        asked.refused,
        [
            "`ok` is not true",
            "`answer` takes one argument, which is called `answer` too"
        ]
    );
    let got = server.got();
    let refusal = &got[1].body["messages"][2]["content"][0];
    assert_eq!(
        (&refusal["content"], &refusal["is_error"]),
        (&json!("Refused: `ok` is not true"), &json!(true))
    );

    let server = Server::playing(vec![bad(), says("I would rather tell you.", "end_turn"), bad()]);
    let error = ask(&mut contestant(ProviderName::Anthropic, &server)).unwrap_err();
    assert_eq!(
        error,
        Misconduct::Malformed {
            why: "`ok` is not true".to_owned(),
            stderr: String::new(),
        }
    );
    let last = &server.got()[2].body["messages"];
    assert_eq!(last[3]["content"][0]["text"], "I would rather tell you.");
    assert_eq!(
        last[4]["content"],
        "Refused: an answer is given by calling the tool `answer`."
    );
}

#[test]
fn a_model_that_declines_is_asked_thrice() {
    let declines = || says("I can't help with that.", "refusal");
    let server = Server::playing(vec![declines(), good()]);
    let asked = ask(&mut contestant(ProviderName::Anthropic, &server)).unwrap();
    assert_eq!(asked.refused, ["it declined: I can't help with that."]);
    let got = server.got();
    assert_eq!(got[0].body["messages"], got[1].body["messages"]);

    let server = Server::playing(vec![declines(), declines(), stream(&message(&[], "refusal"))]);
    let error = ask(&mut contestant(ProviderName::Anthropic, &server)).unwrap_err();
    assert_eq!(
        error,
        Misconduct::Refused {
            why: "it gave no reason".to_owned()
        }
    );
}

#[test]
fn an_answer_that_is_cut_off_is_told_so() {
    let cut = message(&[(tool("answer"), &[piece(r#"{"answer": {"o"#)])], "max_tokens");
    let server = Server::playing(vec![stream(&cut), says("", "max_tokens"), good()]);
    let asked = ask(&mut contestant(ProviderName::Anthropic, &server)).unwrap();
    assert!(
        asked.refused[0].contains("since it was cut off at the limit of tokens"),
        "{:?}",
        asked.refused
    );
    assert!(
        asked.refused[1].starts_with("it was cut off"),
        "{:?}",
        asked.refused
    );
    let got = server.got();
    // What cannot be read, and a text without characters, are not sent back.
    assert_eq!(got[1].body["messages"][1]["content"][0]["input"], json!({}));
    let roles: Vec<_> = got[2].body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "user"]);
}

#[test]
fn faults_of_tools_are_told_and_the_last_turn_can_only_answer() {
    let budget = Budget {
        turns: 3,
        ..Budget::default()
    };
    let server = Server::playing(vec![
        calls("add", "{}"),
        calls("subtract", r#"{"number": 1}"#),
        good(),
    ]);
    let mut contestant = contestant_with(ProviderName::Anthropic, &server.address, budget, None);
    ask(&mut contestant).unwrap();
    let got = server.got();
    let result = &got[1].body["messages"][2]["content"][0];
    assert!(
        result["content"].as_str().unwrap().contains("that is no number") && result["is_error"] == true,
        "{result}"
    );
    assert_eq!(got[1].body["tools"].as_array().unwrap().len(), 2);
    assert_eq!(got[2].body["tools"].as_array().unwrap().len(), 1);
    let error = ask(&mut contestant).unwrap_err();
    assert_eq!(
        error,
        Misconduct::Spent {
            resource: Resource::Turns
        }
    );
}

#[test]
fn tokens_run_out() {
    let budget = Budget {
        tokens: 300,
        ..Budget::default()
    };
    let server = Server::playing(vec![
        calls("add", r#"{"number": 1}"#),
        calls("add", r#"{"number": 1}"#),
    ]);
    let mut contestant = contestant_with(ProviderName::Anthropic, &server.address, budget, None);
    let error = contestant
        .ask(&json!({}), &form(), Some(&mut Adder), &accepts)
        .unwrap_err();
    assert_eq!(
        error,
        Misconduct::Spent {
            resource: Resource::Tokens
        }
    );
    assert_eq!(contestant.used().tokens(), 380);
    let got = server.got();
    assert_eq!(
        (&got[0].body["max_tokens"], &got[1].body["max_tokens"]),
        (&json!(300), &json!(110))
    );
}
