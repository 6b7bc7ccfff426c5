//! Tasks that are no measure: every face says so, and no kernel is adopted by a blind one.

use crate::common::{Place, Ran, has_numpy, names};

/// A folder with a task and kernels; none without numpy.
fn place(task: &str, kernels: &str) -> Option<Place> {
    if !has_numpy() {
        return None;
    }
    let place = Place::new();
    place.write("task.py", task);
    place.write("kernels.py", kernels);
    Some(place)
}

fn check(place: &Place, kernel: &str) -> Ran {
    place.run(&["check", &format!("kernels.py:{kernel}"), "--task", "task.py"])
}

/// The largest element of a row minus its mean over one column: zero, whatever the input.
const ZERO: &str = r#"
import numpy as np
cases = [{"rows": 64, "width": 256}]
constant = "w"
def generate(rows, width, seed):
    rng = np.random.default_rng(seed)
    return {"x": rng.random((rows, width), dtype=np.float32), "w": rng.random((width, width), dtype=np.float32)}
def reference(x, w):
    most = (x @ w).max(axis=1, keepdims=True)
    return {"y": np.tanh(most - most.mean(axis=1, keepdims=True))}
"#;

const ZERO_KERNELS: &str = "
import numpy as np
def works(x, w):
    most = (x @ w).max(axis=1, keepdims=True)
    return np.tanh(most - most.mean(axis=1, keepdims=True))
def rests(x, w): return np.zeros((len(x), 1), np.float32)
";

#[test]
fn a_kernel_is_not_adopted_where_one_that_computes_nothing_would_pass() {
    let Some(place) = place(ZERO, ZERO_KERNELS) else {
        return;
    };
    let same = "the expected result was the same for ";
    let ran = check(&place, "rests").expect(0);
    assert!(
        ran.out.contains("note: on rows=64, width=256, ") && ran.out.contains(same),
        "{}",
        ran.out
    );
    // The first look decides about such a factor. The budget is what a busy machine may need to get there.
    let kernels = [
        "compare",
        "kernels.py:works",
        "kernels.py:rests",
        "--task",
        "task.py",
    ];
    let options = ["--budget", "20m", "--require", "adopt", "--json", "out.json"];
    let ran = place.run(&[&kernels[..], &options].concat()).expect(4);
    let text = std::fs::read(place.path("out.json")).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(written["verdict"], "blocked", "{} {}", ran.out, ran.err);
    let reason = written["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("adopt is withheld, because the task is blind: on rows=64"),
        "{reason}"
    );
    let notes = written["notes"].to_string();
    assert!(notes.contains(same), "{notes}");
    // The other faces of the same result.
    for (face, file) in [("--html", "page.html"), ("--markdown", "page.md")] {
        place.run(&["report", "out.json", face, file]).expect(0);
        let text = std::fs::read_to_string(place.path(file)).unwrap();
        assert!(text.contains(same), "{face}: {text}");
    }
}

#[test]
fn a_reference_that_is_drawn_anew_is_the_fault_of_the_task() {
    let task = "
import numpy as np
cases = [{'rows': 16, 'cols': 64}]
tolerance = {'rtol': 1e-2, 'atol': 1e-2}
drawn = np.random.default_rng()
def generate(rows, cols, seed):
    return {'x': np.random.default_rng(seed).standard_normal((rows, cols), dtype=np.float32)}
def reference(x):
    return {'y': np.where(drawn.random(x.shape) < 0.2, 0, x / np.float32(0.8)).astype(np.float32)}
";
    let Some(place) = place(task, "def same(x): return x / x.dtype.type(1)\n") else {
        return;
    };
    let told = [
        "the reference gives two results for the same inputs",
        "switch off dropout",
    ];
    names(&check(&place, "same").expect(2), &told);
    let kernels = [
        "compare",
        "kernels.py:same",
        "kernels.py:same",
        "--task",
        "task.py",
    ];
    names(&place.run(&kernels).expect(2), &told);
}

#[test]
fn a_reference_that_overflows_is_noted_and_named_in_errors() {
    let task = "
import numpy as np
cases = [{'rows': 32, 'cols': 128}]
def generate(rows, cols, seed):
    return {'x': (np.random.default_rng(seed).random((rows, cols)) * 100 + 200).astype(np.float16)}
def reference(x):
    with np.errstate(all='ignore'):
        return {'y': x * x / (x * x).sum(axis=1, keepdims=True, dtype=np.float16)}
";
    let kernels = "
import numpy as np
from task import reference
def same(x): return reference(x)['y']
def right(x):
    y = x.astype(np.float64) ** 2
    return (y / y.sum(axis=1, keepdims=True)).astype(np.float16)
";
    let Some(place) = place(task, kernels) else { return };
    let ran = check(&place, "same").expect(0);
    assert!(
        ran.out
            .contains("note: on rows=32, cols=128, the reference is NaN in 4"),
        "{}",
        ran.out
    );
    let ran = check(&place, "right").expect(1);
    let fault = ran.out.split("[1]").last().unwrap();
    assert!(fault.contains("the reference is NaN in 4"), "{}", ran.out);
    // One that is NaN everywhere is no measure at all.
    place.write(
        "task.py",
        &task
            .replace("* 100 + 200", "* 0")
            .replace("(x * x).sum", "(x * x * 0).sum"),
    );
    names(
        &check(&place, "same").expect(2),
        &["the reference is NaN in all elements of `y`"],
    );
}

#[test]
fn a_kernel_that_is_nearer_to_f64_than_the_reference_is_told_so() {
    // A convolution by transforms in f32, beside sums of products.
    let task = "
import numpy as np
cases = [{'n': 2048}]
tolerance = {'rtol': 1e-6, 'atol': 1e-6, 'nrmse': 1e-7}
def generate(n, seed):
    rng = np.random.default_rng(seed)
    return {'x': rng.standard_normal(n, dtype=np.float32), 'w': rng.standard_normal(32, dtype=np.float32)}
def reference(x, w):
    size = len(x) + len(w) - 1
    steps = np.cumsum(np.ones(size, x.dtype))
    return {'y': np.convolve(x, w) + steps * 1000 - steps * 1000}
";
    let kernels = "
import numpy as np
def exact(x, w): return np.convolve(x.astype(np.float64), w).astype(np.float32)
";
    let Some(place) = place(task, kernels) else { return };
    let ran = check(&place, "exact").expect(1);
    assert!(
        ran.out
            .contains("the kernel's result is nearer to it: let the reference compute in f64"),
        "{}",
        ran.out
    );
}

#[test]
fn results_and_inputs_that_hardly_change_are_noted() {
    let sums = "
import numpy as np
cases = [{'rows': 4, 'cols': 400000}]
tolerance = {'rtol': 1e-3, 'atol': 1e-3}
def generate(rows, cols, seed):
    return {'x': np.random.default_rng(seed).standard_normal((rows, cols), dtype=np.float32)}
def reference(x):
    return {'y': np.log(np.exp(x.astype(np.float64)).sum(axis=1)).astype(np.float32)}
";
    let kernels = "
import numpy as np
def constant(x): return np.full(len(x), np.log(x.shape[1]) + 0.5, np.float32)
def softmax(x):
    power = np.exp(x - x.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)
def product(i, j, v, b): return np.bincount(i, weights=v * b[j], minlength=len(b))
";
    let Some(place) = place(sums, kernels) else { return };
    let told = |task: &str, kernel: &str, phrase: &str| {
        place.write("task.py", task);
        let ran = check(&place, kernel).expect(0);
        assert!(ran.out.contains(phrase), "{}", ran.out);
    };
    told(
        sums,
        "constant",
        "was the same for 4 draws of the inputs, or within its limits",
    );
    let no_seed = "
import numpy as np
cases = [{'rows': 16, 'cols': 64}]
def generate(rows, cols, seed):
    return {'x': np.random.default_rng(0).standard_normal((rows, cols), dtype=np.float32)}
def reference(x):
    power = np.exp(x - x.max(axis=1, keepdims=True).astype(np.float64))
    return {'y': (power / power.sum(axis=1, keepdims=True)).astype(np.float32)}
";
    told(no_seed, "softmax", "all inputs were the same for 4 seeds");
    let one_graph = "
import numpy as np
cases = [{'rows': 100, 'edges': 1000}]
def generate(rows, edges, seed):
    graph, rng = np.random.default_rng(7), np.random.default_rng(seed)
    return {'i': graph.integers(0, rows, edges), 'j': graph.integers(0, rows, edges),
            'v': rng.standard_normal(edges), 'b': rng.standard_normal(rows)}
def reference(i, j, v, b):
    return {'y': np.bincount(i, weights=v * b[j], minlength=len(b))}
";
    told(one_graph, "product", "`i`, `j` had the same values for 4 seeds");
}

/// Tasks that take kernels which compute nothing, each with what the audit says of it.
#[test]
fn the_audit_says_what_a_task_cannot_tell() {
    let constant_result = ZERO.replace("(most - most.mean(axis=1, keepdims=True))", "(most * 0)");
    let many = "
import numpy as np
cases = {'correctness': [{'rows': 4, 'cols': 400000}], 'benchmark': [{'rows': 4, 'cols': 400000}]}
tolerance = {'rtol': 1e-3, 'atol': 1e-3}
def generate(rows, cols, seed):
    return {'x': np.random.default_rng(seed).standard_normal((rows, cols), dtype=np.float32)}
def reference(x):
    return {'y': np.log(np.exp(x.astype(np.float64)).sum(axis=1)).astype(np.float32)}
";
    let square = "
import numpy as np
cases = {'correctness': [{'n': 33}], 'benchmark': [{'n': 100}]}
def generate(n, seed):
    return {'x': np.random.default_rng(seed).standard_normal((n, n), dtype=np.float32)}
def reference(x):
    return {'y': np.ascontiguousarray(x.T)}
";
    let no_seed = square
        .replace("default_rng(seed)", "default_rng(0)")
        .replace("(x.T)", "(2 * x)");
    let graph = "
import numpy as np
cases = {'correctness': [{'rows': 20, 'edges': 200}], 'benchmark': [{'rows': 100, 'edges': 900}]}
tolerance = {'rtol': 1e-9, 'atol': 1e-9}
def generate(rows, edges, seed):
    graph, rng = np.random.default_rng(7), np.random.default_rng(seed)
    return {'i': graph.integers(0, rows, edges), 'j': graph.integers(0, rows, edges),
            'v': rng.standard_normal(edges), 'b': rng.standard_normal(rows)}
def reference(i, j, v, b):
    return {'y': np.bincount(i, weights=v * b[j], minlength=len(b))}
";
    let Some(place) = place(many, "") else { return };
    let audited = |task: &str, told: &str| {
        place.write("task.py", task);
        let ran = place.run(&["audit", "task.py"]).expect(1);
        let blind = ran.out.lines().find(|line| line.starts_with("blind: on "));
        assert!(blind.is_some() && ran.out.contains(told), "{}", ran.out);
        assert!(
            ran.out
                .lines()
                .all(|line| line.chars().count() <= 80 || !line.contains('│'))
        );
        assert!(ran.err.contains("the audit is not met"), "{}", ran.err);
    };
    audited(many, "returns one constant for the result would pass");
    audited(&no_seed, "all inputs were the same for");
    audited(graph, "`i`, `j` had the same values for");
    audited(square, "a kernel that returns a view of it moves nothing");
    audited(&constant_result, "the result of an earlier call would pass");
    // The same without a kernel, and what a task says that it knows.
    place.write("task.py", &format!("accepts = 'view'{square}"));
    let ran = place
        .run(&["check", "--task", "task.py", "--json", "checked.json"])
        .expect(0);
    assert!(ran.out.contains("accepted: on n=100, `y` is `x`"), "{}", ran.out);
    let text = std::fs::read(place.path("checked.json")).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(written["audit"]["findings"][0]["weight"], "accepted");
    // A task that tells kernels apart.
    place.write("task.py", &square.replace("(x.T)", "(2 * x.T)"));
    let ran = place.run(&["audit", "task.py", "--json", "audit.json"]).expect(0);
    assert!(ran.out.contains("score 100 %"), "{}", ran.out);
    let text = std::fs::read(place.path("audit.json")).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(
        (&written["schema"], &written["score"]),
        (&"gauntlet/audit/1".into(), &1.0.into())
    );
}

#[test]
fn a_new_task_passes_its_own_audit() {
    let place = Place::new();
    if !has_numpy() {
        return;
    }
    let ran = place.run(&["task", "new", "mine"]).expect(0);
    assert!(ran.out.contains("mine/task.py"), "{}", ran.out);
    let ran = place.run(&["audit", "mine/task.py"]).expect(0);
    assert!(
        ran.out.contains("score 100 %") && !ran.out.contains("\nblind"),
        "{}",
        ran.out
    );
    for kernel in ["plain", "in_place"] {
        place
            .run(&["check", &format!("mine/kernels.py:{kernel}"), "--task", "mine"])
            .expect(0);
    }
    let refused = place.run(&["task", "new", "mine"]).expect(2);
    assert!(refused.err.contains("mine exists"), "{}", refused.err);
    // The same task, whose kernels run on a GPU, or in the interpreter.
    place
        .run(&["task", "new", "folder/other", "--kernels", "cuda"])
        .expect(0);
    for file in [
        "kernels.cu",
        "kernels.toml",
        "task.py",
        "test_task.py",
        "README.md",
    ] {
        let text = std::fs::read_to_string(place.path("folder/other").join(file)).unwrap();
        assert!(!text.contains("NAME"), "{file}: {text}");
    }
    let same = |file: &str| {
        std::fs::read_to_string(place.path(file))
            .unwrap()
            .replace("other", "mine")
    };
    assert_eq!(same("folder/other/task.py"), same("mine/task.py"));
}
