//! The JSON Schemas of everything that this program writes as JSON or reads from files. They are generated from the types that
//! write and read them, and committed: the program holds the text, and no code that makes it.

mod descriptions;
#[cfg(test)]
mod result_file;
#[cfg(test)]
pub mod types;

use std::fmt;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::json;

use crate::documents::Kind;

/// One published schema.
pub struct Published {
    /// The name.
    pub name: &'static str,
    /// The version of the form; raised when a reader of the previous form could misread it.
    pub version: u32,
    /// How the data is stored or sent.
    pub medium: Medium,
    /// What the data is and where it occurs, as the end of a sentence.
    pub summary: &'static str,
    /// The schema, as JSON Schema draft 2020-12.
    pub text: &'static str,
}

/// How data is stored or sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Medium {
    /// A JSON object of `--json`, whose field `schema` names the form.
    Document,
    /// A JSON list of `--json`, which has no such field.
    List,
    /// A file that users write, or that a command writes and another one reads.
    File,
    /// A line of JSON between the coordinator and a worker.
    Message,
}

impl fmt::Display for Medium {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Document => "document",
            Self::List => "list",
            Self::File => "file",
            Self::Message => "message",
        })
    }
}

/// The text of a schema that describes data of this kind.
pub fn text(published: &Published, form: Schema) -> String {
    let Published { name, version, .. } = published;
    let mut made = form.to_value();
    descriptions::tidy(&mut made);
    let mut schema = Schema::from(made.as_object().cloned().unwrap_or_default());
    schema.insert("$id".to_owned(), format!("urn:gauntlet:{name}:{version}").into());
    schema.insert("title".to_owned(), format!("gauntlet/{name}/{version}").into());
    schema.insert("description".to_owned(), format!("{}.", published.summary).into());
    if published.medium == Medium::Document {
        let kind = Kind {
            name,
            version: *version,
        };
        say_kind(&mut schema, kind);
    }
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

/// Adds the field `schema`, see [`Versioned`](crate::documents::Versioned).
fn say_kind(schema: &mut Schema, kind: Kind) {
    let object = schema.ensure_object();
    let field = json!({ "description": "The kind of document and the version of its form.", "const": kind.to_string() });
    if let Some(properties) = object
        .entry("properties")
        .or_insert_with(|| json!({}))
        .as_object_mut()
    {
        properties.insert("schema".to_owned(), field);
    }
    if let Some(required) = object
        .entry("required")
        .or_insert_with(|| json!([]))
        .as_array_mut()
    {
        required.insert(0, "schema".into());
    }
}

/// The form in which this program writes a type.
pub fn written<T: JsonSchema + ?Sized>() -> Schema {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>()
}

/// The form in which this program reads a type.
pub fn read<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<T>()
}

macro_rules! published {
    ($($medium:ident $name:literal $version:literal $summary:literal;)*) => {
        &[$(Published {
            name: $name,
            version: $version,
            medium: Medium::$medium,
            summary: $summary,
            text: include_str!(concat!("../../../../docs/reference/schemas/", $name, ".json")),
        }),*]
    };
}

/// Every published schema: documents, lists, files and messages, in the order in which users meet them.
pub const PUBLISHED: &[Published] = published! {
    Document "comparison" 2 "The result of `gauntlet compare` and `judge`, and of `report` on such a result";
    Document "comparisons" 1 "The result of `gauntlet compare` of several candidates";
    Document "times" 1 "The result of `gauntlet time`";
    Document "run" 2 "The result of `gauntlet run`, and of `report` on a run";
    Document "check" 1 "The result of `gauntlet check`";
    Document "audit" 1 "The result of `gauntlet audit`";
    Document "tuning" 1 "The result of `gauntlet tune`";
    Document "replay" 1 "The result of `gauntlet tune --replay`";
    Document "compiled-kernels" 2 "The result of `gauntlet compile`";
    Document "kernel-explanation" 1 "The result of `gauntlet explain` of a kernel";
    Document "explanation" 1 "The result of `gauntlet explain --problem`";
    Document "diagnosis" 1 "The result of `gauntlet explain --times`";
    Document "doctor" 1 "The result of `gauntlet doctor`";
    Document "validation" 2 "The result of `gauntlet validate`";
    Document "operating-characteristics" 1 "The result of `gauntlet selftest`";
    Document "cheats" 1 "The result of `gauntlet selftest --cheats`";
    Document "honest-workers" 1 "The result of `gauntlet selftest --honest`";
    Document "power" 1 "The result of `gauntlet selftest --power`";
    Document "suite" 1 "The result of `gauntlet suites NAME`: the cases of a suite";
    Document "device" 1 "The result of `gauntlet devices NAME`: the figures of a device";
    Document "ledger-run" 1 "The result of `gauntlet ledger show RUN`: a run with all its records";
    Document "ledger-record" 1 "The result of `gauntlet ledger show NUMBER`: one record of the ledger";
    Document "forecasters" 1 "The result of `gauntlet ledger forecasters`";
    Document "bisection" 1 "The result of `gauntlet bisect`";
    Document "watching" 1 "The result of `gauntlet watch`";
    Document "ticket" 1 "The result of `gauntlet queue show TICKET`: where a ticket stands";
    List "suites" 1 "The result of `gauntlet suites`: the built-in suites";
    List "devices" 1 "The result of `gauntlet devices`: the devices that are described";
    List "parameters" 1 "The result of `gauntlet schedules`: the parameters of the kernels of a suite";
    List "violations" 1 "The result of `gauntlet schedules WORDS`: the rules that the parameters break";
    List "runs" 1 "The result of `gauntlet ledger list`: the runs of the ledger";
    List "verdicts" 1 "The result of `gauntlet ledger verdicts`: verdicts of commands and of rounds";
    List "history" 1 "The result of `gauntlet history`: the times of kernels over commits";
    List "prospects" 1 "The result of `gauntlet ledger next`: what a run left open";
    List "tickets" 1 "The result of `gauntlet queue list`: the tickets of a queue";
    File "ticket-file" 1 "A ticket, which `gauntlet job` runs";
    File "job-result" 1 "What `gauntlet job` publishes: the result of a ticket";
    File "task-file" 1 "A task.toml, beside the task.py of a task in Python";
    File "suite-file" 1 "A suite: the cases of a built-in task";
    File "parameters-file" 1 "The parameters of a kernel, as a file of their own";
    File "kernel-table" 1 "The launch tables of the CUDA kernels in a `.cu` file, by kernel";
    File "function-table" 1 "The tables of the functions in a shared library, or in a source in C or C++, by function";
    File "parameter-table" 1 "The tables of the functions in a `.py` file, by function";
    File "dispatch-table" 1 "The parameters of each case, as `gauntlet tune` writes them";
    File "watch-list" 1 "The list of what `gauntlet watch` watches";
    File "round-file" 1 "A round: a baseline, pitches, a suite and the criteria";
    File "tournament-file" 1 "A tournament: rounds in order";
    File "pitch-file" 1 "A pitch: a proposed change, with everything its author commits to";
    File "record-file" 1 "Recorded times and findings, which the executor `replay` serves";
    File "device-file" 1 "The figures of a device, with their sources";
    File "result-file" 1 "A JSON file of the folder results/: an envelope, and what an experiment found";
    Message "worker-request" 4 "A request of the coordinator to a worker";
    Message "worker-reply" 4 "The reply of a worker";
    Message "contestant-answers" 1 "What contestants and panellists answer, by phase";
};
