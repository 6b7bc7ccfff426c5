//! Kernels of the user's beside tasks of other formats: what is accepted, and what is said.

use crate::common::{NORM_SUITE, Place, has_numpy, interpreter, names, repository};

/// A task in the form of GPU MODE: the reference's sums are f64, and the tensor that is handed over for them is f32.
const YML: &str = r#"
lang: "py"
description: "Running sums."
config: {main: "eval.py"}
tests:
  - {"size": 100, "seed": 1}
benchmarks:
  - {"size": 2000, "seed": 2}
"#;

const REFERENCE: &str = r#"
import collections
import numpy as np
Sums = collections.namedtuple("Sums", "sums last")
def generate_input(size, seed):
    return np.random.default_rng(seed).random(size, np.float32), np.empty(size, np.float32)
def ref_kernel(data):
    sums = np.cumsum(data[0], dtype=np.float64)
    return Sums(sums, sums[-1:].copy())
def check_implementation(data, output):
    wanted = ref_kernel(data)
    right = all(np.allclose(one, other, 1e-4) for one, other in zip(output, wanted))
    return right, "the sums differ"
"#;

const SUBMISSION: &str = r#"
import numpy as np
from reference import Sums
def given(data):
    data[1][...] = np.cumsum(data[0], dtype=np.float64)
    return Sums(data[1], data[1][-1:].copy())
def strided(data):
    sums = np.repeat(np.cumsum(data[0]), 2)[::2]
    return sums, sums[-1:]
def exact(data):
    sums = np.cumsum(data[0], dtype=np.float64)
    return sums, sums[-1:].copy()
def coarse(data):
    sums = np.cumsum(data[0]).astype(np.float16)
    return sums, sums[-1:].copy()
def wrong(data):
    sums = np.cumsum(data[0])[::-1].copy()
    return sums, sums[-1:].copy()
"#;

fn place() -> Place {
    let place = Place::new();
    place.write("sums/task.yml", YML);
    place.write("sums/reference.py", REFERENCE);
    place.write("sums/submission.py", SUBMISSION);
    place
}

#[test]
fn a_type_of_elements_that_the_task_s_own_check_accepts_and_a_named_tuple_are_right() {
    if !has_numpy() {
        return;
    }
    let place = place();
    let check = |function: &str| {
        let kernel = format!("sums/submission.py:{function}");
        place.run(&["check", &kernel, "--task", "sums"])
    };
    for function in ["given", "strided", "exact"] {
        let ran = check(function).expect(0);
        assert!(ran.out.contains("2 of 2 comparisons right"), "{}", ran.out);
    }
    let ran = check("coarse").expect(1);
    let said = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("has elements of type float16, but the task's are float64 or float32"),
        "{said}"
    );
    assert!(check("wrong").expect(1).out.contains("not right"));
    let reference = ["check", "sums/reference.py:ref_kernel", "--task", "sums"];
    place.run(&reference).expect(0);
}

/// What PyTorch says where it has no GPU, in one of its words for it.
const WITHOUT_A_GPU: &str = r#"
import sys, types
torch = sys.modules["torch"] = types.ModuleType("torch")
torch.Tensor, torch.manual_seed = type("Tensor", (), {}), lambda seed: None
torch.cuda = types.SimpleNamespace(is_available=lambda: False)
def generate_input(size, seed):
    raise RuntimeError("CUDA driver version is insufficient for CUDA runtime version\nCompile with `TORCH_USE_CUDA_DSA`")
"#;

#[test]
fn a_task_that_wants_a_gpu_says_so_in_a_line() {
    if !has_numpy() {
        return;
    }
    let place = place();
    place.write("sums/reference.py", &format!("{REFERENCE}{WITHOUT_A_GPU}"));
    let ran = place
        .run(&["check", "sums/submission.py:exact", "--task", "sums"])
        .expect(2);
    names(
        &ran,
        &[
            "the task makes CUDA tensors, and there is no GPU",
            "use a machine with an NVIDIA GPU",
        ],
    );
    assert!(!ran.err.contains("TORCH_USE_CUDA_DSA"), "{}", ran.err);
}

#[test]
fn cases_are_listed_without_inputs_and_references() {
    if !has_numpy() {
        return;
    }
    let place = place();
    let fails = "\ndef generate_input(size, seed): raise SystemExit(\"inputs were drawn\")\n";
    place.write("sums/reference.py", &format!("{REFERENCE}{fails}"));
    let ran = place.run(&["suites", "sums"]).expect(0);
    assert!(
        ran.out.contains("size=2000") && ran.out.contains("Running sums."),
        "{}",
        ran.out
    );
    place
        .run(&["check", "sums/submission.py:exact", "--task", "sums"])
        .expect(2);
    place.write(
        "task.py",
        "cases = [{\"n\": 4}]\n\
         def generate(n, seed): raise SystemExit(\"inputs were drawn\")\n\
         def reference(x): return x\n",
    );
    let ran = place.run(&["suites", "task.py"]).expect(0);
    assert!(ran.out.contains("n=4"), "{}", ran.out);
}

#[test]
fn a_worker_is_checked() {
    let Some(python) = interpreter() else { return };
    let place = Place::new();
    place.write("norms.toml", NORM_SUITE);
    let program = std::fs::read_to_string(repository("examples/worker/rms_norm.py")).unwrap();
    let right = place.write("worker", &program);
    let kernel = format!("command: {python} {}", right.display());
    let ran = place.run(&["check", &kernel, "--task", "norms.toml"]).expect(0);
    assert!(ran.out.contains("comparisons right"), "{}", ran.out);
    let wrong = place.write("wrong", &program.replace("np.sqrt(", "np.cbrt("));
    let kernel = format!("command: {python} {}", wrong.display());
    let ran = place.run(&["check", &kernel, "--task", "norms.toml"]).expect(1);
    assert!(ran.out.contains("not right"), "{}", ran.out);
    let ran = place.run(&["check", &kernel]).expect(2);
    names(&ran, &["no task says what this kernel computes", "--task"]);
    let ran = place
        .run(&["check", &kernel, "--task", "norms.toml", "--simd", "avx2"])
        .expect(2);
    names(&ran, &["say nothing about a worker"]);
}

#[test]
fn a_check_of_a_kernel_says_only_what_means_something_for_it() {
    if !has_numpy() {
        return;
    }
    let place = place();
    let check = |kernel: &str| place.run(&["check", kernel, "--task", "sums"]);
    let ran = check("sums/submission.py:exact").expect(0);
    for stranger in ["competition", "SIMD", "schedules", "refused", "without a result"] {
        assert!(!ran.out.contains(stranger), "{stranger} in {}", ran.out);
    }
    place.write(
        "sums/broken.py",
        "import no_such_module\ndef f(data): return data\n",
    );
    let ran = check("sums/broken.py:f").expect(1);
    assert!(
        ran.out.contains("nothing could be compared, 2 builds refused"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("0 of 0"), "{}", ran.out);
    names(&ran, &["sums is not computed rightly by sums/broken.py:f"]);
}

#[test]
fn kernels_of_the_user_s_are_compared_on_a_task_that_is_named() {
    let place = Place::new();
    place.write("k.py", "def f(x): return x\ndef g(x): return x\n");
    for arguments in [
        &["compare", "k.py:f", "k.py:g"][..],
        &["compare", "builtin", "command: python3 worker.py"],
        &["judge", "k.py:f"],
    ] {
        let ran = place.run(arguments).expect(2);
        names(&ran, &["no task says what this kernel computes", "--task"]);
    }
}

#[test]
fn a_returned_list_is_told_to_be_one() {
    if !has_numpy() {
        return;
    }
    let place = Place::new();
    place.write(
        "task.py",
        "import numpy as np\ncases = [{\"n\": 8}]\n\
         def generate(n, seed): return {\"x\": np.random.default_rng(seed).random(n)}\n\
         def reference(x): return {\"y\": 2 * x}\n",
    );
    place.write("k.py", "def f(x): return [2 * value for value in x]\n");
    let ran = place.run(&["check", "k.py:f", "--task", "task.py"]).expect(1);
    let said = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains(
            "returned a list of 8 values, and the task has one output, `y`; return an array of numpy"
        ),
        "{said}"
    );
}

#[test]
fn what_a_compiler_wrote_before_a_build_was_refused_is_shown() {
    if !has_numpy() {
        return;
    }
    let place = place();
    place.write(
        "sums/compiled.py",
        "import os\nos.system(\"echo main.cpp:3: error: c is not declared\")\n\
         raise RuntimeError(\"Error building the extension\")\n\
         def f(data): return data\n",
    );
    let ran = place
        .run(&["check", "sums/compiled.py:f", "--task", "sums"])
        .expect(1);
    let said = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("Error building the extension; the end of its standard error: main.cpp:3: error: c is not declared"),
        "{said}"
    );
}
