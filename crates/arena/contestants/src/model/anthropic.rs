//! Anthropic's messages.

use serde::Deserialize;
use serde_json::{Value, json};

use super::attempt::Fault;
use super::provider::{Call, Hearing, Message, Provider, Reply, Request, Stop, Tokens, arguments, parsed};

pub(crate) struct Anthropic;

impl Provider for Anthropic {
    fn name(&self) -> &'static str {
        "Anthropic"
    }

    fn home(&self) -> &'static str {
        "https://api.anthropic.com"
    }

    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn variables(&self) -> [&'static str; 2] {
        ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("x-api-key", key.to_owned())
    }

    fn body(&self, request: &Request) -> Value {
        let tools = request.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.arguments})
        });
        json!({
            "model": request.model,
            "max_tokens": request.max_written,
            "system": request.system,
            "messages": request.messages.iter().map(message).collect::<Vec<_>>(),
            "tools": tools.collect::<Vec<_>>(),
            "stream": true,
        })
    }

    fn hearing(&self) -> Box<dyn Hearing> {
        Box::new(Heard::default())
    }
}

fn message(message: &Message) -> Value {
    match message {
        Message::User(text) => json!({"role": "user", "content": text}),
        Message::Model(raw) => raw.clone(),
        Message::Results(results) => {
            let blocks = results.iter().map(|result| {
                json!({
                    "type": "tool_result",
                    "tool_use_id": result.id,
                    "content": result.text,
                    "is_error": result.is_error,
                })
            });
            json!({"role": "user", "content": blocks.collect::<Vec<_>>()})
        }
    }
}

#[derive(Default)]
struct Heard {
    blocks: Vec<Block>,
    stop: Option<String>,
    tokens: Tokens,
}

/// A block of an answer. What belongs to it as a whole is sent back later as it came.
struct Block {
    value: Value,
    /// The pieces of a tool's arguments.
    arguments: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Started,
    },
    ContentBlockStart {
        index: usize,
        content_block: Value,
    },
    ContentBlockDelta {
        index: usize,
        delta: Delta,
    },
    MessageDelta {
        delta: Ending,
        #[serde(default)]
        usage: Usage,
    },
    Error {
        error: Failure,
    },
    MessageStop,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Started {
    #[serde(default)]
    usage: Usage,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    Arguments { partial_json: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Ending {
    stop_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Usage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Failure {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    message: String,
}

impl Heard {
    fn count(&mut self, usage: &Usage) {
        // The last event repeats the sums so far, or leaves out what does not change.
        if let Some(uncached) = usage.input_tokens {
            let cached =
                usage.cache_creation_input_tokens.unwrap_or(0) + usage.cache_read_input_tokens.unwrap_or(0);
            self.tokens.read = Some(uncached + cached);
        }
        self.tokens.written = usage.output_tokens.or(self.tokens.written);
    }

    fn add(&mut self, index: usize, delta: Delta) -> Result<(), Fault> {
        let Some(block) = self.blocks.get_mut(index) else {
            return Err(Fault::passing(
                "it sent a piece of a block that it had not begun".to_owned(),
            ));
        };
        let mut append = |key: &str, piece: String| {
            let before = block.value[key].as_str().unwrap_or_default();
            block.value[key] = Value::String(before.to_owned() + &piece);
        };
        match delta {
            Delta::Text { text } => append("text", text),
            Delta::Thinking { thinking } => append("thinking", thinking),
            Delta::Signature { signature } => append("signature", signature),
            Delta::Arguments { partial_json } => block.arguments += &partial_json,
            Delta::Other => {}
        }
        Ok(())
    }
}

impl Hearing for Heard {
    fn event(&mut self, data: &str) -> Result<bool, Fault> {
        match parsed(data)? {
            Event::MessageStart { message } => self.count(&message.usage),
            Event::ContentBlockStart { index, content_block } => {
                if index != self.blocks.len() || !content_block.is_object() {
                    return Err(Fault::passing("it began a block out of order".to_owned()));
                }
                self.blocks.push(Block {
                    value: content_block,
                    arguments: String::new(),
                });
            }
            Event::ContentBlockDelta { index, delta } => self.add(index, delta)?,
            Event::MessageDelta { delta, usage } => {
                self.stop = delta.stop_reason.or(self.stop.take());
                self.count(&usage);
            }
            Event::Error { error } => {
                let why = format!("it broke off: {} ({})", error.message, error.kind);
                return Err(match error.kind.as_str() {
                    "overloaded_error" | "api_error" | "rate_limit_error" | "timeout_error" => {
                        Fault::passing(why)
                    }
                    _ => Fault::Lasting(why),
                });
            }
            Event::MessageStop => return Ok(true),
            Event::Other => {}
        }
        Ok(false)
    }

    fn is_whole(&self) -> bool {
        false
    }

    fn has_begun(&self) -> bool {
        !self.blocks.is_empty()
    }

    fn tokens(&self) -> Tokens {
        self.tokens
    }

    fn reply(self: Box<Self>) -> Reply {
        let mut calls = Vec::new();
        let mut content = Vec::new();
        let mut words = String::new();
        for Block {
            mut value,
            arguments: pieces,
        } in self.blocks
        {
            match value["type"].as_str() {
                Some("tool_use") => {
                    let arguments = match pieces.as_str() {
                        "" => Ok(value["input"].clone()),
                        pieces => arguments(pieces),
                    };
                    // What cannot be read must not be sent back.
                    value["input"] = arguments
                        .clone()
                        .ok()
                        .filter(Value::is_object)
                        .unwrap_or_else(|| json!({}));
                    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
                    calls.push(Call {
                        id: text("id"),
                        name: text("name"),
                        arguments,
                    });
                }
                Some("text") => words += value["text"].as_str().unwrap_or_default(),
                _ => {}
            }
            // The interface refuses a text without characters.
            if value["text"] != json!("") {
                content.push(value);
            }
        }
        Reply {
            raw: (!content.is_empty()).then(|| json!({"role": "assistant", "content": content})),
            calls,
            stop: match self.stop.as_deref() {
                Some("refusal") => Stop::Declined(words),
                Some("max_tokens" | "model_context_window_exceeded") => Stop::Cut,
                _ => Stop::Done,
            },
        }
    }
}
