//! What providers have in common.

use serde_json::Value;

use super::attempt::Fault;
use crate::tools::Tool;

/// A provider's interface over HTTP.
pub(crate) trait Provider {
    /// Its name in messages.
    fn name(&self) -> &'static str;

    /// The base address of its public server.
    fn home(&self) -> &'static str;

    /// What follows the base address.
    fn path(&self) -> &'static str;

    /// The variables that hold the key, and the base address to which the user sends it.
    fn variables(&self) -> [&'static str; 2];

    /// The headers of every request.
    fn headers(&self) -> &'static [(&'static str, &'static str)];

    /// The header that holds the key.
    fn key_header(&self, key: &str) -> (&'static str, String);

    /// The body of a request.
    fn body(&self, request: &Request) -> Value;

    /// Hears an answer.
    fn hearing(&self) -> Box<dyn Hearing>;
}

/// What is asked of a model.
pub(crate) struct Request<'a> {
    pub model: &'a str,
    pub system: &'a str,
    pub messages: &'a [Message],
    pub tools: &'a [Tool],
    /// The most tokens that it may write.
    pub max_written: u64,
    /// Whether that is all that is left of its budget.
    pub is_scarce: bool,
}

/// A message of a conversation.
#[derive(Debug)]
pub(crate) enum Message {
    User(String),
    /// What the model said, in the provider's own words.
    Model(Value),
    /// What became of its calls.
    Results(Vec<ToolResult>),
}

#[derive(Debug)]
pub(crate) struct ToolResult {
    /// The call's.
    pub id: String,
    pub text: String,
    pub is_error: bool,
}

/// Puts an answer together from the events of a stream.
pub(crate) trait Hearing {
    /// Takes the data of an event; whether it was the last one.
    fn event(&mut self, data: &str) -> Result<bool, Fault>;

    /// Whether the answer is whole though the stream ends here.
    fn is_whole(&self) -> bool;

    /// Whether the model has begun to answer.
    fn has_begun(&self) -> bool;

    /// The tokens that were told so far.
    fn tokens(&self) -> Tokens;

    /// The answer.
    fn reply(self: Box<Self>) -> Reply;
}

/// Tokens, as far as the provider tells them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub read: Option<u64>,
    pub written: Option<u64>,
}

/// An answer of a model.
#[derive(Debug)]
pub(crate) struct Reply {
    /// In the provider's own words, to be sent back; none if it said nothing.
    pub raw: Option<Value>,
    pub calls: Vec<Call>,
    pub stop: Stop,
}

/// A use of a tool.
#[derive(Debug)]
pub(crate) struct Call {
    pub id: String,
    pub name: String,
    /// Its arguments, or why they cannot be read.
    pub arguments: Result<Value, String>,
}

/// Why a model stopped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Done,
    /// It has written as many tokens as it may.
    Cut,
    /// It, or the provider's filter, declines; with its words.
    Declined(String),
}

/// The arguments of a call, which come in pieces; none at all stand for no argument.
pub(crate) fn arguments(text: &str) -> Result<Value, String> {
    match text.trim() {
        "" => Ok(Value::Object(serde_json::Map::new())),
        text => serde_json::from_str(text).map_err(|error| error.to_string()),
    }
}

/// Reads the data of an event.
pub(crate) fn parsed<T: serde::de::DeserializeOwned>(data: &str) -> Result<T, Fault> {
    serde_json::from_str(data)
        .map_err(|error| Fault::passing(format!("it sent an event that nobody can read: {error}")))
}
