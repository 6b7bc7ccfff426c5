//! Kernels that are Python functions: compared, judged, and refused with a message that names the place and the remedy.
//! The tests need a Python with numpy; without one they are skipped unless `GAUNTLET_REQUIRE_NUMPY` is set.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::common::{NORM_SUITE, Place, Ran, has_numpy};
use serde_json::Value;

const KERNELS: &str = r#"
import numpy as np

print("what a kernel prints harms nothing")

def norm(x, weight):
    squares = np.einsum("ij,ij->i", x, x, dtype=np.float64)
    scale = (1 / np.sqrt(squares / x.shape[1] + 1e-5)).astype(np.float32)
    return x * scale[:, None] * weight

def clone(x, weight):
    return norm(x, weight)

def slower(x, weight):
    for _ in range(9):
        norm(x, weight)
    return norm(x, weight)

def in_place(weight, x, y):
    y[...] = norm(x, weight)
    x.fill(0)

def wrong(x, weight):
    return 2 * norm(x, weight)

def shape(x, weight):
    return norm(x, weight)[:1]

def dtype(x, weight):
    return norm(x, weight).astype(np.float64)

def nothing(x, weight):
    norm(x, weight)

def raises(x, weight):
    return x @ weight[:-1]

def leaves(x, weight):
    raise SystemExit(0)

def arity(x, weight, epsilon):
    return norm(x, weight)

def first_time(x, weight, kept=[]):
    """Answers with the result of its first call, so that every timed call is wrong."""
    kept.append(norm(x, weight))
    return kept[0]
"#;

/// A folder with the kernels and the suite; none without numpy.
fn place() -> Option<Place> {
    if !has_numpy() {
        return None;
    }
    let place = Place::new();
    place.write("suite.toml", NORM_SUITE);
    place.write("kernels.py", KERNELS);
    place.write("broken.py", "def fast(x):\n    return (x\n");
    Some(place)
}

fn compare(place: &Place, baseline: &str, candidate: &str) -> Ran {
    compare_within(place, baseline, candidate, "1ms")
}

fn compare_within(place: &Place, baseline: &str, candidate: &str, budget: &str) -> Ran {
    let rest = [
        "--task",
        "suite.toml",
        "--budget",
        budget,
        "--warm",
        "--json",
        "out.json",
    ];
    place.run(&[&["compare", baseline, candidate], &rest[..]].concat())
}

fn written(place: &Place) -> Value {
    serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap()
}

/// The message with the folder's path left out.
fn said(place: &Place, text: &str) -> String {
    let folder = place.folder.path().canonicalize().unwrap();
    let text = text.replace(&format!("{}/", folder.display()), "");
    text.replace(&format!("{}/", place.folder.path().display()), "")
        .trim()
        .to_owned()
}

#[test]
fn a_slower_function_is_found_slower_and_said_to_be_in_plain_words() {
    let Some(place) = place() else { return };
    // The first look decides about a factor of ten. The budget is what a busy machine may need to get there.
    let ran = compare_within(&place, "kernels.py:norm", "kernels.py:slower", "20m").expect(0);
    let record = written(&place);
    assert_eq!(record["verdict"], "regression", "{}", ran.out);
    let interval = &record["comparison"]["assessment"]["suite"];
    assert!(
        interval["lower"].is_number() && interval["upper"].is_number(),
        "{record}"
    );
    assert!(ran.out.contains("slower is slower than norm by "), "{}", ran.out);
}

#[test]
fn a_clone_is_compared_and_not_stopped() {
    let Some(place) = place() else { return };
    let page = place.path("page.html");
    let ran = place.run(&[
        "judge",
        "kernels.py:clone",
        "--baseline",
        "kernels.py:norm",
        "--task",
        "suite.toml",
        "--budget",
        "1s",
        "--json",
        "out.json",
        "--html",
        page.to_str().unwrap(),
    ]);
    let record = written(&place);
    assert!(
        record["comparison"]["assessment"].is_object(),
        "{}\n{record}",
        ran.err
    );
    let gates = record["findings"].as_array().unwrap();
    assert!(
        gates
            .iter()
            .any(|finding| finding["gate"] == "right" && finding["outcome"] == "pass")
    );
    assert!(
        std::fs::read_to_string(page)
            .unwrap()
            .contains("kernels.py:clone against kernels.py:norm")
    );
}

#[test]
fn a_function_may_write_to_the_output_and_spoil_its_inputs() {
    let Some(place) = place() else { return };
    let kernels = ["compare", "builtin", "kernels.py:in_place"];
    let rest = ["--task", "suite.toml", "--budget", "1s", "--json", "out.json"];
    place.run(&[&kernels[..], &rest].concat());
    assert!(written(&place)["comparison"].is_object(), "{}", written(&place));
}

#[test]
fn what_is_wrong_with_a_function_is_a_verdict_with_its_reason() {
    let Some(place) = place() else { return };
    let stopped = |name: &str| {
        compare(&place, "builtin", &format!("kernels.py:{name}")).expect(1);
        let stopped = &written(&place);
        let reason = said(&place, stopped["reason"].as_str().unwrap());
        format!("{}: {reason}", stopped["verdict"].as_str().unwrap())
    };
    let wrong = stopped("wrong");
    assert!(wrong.starts_with("incorrect: odd, competition: "), "{wrong}");
    let kept = stopped("first_time");
    assert!(kept.starts_with("incorrect: "), "{kept}");
    insta::assert_snapshot!(stopped("shape"), @"incorrect: `y` has the shape [1, 67], but the task's is [3, 67]");
    insta::assert_snapshot!(stopped("dtype"), @"incorrect: `y` has elements of type float64, but the task's are float32");
    insta::assert_snapshot!(stopped("nothing"), @"incorrect: the kernel returned None; return `y`");
    let raised = stopped("raises");
    assert!(
        raised.starts_with("incorrect: the kernel raised kernels.py:36: ValueError: matmul"),
        "{raised}"
    );
    insta::assert_snapshot!(stopped("leaves"), @"incorrect: the kernel raised kernels.py:39: SystemExit: 0");
    insta::assert_snapshot!(stopped("arity"), @"does-not-compile: odd: `arity` in kernels.py:41 takes `epsilon`, which the task does not have; its inputs are x, weight, and its outputs y: rename the parameter, or give it a default; the end of its standard error: what a kernel prints harms nothing");
}

#[test]
fn a_check_tells_right_functions_from_wrong_ones_without_timing() {
    let Some(place) = place() else { return };
    for (function, code, said) in [
        ("norm", 0, "right"),
        ("wrong", 1, "tolerance"),
        ("raises", 1, "kernels.py"),
    ] {
        let kernel = format!("kernels.py:{function}");
        let ran = place
            .run(&["check", &kernel, "--task", "suite.toml"])
            .expect(code);
        let all = format!("{}{}", ran.out, ran.err);
        assert!(all.contains(said), "{function}: {all}");
    }
    let ran = place
        .run(&[
            "check",
            "kernels.py:norm",
            "--task",
            "suite.toml",
            "--device",
            "h100",
        ])
        .expect(2);
    assert!(
        ran.folded().contains("say nothing about a Python function"),
        "{}",
        ran.err
    );
}

#[test]
fn what_cannot_be_called_is_bad_input_with_a_remedy() {
    let Some(place) = place() else { return };
    let refused = |kernel: &str| {
        let ran = compare(&place, "builtin", kernel).expect(2);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        said(&place, &ran.folded())
    };
    insta::assert_snapshot!(refused("kernels.py:nrom"), @"× kernels.py has no function `nrom` help: it has norm, clone, slower, in_place, wrong, shape, dtype, nothing, raises, leaves, arity, first_time: write kernels.py:norm");
    insta::assert_snapshot!(refused("kernels.py"), @"× `kernels.py` names no function help: it has norm, clone, slower, in_place, wrong, shape, dtype, nothing, raises, leaves, arity, first_time: write kernels.py:norm");
    insta::assert_snapshot!(refused("nowhere.py:norm"), @"× there is no file nowhere.py help: write a kernel as FILE:FUNCTION, such as softmax.py:fast");
    insta::assert_snapshot!(refused("broken.py:fast"), @"× broken.py:2: '(' was never closed help: correct the line; nothing was run");
    insta::assert_snapshot!(refused("kernels.py:norm: ROWS=4"), @"× `norm` in kernels.py has no parameter `ROWS` help: it has x, weight: add `ROWS` with a default, or leave it out");
    insta::assert_snapshot!(refused("nowhere.so:norm"), @"× there is no file nowhere.so help: write a kernel as FILE:FUNCTION, such as softmax.cu:softmax_kernel");
}

#[test]
fn an_interpreter_that_does_not_work_is_named() {
    let Some(place) = place() else { return };
    let mut command = place.command(&["compare", "builtin", "kernels.py:norm", "--task", "suite.toml"]);
    let ran = Ran::of(
        command
            .env("GAUNTLET_PYTHON", "/nowhere/python")
            .output()
            .unwrap(),
    )
    .expect(2);
    let told = ran.folded();
    assert!(
        told.contains("/nowhere/python does not work: No such file"),
        "{told}"
    );
    assert!(told.contains("GAUNTLET_PYTHON"), "{told}");
}

/// Writes to the folder of its build whenever it has one, which only the build itself may.
const WRITES: &str = r#"
import os
from kernels import norm

if "GAUNTLET_ARTEFACTS" in os.environ:
    with open(os.path.join(os.environ["GAUNTLET_ARTEFACTS"], "note"), "a") as note:
        note.write("built")
"#;

#[test]
fn a_kernel_that_cannot_do_with_reading_its_build_compiles_in_every_trial() {
    let Some(place) = place() else { return };
    place.write("writes.py", WRITES);
    let arguments = [
        "compare",
        "kernels.py:norm",
        "writes.py:norm",
        "--task",
        "suite.toml",
    ];
    let ran = place.run(&[&arguments[..], &["--budget", "1s", "--json", "out.json"]].concat());
    let record = written(&place);
    assert_eq!(record["comparison"]["spent"]["pairs"], 1, "{}\n{record}", ran.err);
    let notice = "the pair is measured once more, and compiles by itself, as every pair from now on";
    // Nothing keeps a worker from writing there on a system without Landlock.
    let enforced = gauntlet_worker::safeguards().into_iter().any(|one| {
        one.what == "writes only in its own folder"
            && matches!(one.standing, gauntlet_worker::Standing::Active(_))
    });
    assert_eq!(ran.folded().contains(notice), enforced, "{}", ran.err);
}

#[test]
fn torch_is_imported_before_a_worker_answers_and_before_its_kernel() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;

    let Some(place) = place() else { return };
    place.write("modules/torch.py", "open('opened', 'w').close()\n");
    for (tensors, opened) in [("cpu", false), ("torch", true)] {
        let mut worker = place
            .command(&["worker", "python", "nowhere.py:f", "--tensors", tensors])
            .env("PYTHONPATH", place.path("modules"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut requests = worker.stdin.take().unwrap();
        writeln!(requests, r#"{{"id":1,"call":"describe"}}"#).unwrap();
        let mut answer = String::new();
        let mut answers = BufReader::new(worker.stdout.take().unwrap());
        answers.read_line(&mut answer).unwrap();
        assert!(answer.contains(r#""device": "host""#), "{answer}");
        assert_eq!(place.path("opened").exists(), opened, "{tensors}");
        drop(requests);
        worker.wait().unwrap();
    }
}

#[test]
fn a_quick_comparison_puts_inputs_right_that_a_kernel_writes_to() {
    let Some(place) = place() else { return };
    let quick = [
        "--task",
        "suite.toml",
        "--quick",
        "--budget",
        "1ms",
        "--json",
        "out.json",
    ];
    let ran = place.run(&[&["compare", "kernels.py:norm", "kernels.py:in_place"], &quick[..]].concat());
    let record = written(&place);
    assert_eq!(record["verdict"], "inconclusive", "{}\n{record}", ran.err);
    assert_eq!(record["comparison"]["spent"]["pairs"], 1);
}

#[test]
fn several_kernels_are_shown_in_one_table_and_share_the_error() {
    let Some(place) = place() else { return };
    let several = [
        "compare",
        "kernels.py:norm",
        "kernels.py:wrong",
        "kernels.py:slower",
    ];
    let rest = [
        "--task",
        "suite.toml",
        "--quick",
        "--budget",
        "20m",
        "--json",
        "out.json",
    ];
    let ran = place.run(&[&several[..], &rest[..]].concat()).expect(1);
    for said in ["wrong", "incorrect", "slower", "regression", "all 2 together"] {
        assert!(ran.out.contains(said), "{}", ran.out);
    }
    let found = &written(&place)["comparisons"];
    assert_eq!(found[0]["verdict"], "incorrect");
    assert_eq!(found[1]["verdict"], "regression");
    assert_eq!(found[1]["criteria"]["confidence"], 0.975);
    let page = place.run(&[&several[..], &["--task", "suite.toml", "--html", "page.html"]].concat());
    assert!(page.expect(2).err.contains("--html shows one comparison"));
}

#[test]
fn one_kernel_is_timed_alone() {
    let Some(place) = place() else { return };
    let time = |kernel| {
        place.run(&[
            "time",
            kernel,
            "--task",
            "suite.toml",
            "--budget",
            "20m",
            "--json",
            "out.json",
        ])
    };
    let ran = time("kernels.py:norm").expect(0);
    assert!(ran.out.contains("processes differ"), "{}", ran.out);
    let found = written(&place);
    let case = &found["cases"][0];
    let processes: Vec<f64> = case["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_f64().unwrap())
        .collect();
    assert!(
        processes.len() >= 4 && processes.iter().all(|seconds| (1e-6..1.0).contains(seconds)),
        "{found}"
    );
    assert_eq!(case["bytes"], 4 * (64 * 512 + 512 + 64 * 512));
    let ran = time("kernels.py:wrong").expect(1);
    assert!(ran.out.contains("kernels.py:wrong"), "{}", ran.out);
}
