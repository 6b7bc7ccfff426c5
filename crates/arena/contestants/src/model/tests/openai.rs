//! Conversations as OpenAI's interface has them, and as local servers speak it.

use serde_json::{Value, json};

use super::server::{Act, Server, chunked, stream};
use super::{KEY, ask, contestant, contestant_with};
use crate::engine::{Budget, ProviderName};
use crate::misconduct::Misconduct;

/// A chunk with this delta.
fn chunk(delta: &Value, stop: Option<&str>) -> String {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]})
        .to_string()
}

fn usage() -> String {
    json!({"choices": [], "usage": {"prompt_tokens": 70, "completion_tokens": 9, "total_tokens": 79}})
        .to_string()
}

/// An answer of these deltas that ends for this reason.
fn message(deltas: &[Value], stop: &str) -> Act {
    let mut events: Vec<_> = deltas.iter().map(|delta| chunk(delta, None)).collect();
    events.extend([chunk(&json!({}), Some(stop)), usage(), "[DONE]".to_owned()]);
    chunked(&events)
}

fn call(name: &str, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}]})
}

fn more(index: usize, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})
}

fn good() -> Act {
    message(
        &[
            call("answer", ""),
            more(0, r#"{"answer": {"#),
            more(0, r#""ok": true}}"#),
        ],
        "tool_calls",
    )
}

#[test]
fn two_tools_are_used_at_once_and_an_answer_comes_in_pieces() {
    let second = json!({"tool_calls": [{"index": 1, "id": "call_2", "type": "function", "function": {"name": "add", "arguments": ""}}]});
    let first = message(
        &[
            json!({"role": "assistant", "content": null}),
            json!({"content": "Both ☃"}),
            call("add", r#"{"number""#),
            more(0, ": 1}"),
            second,
            more(1, "{}"),
        ],
        "tool_calls",
    );
    let server = Server::playing(vec![first, good()]);
    let mut contestant = contestant(ProviderName::Openai, &server);
    let asked = ask(&mut contestant).unwrap();
    assert_eq!(
        (asked.used.turns, asked.used.tokens_in, asked.used.tokens_out),
        (3, 140, 18)
    );
    let got = server.got();
    assert!(
        got[0].head.starts_with("post /chat/completions http/1.1"),
        "{}",
        got[0].head
    );
    assert!(got[0].head.contains(&format!("authorization: bearer {KEY}")));
    let body = &got[0].body;
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    assert_eq!(body["messages"][0]["role"], "system");
    assert_eq!(body["tools"][1]["function"]["name"], "answer");
    assert_eq!(body.get("max_completion_tokens"), None);
    let messages = got[1].body["messages"].as_array().unwrap();
    assert_eq!(messages[2]["content"], "Both ☃");
    assert_eq!(
        messages[2]["tool_calls"][0],
        json!({"id": "call_1", "type": "function", "function": {"name": "add", "arguments": r#"{"number":1}"#}})
    );
    assert_eq!(
        (&messages[3]["role"], &messages[3]["tool_call_id"]),
        (&json!("tool"), &json!("call_1"))
    );
    assert!(messages[3]["content"].as_str().unwrap().contains("\n2\n"));
    assert!(
        messages[4]["content"]
            .as_str()
            .unwrap()
            .contains("that is no number")
    );
}

/// Some leave out indices, ids, the end mark and the count of tokens, and repeat names.
#[test]
fn local_servers_speak_it_in_their_own_way() {
    let events = [
        chunk(
            &json!({"tool_calls": [{"id": "a", "function": {"name": "add", "arguments": "{\"number\": "}}]}),
            None,
        ),
        chunk(
            &json!({"tool_calls": [{"function": {"name": "add", "arguments": "1}"}}]}),
            Some("tool_calls"),
        ),
    ];
    let whole = chunk(
        &json!({"tool_calls": [{"index": 0, "function": {"name": "answer", "arguments": "{\"answer\": {\"ok\": true}}"}}]}),
        Some("stop"),
    );
    let server = Server::playing(vec![stream(&events), stream(&[whole])]);
    let asked = ask(&mut contestant(ProviderName::Openai, &server)).unwrap();
    assert!(
        asked.used.tokens_in > 200 && (5..100).contains(&asked.used.tokens_out),
        "{asked:?}"
    );
    let got = server.got();
    assert_eq!(
        got[1].body["messages"][2]["tool_calls"][0]["function"]["name"],
        "add"
    );
}

#[test]
fn a_key_goes_only_where_the_environment_sends_it() {
    let server = Server::playing(vec![good(), good(), good()]);
    for trusted in [
        None,
        Some("http://elsewhere/v1"),
        Some(format!("{}/", server.address).as_str()),
    ] {
        let mut contestant =
            contestant_with(ProviderName::Openai, &server.address, Budget::default(), trusted);
        ask(&mut contestant).unwrap();
    }
    let had_key: Vec<_> = server
        .got()
        .iter()
        .map(|got| got.head.contains("authorization"))
        .collect();
    assert_eq!(had_key, [false, false, true]);
}

#[test]
fn refusals_filters_and_limits_are_told_apart() {
    let refusal = || {
        message(
            &[json!({"refusal": "I'm sorry, "}), json!({"refusal": "no."})],
            "stop",
        )
    };
    let filtered = || message(&[json!({"content": ""})], "content_filter");
    let cut = || message(&[call("answer", r#"{"answer": {"#)], "length");
    let server = Server::playing(vec![refusal(), cut(), good()]);
    let asked = ask(&mut contestant(ProviderName::Openai, &server)).unwrap();
    assert_eq!(asked.refused[0], "it declined: I'm sorry, no.");
    assert!(
        asked.refused[1].contains("since it was cut off at the limit of tokens"),
        "{:?}",
        asked.refused
    );
    let got = server.got();
    assert_eq!(
        got[2].body["messages"][2]["tool_calls"][0]["function"]["arguments"],
        "{}"
    );

    let server = Server::playing(vec![filtered(), filtered(), refusal()]);
    let error = ask(&mut contestant(ProviderName::Openai, &server)).unwrap_err();
    assert_eq!(
        error,
        Misconduct::Refused {
            why: "I'm sorry, no.".to_owned()
        }
    );
}

#[test]
fn a_scarce_budget_limits_what_is_written() {
    let budget = Budget {
        tokens: 1000,
        ..Budget::default()
    };
    let server = Server::playing(vec![good()]);
    ask(&mut contestant_with(
        ProviderName::Openai,
        &server.address,
        budget,
        None,
    ))
    .unwrap();
    assert_eq!(server.got()[0].body["max_completion_tokens"], 1000);
}
