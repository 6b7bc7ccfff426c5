//! A conversation with a model behind a provider's interface: the answer is the argument of a tool that is called `answer`.

mod address;
mod anthropic;
mod attempt;
mod events;
mod openai;
mod prompt;
mod provider;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use address::Server;
pub(crate) use address::Surroundings;
use attempt::Fault;
use prompt::{ANSWER, Prompt};
use provider::{Call, Message, Provider, Reply, Request, Stop, ToolResult};

use crate::contestant::Form;
use crate::conversation::Conversation;
use crate::engine::{Engine, ProviderName};
use crate::misconduct::{Misconduct, Resource, Whose};

/// The most tokens that a model writes at once. A pitch or a patch is far shorter, and no model of today allows less.
const MAX_WRITTEN: u64 = 16_384;

/// Bytes of a token, for servers that do not count.
const BYTES_A_TOKEN: u64 = 4;

/// Asks a model of this provider.
pub(crate) fn answer(
    name: ProviderName,
    engine: &Engine,
    folder: &Path,
    surroundings: &Surroundings,
    (question, form): (&Value, &Form),
    conversation: &mut Conversation,
) -> Result<Value, Misconduct> {
    let provider: &dyn Provider = match name {
        ProviderName::Anthropic => &anthropic::Anthropic,
        ProviderName::Openai => &openai::OpenAi,
    };
    let environment = |why| Misconduct::Environment { why };
    let persona = engine.persona_text(folder).map_err(environment)?;
    let prompt = Prompt::new(persona.as_deref());
    let mut model = Model {
        provider,
        server: Server::of(provider, engine, surroundings).map_err(environment)?,
        engine,
        surroundings,
        system: prompt.system(),
        messages: vec![Message::User(prompt.question(question, form, conversation))],
        has_used_tools: false,
    };
    loop {
        let reply = model.reply(form, conversation)?;
        if let Some(answer) = model.take(reply, &prompt, conversation)? {
            return Ok(answer);
        }
    }
}

/// A conversation so far.
struct Model<'a> {
    provider: &'a dyn Provider,
    server: Server,
    engine: &'a Engine,
    surroundings: &'a Surroundings,
    system: String,
    messages: Vec<Message>,
    has_used_tools: bool,
}

impl Model<'_> {
    /// What the model says next. Passing faults of the provider are waited out, and the time that they take does not count.
    fn reply(&self, form: &Form, conversation: &mut Conversation) -> Result<Reply, Misconduct> {
        let left = conversation.tokens_left()?;
        let mut tools = conversation.tools();
        if conversation.left().turns <= 1 {
            // On the last turn a tool would be of no use: the model is offered nothing but to answer.
            tools.clear();
        }
        tools.push(prompt::answer_tool(form));
        let request = self.provider.body(&Request {
            model: self.engine.model.as_deref().unwrap_or_default(),
            system: &self.system,
            messages: &self.messages,
            tools: &tools,
            max_written: left.min(MAX_WRITTEN),
            is_scarce: left < MAX_WRITTEN,
        });
        let body = request.to_string();
        let mut tries = 1;
        loop {
            let begun = Instant::now();
            let (reply, tokens) = self
                .server
                .attempt(self.provider, &body, conversation.time_left());
            // What was told before a fault has to be paid too.
            let estimated = |bytes: usize| if reply.is_ok() { tokens_of(bytes) } else { 0 };
            let raw = reply.as_ref().ok().and_then(|reply| reply.raw.as_ref());
            conversation.charge(
                tokens.read.unwrap_or_else(|| estimated(body.len())),
                tokens
                    .written
                    .unwrap_or_else(|| estimated(raw.map_or(0, |raw| raw.to_string().len()))),
                self.engine.price,
            );
            let pause = match reply {
                Ok(reply) => return Ok(reply),
                Err(Fault::Passing { why, after }) => match self.surroundings.pause(tries, after) {
                    Some(pause) => pause,
                    None => {
                        conversation.forgive(begun);
                        let why = format!("{why} (tried {tries} times)");
                        return Err(Misconduct::Environment { why });
                    }
                },
                Err(fault) => {
                    let misconduct = self.misconduct(fault, conversation);
                    if misconduct.whose() == Whose::Environment {
                        conversation.forgive(begun);
                    }
                    return Err(misconduct);
                }
            };
            std::thread::sleep(pause);
            conversation.forgive(begun);
            tries += 1;
        }
    }

    fn misconduct(&self, fault: Fault, conversation: &Conversation) -> Misconduct {
        match fault {
            Fault::Slow => conversation.silent(),
            Fault::Flood(what) => Misconduct::Flooded { what },
            // It has read too much; without tools, it is the question that is too long for the model.
            Fault::TooLong(_) if self.has_used_tools => Misconduct::Spent {
                resource: Resource::Context,
            },
            Fault::Passing { why, .. } | Fault::Lasting(why) | Fault::TooLong(why) => {
                Misconduct::Environment { why }
            }
        }
    }

    /// Takes what the model said: its answer, if it is accepted.
    fn take(
        &mut self,
        reply: Reply,
        prompt: &Prompt,
        conversation: &mut Conversation,
    ) -> Result<Option<Value>, Misconduct> {
        if let Stop::Declined(why) = reply.stop {
            conversation.turn()?;
            let why = if why.is_empty() {
                "it gave no reason".to_owned()
            } else {
                why
            };
            // Asked again as if it had said nothing: a model that reads its own refusal repeats it.
            return conversation.decline(why).map(|()| None);
        }
        self.messages.extend(reply.raw.map(Message::Model));
        if reply.calls.is_empty() {
            conversation.turn()?;
            let cut = if reply.stop == Stop::Cut {
                "it was cut off at the limit of tokens; "
            } else {
                ""
            };
            let why = format!("{cut}an answer is given by calling the tool `{ANSWER}`");
            conversation.refuse(why.clone())?;
            self.messages.push(Message::User(format!("Refused: {why}.")));
            return Ok(None);
        }
        let mut results = Vec::new();
        for call in reply.calls {
            conversation.turn()?;
            match self.serve(&call, reply.stop == Stop::Cut, prompt, conversation)? {
                Served::Answer(answer) => return Ok(Some(answer)),
                Served::Result { text, is_error } => results.push(ToolResult {
                    id: call.id,
                    text,
                    is_error,
                }),
            }
        }
        self.messages.push(Message::Results(results));
        Ok(None)
    }

    fn serve(
        &mut self,
        call: &Call,
        is_cut: bool,
        prompt: &Prompt,
        conversation: &mut Conversation,
    ) -> Result<Served, Misconduct> {
        let cut = if is_cut {
            ", since it was cut off at the limit of tokens"
        } else {
            ""
        };
        let arguments = call
            .arguments
            .as_ref()
            .map_err(|error| format!("the arguments of `{}` are no JSON{cut}: {error}", call.name));
        if call.name != ANSWER {
            let done = arguments.and_then(|arguments| {
                self.has_used_tools = true;
                conversation.call(&call.name, arguments)
            });
            let is_error = done.is_err();
            let text = match done {
                Ok(result) => prompt.quoted(&format!("result of {}", call.name), &result),
                Err(why) => prompt.quoted("error", &Value::String(why)),
            };
            return Ok(Served::Result { text, is_error });
        }
        let answer = arguments.and_then(|arguments| {
            arguments
                .get(ANSWER)
                .ok_or_else(|| format!("`{ANSWER}` takes one argument, which is called `{ANSWER}` too"))
        });
        match answer.and_then(|answer| conversation.accepts(answer).map(|()| answer)) {
            Ok(answer) => Ok(Served::Answer(answer.clone())),
            Err(why) => {
                conversation.refuse(why.clone())?;
                Ok(Served::Result {
                    text: format!("Refused: {why}"),
                    is_error: true,
                })
            }
        }
    }
}

/// What became of a model's call.
enum Served {
    Answer(Value),
    Result { text: String, is_error: bool },
}

fn tokens_of(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_A_TOKEN)
}
