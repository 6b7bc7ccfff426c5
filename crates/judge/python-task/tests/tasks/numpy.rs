//! Tasks with numpy: one file, and a folder with task.toml.

use gauntlet_python_task::{Options, open};
use gauntlet_task::{Coverage, InputKind, InputTensors};
use gauntlet_tensors::DataType;
use serde_json::json;

use super::{Files, computed, fault, has, limits, values};

const SOFTMAX: &str = r#""""Row-wise softmax."""
import numpy as np

cases = {"correctness": [{"rows": 3, "cols": 5}], "benchmark": [{"rows": 64, "cols": 100}]}

def generate(rows, cols, seed):
    print("what a task prints harms nothing")
    return {"x": np.random.default_rng(seed).standard_normal((rows, cols), dtype=np.float32)}

def reference(x):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)

def work(rows, cols):
    return {"flops": 5 * rows * cols}
"#;

#[test]
fn a_task_is_one_file() {
    if !has("numpy") {
        return;
    }
    let files = Files::new(&[("softmax.py", SOFTMAX)]);
    let suite = files.open("softmax.py").unwrap();
    assert_eq!(
        (suite.name.as_str(), suite.description.as_str()),
        ("softmax", "Row-wise softmax.")
    );
    assert_eq!(suite.correctness[0].name, "rows=3,cols=5");
    let sizes = &suite.benchmark[0].sizes;
    assert_eq!(sizes.to_string(), "rows=64, cols=100");
    assert_eq!((sizes.flops(), sizes.bytes()), (Some(32_000), 51_200));
    let told = json!({
        "parameters": { "rows": 64, "cols": 100 }, "library": "numpy", "device": "cpu", "call": "keywords",
        "arguments": { "dict": { "x": { "tensor": "x" } } }, "results": { "tensor": "output" },
    });
    assert_eq!(sizes.record(), told);
    let again = sizes.task().open(&told).unwrap();
    assert_eq!(again.outputs(), sizes.outputs());

    let (inputs, output) = computed(sizes, 7);
    let row: f64 = (0..100).map(|column| output.0[0].get(column)).sum();
    assert!((row - 1.0).abs() < 1e-5, "{row}");
    assert_eq!(fault(sizes, &*inputs, &output), None);
    let mut wrong = output.clone();
    wrong.0[0].set(3, output.0[0].get(3) * 1.01 + 1e-4);
    assert!(
        fault(sizes, &*inputs, &wrong)
            .unwrap()
            .contains("outside the tolerance")
    );
    // The tolerance alone would let zeros pass where results are small.
    let mut zeros = output;
    zeros.0[0].bytes.fill(0);
    assert!(fault(sizes, &*inputs, &zeros).unwrap().starts_with("NRMSE"));
}

#[test]
fn a_seed_gives_the_same_operands_and_another_seed_gives_others() {
    if !has("numpy") {
        return;
    }
    let files = Files::new(&[("softmax.py", SOFTMAX)]);
    let suite = files.open("softmax.py").unwrap();
    let sizes = &suite.correctness[0].sizes;
    let drawn = |seed| values(&*sizes.generate(InputKind::Wide, seed).unwrap(), "x");
    assert_eq!(drawn(u64::MAX), drawn(u64::MAX));
    assert_ne!(drawn(3), drawn(4));
}

#[test]
fn operands_from_a_file_have_the_same_result() {
    if !has("numpy") {
        return;
    }
    let files = Files::new(&[("softmax.py", SOFTMAX)]);
    let suite = files.open("softmax.py").unwrap();
    let sizes = &suite.correctness[0].sizes;
    let (inputs, output) = computed(sizes, 5);
    let path = files.path("operands");
    inputs.save(&path).unwrap();
    let loaded = sizes.load(&path).unwrap();
    assert_eq!(fault(sizes, &*loaded, &output), None);
    let sampled = Coverage::Sampled {
        rows: 2,
        columns: 0,
        seed: 1,
    };
    assert_eq!(sizes.expected(&*loaded, sampled).unwrap().elements(), 10);
}

const SEVERAL: &str = r#"
import numpy as np
cases = [{"n": 1000}]
outputs = ["largest", "place", "odd"]
constant = ["scale"]
def generate(n, seed):
    drawn = np.random.default_rng(seed)
    return {"x": drawn.standard_normal((n, 8)), "scale": np.float32(2.0) * np.ones(1, np.float32), "axis": 1}
def reference(x, axis, scale):
    place = x.argmax(axis)
    largest = np.where(place == 0, np.nan, np.where(place == 1, np.inf, x.max(axis) * scale))
    return largest, place + 2**60, place % 2 == 1
"#;

#[test]
fn outputs_of_several_types_have_their_own_rules() {
    if !has("numpy") {
        return;
    }
    let files = Files::new(&[("several.py", SEVERAL)]);
    let suite = files.open("several.py").unwrap();
    let sizes = &suite.benchmark[0].sizes;
    let types: Vec<_> = sizes
        .outputs()
        .into_iter()
        .map(|spec| (spec.name, spec.data_type))
        .collect();
    let types: Vec<_> = types
        .iter()
        .map(|(name, data_type)| (name.as_str(), *data_type))
        .collect();
    assert_eq!(
        types,
        [
            ("largest", DataType::F64),
            ("place", DataType::I64),
            ("odd", DataType::Bool)
        ]
    );
    assert_eq!(sizes.constant_inputs(), ["scale"]);
    assert_eq!(sizes.record()["arguments"]["dict"]["axis"], json!({ "value": 1 }));

    let inputs = sizes.generate(InputKind::Competition, 1).unwrap();
    let path = files.path("operands");
    inputs.save(&path).unwrap();
    // The expected integers do not fit f64, so the output is made from the same operands in another way.
    let x = values(&*inputs, "x");
    let mut output = gauntlet_task::Output::poisoned(&sizes.outputs());
    for (row, values) in x.chunks_exact(8).enumerate() {
        let place = (0..8)
            .max_by(|one, other| values[*one].total_cmp(&values[*other]))
            .unwrap();
        let largest = match place {
            0 => f64::NAN,
            1 => f64::INFINITY,
            _ => 2.0 * values[place],
        };
        output.0[0].set(row, largest);
        let long = (place as i64 + (1 << 60)).to_le_bytes();
        output.0[1].bytes[8 * row..8 * row + 8].copy_from_slice(&long);
        output.0[2].set(row, (place % 2) as f64);
    }
    assert_eq!(
        fault(sizes, &*inputs, &output),
        None,
        "NaN and infinity are as expected"
    );

    let mut wrong = output.clone();
    wrong.0[1].bytes[0] ^= 1;
    let said = fault(sizes, &*inputs, &wrong).unwrap();
    assert!(said.contains("1 element of `place` differs"), "{said}");
    let mut wrong = output.clone();
    let odd = wrong.0[2].get(0);
    wrong.0[2].set(0, 1.0 - odd);
    assert!(fault(sizes, &*inputs, &wrong).is_some());
    let infinite = (0..1000).find(|row| output.0[0].get(*row).is_infinite()).unwrap();
    let mut wrong = output.clone();
    wrong.0[0].set(infinite, 1.0);
    assert!(
        fault(sizes, &*inputs, &wrong).is_some(),
        "a number where infinity is expected"
    );
    let undefined = (0..1000).find(|row| output.0[0].get(*row).is_nan()).unwrap();
    let mut wrong = output;
    wrong.0[0].set(undefined, 1.0);
    assert!(
        fault(sizes, &*inputs, &wrong).is_some(),
        "a number where NaN is expected"
    );
}

const CHECKED: &str = r#"
import numpy as np
cases = [{"name": "small", "n": 8}]
tolerance = "check"
def generate(n, seed):
    return {"x": np.random.default_rng(seed).integers(0, 99, n)}
def reference(x):
    return {"order": np.argsort(x, kind="stable")}
def check(inputs, output, expected):
    if sorted(output["order"]) != list(range(len(inputs["x"]))):
        return "not a permutation"
    return None if (np.diff(inputs["x"][output["order"]]) >= 0).all() else "not sorted"
"#;

#[test]
fn a_task_s_own_check_can_be_the_rule() {
    if !has("numpy") {
        return;
    }
    let files = Files::new(&[("order.py", CHECKED)]);
    let suite = files.open("order.py").unwrap();
    assert_eq!(suite.benchmark[0].name, "small");
    assert!(
        suite.notes[0].contains("only the task's own `check` decides"),
        "{:?}",
        suite.notes
    );
    let sizes = &suite.benchmark[0].sizes;
    let (inputs, output) = computed(sizes, 1);
    assert_eq!(fault(sizes, &*inputs, &output), None);
    let mut wrong = output.clone();
    let first = wrong.0[0].get(0);
    wrong.0[0].set(1, first);
    let said = fault(sizes, &*inputs, &wrong).unwrap();
    assert_eq!(said, "the task's own check: not a permutation");
}

#[test]
fn a_folder_s_table_gives_cases_and_rules() {
    if !has("numpy") {
        return;
    }
    let table = "
        name = \"scaled\"
        description = \"twice the input\"
        tolerance = { y = { rtol = 0.5, atol = 0.5 } }
        outputs = [\"y\"]
        work = { flops = \"2 * n\" }
        [[correctness]]
        n = 3
        [[benchmark]]
        name = \"large\"
        n = 1000
    ";
    let code = "import numpy as np\ndef generate(n, seed): return {'x': np.full(n, seed, np.float16)}\ndef reference(x): return 2 * x\n";
    let files = Files::new(&[("scaled/task.toml", table), ("scaled/task.py", code)]);
    for name in ["scaled", "scaled/task.toml", "scaled/task.py"] {
        let suite = files.open(name).unwrap();
        assert_eq!(
            (suite.name.as_str(), suite.benchmark[0].name.as_str()),
            ("scaled", "large")
        );
        assert_eq!(suite.benchmark[0].sizes.flops(), Some(2000));
        assert_eq!(suite.correctness[0].sizes.outputs()[0].name, "y");
        let sizes = &suite.benchmark[0].sizes;
        let limits = limits(sizes, &*computed(sizes, 1).0)[0];
        assert_eq!((limits.tolerance.relative, limits.nrmse), (0.5, 0.5));
        assert_eq!(sizes.rules(&gauntlet_task::Rules::default()).inputs.len(), 1);
    }
}

#[test]
fn without_a_reference_the_baseline_is_the_reference() {
    if !has("numpy") {
        return;
    }
    let without = SOFTMAX.replace("def reference", "def other");
    let slow = "def slow(x):\n    return x + 1\n";
    let files = Files::new(&[("softmax.py", &without), ("slow.py", slow)]);
    let options = Options {
        baseline: Some((files.path("slow.py"), "slow".to_owned())),
        ..Options::default()
    };
    let suite = open(&files.path("softmax.py"), &options).unwrap();
    assert!(suite.notes[0].contains("is the reference"), "{:?}", suite.notes);
    let sizes = &suite.correctness[0].sizes;
    let (inputs, output) = computed(sizes, 2);
    let x = values(&*inputs, "x");
    assert_eq!(output.0[0].get(4), f64::from(x[4] as f32 + 1.0));
    insta::assert_snapshot!(files.refused("softmax.py"));
}

#[test]
fn cases_that_are_not_wanted_are_not_generated() {
    if !has("numpy") {
        return;
    }
    let text = SOFTMAX.replace("print(", "assert cols < 100; print(");
    let files = Files::new(&[("softmax.py", &text)]);
    assert!(files.refused("softmax.py").contains("AssertionError"));
    let options = Options {
        cases: vec!["another".to_owned()],
        ..Options::default()
    };
    let suite = open(&files.path("softmax.py"), &options).unwrap();
    let error = suite.benchmark[0].sizes.generate(InputKind::Wide, 1).unwrap_err();
    assert!(error.contains("AssertionError"), "{error}");
}

const STRIDED: &str = r#"
import numpy as np

cases = [{"rows": 3}]

def generate(rows, seed):
    draw = np.random.default_rng(seed)
    whole = draw.standard_normal((8, rows, 2), dtype=np.float32)
    return {"tensor": whole[..., 0].T, "pair": whole.view(np.complex64)[::2, :, 0], "plain": whole}

def reference(tensor, pair, plain):
    return tensor.copy()
"#;

#[test]
fn an_input_that_is_not_row_major_tells_its_strides() {
    if !has("numpy") {
        return;
    }
    let files = Files::new(&[("strided.py", STRIDED)]);
    let sizes = &files.open("strided.py").unwrap().benchmark[0].sizes;
    assert_eq!(sizes.strides("tensor"), [8, 24]);
    assert_eq!(sizes.strides("pair"), [48, 8]);
    assert_eq!(sizes.strides("plain"), [0_i64; 0]);
    assert_eq!(sizes.strides("none"), [0_i64; 0]);
}

const WITH_MODULES: &str = r#"
import statistics

import colours
import numpy as np

cases = [{"rows": 3}]

def generate(rows, seed):
    return {"x": np.random.default_rng(seed).standard_normal(rows)}

def reference(x):
    from inner.scale import SCALE
    return x * SCALE * statistics.mean([colours.ONE, 1])
"#;

/// A file that runs nowhere.
const STRANGER: &str = "raise SystemError('the standard library imports a file of the folder')";

#[test]
fn files_beside_the_task_are_modules_of_its_own_files_only() {
    if !has("numpy") {
        return;
    }
    let files = Files::new(&[
        ("task.py", WITH_MODULES),
        ("colours.py", "ONE = 1"),
        ("fractions.py", STRANGER),
        ("secrets.py", STRANGER),
        ("inner/scale.py", "from twice import SCALE"),
        ("twice.py", "SCALE = 2"),
    ]);
    let sizes = &files.open("task.py").unwrap().benchmark[0].sizes;
    let (inputs, output) = computed(sizes, 7);
    let x = &inputs.downcast::<InputTensors>().unwrap().0[0];
    assert_eq!(output.0[0].get(1), 2.0 * x.get(1));
}
