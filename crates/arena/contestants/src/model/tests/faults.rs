//! Every fault of a provider, and of the way to it.

use std::io::Write;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::anthropic::{calls, good, message};
use super::server::{Act, Server, head, status, stream};
use super::{KEY, ask, contestant, contestant_with, wall};
use crate::contestant::Asked;
use crate::engine::{Budget, ProviderName};
use crate::misconduct::{Misconduct, Resource, Whose};

/// What becomes of a conversation that is played like this, and how many requests there were.
fn outcome(script: Vec<Act>) -> (Result<Asked, Misconduct>, usize) {
    let server = Server::playing(script);
    let mut contestant = contestant(ProviderName::Anthropic, &server);
    let asked = ask(&mut contestant);
    (asked, server.got().len())
}

/// The message of a fault that is not the participant's, after as many requests as there are acts.
fn fault(script: Vec<Act>) -> String {
    let count = script.len();
    let (asked, requests) = outcome(script);
    let error = asked.unwrap_err();
    assert_eq!((error.whose(), requests), (Whose::Environment, count), "{error}");
    error.to_string()
}

fn passes(bad: Act) {
    let (asked, _) = outcome(vec![bad, good()]);
    assert_eq!(asked.unwrap().refused, [""; 0]);
}

fn error(kind: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": "Overloaded"}}).to_string()
}

#[test]
fn what_passes_is_tried_again() {
    passes(status(
        "429 Too Many Requests",
        "retry-after: 0\r\n",
        &error("rate_limit_error"),
    ));
    passes(status(
        "429 Too Many Requests",
        "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        "{}",
    ));
    passes(status("500 Internal Server Error", "", "oh"));
    passes(status("529 Overloaded", "", &error("overloaded_error")));
    passes(stream(&[error("overloaded_error")]));
    // A connection that is closed at once, and a stream that is cut off.
    passes(Act::Send(vec![]));
    passes(Act::Send(vec![
        head(),
        b"data: {\"type\": \"ping\"}\n\ndata: {\"ty".to_vec(),
    ]));
    passes(stream(&["{no json".to_owned()]));
    passes(Act::Send(vec![head(), b"data: \xff\xfe\n\n".to_vec()]));
    passes(stream(&[
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "x"}})
            .to_string(),
    ]));
    passes(stream(&[
        json!({"type": "content_block_delta", "index": 0}).to_string()
    ]));
}

/// Before its answer, and within it.
#[test]
fn a_server_that_hangs_is_given_up() {
    let ping = b"data: {\"type\": \"ping\"}\n\n".to_vec();
    let server = Server::playing(vec![
        Act::Hang(Vec::new()),
        Act::Hang([head(), ping].concat()),
        Act::Hang(head()),
    ]);
    let mut contestant = contestant(ProviderName::Anthropic, &server);
    contestant.surroundings.silence = Duration::from_millis(100);
    let error = ask(&mut contestant).unwrap_err();
    assert!(error.to_string().contains("nothing came for too long"), "{error}");
    assert_eq!((error.whose(), server.got().len()), (Whose::Environment, 3));
}

/// A server that does not speak TLS, where an address says so.
#[test]
fn a_connection_that_cannot_be_secured() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    let playing = thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let error = ask(&mut contestant_with(
        ProviderName::Openai,
        &address,
        Budget::default(),
        None,
    ))
    .unwrap_err();
    playing.join().unwrap();
    assert!(
        error.to_string().starts_with("OpenAI at https://127.0.0.1"),
        "{error}"
    );
    assert_eq!(error.whose(), Whose::Environment);
}

#[test]
fn what_does_not_pass_ends_the_question_and_blames_nobody() {
    let broken = || {
        status(
            "503 Service Unavailable",
            "",
            r#"{"error": {"message": "try later"}}"#,
        )
    };
    let why = fault(vec![broken(), broken(), broken()]);
    assert!(
        why.starts_with("Anthropic at http://127.0.0.1:")
            && why.ends_with("503 Service Unavailable: try later (tried 3 times)"),
        "{why}"
    );
    let why = fault(vec![status(
        "429 Too Many Requests",
        "retry-after: 86400\r\n",
        "{}",
    )]);
    assert!(why.contains("429"), "{why}");
    let why = fault(vec![status(
        "429 Too Many Requests",
        "",
        r#"{"error": {"code": "insufficient_quota", "message": "pay"}}"#,
    )]);
    assert!(why.ends_with("pay"), "{why}");
    let why = fault(vec![status(
        "404 Not Found",
        "",
        r#"{"error": {"message": "model: small"}}"#,
    )]);
    assert!(
        why.contains("model: small (are the model and the address right?)"),
        "{why}"
    );
    let why = fault(vec![status("400 Bad Request", "", &"x".repeat(100_000))]);
    assert!(why.len() < 600, "{why}");
    let why = fault(vec![status("200 OK", "", r#"{"content": []}"#)]);
    assert!(
        why.contains("answers with application/json and not with a stream"),
        "{why}"
    );
    let why = fault(vec![stream(&[error("invalid_request_error")])]);
    assert!(why.contains("Overloaded (invalid_request_error)"), "{why}");
}

#[test]
fn redirections_are_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let location = format!(
        "location: http://{}/v1/messages\r\n",
        elsewhere.local_addr().unwrap()
    );
    for code in [
        "301 Moved Permanently",
        "302 Found",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let why = fault(vec![status(code, &location, "")]);
        assert!(why.contains("it leads to another address"), "{why}");
    }
    assert!(elsewhere.accept().is_err());
}

/// Some servers repeat the key in their message.
#[test]
fn a_key_that_is_refused_is_not_shown() {
    let body = format!(r#"{{"error": {{"message": "invalid x-api-key {KEY}"}}}}"#);
    let server = Server::playing(vec![status("401 Unauthorized", "", &body)]);
    let mut contestant = contestant(ProviderName::Anthropic, &server);
    let error = ask(&mut contestant).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("invalid x-api-key (key) (the key comes from ANTHROPIC_API_KEY)"),
        "{error}"
    );
    assert!(!format!("{error:?} {contestant:?}").contains(KEY));
    assert_eq!(error.whose(), Whose::Environment);
}

#[test]
fn a_missing_key_is_told_before_anything_is_sent() {
    let mut contestant = contestant_with(
        ProviderName::Anthropic,
        "https://api.anthropic.com/",
        Budget::default(),
        None,
    );
    contestant.surroundings.variable = std::sync::Arc::new(|_| None);
    let error = ask(&mut contestant).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no key for Anthropic: set ANTHROPIC_API_KEY in the environment"
    );
    contestant.surroundings.variable =
        std::sync::Arc::new(|name| (name == "ANTHROPIC_API_KEY").then(|| format!("{KEY}\nx: y")));
    let error = ask(&mut contestant).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("ANTHROPIC_API_KEY holds characters that are in no key"),
        "{error}"
    );
}

#[test]
fn nobody_listens() {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let error = ask(&mut contestant_with(
        ProviderName::Openai,
        &address,
        Budget::default(),
        None,
    ))
    .unwrap_err();
    assert_eq!(error.whose(), Whose::Environment);
    assert!(
        error.to_string().contains("the connection failed") && error.to_string().ends_with("(tried 3 times)"),
        "{error}"
    );
}

#[test]
fn a_huge_answer_is_not_read_to_its_end() {
    let pings = "data: {\"type\": \"ping\"}\n\n".repeat(100_000);
    let server = |begin: Vec<u8>| {
        let mut pieces = vec![head(), begin];
        pieces.extend((0..16).map(|_| pings.clone().into_bytes()));
        vec![Act::Send(pieces)]
    };
    let why = fault(server(Vec::new()));
    assert!(why.ends_with("it sent over 32 MiB in one answer"), "{why}");
    let block =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let (asked, _) = outcome(server(format!("data: {block}\n\n").into_bytes()));
    assert_eq!(
        asked.unwrap_err().to_string(),
        "it wrote over 32 MiB in one answer"
    );
    // One line without an end.
    let (asked, _) = outcome(vec![Act::Send(
        [vec![head()], vec![vec![b'x'; 4 << 20]; 9]].concat(),
    )]);
    assert_eq!(asked.unwrap_err().whose(), Whose::Environment);
}

/// Only a model that was at work when the time was up has been too slow.
#[test]
fn time_that_runs_out() {
    let events = message(&[(json!({"type": "text", "text": ""}), &[])], "end_turn");
    let begun: String = events[..4]
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    let cases = [
        (Vec::new(), 300, Whose::Environment),
        (head(), 300, Whose::Environment),
        // Long enough for it to begin on a busy machine.
        ([head(), begun.into_bytes()].concat(), 4000, Whose::Participant),
    ];
    for (piece, time, whose) in cases {
        let server = Server::playing(vec![Act::Hang(piece)]);
        let mut contestant = contestant_with(ProviderName::Anthropic, &server.address, wall(time), None);
        let error = ask(&mut contestant).unwrap_err();
        assert_eq!(
            (error.whose(), matches!(error, Misconduct::Silent { .. })),
            (whose, whose == Whose::Participant),
            "{error}"
        );
        // What the provider has wasted is not lost.
        assert_eq!(contestant.left().wall.is_zero(), whose == Whose::Participant);
        server.got();
    }
}

/// Neither the time that failures take nor pauses after them count; tokens do, since they cost money.
#[test]
fn failures_cost_tokens_but_no_time() {
    let begun: Vec<_> = message(&[], "end_turn")[..1].to_vec();
    let server = Server::playing(vec![
        status("503 Service Unavailable", "retry-after: 1\r\n", "{}"),
        stream(&begun),
        good(),
    ]);
    let mut contestant = contestant_with(ProviderName::Anthropic, &server.address, wall(20_000), None);
    let start = std::time::Instant::now();
    let asked = ask(&mut contestant).unwrap();
    assert!(
        asked.used.wall + 1.0 <= start.elapsed().as_secs_f64(),
        "{asked:?}"
    );
    assert_eq!((asked.used.tokens_in, asked.used.tokens_out), (300, 41));
}

#[test]
fn a_conversation_that_is_too_long_is_the_participants_once_it_has_read() {
    let long = || {
        status(
            "400 Bad Request",
            "",
            r#"{"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        )
    };
    fault(vec![long()]);
    fault(vec![status("413 Payload Too Large", "", "")]);
    let (asked, _) = outcome(vec![calls("add", r#"{"number": 1}"#), long()]);
    assert_eq!(
        asked.unwrap_err(),
        Misconduct::Spent {
            resource: Resource::Context
        }
    );
}
