//! The JSON Schema of suite files.

use std::path::PathBuf;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::SpeedOfLight;
use super::file::SuiteFile;
use crate::{InputKind, Task};

/// A case as suite files write it, without the key that names its task and holds its sizes.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "WrittenCase")]
#[expect(
    dead_code,
    reason = "files are read key by key, so that errors keep their places; this is for the schema"
)]
pub(super) struct WrittenCase {
    /// The name, unique in its list.
    name: String,
    /// The kind of operands that are timed.
    inputs: Option<InputKind>,
    /// A safetensors file of operands that replace generated ones, relative to the suite's folder.
    data: Option<PathBuf>,
    /// The published time of the best conceivable kernel.
    speed_of_light: Option<SpeedOfLight>,
}

/// The schema of files with cases of these tasks.
pub(super) fn schema(tasks: &[&'static dyn Task]) -> Schema {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let forms: Vec<(&str, Value)> = tasks
        .iter()
        .map(|task| {
            let mut form = task.written_schema(&mut generator);
            form.insert(
                "description".to_owned(),
                format!("Sizes of {}.", task.summary()).into(),
            );
            (task.name(), form.into())
        })
        .collect();
    let mut schema = generator.into_root_schema_for::<SuiteFile>();
    if let Some(case) = schema.pointer_mut("/$defs/WrittenCase") {
        case["oneOf"] = forms
            .iter()
            .map(|(name, _)| json!({ "required": [name] }))
            .collect();
        for (name, form) in forms {
            case["properties"][name] = form;
        }
    }
    schema
}
