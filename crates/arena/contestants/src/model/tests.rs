//! Conversations with a server on this machine that plays its part from a script.

mod anthropic;
mod faults;
mod openai;
mod prompts;
mod server;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use server::Server;

use super::Surroundings;
use crate::contestant::{Asked, Contestant, Form};
use crate::engine::{Budget, Engine, Price, ProviderName};
use crate::misconduct::Misconduct;
use crate::tools::{Tool, Tools};

const KEY: &str = "sk-very-secret";

/// Adds one to a number.
struct Adder;

impl Tools for Adder {
    fn list(&self) -> Vec<Tool> {
        vec![Tool {
            name: "add".to_owned(),
            description: "adds one".to_owned(),
            arguments: json!({"type": "object", "properties": {"number": {"type": "integer"}}}),
        }]
    }

    fn call(&mut self, _: &str, arguments: &Value) -> Result<Value, String> {
        let number = arguments["number"].as_i64();
        number
            .map(|number| json!(number + 1))
            .ok_or_else(|| "that is no number".to_owned())
    }
}

/// A participant that asks this server, which the environment names as the one for the key.
fn contestant(provider: ProviderName, server: &Server) -> Contestant {
    contestant_with(
        provider,
        &server.address,
        Budget::default(),
        Some(&server.address),
    )
}

fn contestant_with(
    provider: ProviderName,
    address: &str,
    budget: Budget,
    trusted: Option<&str>,
) -> Contestant {
    let engine = engine(provider, address, budget);
    engine.validate(Path::new("/")).unwrap();
    let mut contestant = Contestant::new("Tiles", engine, Path::new("/"));
    contestant.surroundings = surroundings(trusted);
    contestant
}

fn engine(provider: ProviderName, address: &str, budget: Budget) -> Engine {
    Engine {
        provider: Some(provider),
        model: Some("small".to_owned()),
        address: Some(address.to_owned()),
        price: Some(Price {
            input: 3.0,
            output: 15.0,
        }),
        budget,
        ..Engine::default()
    }
}

/// An environment with a key and the address where it belongs, and little patience.
fn surroundings(trusted: Option<&str>) -> Surroundings {
    let trusted = trusted.map(str::to_owned);
    Surroundings {
        tries: 3,
        pause: Duration::from_millis(1),
        variable: Arc::new(move |name| match name {
            "ANTHROPIC_API_KEY" | "OPENAI_API_KEY" => Some(KEY.to_owned()),
            "ANTHROPIC_BASE_URL" | "OPENAI_BASE_URL" => trusted.clone(),
            _ => None,
        }),
        ..Surroundings::default()
    }
}

fn wall(milliseconds: i64) -> Budget {
    Budget {
        wall: SignedDuration::from_millis(milliseconds),
        ..Budget::default()
    }
}

fn form() -> Form {
    Form {
        words: "Pitch a change.".to_owned(),
        schema: json!({"type": "object", "properties": {"ok": {"type": "boolean"}}}),
    }
}

/// Only `{"ok": true}` is accepted.
fn accepts(answer: &Value) -> Result<(), String> {
    match answer["ok"] == json!(true) {
        true => Ok(()),
        false => Err("`ok` is not true".to_owned()),
    }
}

fn ask(contestant: &mut Contestant) -> Result<Asked, Misconduct> {
    contestant.ask(&json!({"phase": "pitch"}), &form(), Some(&mut Adder), &accepts)
}
