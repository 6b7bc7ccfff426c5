//! A conversation with a program: lines of JSON over its standard input and output.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gauntlet_worker::{Ended, Silence, Trusted};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::conversation::Conversation;
use crate::engine::located;
use crate::misconduct::Misconduct;

/// The most bytes of a line.
const MAX_LINE: usize = 1 << 20;

/// The most bytes of all lines for a question.
const MAX_TOTAL: usize = 16 << 20;

/// How long a program may take to end by itself: after its answer, to keep what it wants to remember, or after it has closed its
/// standard output.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a program says in a line.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Line {
    Call {
        call: String,
        #[serde(default = "no_arguments")]
        arguments: Value,
    },
    Answer {
        answer: Value,
    },
}

fn no_arguments() -> Value {
    json!({})
}

/// Asks a program, started anew in `folder`.
pub(crate) fn answer(
    program: &[PathBuf],
    folder: &Path,
    question: &Value,
    conversation: &mut Conversation,
) -> Result<Value, Misconduct> {
    let mut process = conversation.pause(|_| start(program, folder))?;
    process.send(&with_tools(question, conversation).to_string());
    let answer = converse(&mut process, conversation);
    match answer {
        Ok(answer) => {
            conversation.pause(|_| process.end(PATIENCE));
            Ok(answer)
        }
        Err(Stop::Gone) => Err(ended(process.end(PATIENCE))),
        Err(Stop::Misconduct(misconduct)) => {
            Err(misconduct.with_stderr(process.end(Duration::ZERO).stderr_tail))
        }
    }
}

fn start(program: &[PathBuf], folder: &Path) -> Result<Trusted, Misconduct> {
    let not_started = |why: io::Error| Misconduct::NotStarted {
        program: program
            .first()
            .map(|first| first.display().to_string())
            .unwrap_or_default(),
        why: why.to_string(),
    };
    let file = program.first().and_then(|first| located(first, folder));
    let file = file.ok_or_else(|| not_started(io::ErrorKind::NotFound.into()))?;
    let arguments: Vec<OsString> = program
        .iter()
        .skip(1)
        .map(|argument| argument.clone().into())
        .collect();
    Trusted::start(&file, &arguments, folder, MAX_LINE).map_err(not_started)
}

/// The question with what only the conversation knows.
fn with_tools(question: &Value, conversation: &Conversation) -> Value {
    let mut question = question.clone();
    if let Value::Object(question) = &mut question {
        let left = conversation.left();
        let left = json!({
            "turns": left.turns,
            "tokens": left.tokens,
            "wall": left.wall.as_secs_f64(),
            "checks": left.checks,
        });
        question.insert("tools".to_owned(), json!(conversation.tools()));
        question.insert("left".to_owned(), left);
    }
    question
}

/// Why a conversation stops without an answer.
enum Stop {
    /// The program has ended.
    Gone,
    Misconduct(Misconduct),
}

impl From<Misconduct> for Stop {
    fn from(misconduct: Misconduct) -> Self {
        Self::Misconduct(misconduct)
    }
}

fn converse(process: &mut Trusted, conversation: &mut Conversation) -> Result<Value, Stop> {
    let mut total = 0;
    loop {
        let said = heard(process, conversation, &mut total)?;
        conversation.turn()?;
        let why = match said.and_then(|line| parsed(&line)) {
            Ok(Line::Call { call, arguments }) => {
                let reply = match conversation.call(&call, &arguments) {
                    Ok(result) => json!({"result": result}),
                    Err(error) => json!({"error": error}),
                };
                process.send(&reply.to_string());
                continue;
            }
            Ok(Line::Answer { answer }) => match conversation.accepts(&answer) {
                Ok(()) => return Ok(answer),
                Err(why) => why,
            },
            Err(why) => why,
        };
        conversation.refuse(why.clone())?;
        process.send(&json!({"refused": why}).to_string());
    }
}

/// Waits for a line; the inner error is what the program is told of one that nobody can read.
fn heard(
    process: &mut Trusted,
    conversation: &mut Conversation,
    total: &mut usize,
) -> Result<Result<String, String>, Stop> {
    let said = loop {
        let said = process.line(conversation.time_left());
        process
            .waited()
            .into_iter()
            .for_each(|waited| conversation.starved(waited));
        match said {
            Err(Silence::Late) if !conversation.time_left().is_zero() => {}
            said => break said,
        }
    };
    match said {
        Ok(line) => {
            *total += line.len();
            if *total > MAX_TOTAL {
                let what = format!("over {} MiB in all", MAX_TOTAL >> 20);
                return Err(Misconduct::Flooded { what }.into());
            }
            Ok(Ok(line))
        }
        Err(Silence::Garbage(why)) => Ok(Err(format!("the line is no UTF-8: {why}"))),
        Err(Silence::OverLimit(what)) => Err(Misconduct::Flooded { what }.into()),
        Err(Silence::Late) => Err(conversation.silent().into()),
        Err(Silence::Gone) => Err(Stop::Gone),
    }
}

fn parsed(line: &str) -> Result<Line, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("the line is no JSON: {error}"))?;
    Line::deserialize(value).map_err(|_| {
        r#"a line is `{"call": name, "arguments": {…}}` or `{"answer": {…}}`, with no other key"#.to_owned()
    })
}

fn ended(Ended { status, stderr_tail }: Ended) -> Misconduct {
    Misconduct::Ended {
        status: status.map_or_else(
            || "it closed its standard output and had to be ended".to_owned(),
            |status| status.to_string(),
        ),
        stderr: stderr_tail,
    }
}
