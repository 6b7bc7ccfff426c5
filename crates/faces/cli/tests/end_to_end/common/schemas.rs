//! Validates results and files against the committed JSON Schemas.

use std::path::Path;

use jsonschema::Validator;
use serde_json::Value;

use super::repository;

/// The committed schema of a name.
pub fn schema(name: &str) -> Validator {
    let path = repository("docs/reference/schemas").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// Everything about a value that its schema forbids, each with its place.
pub fn faults(name: &str, value: &Value) -> Vec<String> {
    let schema = schema(name);
    let faults = schema.iter_errors(value);
    faults
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect()
}

/// Checks every document among what a command wrote: standard output, and the file of `--json`.
#[track_caller]
pub fn check_written(folder: &Path, arguments: &[&str], out: &str) {
    check(out);
    let mut arguments = arguments.iter();
    if arguments.any(|argument| *argument == "--json")
        && let Some(file) = arguments.next()
        && let Ok(metadata) = std::fs::metadata(folder.join(file))
        && metadata.is_file()
    {
        check(&std::fs::read_to_string(folder.join(file)).unwrap());
    }
}

/// Checks a text against the schema that it names, if it is a JSON object that names one.
#[track_caller]
fn check(text: &str) {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return;
    };
    if let Some(kind) = value["schema"].as_str() {
        let name = kind.split('/').nth(1).unwrap();
        let faults = faults(name, &value);
        assert!(faults.is_empty(), "not a {kind}:\n{}", faults.join("\n"));
    }
}
