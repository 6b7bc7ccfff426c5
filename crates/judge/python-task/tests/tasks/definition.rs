//! A definition with workloads, in the form of FlashInfer-Trace.

use super::{Files, computed, fault, has};

const DEFINITION: &str = r#"{
  "name": "scaled_rows_w8", "op_type": "scale", "description": "Rows times a weight.\nNo more.",
  "axes": {"rows": {"type": "var"}, "width": {"type": "const", "value": 8}},
  "inputs": {
    "x": {"shape": ["rows", "width"], "dtype": "bfloat16"},
    "weight": {"shape": ["width"], "dtype": "float32"},
    "bias": {"shape": null, "dtype": "float32"}
  },
  "outputs": {"y": {"shape": ["rows", "width"], "dtype": "float32"}},
  "reference": "import torch\n\ndef run(x, weight, bias):\n    return {'y': x.float() * weight + bias}\n",
  "solved_by": "nobody"
}"#;

const WORKLOADS: &str = r#"{"definition": "scaled_rows_w8", "workload": {"uuid": "w1", "axes": {"rows": 5}, "inputs": {"x": {"type": "random"}, "weight": {"type": "random"}, "bias": {"type": "scalar", "value": 0.5}}}, "solution": null}
{"uuid": "w2", "axes": {"rows": 500}, "inputs": {"x": {"type": "safetensors", "path": "missing.safetensors", "tensor_key": "x"}, "bias": {"type": "scalar", "value": 1}}}

{"axes": {"rows": 70}, "inputs": {"bias": {"type": "scalar", "value": 1.5}}}
"#;

#[test]
fn a_definition_with_workloads_is_a_task() {
    if !has("torch") {
        return;
    }
    let files = Files::new(&[
        ("scaled/definition.json", DEFINITION),
        ("scaled/workload.jsonl", WORKLOADS),
    ]);
    let suite = files.open("scaled").unwrap();
    assert_eq!(
        (suite.name.as_str(), suite.description.as_str()),
        ("scaled_rows_w8", "Rows times a weight.")
    );
    let names: Vec<_> = suite.benchmark.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["w1", "workload-4"]);
    let notes: Vec<_> = suite
        .notes
        .iter()
        .filter(|note| !note.contains("no GPU"))
        .cloned()
        .collect();
    insta::assert_snapshot!(notes.join("\n"));
    let sizes = &suite.benchmark[0].sizes;
    let told = sizes.record();
    assert_eq!(told["results"], serde_json::json!({ "tensor": "y" }));
    assert_eq!(
        told["arguments"]["dict"]["bias"],
        serde_json::json!({ "value": 0.5 })
    );
    let (inputs, output) = computed(sizes, 1);
    assert_eq!(fault(sizes, &*inputs, &output), None);
    let mut wrong = output;
    wrong.0[0].set(3, 99.0);
    assert!(fault(sizes, &*inputs, &wrong).is_some());
}

#[test]
fn a_definition_in_a_data_set_finds_its_workloads() {
    if !has("torch") {
        return;
    }
    let files = Files::new(&[
        ("definitions/scale/scaled.json", DEFINITION),
        ("workloads/scale/scaled.jsonl", WORKLOADS),
    ]);
    assert_eq!(
        files
            .open("definitions/scale/scaled.json")
            .unwrap()
            .benchmark
            .len(),
        2
    );
}

#[test]
fn what_is_wrong_with_a_definition_is_told() {
    if !has("torch") {
        return;
    }
    let told = [
        ("no reference", "\"reference\"", "\"referense\"", WORKLOADS),
        ("a reference that fails", "x.float()", "x.flaot()", WORKLOADS),
        ("a reference without run", "def run", "def walk", WORKLOADS),
        ("not JSON", "\"axes\": {", "\"axes\" {", WORKLOADS),
        (
            "an axis without a value",
            "\"name\"",
            "\"name\"",
            "{\"axes\": {}, \"inputs\": {}}",
        ),
        (
            "an element type of unknown packing",
            "\"dtype\": \"bfloat16\"",
            "\"dtype\": \"float4_e2m1\"",
            WORKLOADS,
        ),
    ];
    let mut all = String::new();
    for (what, before, after, workloads) in told {
        let definition = DEFINITION.replace(before, after);
        let files = Files::new(&[
            ("d/definition.json", &definition),
            ("d/workload.jsonl", workloads),
        ]);
        all += &format!("{what}:\n  {}\n\n", files.refused("d"));
    }
    let files = Files::new(&[("d/definition.json", DEFINITION)]);
    all += &format!("no workloads:\n  {}\n", files.refused("d"));
    insta::assert_snapshot!(all);
}
