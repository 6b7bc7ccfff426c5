//! A definition whose reference imports numpy needs no torch.

use super::{Files, computed, fault, has};

const DEFINITION: &str = r#"{
  "name": "scaled_rows", "axes": {"rows": {"type": "var"}, "width": {"type": "const", "value": 8}},
  "inputs": {
    "x": {"shape": ["rows", "width"], "dtype": "float32"},
    "index": {"shape": ["rows"], "dtype": "int64"},
    "keep": {"shape": ["rows"], "dtype": "bool"},
    "bias": {"shape": null, "dtype": "float32"}
  },
  "outputs": {"y": {"shape": ["rows", "width"], "dtype": "float32"}},
  "reference": "import numpy as np\n\ndef run(x, index, keep, bias):\n    return np.where(keep[:, None], x * index[:, None], x).astype(x.dtype) + np.float32(bias)\n"
}"#;

const WORKLOADS: &str = "{\"uuid\": \"w1\", \"axes\": {\"rows\": 5}, \"inputs\": {\"bias\": {\"type\": \"scalar\", \"value\": 0.5}}}\n";

#[test]
fn inputs_are_arrays_of_numpy() {
    if !has("numpy") {
        return;
    }
    let files = Files::new(&[("d/definition.json", DEFINITION), ("d/workload.jsonl", WORKLOADS)]);
    let suite = files.open("d").unwrap();
    assert!(suite.notes[0].contains("arrays of numpy"), "{:?}", suite.notes);
    let sizes = &suite.benchmark[0].sizes;
    assert_eq!(sizes.record()["library"], "numpy");
    let (inputs, output) = computed(sizes, 1);
    assert_eq!(fault(sizes, &*inputs, &output), None);
    let mut wrong = output;
    wrong.0[0].set(3, 99.0);
    assert!(fault(sizes, &*inputs, &wrong).is_some());
}

#[test]
fn an_element_type_that_numpy_lacks_is_named() {
    if !has("numpy") {
        return;
    }
    let definition = DEFINITION.replacen("float32", "bfloat16", 1);
    let files = Files::new(&[
        ("d/definition.json", &definition),
        ("d/workload.jsonl", WORKLOADS),
    ]);
    let said = files.refused("d");
    assert!(
        said.contains("numpy has no element type bfloat16") && said.contains("import torch"),
        "{said}"
    );
}

#[test]
fn each_output_of_a_definition_is_judged_by_itself() {
    if !has("numpy") {
        return;
    }
    let definition = DEFINITION
        .replace(
            r#""outputs": {"#,
            r#""outputs": {"sum": {"shape": ["rows"], "dtype": "float32"}, "#,
        )
        .replace("return np", "y = np")
        .replace(
            "np.float32(bias)",
            "np.float32(bias)\\n    return np.float32(1e4) + y.sum(axis=1), y",
        );
    let files = Files::new(&[
        ("d/definition.json", &definition),
        ("d/workload.jsonl", WORKLOADS),
    ]);
    let sizes = &files.open("d").unwrap().benchmark[0].sizes;
    let (inputs, output) = computed(sizes, 1);
    assert_eq!(fault(sizes, &*inputs, &output), None);
    let mut wrong = output;
    wrong.0[1].bytes.fill(0);
    let said = fault(sizes, &*inputs, &wrong).unwrap();
    assert!(said.starts_with("`y`: NRMSE 1.00e0 is over 1.00e-2"), "{said}");
}
