//! OpenAI's chat completions, which many local servers speak.

use serde::Deserialize;
use serde_json::{Value, json};

use super::attempt::Fault;
use super::provider::{Call, Hearing, Message, Provider, Reply, Request, Stop, Tokens, arguments, parsed};

pub(crate) struct OpenAi;

/// The data of the last event.
const DONE: &str = "[DONE]";

impl Provider for OpenAi {
    fn name(&self) -> &'static str {
        "OpenAI"
    }

    fn home(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn variables(&self) -> [&'static str; 2] {
        ["OPENAI_API_KEY", "OPENAI_BASE_URL"]
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn body(&self, request: &Request) -> Value {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.arguments},
            })
        });
        let mut messages = vec![json!({"role": "system", "content": request.system})];
        for message in request.messages {
            match message {
                Message::User(text) => messages.push(json!({"role": "user", "content": text})),
                Message::Model(raw) => messages.push(raw.clone()),
                Message::Results(results) => messages.extend(results.iter().map(
                    |result| json!({"role": "tool", "tool_call_id": result.id, "content": result.text}),
                )),
            }
        }
        let mut body = json!({
            "model": request.model,
            "messages": messages,
            "tools": tools.collect::<Vec<_>>(),
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        // Local servers refuse a limit that does not fit into the model's context, and have one of their own.
        if request.is_scarce {
            body["max_completion_tokens"] = json!(request.max_written);
        }
        body
    }

    fn hearing(&self) -> Box<dyn Hearing> {
        Box::new(Heard::default())
    }
}

#[derive(Default)]
struct Heard {
    text: String,
    refusal: String,
    calls: Vec<PartialCall>,
    stop: Option<String>,
    tokens: Tokens,
}

#[derive(Default)]
struct PartialCall {
    id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Usage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Delta {
    content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<usize>,
    id: Option<String>,
    #[serde(default)]
    function: FunctionDelta,
}

#[derive(Default, Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

impl Heard {
    fn add(&mut self, piece: CallDelta) -> Result<(), Fault> {
        // Some servers leave out the index: then an id begins another call.
        let last = self.calls.len().saturating_sub(1);
        let index = piece.index.unwrap_or(match piece.id {
            Some(_) => self.calls.len(),
            None => last,
        });
        if index == self.calls.len() {
            self.calls.push(PartialCall::default());
        }
        let Some(call) = self.calls.get_mut(index) else {
            return Err(Fault::passing("it began a call out of order".to_owned()));
        };
        let FunctionDelta { name, arguments } = piece.function;
        // Some servers repeat the name in every piece.
        for (known, told) in [(&mut call.id, piece.id), (&mut call.name, name)] {
            if known.is_empty() {
                *known = told.unwrap_or_default();
            }
        }
        call.arguments += &arguments.unwrap_or_default();
        Ok(())
    }
}

impl Hearing for Heard {
    fn event(&mut self, data: &str) -> Result<bool, Fault> {
        if data == DONE {
            return match self.is_whole() {
                true => Ok(true),
                false => Err(Fault::passing("it ended without a reason".to_owned())),
            };
        }
        let chunk: Chunk = parsed(data)?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            let words = error["message"].as_str().unwrap_or_default();
            return Err(Fault::passing(format!("it broke off: {words}")));
        }
        if let Some(usage) = chunk.usage {
            self.tokens.read = usage.prompt_tokens.or(self.tokens.read);
            self.tokens.written = usage.completion_tokens.or(self.tokens.written);
        }
        // Only one is asked for.
        if let Some(choice) = chunk.choices.into_iter().next() {
            self.text += &choice.delta.content.unwrap_or_default();
            self.refusal += &choice.delta.refusal.unwrap_or_default();
            for piece in choice.delta.tool_calls.unwrap_or_default() {
                self.add(piece)?;
            }
            self.stop = choice.finish_reason.or(self.stop.take());
        }
        Ok(false)
    }

    fn is_whole(&self) -> bool {
        self.stop.is_some()
    }

    fn has_begun(&self) -> bool {
        !self.text.is_empty() || !self.calls.is_empty()
    }

    fn tokens(&self) -> Tokens {
        self.tokens
    }

    fn reply(self: Box<Self>) -> Reply {
        let mut calls = Vec::new();
        let mut sent_back = Vec::new();
        for (number, call) in self.calls.into_iter().enumerate() {
            let id = match call.id.as_str() {
                "" => format!("call-{number}"),
                id => id.to_owned(),
            };
            let arguments = arguments(&call.arguments);
            // What cannot be read must not be sent back: local servers read it.
            let text = arguments
                .as_ref()
                .map_or_else(|_| "{}".to_owned(), Value::to_string);
            sent_back.push(json!({
                "id": id,
                "type": "function",
                "function": {"name": call.name, "arguments": text},
            }));
            calls.push(Call {
                id,
                name: call.name,
                arguments,
            });
        }
        let has_said = !self.text.is_empty() || !sent_back.is_empty();
        let raw = has_said.then(|| {
            let mut raw = json!({"role": "assistant", "content": self.text});
            if !sent_back.is_empty() {
                raw["tool_calls"] = json!(sent_back);
            }
            raw
        });
        let stop = match self.stop.as_deref() {
            _ if !self.refusal.is_empty() => Stop::Declined(self.refusal),
            Some("content_filter") => Stop::Declined(self.text),
            Some("length") => Stop::Cut,
            _ => Stop::Done,
        };
        Reply { raw, calls, stop }
    }
}
