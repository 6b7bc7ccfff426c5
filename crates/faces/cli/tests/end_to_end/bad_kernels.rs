//! Errors of kernels and tasks that users write: each is bad input (2) or a finding (1) with the file, the line where there
//! is one, and the remedy.

use crate::common::{Place, Ran, has_numpy, names, repository};

const TASK: &str = "import numpy as np
cases = [{\"rows\": 4, \"cols\": 8}]
def generate(rows, cols, seed):
    return {\"x\": np.random.default_rng(seed).standard_normal((rows, cols), dtype=np.float32)}
def reference(x):
    return x * 2
";

const KERNELS: &str = "def twice(x): return x * 2
def parts(x): return list(x)
def shape(x): return x[:2] * 2
def arity(x, weight): return x
";

/// A folder with a task and kernels in Python, if there is a Python with numpy.
fn place() -> Option<Place> {
    if !has_numpy() {
        return None;
    }
    let place = Place::new();
    place.write("task.py", TASK);
    place.write("kernels.py", KERNELS);
    Some(place)
}

fn check(place: &Place, kernel: &str) -> Ran {
    place.run(&["check", kernel, "--task", "task.py"])
}

#[test]
fn a_result_of_the_wrong_kind_is_a_finding_that_is_told_once() {
    let Some(place) = place() else { return };
    for (kernel, said) in [
        (
            "parts",
            "[1] the kernel returned a list of 4 values, and the task has one output, `output`; return an array",
        ),
        (
            "shape",
            "[1] `output` has the shape [2, 8], but the task's is [4, 8]",
        ),
        (
            "arity",
            "kernels.py:4 takes `weight`, which the task does not have; its inputs are x",
        ),
    ] {
        let ran = check(&place, &format!("kernels.py:{kernel}")).expect(1);
        assert_eq!(ran.out.matches(said).count(), 1, "{said:?} in\n{}", ran.out);
        assert!(ran.out.contains("not right: [1]"), "{}", ran.out);
    }
    check(&place, "kernels.py:twice").expect(0);
}

#[test]
fn an_exception_in_the_reference_is_told_with_its_line() {
    let Some(place) = place() else { return };
    place.write("task.py", &TASK.replace("x * 2", "x.reshape(3)"));
    names(
        &check(&place, "kernels.py:twice").expect(2),
        &[
            "task.py:6: ValueError in the reference",
            "cannot reshape",
            "help: correct the task",
        ],
    );
}

#[test]
fn a_package_that_a_task_needs_is_named_with_the_interpreter() {
    let Some(place) = place() else { return };
    place.write(
        "task.py",
        &TASK.replace("import numpy", "import no_such_package\nimport numpy"),
    );
    names(
        &check(&place, "kernels.py:twice").expect(2),
        &[
            "task.py:1: ModuleNotFoundError",
            "install `no_such_package` for the Python at",
            "GAUNTLET_PYTHON",
        ],
    );
}

#[test]
fn an_unknown_field_of_a_competition_is_told_with_its_line() {
    let Some(place) = place() else { return };
    let fields = "lang: py\ntests: []\nbenchmarks:\n  - {\"size\": 4, \"seed\": 1}\nrankingby: geom\n";
    place.write("race/task.yml", fields);
    names(
        &place
            .run(&["check", "kernels.py:twice", "--task", "race"])
            .expect(2),
        &[
            "task.yml:5: unknown field `rankingby`; did you mean `ranking_by`?",
            "help: remove or correct it",
        ],
    );
}

#[test]
fn a_cuda_kernel_is_not_measured_on_a_cpu() {
    let place = Place::new();
    for name in ["rms_norm.cu", "rms_norm.toml", "sums.cuh"] {
        let text =
            std::fs::read_to_string(repository("crates/judge/hosts/nvrtc/tests/kernels").join(name)).unwrap();
        place.write(name, &text);
    }
    let kernel = "rms_norm.cu:rms_norm";
    names(
        &place
            .run(&[
                "compare",
                kernel,
                kernel,
                "--task",
                "rms-norm",
                "--executor",
                "cpu",
            ])
            .expect(2),
        &[
            "`rms_norm.cu:rms_norm` is a CUDA kernel",
            "leave out --executor cpu",
            "`gauntlet check`",
        ],
    );
    // Where there is no driver, the executor that the kernel needs is what is missing, and no verdict on the kernel.
    let ran = place
        .command(&["compare", kernel, kernel, "--task", "rms-norm", "--pairs", "6"])
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap();
    let ran = Ran::of(ran);
    assert_eq!(ran.code, Some(3), "{}\n{}", ran.out, ran.err);
    names(
        &ran,
        &[
            "the cuda executor cannot run here",
            "`gauntlet doctor` says what is missing",
        ],
    );
}

#[test]
fn a_check_that_would_compute_nothing_says_why() {
    let Some(place) = place() else { return };
    place.write(
        "double.cu",
        "extern \"C\" __global__ void twice(const float* x, float* output) {}\n",
    );
    let table = "[twice]\narguments = [\"x\", \"output\"]\ngrid = 1\nblock = 32\n";
    place.write("double.toml", table);
    names(
        &check(&place, "double.cu:twice").expect(2),
        &[
            " has timed cases only, and those are not interpreted",
            "help: add small correctness cases",
        ],
    );
    place.write("double.toml", &format!("{table}restrictions = [\"rows > 4\"]\n"));
    place.write(
        "task.py",
        &TASK.replace(
            "cases = [{\"rows\": 4, \"cols\": 8}]",
            "cases = {\"correctness\": [{\"rows\": 4, \"cols\": 8}], \"benchmark\": [{\"rows\": 8, \"cols\": 8}]}",
        ),
    );
    names(
        &check(&place, "double.cu:twice").expect(2),
        &[
            " is allowed by the kernel's restrictions",
            "help: check the restrictions in the launch table",
        ],
    );
}

/// A typing error is told as one before anything starts: nothing is measured, and no build server takes it for evidence.
#[test]
fn a_text_that_is_no_kernel_is_bad_input_in_every_command() {
    let Some(place) = place() else { return };
    for name in ["foo.rs", "softmax.cuh"] {
        place.write(name, "");
    }
    for (text, said) in [
        (
            "foo.rs:f",
            ["foo.rs is no kernel", "compile it to a shared library"],
        ),
        (
            "softmax.cuh:k",
            ["softmax.cuh is no kernel", "name that one, as FILE.cu:KERNEL"],
        ),
        (
            "kernels.pyy:fast",
            ["finds no module kernels.pyy", "did you mean `kernels.py`?"],
        ),
        (
            "kernel.py:twice",
            ["there is no file kernel.py", "did you mean `kernels.py`?"],
        ),
        (
            "libnorm.so.2:norm",
            ["there is no file libnorm.so.2", "write a kernel as FILE:FUNCTION"],
        ),
    ] {
        let commands: [&[&str]; 4] = [
            &["compare", "kernels.py:twice", text, "--require", "no-regression"],
            &["compare", text, "kernels.py:twice"],
            &["judge", text],
            &["check", text],
        ];
        for command in commands {
            let ran = place.run(&[command, &["--task", "task.py"]].concat()).expect(2);
            names(&ran, &said);
        }
    }
}

#[test]
fn a_file_says_nothing_about_its_task() {
    let place = Place::new();
    place.write("tuned.toml", "stages = 2");
    for text in [
        "softmax.py:fast",
        "./libx.so.1:f",
        "tuned.toml",
        "dispatch:table.toml",
    ] {
        for command in [["compare", "builtin", text], ["compare", text, "builtin"]] {
            let ran = place.run(&command).expect(2);
            let said = format!("{text}: no task says what this kernel computes");
            names(&ran, &[&said, "name a task with --task"]);
        }
    }
}
