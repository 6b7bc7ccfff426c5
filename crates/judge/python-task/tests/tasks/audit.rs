//! The audit of tasks: sound ones are left alone, and each way of making one blind is found.

use std::path::Path;

use gauntlet_audit::{AuditReport, Weight, audit};

use super::{Files, has};

/// A sound task of `sound/`.
pub(super) fn sound(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tasks/sound");
    std::fs::read_to_string(folder.join(format!("{name}.py"))).unwrap()
}

pub(super) fn audited(text: &str) -> AuditReport {
    let files = Files::new(&[("task.py", text)]);
    let suite = files.open("task.py").unwrap();
    audit(&suite, &|_| {}).unwrap()
}

const SOUND: [&str; 16] = [
    "softmax",
    "layer_norm",
    "product",
    "graph",
    "attention",
    "histogram",
    "sort",
    "quantise",
    "transposed",
    "row_sums",
    "masked_mean",
    "largest",
    "running_sum",
    "clipped",
    "extremes",
    "resting_bias",
];

#[test]
fn a_sound_task_is_not_accused() {
    if !has("numpy") {
        return;
    }
    for name in SOUND {
        let report = audited(&sound(name));
        let blind: Vec<_> = report
            .findings
            .iter()
            .filter(|finding| finding.weight != Weight::Note)
            .collect();
        assert!(blind.is_empty(), "{name}: {blind:#?}");
        assert_eq!(report.score, Some(1.0), "{name}: {:#?}", report.kernels);
        assert!(report.tried >= 5, "{name}: {:#?}", report.kernels);
    }
}

/// One way of making a sound task blind.
struct Mutation {
    task: &'static str,
    /// What is written in place of what.
    replaced: &'static [[&'static str; 2]],
    /// The name of what is found.
    found: &'static str,
    /// Words of it.
    told: &'static str,
    /// Whether no kernel is adopted then.
    is_blind: bool,
}

const fn blind(
    task: &'static str,
    replaced: &'static [[&'static str; 2]],
    found: &'static str,
    told: &'static str,
) -> Mutation {
    Mutation {
        task,
        replaced,
        found,
        told,
        is_blind: true,
    }
}

const fn noted(
    task: &'static str,
    replaced: &'static [[&'static str; 2]],
    found: &'static str,
    told: &'static str,
) -> Mutation {
    Mutation {
        is_blind: false,
        ..blind(task, replaced, found, told)
    }
}

const WIDE: &str = "{\"rtol\": 1e-2, \"atol\": 1.0, \"nrmse\": 9.0, \"bias\": 9.0}";

/// Each in one way.
const MUTATIONS: [Mutation; 34] = [
    // Limits that let everything pass.
    blind(
        "softmax",
        &[["{\"rtol\": 1e-5, \"atol\": 1e-7}", WIDE]],
        "zeros",
        "zeros for the result",
    ),
    blind(
        "softmax",
        &[
            ["{\"rtol\": 1e-5, \"atol\": 1e-7}", "\"check\""],
            [
                "def generate",
                "def check(inputs, output, expected): return None\n\ndef generate",
            ],
        ],
        "zeros",
        "zeros for the result",
    ),
    blind(
        "softmax",
        &[
            ["{\"rtol\": 1e-5, \"atol\": 1e-7}", "\"check\""],
            [
                "def generate",
                "def check(inputs, output, expected): return None if abs(output[\"y\"].sum() - 16) < 1e-2 else \"no\"\n\ndef generate",
            ],
        ],
        "constant",
        "one constant",
    ),
    blind(
        "product",
        &[[
            "{\"rtol\": 1e-4, \"atol\": 1e-5}",
            "{\"share\": 0.6, \"nrmse\": 9.0, \"bias\": 9.0}",
        ]],
        "first-half",
        "the first half",
    ),
    blind(
        "product",
        &[
            [
                "{\"rtol\": 1e-4, \"atol\": 1e-5}",
                "{\"atol\": 1e-5, \"nrmse\": 9.0, \"bias\": 9.0}",
            ],
            ["return {\"a\": a,", "return {\"a\": np.float32(1e-9) * a,"],
        ],
        "zeros",
        "zeros for the result",
    ),
    blind(
        "histogram",
        &[["def generate", "tolerance = {\"share\": 1.0}\n\ndef generate"]],
        "zeros",
        "zeros",
    ),
    blind(
        "row_sums",
        &[["\"rtol\": 1e-5", "\"rtol\": 0.2"]],
        "constant",
        "one constant",
    ),
    blind(
        "running_sum",
        &[[
            "rng.standard_normal(count, dtype=np.float32)",
            "1 + np.float32(1e-6) * rng.random(count, dtype=np.float32)",
        ]],
        "earlier-result",
        "the result of an earlier call",
    ),
    blind(
        "clipped",
        &[
            ["np.float32(3)", "np.float32(1e-4)"],
            ["np.float32(0)", "np.float32(2)"],
            ["\"rtol\": 1e-5", "\"rtol\": 1e-2"],
        ],
        "constant",
        "one constant",
    ),
    // Draws that do not vary.
    blind(
        "softmax",
        &[["default_rng(seed)", "default_rng(0)"]],
        "same-inputs",
        "the same for 4 seeds",
    ),
    blind(
        "product",
        &[["default_rng(seed)", "default_rng(seed % 3)"]],
        "same-inputs",
        "only 3 different",
    ),
    blind(
        "row_sums",
        &[[
            "default_rng(seed)",
            "default_rng(np.random.default_rng(seed).integers(5))",
        ]],
        "same-inputs",
        "different sets of inputs",
    ),
    blind(
        "graph",
        &[["graph = rng", "graph = np.random.default_rng(7)"]],
        "fixed-input",
        "`i`, `j` had the same values",
    ),
    blind(
        "layer_norm",
        &[
            ["constant = [\"weight\", \"bias\"]", "constant = \"bias\""],
            ["\"weight\": rng.", "\"weight\": np.random.default_rng(1)."],
        ],
        "fixed-input",
        "`weight` had the same values",
    ),
    // Results that do not vary.
    blind(
        "softmax",
        &[[
            "return {\"x\": rng.standard_normal((rows, cols), dtype=np.float32)}",
            "return {\"x\": np.repeat(rng.standard_normal((rows, 1), dtype=np.float32), cols, axis=1)}",
        ]],
        "earlier-result",
        "the result of an earlier call",
    ),
    blind(
        "graph",
        &[["\"v\": rng.standard_normal(edges)", "\"v\": np.zeros(edges)"]],
        "earlier-result",
        "the result of an earlier call",
    ),
    blind(
        "histogram",
        &[[
            "rng.integers(0, bins, count, dtype=np.int32)",
            "rng.permutation(np.arange(count, dtype=np.int32) % bins)",
        ]],
        "earlier-result",
        "the result of an earlier call",
    ),
    blind(
        "sort",
        &[[
            "rng.standard_normal(count, dtype=np.float32)",
            "rng.permutation(count).astype(np.float32)",
        ]],
        "earlier-result",
        "the result of an earlier call",
    ),
    blind(
        "largest",
        &[["return {\"x\": x}", "x[:, 0] = 9\n    return {\"x\": x}"]],
        "earlier-result",
        "the result of an earlier call",
    ),
    blind(
        "clipped",
        &[["np.float32(0)", "np.float32(99)"]],
        "earlier-result",
        "the result of an earlier call",
    ),
    // Inputs on which nothing depends.
    blind(
        "layer_norm",
        &[[
            "\"bias\": rng.standard_normal(cols, dtype=np.float32)",
            "\"bias\": np.zeros(cols, np.float32)",
        ]],
        "ignored-input",
        "nothing depends on `bias`: a kernel that takes it as zeros",
    ),
    blind(
        "layer_norm",
        &[[
            "\"weight\": rng.standard_normal(cols, dtype=np.float32)",
            "\"weight\": np.ones(cols, np.float32)",
        ]],
        "ignored-input",
        "nothing depends on `weight`: a kernel that takes it as ones",
    ),
    blind(
        "layer_norm",
        &[[
            "\"weight\": rng.standard_normal(cols, dtype=np.float32)",
            "\"weight\": np.full(cols, 0.5, np.float32)",
        ]],
        "ignored-input",
        "takes it as 0.5, which it is throughout",
    ),
    blind(
        "layer_norm",
        &[[
            "(centred * scale * weight + bias)",
            "(1e-9 * centred * scale * weight + bias)",
        ]],
        "neighbouring-row",
        "each row",
    ),
    blind(
        "graph",
        &[["\"b\": rng.standard_normal(rows)", "\"b\": np.ones(rows)"]],
        "ignored-input",
        "nothing depends on `b`",
    ),
    blind(
        "attention",
        &[["return {\"q\": q,", "return {\"q\": 0 * q,"]],
        "ignored-input",
        "nothing depends on `q`",
    ),
    noted(
        "masked_mean",
        &[["< 0.7", "< 7"]],
        "ignored-input",
        "nothing depends on `mask`",
    ),
    // A part of the result that is not looked at.
    blind(
        "product",
        &[
            [
                "return {\"a\": a,",
                "a[m // 2:] *= np.float32(1e-9)\n    return {\"a\": a,",
            ],
            ["\"m\": 5", "\"m\": 6"],
        ],
        "first-half",
        "the first half",
    ),
    noted(
        "product",
        &[["return {\"a\": a,", "a[:] = a[:1]\n    return {\"a\": a,"]],
        "",
        "all rows of `c` are the same",
    ),
    blind(
        "attention",
        &[
            ["scale = np.float32(1)", "scale = np.float32(1e-9)"],
            [
                "{\"out\": {\"rtol\": 1e-4, \"atol\": 1e-5}",
                "{\"out\": {\"atol\": 1e-5, \"nrmse\": 9.0, \"bias\": 9.0}",
            ],
        ],
        "ignored-input",
        "nothing depends on `v`",
    ),
    blind(
        "extremes",
        &[[
            "return {\"x\": x}",
            "x[:] = x[:, :1] + np.float32(1e-9) * x\n    return {\"x\": x}",
        ]],
        "other-output",
        "another output",
    ),
    noted(
        "quantise",
        &[[
            "{\"rtol\": 1e-5, \"atol\": 0.0}",
            "{\"rtol\": 5.0, \"nrmse\": 9.0, \"bias\": 9.0}",
        ]],
        "zeros",
        "zeros for `scales`",
    ),
    // Results that are views.
    blind(
        "transposed",
        &[["2 * x.T", "x.T"]],
        "view",
        "`y` is `x` with its axes in another order",
    ),
    blind(
        "sort",
        &[[
            "\"x\": rng.standard_normal(count, dtype=np.float32)",
            "\"x\": np.sort(rng.standard_normal(count, dtype=np.float32))",
        ]],
        "view",
        "`y` is `x` with the same elements",
    ),
];

#[test]
fn each_way_of_making_a_task_blind_is_found() {
    if !has("numpy") {
        return;
    }
    let mut missed = Vec::new();
    for Mutation {
        task,
        replaced,
        found,
        told,
        is_blind,
    } in MUTATIONS
    {
        let mut text = sound(task);
        for [old, new] in replaced {
            assert!(text.contains(old), "{task} has no {old}");
            text = text.replace(old, new);
        }
        let report = audited(&text);
        let weight = if is_blind { Weight::Blind } else { Weight::Note };
        let is_it = |finding: &gauntlet_audit::Finding| {
            finding.name.as_deref().unwrap_or_default() == found
                && finding.text.contains(told)
                && finding.weight == weight
        };
        if !report.findings.iter().any(is_it) || report.is_blind() != is_blind {
            missed.push(format!("{task}, {found}: {:#?}", report.findings));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn what_a_task_accepts_is_told_and_does_not_make_it_blind() {
    if !has("numpy") {
        return;
    }
    let text = sound("transposed").replace("2 * x.T", "x.T");
    let accepting = format!("accepts = \"view\"\n{text}");
    let report = audited(&accepting);
    assert!(!report.is_blind(), "{:#?}", report.findings);
    assert_eq!(report.findings[0].weight, Weight::Accepted);
    let files = Files::new(&[
        ("task.py", &format!("accepts = [\"vew\"]\n{text}")),
        ("other.py", &format!("accepts = 3\n{text}")),
    ]);
    let said = files.refused("task.py");
    assert!(
        said.contains("`accepts` has `vew`, which names nothing") && said.contains("did you mean `view`?"),
        "{said}"
    );
    assert!(
        files
            .refused("other.py")
            .contains("`accepts` is no list of names")
    );
}

#[test]
fn weights_of_a_model_on_which_nothing_depends_are_named() {
    if !has("torch") {
        return;
    }
    let text = "
import torch
class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.randn(9, 1))
        self.linear = torch.nn.Linear(width, width)
        self.norm = torch.nn.LayerNorm(width)
        self.normed = torch.nn.LayerNorm(width, elementwise_affine=False)
    def forward(self, x):
        return self.norm(self.linear(x) + self.normed(x + self.shift))
def get_inputs(): return [torch.randn(9, 40)]
def get_init_inputs(): return [40]
";
    let report = audited(text);
    let texts: Vec<_> = report
        .findings
        .iter()
        .map(|finding| (finding.weight, finding.text.as_str()))
        .collect();
    for told in [
        "nothing depends on `norm.weight`: a kernel that takes it as ones would pass",
        "nothing depends on `norm.bias`: a kernel that takes it as zeros would pass",
    ] {
        let is_told = |(weight, text): &&(Weight, &str)| *weight == Weight::Blind && text.contains(told);
        assert!(texts.iter().any(|one| is_told(&one)), "{texts:#?}");
    }
    assert!(
        !texts.iter().any(|(_, text)| text.contains("depends on `linear")),
        "{texts:#?}"
    );
}
