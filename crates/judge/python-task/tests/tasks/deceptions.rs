//! Ways for a task to deceive that no null kernel of its results shows: what its reference does with memory, results that are one
//! value, and a reference that is slow.

use gauntlet_audit::{Finding, Weight, audit};

use super::audit::{audited, sound};
use super::{Files, has};

/// What is said of a sound task with some of its text replaced.
fn findings(task: &str, replaced: &[[&str; 2]]) -> Vec<Finding> {
    let mut text = sound(task);
    for [old, new] in replaced {
        assert!(text.contains(old), "{task} has no {old}");
        text = text.replace(old, new);
    }
    audited(&text).findings
}

/// That a finding of this name and weight is there, and says this.
fn assert_found(findings: &[Finding], name: Option<&str>, weight: Weight, told: &str) {
    let is_it = |finding: &Finding| {
        finding.name.as_deref() == name && finding.weight == weight && finding.text.contains(told)
    };
    assert!(findings.iter().any(is_it), "{told}: {findings:#?}");
}

/// Inputs so large that a softmax of them has one value in each row.
const PEAKED: [&str; 2] = ["return {\"x\": rng", "return {\"x\": np.float32(1e6) * rng"];

#[test]
fn a_softmax_of_large_inputs_that_is_an_argmax_is_blind() {
    if !has("numpy") {
        return;
    }
    // Every other element of a row is 0 in the reference too.
    let found = findings("softmax", &[PEAKED]);
    assert_found(
        &found,
        Some("largest-of-row"),
        Weight::Blind,
        "only the largest element of each row",
    );
    // They are small, and the limits do not reach them.
    let floor = "powers = 1e-12 * rows_of(x) + np.exp";
    let helper = "def rows_of(x):\n    return np.abs(np.tanh(x.astype(np.float64)))\n\n\ndef reference(x)";
    let found = findings(
        "softmax",
        &[PEAKED, ["powers = np.exp", floor], ["def reference(x)", helper]],
    );
    assert_found(
        &found,
        Some("largest-of-row"),
        Weight::Blind,
        "only the largest element of each row",
    );
}

#[test]
fn results_that_have_one_value_in_a_row_by_nature_are_sound() {
    if !has("numpy") {
        return;
    }
    let mask = "return {\"y\": (x == x.max(axis=1, keepdims=True)).astype(np.float32)}";
    let text = sound("softmax");
    let (head, _) = text.split_once("    powers = ").unwrap();
    let report = audited(&format!("{head}    {mask}\n"));
    assert!(!report.is_blind(), "{:#?}", report.findings);
    let diagonal = sound("row_sums");
    let (head, _) = diagonal.split_once("def reference").unwrap();
    let report = audited(&format!(
        "{head}def reference(x):\n    return {{\"y\": np.diag(2 * x.sum(axis=1))}}\n"
    ));
    assert!(!report.is_blind(), "{:#?}", report.findings);
}

#[test]
fn a_reference_that_returns_a_part_of_its_input_is_a_view() {
    if !has("numpy") {
        return;
    }
    let found = findings("transposed", &[["np.ascontiguousarray(2 * x.T)", "x[1:, ::2]"]]);
    assert_found(
        &found,
        Some("view"),
        Weight::Blind,
        "`y` lies in the memory of `x`",
    );
    // A copy of a part must be written.
    let found = findings("transposed", &[["2 * x.T", "x[1:, ::2]"]]);
    assert!(found.iter().all(|finding| finding.name.is_none()), "{found:#?}");
}

#[test]
fn a_reference_that_changes_its_inputs_is_told() {
    let changed = |found: &[Finding]| {
        assert_found(
            found,
            Some("changed-input"),
            Weight::Note,
            "the reference changes its input `x`",
        );
        let blind: Vec<_> = found.iter().filter(|one| one.weight == Weight::Blind).collect();
        assert!(blind.is_empty(), "{blind:#?}");
    };
    if has("numpy") {
        changed(&findings(
            "transposed",
            &[["np.ascontiguousarray(2 * x.T)", "np.multiply(x, 2, out=x).T"]],
        ));
    }
    if has("torch") {
        changed(
            &audited(
                "
import torch
cases = [{'rows': 8}]
def generate(rows, seed): return {'x': torch.randn(rows, 40, generator=torch.Generator().manual_seed(seed))}
def reference(x): return {'y': x.mul_(3)}
",
            )
            .findings,
        );
    }
}

#[test]
fn an_output_that_repeats_itself_is_told_with_its_axis() {
    if !has("numpy") {
        return;
    }
    let drawn = "return {\"a\": a,";
    let found = findings("product", &[[drawn, "b[:] = b[:, :1]\n    return {\"a\": a,"]]);
    assert_found(&found, None, Weight::Note, "`c` is the same along its axis 1");
}

#[test]
fn a_check_that_takes_a_narrower_type_is_told() {
    if !has("numpy") {
        return;
    }
    let files = Files::new(&[
        (
            "sums/task.yml",
            "files:\n  - {\"name\": \"submission.py\", \"source\": \"@SUBMISSION@\"}\ntests:\n  - {\"size\": 70, \"seed\": 1}\n\
             benchmarks:\n  - {\"size\": 80, \"seed\": 2}\n",
        ),
        (
            "sums/reference.py",
            "
import numpy as np
def generate_input(size, seed):
    drawn = np.random.default_rng(seed)
    return drawn.standard_normal(size).astype(np.float16), drawn.standard_normal(size, np.float32)
def ref_kernel(data): return data[0].astype(np.float32) + 2 * data[1]
def check_implementation(data, output): return '' if np.allclose(output, ref_kernel(data), 1e-2, 1e-2) else 'no'
",
        ),
    ]);
    let report = audit(&files.open("sums").unwrap(), &|_| {}).unwrap();
    assert_found(
        &report.findings,
        Some("narrower-type"),
        Weight::Note,
        "takes `output` in f16",
    );
}

#[test]
fn a_library_call_that_is_far_faster_than_the_reference_is_offered() {
    if !has("numpy") {
        return;
    }
    let slow = "return {\"c\": np.array([[np.float32(sum(p * q for p, q in zip(row.tolist(), column.tolist()))) for column in b.T] for row in a])}";
    let found = findings(
        "product",
        &[[
            "return {\"c\": (a.astype(np.float64) @ b).astype(np.float32)}",
            slow,
        ]],
    );
    assert_found(
        &found,
        None,
        Weight::Note,
        "`a @ b` of numpy, with `a` for a and `b` for b",
    );
}

#[test]
fn a_reference_that_answers_with_tensors_of_another_library_is_told_so() {
    if !has("torch") {
        return;
    }
    let text = sound("transposed").replace("np.ascontiguousarray(2 * x.T)", "torch.from_numpy(x)");
    let files = Files::new(&[("task.py", &format!("import torch\n{text}"))]);
    let said = files.refused("task.py");
    assert!(said.contains("use one library for both"), "{said}");
}

#[test]
fn the_time_to_make_a_model_is_not_that_of_its_call() {
    if !has("torch") {
        return;
    }
    let report = audited(
        "
import time, torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        time.sleep(0.05)
    def forward(self, x): return torch.sum(x, 1)
def get_inputs(): return [torch.randn(20, 30)]
",
    );
    let is_told = |finding: &Finding| finding.text.contains("times as long");
    assert!(!report.findings.iter().any(is_told), "{:#?}", report.findings);
}
