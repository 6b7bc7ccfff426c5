//! The committed JSON Schemas describe the files of this repository, and refuse what is wrong.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use crate::common::{self, Place, repository, schemas};
use serde_json::{Value, json};

/// The files below a folder that end so.
fn files_below(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, ending, found);
        } else if path.extension().is_some_and(|own| own == ending) {
            found.push(path);
        }
    }
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()
}

/// Whether some table of a file has this key.
fn tables_have(content: &Value, key: &str) -> bool {
    let mut tables = content.as_object().unwrap().values();
    tables.any(|table| table.get(key).is_some())
}

/// The schema of an example, by its folder, and by its keys where a folder holds several forms.
fn form_of(path: &Path, content: &Value) -> &'static str {
    let folder = path.parent().and_then(Path::file_name).unwrap().to_string_lossy();
    match &*folder {
        "rounds" => "round-file",
        "pitches" => "pitch-file",
        "records" => "record-file",
        "suites" => "suite-file",
        _ if path.ends_with("task.toml") => "task-file",
        _ if content.get("entry").is_some() => "dispatch-table",
        _ if content.get("rounds").is_some() => "tournament-file",
        _ if content.get("executor").is_some() => "round-file",
        _ if tables_have(content, "grid") => "kernel-table",
        _ if tables_have(content, "arguments") => "function-table",
        _ => "parameters-file",
    }
}

#[test]
fn every_example_is_valid_by_the_schema_of_its_form() {
    let mut files = Vec::new();
    files_below(&repository("examples"), "toml", &mut files);
    let mut forms = std::collections::BTreeMap::<_, usize>::new();
    for file in &files {
        let content = read(file);
        let form = form_of(file, &content);
        let faults = schemas::faults(form, &content);
        assert!(
            faults.is_empty(),
            "{} is no {form}:\n{}",
            file.display(),
            faults.join("\n")
        );
        *forms.entry(form).or_default() += 1;
    }
    for form in [
        "round-file",
        "pitch-file",
        "record-file",
        "suite-file",
        "tournament-file",
        "dispatch-table",
    ] {
        assert!(
            forms.get(form).is_some_and(|count| *count > 1),
            "{form}: {forms:?}"
        );
    }
}

#[test]
fn every_file_that_is_built_in_is_valid_by_the_schema_of_its_form() {
    for (folder, form, least) in [
        ("crates/ground/device/devices", "device-file", 5),
        ("crates/lab/gemm/suites", "suite-file", 2),
        ("crates/lab/attention/suites", "suite-file", 1),
        ("crates/lab/rms-norm/suites", "suite-file", 2),
        ("crates/judge/hosts/nvrtc/tests/kernels", "kernel-table", 1),
    ] {
        let mut files = Vec::new();
        files_below(&repository(folder), "toml", &mut files);
        assert!(files.len() >= least, "{folder}: {files:?}");
        for file in files {
            let faults = schemas::faults(form, &read(&file));
            assert!(
                faults.is_empty(),
                "{} is no {form}:\n{}",
                file.display(),
                faults.join("\n")
            );
        }
    }
}

#[test]
fn a_wrong_field_is_found_where_it_stands() {
    let changed = |file: &str, change: &dyn Fn(&mut Value)| {
        let mut content = read(&repository(file));
        change(&mut content);
        content
    };
    let round = "examples/h200/rounds/1-pitches.toml";
    let pitch = "examples/shark-tank/pitches/tile-size.toml";
    let suite = "crates/lab/gemm/suites/group-gemm.toml";
    let device = "crates/ground/device/devices/h200.toml";
    let table = "crates/judge/hosts/nvrtc/tests/kernels/rms_norm.toml";
    for (form, content, said) in [
        (
            "round-file",
            changed(round, &|round| round["measurement"] = json!({ "look": [4] })),
            "look",
        ),
        (
            "round-file",
            changed(round, &|round| round["executor"] = json!("gpu")),
            "gpu",
        ),
        (
            "round-file",
            changed(round, &|round| round["suite"] = json!(3)),
            "/suite",
        ),
        (
            "pitch-file",
            changed(pitch, &|pitch| pitch["odds"]["certain"] = json!(1.0)),
            "certain",
        ),
        (
            "pitch-file",
            changed(pitch, &|pitch| pitch["risk"]["level"] = json!("extreme")),
            "/risk/level",
        ),
        (
            "pitch-file",
            changed(pitch, &|pitch| {
                drop(pitch.as_object_mut().unwrap().remove("abort"))
            }),
            "abort",
        ),
        (
            "suite-file",
            changed(suite, &|suite| {
                suite["benchmark"][0]["softmax"] = json!({ "rows": 1 })
            }),
            "softmax",
        ),
        (
            "suite-file",
            changed(suite, &|suite| {
                suite["benchmark"][0]["grouped-gemm"]["form"] = json!("tanh")
            }),
            "form",
        ),
        (
            "suite-file",
            changed(suite, &|suite| suite["benchmark"] = json!([])),
            "/benchmark",
        ),
        (
            "device-file",
            changed(device, &|device| device["clock"]["unit"] = json!("GB")),
            "/clock: ",
        ),
        (
            "device-file",
            changed(device, &|device| device["clok"] = json!(1)),
            "clok",
        ),
        ("parameters-file", json!({ "stages": 1.5 }), "/stages"),
        (
            "kernel-table",
            changed(table, &|table| table["rms_norm"]["gird"] = json!(1)),
            "gird",
        ),
    ] {
        let faults = schemas::faults(form, &content).join("\n");
        assert!(faults.contains(said), "{form} lets `{said}` pass: {faults}");
    }
}

#[test]
fn a_document_with_a_wrong_field_is_refused() {
    let place = Place::new();
    let suite = place.run(&["suites", "group-gemm", "--json"]).expect(0).out;
    let suite: Value = serde_json::from_str(&suite).unwrap();
    assert_eq!(suite["schema"], "gauntlet/suite/1");
    assert_eq!(schemas::faults("suite", &suite), Vec::<String>::new());
    for (field, wrong, said) in [
        ("schema", json!("gauntlet/suite/0"), "/schema"),
        ("name", json!(1), "/name"),
        ("benchmark", json!([{ "name": "a case" }]), "/benchmark/0"),
    ] {
        let mut changed = suite.clone();
        changed[field] = wrong;
        let faults = schemas::faults("suite", &changed).join("\n");
        assert!(faults.contains(said), "{field}: {faults}");
    }
}

#[test]
fn lists_are_valid_by_their_schemas() {
    let place = Place::new();
    for (form, arguments) in [
        ("suites", &["suites", "--json"][..]),
        ("devices", &["devices", "--json"]),
        ("parameters", &["schedules", "--json"]),
        (
            "violations",
            &["schedules", "stages = 99", "--device", "h200", "--json"],
        ),
    ] {
        let out = place.run(arguments).out;
        let list: Value = serde_json::from_str(&out).unwrap();
        assert!(!list.as_array().unwrap().is_empty(), "{form}");
        assert_eq!(schemas::faults(form, &list), Vec::<String>::new(), "{form}");
    }
}

#[test]
fn a_schema_is_printed_by_its_name_or_by_what_a_document_says() {
    let place = Place::new();
    let listed = place.run(&["schema"]).expect(0).out;
    assert!(
        listed.contains("round-file") && listed.contains("comparison"),
        "{listed}"
    );
    let by_name = place.run(&["schema", "comparison"]).expect(0).out;
    let committed = std::fs::read_to_string(repository("docs/reference/schemas/comparison.json")).unwrap();
    assert_eq!(by_name, committed);
    assert_eq!(
        place.run(&["schema", "gauntlet/comparison/2"]).expect(0).out,
        committed
    );
    common::names(
        &place.run(&["schema", "comparision"]).expect(2),
        &[
            "no schema `comparision`",
            "did you mean `comparison`",
            "`gauntlet schema` lists",
        ],
    );
}

#[test]
fn every_result_has_a_valid_envelope() {
    let mut files = Vec::new();
    files_below(&repository("results"), "json", &mut files);
    assert!(files.len() > 10, "{files:?}");
    for file in &files {
        let result: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let faults = schemas::faults("result-file", &result);
        assert!(faults.is_empty(), "{}:\n{}", file.display(), faults.join("\n"));
        let mut wrong = result;
        wrong["envelope"]["schema"] = json!("gauntlet-result/0");
        assert!(!schemas::faults("result-file", &wrong).is_empty());
    }
}
