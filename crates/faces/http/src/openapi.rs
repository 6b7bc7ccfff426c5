//! The description of the service by OpenAPI 3.1, whose schemas are those of the types that are read and written.

use std::sync::OnceLock;

use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use gauntlet_device::Device;
use gauntlet_queue::Status;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::events::Progress;
use crate::guard::needed;
use crate::judgements::{Asked, Listed};
use crate::looking::{BuiltIn, QueueShown};
use crate::pages::NOTES;
use crate::refusal::Problem;
use crate::sources::Stored;

/// Where a description has its schemas.
const SCHEMAS: &str = "/components/schemas";

/// What an address answers with.
type Answer = fn(&mut SchemaGenerator) -> Value;

/// An address with one of its methods.
struct Address {
    method: Method,
    path: &'static str,
    summary: &'static str,
    /// Names of parameters after the question mark or in the header, with what they mean.
    parameters: &'static [(&'static str, &'static str, &'static str)],
    /// The kind of what is sent.
    sent: Option<&'static str>,
    /// The status of the answer, its kind, and its form.
    answer: (u16, &'static str, Answer),
}

const JSON: &str = "application/json";

/// Requests of the Model Context Protocol, whose form that protocol has.
const JSON_RPC: &str = "application/json; profile=json-rpc";

fn of<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

fn text(_: &mut SchemaGenerator) -> Value {
    json!({ "type": "string" })
}

/// The methods and paths of the description.
#[cfg(test)]
pub fn described() -> impl Iterator<Item = (Method, &'static str)> {
    addresses()
        .into_iter()
        .map(|address| (address.method, address.path))
}

/// All addresses.
fn addresses() -> Vec<Address> {
    let get = |path, summary, answer: Answer| Address {
        method: Method::GET,
        path,
        summary,
        parameters: &[],
        sent: None,
        answer: (200, JSON, answer),
    };
    vec![
        Address {
            method: Method::POST,
            parameters: &[(
                "Idempotency-Key",
                "header",
                "The client's own name for it: the same key again is the same ticket.",
            )],
            sent: Some(JSON),
            answer: (202, JSON, of::<Status>),
            ..get("/judgements", "Queue a judgement", of::<Status>)
        },
        Address {
            parameters: &[
                ("client", "query", "Only tickets of this client."),
                ("task", "query", "Only tickets of this task."),
                (
                    "last",
                    "query",
                    "List the newest so many, 50 unless given, at most 200.",
                ),
            ],
            ..get("/judgements", "List tickets, the newest first", of::<Vec<Listed>>)
        },
        Address {
            parameters: &[("wait", "query", "Seconds to wait for the end, at most 45.")],
            ..get(
                "/judgements/{id}",
                "Where a ticket stands, and what was found",
                of::<Status>,
            )
        },
        Address {
            method: Method::DELETE,
            ..get("/judgements/{id}", "Give a ticket up", of::<Status>)
        },
        Address {
            answer: (200, "text/event-stream", of::<Progress>),
            ..get(
                "/judgements/{id}/events",
                "What becomes of a ticket: events `progress`, and `over` at the end; the form is that of their data",
                text,
            )
        },
        Address {
            method: Method::PUT,
            sent: Some("application/octet-stream"),
            answer: (201, JSON, of::<Stored>),
            ..get(
                "/sources/{digest}",
                "Store the contents of a file by their SHA-256 digest",
                text,
            )
        },
        get("/tasks", "The tasks that are built in", of::<Vec<BuiltIn>>),
        get("/devices", "The devices that are described", of::<Vec<Device>>),
        get("/queue", "How busy the server is", of::<QueueShown>),
        Address {
            answer: (200, "text/plain", text),
            ..get("/metrics", "Figures for Prometheus", text)
        },
        Address {
            method: Method::POST,
            sent: Some(JSON_RPC),
            answer: (200, JSON, |_| json!({ "type": "object" })),
            ..get("/mcp", "The tools of agents, by the Model Context Protocol", text)
        },
        Address {
            answer: (200, "text/html", text),
            ..get("/pages/{file}", "A page of the ledger, such as index.html", text)
        },
        Address {
            answer: (200, "text/event-stream", text),
            ..get(
                "/pages/live/{file}",
                "A page that shows what is under way: events `page` for each change, and `last` at the end",
                text,
            )
        },
        Address {
            method: Method::POST,
            sent: Some("application/x-www-form-urlencoded"),
            answer: (303, "text/html", text),
            ..get(NOTES, "Say something of a verdict, by the form on its page", text)
        },
        get(
            "/openapi.json",
            "This description",
            |_| json!({ "type": "object" }),
        ),
    ]
}

/// The description.
fn description() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = SCHEMAS.into();
        settings.meta_schema = None;
    });
    let mut written = settings.clone().for_serialize().into_generator();
    let mut read = settings.for_deserialize().into_generator();
    let refused = of::<Problem>(&mut written);
    let asked = of::<Asked>(&mut read);
    let mut paths = Map::new();
    for address in addresses() {
        let Address {
            method, path, sent, ..
        } = &address;
        let (status, kind, form) = address.answer;
        let scope = needed(method, path);
        let mut parameters: Vec<_> = path
            .split(['{', '}'])
            .skip(1)
            .step_by(2)
            .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
            .collect();
        parameters.extend(address.parameters.iter().map(|(name, place, about)| {
            let kind = if ["wait", "last"].contains(name) {
                "integer"
            } else {
                "string"
            };
            json!({ "name": name, "in": place, "description": about, "schema": { "type": kind } })
        }));
        let mut operation = json!({
            "summary": address.summary,
            "parameters": parameters,
            "responses": {
                status.to_string(): { "description": "done", "content": { kind: { "schema": form(&mut written) } } },
                "default": { "description": "refused", "content": { JSON: { "schema": refused } } },
            },
            "security": scope.map_or(json!([]), |scope| json!([{ "token": [scope.name()] }])),
        });
        if let Some(kind) = sent {
            let schema = if *kind == JSON { asked.clone() } else { json!({}) };
            operation["requestBody"] =
                json!({ "required": true, "content": { *kind: { "schema": schema } } });
        }
        let entry = paths.entry(*path).or_insert_with(|| json!({}));
        entry[method.as_str().to_lowercase()] = operation;
    }
    let mut schemas = read.take_definitions(true);
    // A type that is both read and written has one form.
    schemas.extend(written.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Gauntlet",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The judge of kernels as a service. A ticket is queued, running (its attempts are told), then decided, undecided, \
                void, failed or cancelled; decided does not mean faster.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

/// Describes the service.
pub async fn openapi() -> Response {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| description().to_string());
    ([(CONTENT_TYPE, JSON)], text.as_str()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The references of a description.
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(entries) => {
                found.extend(entries.get("$ref").and_then(Value::as_str).map(str::to_owned));
                entries.values().for_each(|below| references(below, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_of_the_description_leads_somewhere() {
        let described = description();
        let mut found = Vec::new();
        references(&described, &mut found);
        assert!(found.len() > 10, "{found:?}");
        for reference in found {
            let place = reference.strip_prefix('#').unwrap();
            assert!(described.pointer(place).is_some(), "{reference}");
        }
    }

    #[test]
    fn a_form_that_is_read_and_written_is_described_once() {
        let settings =
            SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = SCHEMAS.into());
        let mut written = settings.clone().for_serialize().into_generator();
        let mut read = settings.for_deserialize().into_generator();
        of::<Status>(&mut written);
        of::<Asked>(&mut read);
        let (written, read) = (written.take_definitions(true), read.take_definitions(true));
        for (name, form) in &read {
            let properties = |form: &Value| form.get("properties").cloned();
            if let Some(other) = written.get(name) {
                assert_eq!(properties(form), properties(other), "{name}");
            }
        }
    }
}
