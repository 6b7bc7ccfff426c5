//! The JSON Schemas of everything that this program writes as JSON or reads from files, generated from the types that
//! write and read them.

mod descriptions;
mod result_file;

use std::collections::BTreeMap;
use std::fmt;

use gauntlet_device::{Calibration, Device};
use gauntlet_families::TASKS;
use gauntlet_host_library::FunctionTable;
use gauntlet_host_nvrtc::KernelTable;
use gauntlet_judge::ComparisonReport;
use gauntlet_judge::ledger::{Entry, RunSummary};
use gauntlet_parameters::Parameters;
use gauntlet_python_task::TaskToml;
use gauntlet_task::{DispatchTable, Suite, Violation};
use gauntlet_tournament::forecast::{Forecasters, Prospect};
use gauntlet_tournament::{Pitch, RoundFile, TournamentFile, TournamentReport};
use gauntlet_worker::Record;
use gauntlet_worker::protocol::{Envelope, Reply};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::json;

use crate::commands::cheats::Tried;
use crate::commands::check::Checked;
use crate::commands::compile::Compiled;
use crate::commands::doctor::Findings;
use crate::commands::explain::schedule::Explained;
use crate::commands::explain::times::Diagnosed;
use crate::commands::honest::Accepted;
use crate::commands::ledger::Shown;
use crate::commands::power::Powered;
use crate::commands::schedules::Row;
use crate::commands::selftest::Tested;
use crate::commands::tune::Tuned;
use crate::commands::validate::Validated;
use crate::documents::{Document, Kind};
use result_file::ResultFile;

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
    made: fn() -> Schema,
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

impl Published {
    const fn document<D: Document>(summary: &'static str) -> Self {
        Self {
            name: D::NAME,
            version: D::VERSION,
            medium: Medium::Document,
            summary,
            made: written::<D>,
        }
    }

    const fn list<T: JsonSchema>(name: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            version: 1,
            medium: Medium::List,
            summary,
            made: written::<Vec<T>>,
        }
    }

    const fn file(name: &'static str, summary: &'static str, made: fn() -> Schema) -> Self {
        Self {
            name,
            version: 1,
            medium: Medium::File,
            summary,
            made,
        }
    }

    const fn message(name: &'static str, summary: &'static str, made: fn() -> Schema) -> Self {
        Self {
            name,
            version: gauntlet_worker::protocol::VERSION,
            medium: Medium::Message,
            summary,
            made,
        }
    }

    /// The schema, as JSON Schema draft 2020-12.
    pub fn schema(&self) -> Schema {
        let Self { name, version, .. } = self;
        let mut made = (self.made)().to_value();
        descriptions::tidy(&mut made);
        let mut schema = Schema::from(made.as_object().cloned().unwrap_or_default());
        schema.insert("$id".to_owned(), format!("urn:gauntlet:{name}:{version}").into());
        schema.insert("title".to_owned(), format!("gauntlet/{name}/{version}").into());
        schema.insert("description".to_owned(), format!("{}.", self.summary).into());
        if self.medium == Medium::Document {
            let kind = Kind {
                name,
                version: *version,
            };
            say_kind(&mut schema, kind);
        }
        schema
    }
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
fn written<T: JsonSchema + ?Sized>() -> Schema {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>()
}

/// The form in which this program reads a type.
fn read<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<T>()
}

/// Every published schema: documents, lists, files and messages, in the order in which users meet them.
pub const PUBLISHED: &[Published] = &[
    Published::document::<ComparisonReport>(
        "The result of `gauntlet compare` and `judge`, and of `report` on such a result",
    ),
    Published::document::<TournamentReport>("The result of `gauntlet run`, and of `report` on a run"),
    Published::document::<Checked>("The result of `gauntlet check`"),
    Published::document::<Tuned>("The result of `gauntlet tune`"),
    Published::document::<Compiled>("The result of `gauntlet compile`"),
    Published::document::<Explained>("The result of `gauntlet explain --problem`"),
    Published::document::<Diagnosed>("The result of `gauntlet explain --times`"),
    Published::document::<Findings>("The result of `gauntlet doctor`"),
    Published::document::<Calibration>("The result of `gauntlet calibrate`"),
    Published::document::<Validated>("The result of `gauntlet validate`"),
    Published::document::<Tested>("The result of `gauntlet selftest`"),
    Published::document::<Tried>("The result of `gauntlet selftest --cheats`"),
    Published::document::<Accepted>("The result of `gauntlet selftest --honest`"),
    Published::document::<Powered>("The result of `gauntlet selftest --power`"),
    Published::document::<Suite>("The result of `gauntlet suites NAME`: the cases of a suite"),
    Published::document::<Device>("The result of `gauntlet devices NAME`: the figures of a device"),
    Published::document::<Shown>("The result of `gauntlet ledger show RUN`: a run with all its records"),
    Published::document::<Entry>("The result of `gauntlet ledger show NUMBER`: one record of the ledger"),
    Published::document::<Forecasters>("The result of `gauntlet ledger forecasters`"),
    Published::list::<Suite>("suites", "The result of `gauntlet suites`: the built-in suites"),
    Published::list::<Device>(
        "devices",
        "The result of `gauntlet devices`: the devices that are described",
    ),
    Published::list::<Row>(
        "parameters",
        "The result of `gauntlet schedules`: the parameters of the kernels of a suite",
    ),
    Published::list::<Violation>(
        "violations",
        "The result of `gauntlet schedules WORDS`: the rules that the parameters break",
    ),
    Published::list::<RunSummary>(
        "runs",
        "The result of `gauntlet ledger list`: the runs of the ledger",
    ),
    Published::list::<Prospect>(
        "prospects",
        "The result of `gauntlet ledger next`: what a run left open",
    ),
    Published::file(
        "task-file",
        "A task.toml, beside the task.py of a task in Python",
        read::<TaskToml>,
    ),
    Published::file("suite-file", "A suite: the cases of a built-in task", || {
        Suite::file_schema(TASKS)
    }),
    Published::file(
        "parameters-file",
        "The parameters of a kernel, as a file of their own",
        read::<Parameters>,
    ),
    Published::file(
        "kernel-table",
        "The launch tables of the CUDA kernels in a `.cu` file, by kernel",
        read::<BTreeMap<String, KernelTable>>,
    ),
    Published::file(
        "function-table",
        "The tables of the functions in a shared library, by function",
        read::<BTreeMap<String, FunctionTable>>,
    ),
    Published::file(
        "dispatch-table",
        "The parameters of each case, as `gauntlet tune` writes them",
        read::<DispatchTable>,
    ),
    Published::file(
        "round-file",
        "A round: a baseline, pitches, a suite and the criteria",
        read::<RoundFile>,
    ),
    Published::file(
        "tournament-file",
        "A tournament: rounds in order",
        read::<TournamentFile>,
    ),
    Published::file(
        "pitch-file",
        "A pitch: a proposed change, with everything its author commits to",
        read::<Pitch>,
    ),
    Published::file(
        "record-file",
        "Recorded times and findings, which the executor `replay` serves",
        read::<Record>,
    ),
    Published::file(
        "device-file",
        "The figures of a device, with their sources",
        read::<Device>,
    ),
    Published::file(
        "calibration-file",
        "What `gauntlet calibrate` measured of a machine",
        read::<Calibration>,
    ),
    Published::file(
        "result-file",
        "A JSON file of the folder results/: an envelope, and what an experiment found",
        read::<ResultFile>,
    ),
    Published::message(
        "worker-request",
        "A request of the coordinator to a worker",
        written::<Envelope>,
    ),
    Published::message("worker-reply", "The reply of a worker", read::<Reply>),
];
