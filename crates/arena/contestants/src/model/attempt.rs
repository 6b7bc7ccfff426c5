//! One request to a server, and what can go wrong with it.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use ureq::http::{Response, StatusCode};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, Error, Timeout};

use super::address::Server;
use super::events::{Events, MAX_STREAM};
use super::provider::{Hearing, Provider};

/// How long a connection may take to be made.
const CONNECTING: Duration = Duration::from_secs(20);

/// The most bytes that are read of a message about an error.
const MAX_MESSAGE: u64 = 64 << 10;

/// The most characters that are shown of it.
const SHOWN: usize = 400;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It may work later; with how long the server asks to wait.
    Passing { why: String, after: Option<Duration> },
    /// It will not.
    Lasting(String),
    /// The conversation is longer than the model can read.
    TooLong(String),
    /// The model was still answering when its time was up.
    Slow,
    /// The model writes without end.
    Flood(String),
}

impl Fault {
    pub fn passing(why: String) -> Self {
        Self::Passing { why, after: None }
    }

    /// The same fault, told in other words.
    pub fn told(self, words: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Passing { why, after } => Self::Passing {
                why: words(why),
                after,
            },
            Self::Lasting(why) => Self::Lasting(words(why)),
            Self::TooLong(why) => Self::TooLong(words(why)),
            other => other,
        }
    }
}

/// What makes requests to an address.
pub(crate) fn agent(address: &str, silence: Duration) -> Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .user_agent("gauntlet")
        .http_status_as_error(false)
        // A key must not follow a redirection to somewhere else.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(CONNECTING))
        .timeout_recv_response(Some(silence))
        .timeout_per_read(Some(silence));
    // Proxies are for other machines.
    let config = if is_local(address) {
        config.proxy(None)
    } else {
        config
    };
    config.build().new_agent()
}

fn is_local(address: &str) -> bool {
    let host = address.split_once("://").map_or(address, |(_, rest)| rest);
    ["localhost", "127.", "[::1]"]
        .iter()
        .any(|local| host.starts_with(local))
}

/// Sends a request and hears the answer, within the time that is left.
pub(crate) fn attempt(
    server: &Server,
    provider: &dyn Provider,
    body: &str,
    time_left: Duration,
    hearing: &mut dyn Hearing,
) -> Result<(), Fault> {
    let mut request = server
        .agent
        .post(&server.url)
        .config()
        .timeout_global(Some(time_left))
        .build()
        .header("content-type", "application/json")
        .header("accept", "text/event-stream");
    for (name, value) in provider.headers() {
        request = request.header(*name, *value);
    }
    if let Some(key) = &server.key {
        let (name, value) = provider.key_header(key.reveal());
        request = request.header(name, value);
    }
    let mut response = request.send(body).map_err(|error| unsent(error, hearing))?;
    if response.status() != StatusCode::OK {
        return Err(refused(server, &mut response));
    }
    let kind = response.body().mime_type().unwrap_or("nothing").to_owned();
    if kind != "text/event-stream" {
        return Err(Fault::Lasting(format!(
            "it answers with {kind} and not with a stream of events: is the address right?"
        )));
    }
    hear(
        response.body_mut().with_config().limit(2 * MAX_STREAM).reader(),
        hearing,
    )
}

fn hear(stream: impl Read, hearing: &mut dyn Hearing) -> Result<(), Fault> {
    let mut events = Events::new(stream);
    loop {
        match events.next() {
            Ok(Some(data)) => {
                if hearing.event(&data)? {
                    return Ok(());
                }
            }
            Ok(None) if events.is_flood() => {
                let what = format!("over {} MiB in one answer", MAX_STREAM >> 20);
                return Err(match hearing.has_begun() {
                    true => Fault::Flood(what),
                    false => Fault::Lasting(format!("it sent {what}")),
                });
            }
            Ok(None) if hearing.is_whole() => return Ok(()),
            Ok(None) => return Err(Fault::passing("the answer was cut off".to_owned())),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(Fault::passing(format!("the answer cannot be read: {error}")));
            }
            Err(error) => return Err(unsent(Error::from(error), hearing)),
        }
    }
}

/// A fault of the way to the server, or a timeout.
fn unsent(error: Error, hearing: &dyn Hearing) -> Fault {
    match error {
        // All of the participant's time is used up: its own doing only if it was at it.
        Error::Timeout(Timeout::Global) if hearing.has_begun() => Fault::Slow,
        Error::Timeout(Timeout::Global) => {
            Fault::Lasting("no answer came before the participant's time was up".to_owned())
        }
        Error::Timeout(which) => Fault::passing(format!("nothing came for too long (timeout: {which})")),
        Error::HostNotFound => Fault::passing("there is no such host, or no network".to_owned()),
        Error::BadUri(_) | Error::Http(_) | Error::InvalidProxyUrl => {
            Fault::Lasting("the address or the proxy in the environment is malformed".to_owned())
        }
        Error::Rustls(error) => Fault::Lasting(format!("the connection cannot be secured: {error}")),
        error => Fault::passing(format!("the connection failed: {error}")),
    }
}

/// An answer other than success.
fn refused(server: &Server, response: &mut Response<Body>) -> Fault {
    let status = response.status();
    let after = pause_of(response);
    let mut message = Vec::new();
    // Whatever can be read of it helps.
    let _partly = response
        .body_mut()
        .with_config()
        .limit(MAX_MESSAGE)
        .reader()
        .read_to_end(&mut message);
    let message = String::from_utf8_lossy(&message);
    let words = format!("{status}: {}", shown(&message));
    let about_key = &server.about_key;
    match status.as_u16() {
        429 if message.contains("insufficient_quota") => Fault::Lasting(words),
        408 | 409 | 425 | 429 | 500.. => Fault::Passing { why: words, after },
        300..=399 => Fault::Lasting(format!(
            "{status}: it leads to another address, which is not followed: mend the address"
        )),
        401 | 403 => Fault::Lasting(format!("{words} ({about_key})")),
        404 => Fault::Lasting(format!("{words} (are the model and the address right?)")),
        413 => Fault::TooLong(words),
        400 if is_too_long(&message) => Fault::TooLong(words),
        _ => Fault::Lasting(words),
    }
}

/// How servers say that a conversation does not fit into the model's context: Anthropic, OpenAI, vLLM, llama.cpp.
fn is_too_long(message: &str) -> bool {
    [
        "prompt is too long",
        "context_length_exceeded",
        "maximum context length",
        "exceed_context_size",
    ]
    .iter()
    .any(|words| message.contains(words))
}

/// The message in an error's body, or its beginning.
fn shown(body: &str) -> String {
    let parsed: Option<serde_json::Value> = serde_json::from_str(body).ok();
    let message = parsed.as_ref().and_then(|body| body["error"]["message"].as_str());
    message.unwrap_or(body).trim().chars().take(SHOWN).collect()
}

/// How long the server asks to wait: seconds, or a date.
fn pause_of(response: &Response<Body>) -> Option<Duration> {
    let after = response.headers().get("retry-after")?.to_str().ok()?;
    if let Ok(seconds) = after.parse() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(after)
        .ok()?;
    Duration::try_from(date.duration_since(jiff::Timestamp::now())).ok()
}
